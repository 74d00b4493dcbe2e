"""What a broker asks its controller next, and when: answers and the time go in."""

import itertools

import pytest

from broker.life.heartbeat import NEXT, BrokerState, Lifecycle
from protocol.messages.broker_heartbeat import BrokerHeartbeatResponse

INTERVAL_MS = 2000


def lifecycle() -> Lifecycle:
    return Lifecycle(heartbeat_interval_ms=INTERVAL_MS)


def reply(
    *, caught_up: bool = True, fenced: bool = False, shut_down: bool = False
) -> BrokerHeartbeatResponse:
    return BrokerHeartbeatResponse(is_caught_up=caught_up, is_fenced=fenced, should_shut_down=shut_down)


def running() -> Lifecycle:
    """A broker that has come all the way, at 0 ms."""
    life = lifecycle()
    life.asks()
    life.registered(17)
    life.asks()
    life.answered(reply(fenced=True), 0)
    life.ready()
    life.asks()
    life.answered(reply(), 0)
    assert life.state is BrokerState.RUNNING
    return life


class TestStart:
    def test_it_registers_and_beats_quickly_until_it_has_caught_up(self) -> None:
        life = lifecycle()
        assert (life.state, life.is_registered, life.due_ms) == (BrokerState.STARTING, False, 0)
        life.asks()
        life.registered(17)
        assert (life.broker_epoch, life.is_registered, life.due_ms) == (17, True, 0)
        life.asks()
        assert life.wants_fence
        life.answered(reply(caught_up=False, fenced=True), 100)
        assert (life.state, life.due_ms) == (BrokerState.STARTING, 110)
        life.asks()
        life.answered(reply(fenced=True), 110)
        assert (life.state, life.due_ms) == (BrokerState.RECOVERY, 120)
        life.asks()
        life.answered(reply(fenced=True), 120)
        assert (life.state, life.due_ms) == (BrokerState.RECOVERY, 120 + INTERVAL_MS)
        assert life.wants_fence, "its logs are not there yet"

    def test_it_is_unfenced_as_soon_as_it_can_serve(self) -> None:
        life = lifecycle()
        life.registered(17)
        life.asks()
        life.answered(reply(fenced=True), 0)
        life.asks()
        life.ready()  # while a heartbeat is under way
        life.answered(reply(fenced=True), 5)
        assert life.due_ms == 0, "the next one does not wait"
        assert not life.wants_fence
        life.asks()
        life.answered(reply(), 6)
        assert (life.state, life.due_ms) == (BrokerState.RUNNING, 6 + INTERVAL_MS)

    def test_a_refusal_is_never_followed_by_another_question_at_once(self) -> None:
        life = lifecycle()
        life.asks()
        life.hurry()
        life.failed(1000)
        assert life.due_ms == 1500
        life.asks()
        life.registered(17)
        life.asks()
        life.hurry()
        life.failed(2000)
        assert life.due_ms == 2000 + INTERVAL_MS

    def test_a_node_with_its_own_controller_has_nothing_to_ask(self) -> None:
        life = lifecycle()
        life.adopt(5)
        assert (life.state, life.broker_epoch, life.is_registered) == (BrokerState.RUNNING, 5, True)
        assert not life.wants_fence


class TestRunning:
    def test_fenced_by_silence_it_goes_on_asking(self) -> None:
        life = running()
        life.asks()
        life.answered(reply(fenced=True), 50_000)
        assert (life.state, life.is_fenced, life.wants_fence) == (BrokerState.RUNNING, True, False)
        assert life.due_ms == 50_000 + INTERVAL_MS

    def test_it_registers_again_and_keeps_its_state(self) -> None:
        life = running()
        life.register_again()
        assert (life.is_registered, life.due_ms) == (False, 0)
        life.asks()
        life.registered(99)
        assert (life.broker_epoch, life.state) == (99, BrokerState.RUNNING)


class TestLeaving:
    def test_it_goes_when_the_controller_says_so(self) -> None:
        life = running()
        life.leave()
        assert (life.wants_shut_down, life.due_ms) == (True, 0)
        life.asks()
        life.answered(reply(), 100)
        assert life.due_ms == 150
        life.asks()
        life.answered(reply(), 150)
        assert life.due_ms == 400
        life.asks()
        life.answered(reply(fenced=True, shut_down=True), 3000)
        assert life.state is BrokerState.SHUTTING_DOWN

    def test_who_has_not_begun_need_not_ask(self) -> None:
        life = lifecycle()
        life.leave()
        assert life.state is BrokerState.SHUTTING_DOWN
        life.leave()
        life.end()

    def test_it_may_go_without_leave(self) -> None:
        life = running()
        life.leave()
        life.leave()
        life.end()
        assert life.state is BrokerState.SHUTTING_DOWN


@pytest.mark.parametrize(("before", "after"), [*itertools.product(BrokerState, BrokerState)])
def test_no_other_transition_is_possible(before: BrokerState, after: BrokerState) -> None:
    life = lifecycle()
    life.state = before
    if after in NEXT[before]:
        life._become(after)
        assert life.state is after
    else:
        with pytest.raises(AssertionError):
            life._become(after)
