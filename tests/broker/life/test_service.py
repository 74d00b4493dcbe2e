"""A broker's life with a controller on another node, which is played by the test."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, cast

import pytest
import trio
import trio.testing

from broker.controller.start import Node
from broker.errors import KafkaError, StartupError
from broker.life.channel import ControllerChannel
from broker.life.heartbeat import BrokerState
from broker.life.own_epoch import own_broker_epoch
from broker.life.service import LINGER_SECONDS, BrokerLife, open_life
from broker.metadata.feed import Publish
from broker.metadata.image import MetadataImage
from broker.metadata.replay import MetadataChanges
from broker.partitions.directory_news import report_offline
from broker.raft.quorum import Quorum
from protocol.error_codes import ErrorCode
from protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from protocol.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse
from tests.broker.controller.node import CLUSTER_ID, NODE_ID, PLAINTEXT, ControllerNode
from tests.broker.metadata.records import broker, image_of

Clock = trio.testing.MockClock

EPOCH = 100
FENCED = BrokerHeartbeatResponse(is_caught_up=True, is_fenced=True)
UNFENCED = BrokerHeartbeatResponse(is_caught_up=True, is_fenced=False)


class Elsewhere:
    """Another node's controller: ``is_leader`` of the quorum, and the channel to it."""

    def __init__(self) -> None:
        self.is_leader = False
        self.is_away = False
        self.has_unfenced = False
        self.publish: Publish
        """How the cluster's metadata come to the broker."""
        self.asked: list[tuple[float, Any]] = []
        self.registration: Callable[[], Any] = lambda: BrokerRegistrationResponse(broker_epoch=EPOCH)
        self.heartbeat: Callable[[BrokerHeartbeatRequest], Any] = lambda request: (
            FENCED if request.want_fence else UNFENCED
        )

    def on_leader_change(self, _: Callable[[], None]) -> None:
        pass

    async def ask(self, request: Any, *, timeout_seconds: float) -> Any:
        await trio.lowlevel.checkpoint()
        self.asked.append((round(trio.current_time(), 3), request))
        answer = (
            self.registration() if isinstance(request, BrokerRegistrationRequest) else self.heartbeat(request)
        )
        if isinstance(answer, KafkaError):
            await trio.sleep(timeout_seconds)
            raise answer
        if answer is UNFENCED and not self.has_unfenced:
            self.has_unfenced = True
            self.publish(image_of(broker(NODE_ID, epoch=EPOCH)), MetadataChanges())
        return answer

    def times(self, kind: type) -> list[float]:
        return [time for time, request in self.asked if isinstance(request, kind)]


class Broker:
    """A node that has nothing but its directories."""

    def __init__(self, settings: dict[str, str] | None = None) -> None:
        self.node = ControllerNode({"broker.rack": "r1", **(settings or {})})
        self.node.start()
        self.services = self.node.services
        self.services.metadata.image = image_of()
        self.elsewhere = Elsewhere()
        self.elsewhere.publish = self.services.metadata.publish
        self.services.quorum = cast(Quorum, self.elsewhere)
        self.services.channel = cast(ControllerChannel, self.elsewhere)

    def open(self) -> AbstractAsyncContextManager[BrokerLife]:
        directory = self.node.directory
        return open_life(self.services, Node(directory, [directory], False, [PLAINTEXT], []))


REFUSED = BrokerRegistrationResponse(error_code=ErrorCode.DUPLICATE_BROKER_REGISTRATION)
AWAY = KafkaError(ErrorCode.REQUEST_TIMED_OUT)


async def test_from_the_start_to_serving(autojump_clock: Clock) -> None:
    at = Broker()
    async with at.open() as life:
        await life.wait_caught_up()
        (_, registration), (_, first) = at.elsewhere.asked
        assert registration.broker_id == NODE_ID
        assert registration.cluster_id == CLUSTER_ID
        assert registration.rack == "r1"
        assert registration.log_dirs == [at.node.directory.id]
        assert registration.previous_broker_epoch == -1
        assert {feature.name: feature.max_supported_version for feature in registration.features}[
            "metadata.version"
        ] == 33
        (listener,) = registration.listeners
        assert (listener.name, listener.host, listener.port) == ("PLAINTEXT", "broker.example", 9092)
        assert (first.broker_epoch, first.want_fence) == (EPOCH, True)
        await life.serve()
        assert life.state is BrokerState.RUNNING
        assert life.broker_epoch == EPOCH
        await trio.sleep(5)
        assert at.elsewhere.times(BrokerHeartbeatRequest)[-2:] == [2.0, 4.0]


async def test_it_registers_until_the_one_before_it_is_given_up(autojump_clock: Clock) -> None:
    at = Broker()
    refusals = [REFUSED] * 3
    at.elsewhere.registration = lambda: (
        refusals.pop() if refusals else BrokerRegistrationResponse(broker_epoch=EPOCH)
    )
    async with at.open() as life:
        await life.wait_caught_up()
        assert at.elsewhere.times(BrokerRegistrationRequest) == [0.0, 0.5, 1.0, 1.5]
        ids = {
            request.incarnation_id
            for _, request in at.elsewhere.asked
            if isinstance(request, BrokerRegistrationRequest)
        }
        assert len(ids) == 1
    assert "DUPLICATE_BROKER_REGISTRATION" in at.node.lines.getvalue()


@pytest.mark.acts("initial.broker.registration.timeout.ms")
@pytest.mark.parametrize(
    ("answer", "why"), [(REFUSED, "DUPLICATE_BROKER_REGISTRATION"), (AWAY, "REQUEST_TIMED_OUT")]
)
async def test_a_broker_that_cannot_register_ends(answer: object, why: str, autojump_clock: Clock) -> None:
    at = Broker({"initial.broker.registration.timeout.ms": "7000"})
    at.elsewhere.registration = lambda: answer
    with pytest.RaisesGroup(
        pytest.RaisesExc(StartupError, match=f"could not register with a controller in 7000 ms: {why}")
    ):
        async with at.open() as life:
            await life.wait_caught_up()
    assert trio.current_time() == 7


@pytest.mark.acts("broker.heartbeat.interval.ms")
async def test_fenced_by_mistake_it_is_unfenced_again(autojump_clock: Clock) -> None:
    at = Broker({"broker.heartbeat.interval.ms": "500"})
    async with at.open() as life:
        await life.wait_caught_up()
        await life.serve()
        answers: list[Any] = [UNFENCED, FENCED, AWAY]
        at.elsewhere.heartbeat = lambda _: answers.pop() if answers else UNFENCED
        await trio.sleep(2.3)
        assert life.state is BrokerState.RUNNING
        assert answers == []
    lines = at.node.lines.getvalue()
    assert "the controller has fenced this broker" in lines
    assert "unfenced this broker again" in lines


class TestLeaving:
    async def test_with_leave(self, autojump_clock: Clock) -> None:
        at = Broker()
        async with at.open() as life:
            await life.wait_caught_up()
            await life.serve()
            answers = [BrokerHeartbeatResponse(is_fenced=True, should_shut_down=True), UNFENCED]
            at.elsewhere.heartbeat = lambda request: answers.pop() if request.want_shut_down else UNFENCED
            before = trio.current_time()
            await life.leave()
            assert life.state is BrokerState.SHUTTING_DOWN
            assert trio.current_time() == pytest.approx(before + 0.05)
            asked = len(at.elsewhere.asked)
            await trio.sleep(10)
            assert len(at.elsewhere.asked) == asked

    @pytest.mark.acts("broker.session.timeout.ms")
    async def test_a_controller_that_is_away_keeps_nobody_longer_than_a_session(
        self, autojump_clock: Clock
    ) -> None:
        at = Broker({"broker.session.timeout.ms": "12000"})
        async with at.open() as life:
            await life.wait_caught_up()
            await life.serve()
            at.elsewhere.heartbeat = lambda _: AWAY
            before = trio.current_time()
            await life.leave()
            assert trio.current_time() == pytest.approx(before + 12)

    @pytest.mark.acts("controlled.shutdown.enable")
    async def test_without_asking(self, autojump_clock: Clock) -> None:
        at = Broker({"controlled.shutdown.enable": "false"})
        async with at.open() as life:
            await life.wait_caught_up()
            await life.serve()
            await life.leave()
            assert not any(getattr(request, "want_shut_down", False) for _, request in at.elsewhere.asked)

    async def test_before_it_served(self, autojump_clock: Clock) -> None:
        at = Broker()
        async with at.open() as life:
            await life.wait_caught_up()
            await life.leave()
            assert life.state is BrokerState.SHUTTING_DOWN


async def test_unregistered_while_it_runs_it_stays_out(autojump_clock: Clock) -> None:
    at = Broker()
    async with at.open() as life:
        await life.wait_caught_up()
        await life.serve()
        at.elsewhere.heartbeat = lambda _: BrokerHeartbeatResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)
        for _ in range(2):
            at.elsewhere.publish(image_of(), MetadataChanges())
        await trio.sleep(10)
        assert life.broker_epoch == EPOCH
        assert len(at.elsewhere.times(BrokerRegistrationRequest)) == 1
        assert len(at.elsewhere.times(BrokerHeartbeatRequest)) > 5
        assert not life.serves
        assert at.node.lines.getvalue().count("this broker has been unregistered while it runs") == 1
        before = trio.current_time()
        await life.leave()
        assert trio.current_time() == before
        assert life.state is BrokerState.SHUTTING_DOWN


async def test_a_process_that_has_taken_its_id_is_not_mistaken_for_it(autojump_clock: Clock) -> None:
    """It was paused, perhaps, for longer than its session, and somebody has started another one."""
    at = Broker()
    async with at.open() as life:
        at.services.life = life
        await life.wait_caught_up()
        await life.serve()
        at.elsewhere.heartbeat = lambda _: BrokerHeartbeatResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)
        at.elsewhere.publish(image_of(broker(NODE_ID, epoch=EPOCH + 5)), MetadataChanges())
        await trio.sleep(10)
        assert not life.serves
        assert own_broker_epoch(at.services) == life.broker_epoch == EPOCH
        assert at.node.lines.getvalue().count(f"another process has registered as broker {NODE_ID}") == 1
        directory_id = at.node.directory.id
        assert directory_id is not None
        with pytest.raises(KafkaError, match="STALE_BROKER_EPOCH"):
            await report_offline(at.services, directory_id)
        assert at.elsewhere.asked[-1][1].broker_epoch == EPOCH
        before = trio.current_time()
        await life.leave()
        assert trio.current_time() == before


async def test_unregistered_while_it_leaves_it_goes_at_once(autojump_clock: Clock) -> None:
    at = Broker()
    async with at.open() as life:
        await life.serve()
        at.elsewhere.heartbeat = lambda _: BrokerHeartbeatResponse(is_caught_up=True)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(life.leave)
            await trio.sleep(1)
            assert life.state is BrokerState.PENDING_CONTROLLED_SHUTDOWN
            at.elsewhere.publish(image_of(), MetadataChanges())
            before = trio.current_time()
        assert trio.current_time() == before


async def test_metadata_that_come_before_the_answer_count(autojump_clock: Clock) -> None:
    at = Broker()
    at.elsewhere.has_unfenced = True
    at.services.metadata.image = image_of(broker(NODE_ID, epoch=EPOCH))
    async with at.open() as life:
        await life.serve()
        at.elsewhere.publish(image_of(), MetadataChanges())
        assert "this broker has been unregistered while it runs" in at.node.lines.getvalue()


async def test_without_directories_it_registers_again(autojump_clock: Clock) -> None:
    """So it is known when feature levels that know directories come to a cluster (KIP-858)."""
    at = Broker()
    async with at.open() as life:
        await life.wait_caught_up()
        await life.serve()
        at.elsewhere.registration = lambda: BrokerRegistrationResponse(broker_epoch=EPOCH + 5)
        for _ in range(2):
            at.elsewhere.publish(image_of(broker(NODE_ID, epoch=EPOCH, directories=0)), MetadataChanges())
        await trio.sleep(1)
        assert life.broker_epoch == EPOCH + 5
        assert len(at.elsewhere.times(BrokerRegistrationRequest)) == 2
        assert life.state is BrokerState.RUNNING


async def test_a_node_with_its_own_controller_says_nothing_while_all_is_well(autojump_clock: Clock) -> None:
    at = Broker()
    at.elsewhere.is_leader = True
    at.services.metadata.image = at.node.raft.latest
    epoch = at.services.image.brokers[NODE_ID].epoch
    async with at.open() as life:
        await life.wait_caught_up()
        await life.serve()
        await trio.sleep(60)
        at.elsewhere.publish(image_of(), MetadataChanges())  # an operator has unregistered it
        await trio.sleep(60)
        assert at.elsewhere.asked == []
        assert life.broker_epoch == epoch
        at.elsewhere.is_leader = False  # it hands the controller over
        life._wake()
        await trio.sleep(3)
        assert [type(request) for _, request in at.elsewhere.asked] == [BrokerHeartbeatRequest] * 2
        await life.leave()


async def test_a_broker_that_its_own_controller_forgets_says_so_once(autojump_clock: Clock) -> None:
    """Kafka's says every other second that its heartbeat is refused, stays out, and takes minutes to stop."""
    at = Broker()
    at.elsewhere.is_leader = True
    at.services.metadata.image = at.node.raft.latest
    async with at.open() as life:
        await life.serve()
        for _ in range(3):
            at.elsewhere.publish(image_of(broker(2, epoch=7)), MetadataChanges())
            await trio.sleep(60)
        before = trio.current_time()
        await life.leave()
        assert trio.current_time() - before == LINGER_SECONDS
    assert at.elsewhere.asked == []
    (warning,) = [line for line in at.node.lines.lines if line.startswith("WARN")]
    assert "this broker has been unregistered while it runs: no client is sent here" in warning


@pytest.mark.parametrize("is_away", [True, False])
async def test_why_a_controller_that_is_away_takes_nothing_is_told_elsewhere(
    autojump_clock: Clock, is_away: bool
) -> None:
    at = Broker()
    at.elsewhere.is_away = is_away
    at.elsewhere.registration = lambda: AWAY
    async with at.open():
        await trio.sleep(20)
    told = ["WARN  the controller does not take this broker's registration: REQUEST_TIMED_OUT"]
    assert at.node.lines.lines == ([] if is_away else told)
    refused = Broker()
    refused.elsewhere.is_away = is_away
    refused.elsewhere.registration = lambda: REFUSED
    async with refused.open():
        await trio.sleep(20)
    assert "DUPLICATE_BROKER_REGISTRATION" in refused.node.lines.getvalue()


async def test_its_own_controller_lets_a_lone_broker_go_at_once(autojump_clock: Clock) -> None:
    at = Broker()
    at.elsewhere.is_leader = True
    at.services.metadata.image = at.node.raft.latest
    async with at.open() as life:
        await life.leave()
        assert at.elsewhere.asked == []


async def test_the_controller_s_own_broker_goes_when_all_who_want_to_have_gone(autojump_clock: Clock) -> None:
    def cluster(*, leaving: bool, fenced: bool) -> MetadataImage:
        other = broker(2, epoch=7, fenced=fenced)
        other.in_controlled_shutdown = leaving
        return image_of(broker(NODE_ID, epoch=EPOCH), other)

    at = Broker()
    at.elsewhere.is_leader = True
    at.services.metadata.image = cluster(leaving=False, fenced=False)
    at.elsewhere.heartbeat = lambda _: BrokerHeartbeatResponse(is_fenced=True, should_shut_down=True)

    async def stop_the_other() -> None:
        await trio.sleep(0.25)  # it is told a moment later
        at.elsewhere.publish(cluster(leaving=True, fenced=False), MetadataChanges())
        await trio.sleep(3)
        at.elsewhere.publish(cluster(leaving=True, fenced=True), MetadataChanges())

    async with at.open() as life, trio.open_nursery() as nursery:
        await life.serve()
        nursery.start_soon(stop_the_other)
        before = trio.current_time()
        await life.leave()
        assert trio.current_time() == pytest.approx(before + 3.25)
