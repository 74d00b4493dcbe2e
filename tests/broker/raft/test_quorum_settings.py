"""How long who waits in the metadata quorum, as the settings say."""

import pytest
import trio

from broker.network.call import Address
from broker.raft.batches import quorum_records
from broker.raft.voters import VoterEndpoint
from protocol.messages.vote import VoteRequest
from tests.broker.controller.node import CONTROLLER, ControllerNode
from tests.broker.raft.wires import LEADER, FollowingNode, Wires

OTHER = Address("other", 2)


@pytest.fixture
def wires(monkeypatch: pytest.MonkeyPatch) -> Wires:
    return Wires(monkeypatch)


async def seconds_until_it_leads(node: ControllerNode) -> float:
    """From now on; its quorum is at work meanwhile."""
    quorum = node.services.quorum
    before = trio.current_time()
    leads = trio.Event()
    quorum.on_leader_change(lambda: leads.set() if quorum.is_leader else None)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(quorum.run)
        with trio.fail_after(100):
            await leads.wait()
        nursery.cancel_scope.cancel()
    return trio.current_time() - before


@pytest.mark.acts("controller.quorum.election.timeout.ms")
async def test_who_knows_of_no_leader_waits_for_one(wires: Wires, autojump_clock: object) -> None:
    node = ControllerNode({"controller.quorum.election.timeout.ms": "20000"})
    node.start()
    node.services.quorum.resign()
    assert 20 <= await seconds_until_it_leads(node) <= 40


@pytest.mark.acts("controller.quorum.fetch.timeout.ms")
async def test_a_leader_that_does_not_answer_is_waited_for(wires: Wires, autojump_clock: object) -> None:
    node = ControllerNode({"controller.quorum.fetch.timeout.ms": "30000"})
    node.start()
    assert node.services.quorum.become_follower(5, 9, OTHER)
    assert 30 <= await seconds_until_it_leads(node) <= 31
    assert node.services.quorum.epoch == 6


@pytest.mark.acts("controller.quorum.election.backoff.max.ms")
async def test_who_is_not_elected_waits_before_it_tries_again(wires: Wires, autojump_clock: object) -> None:
    tries = {}
    for backoff_ms in ("100", "20000"):
        node = ControllerNode({"controller.quorum.election.backoff.max.ms": backoff_ms})
        node.start()
        raft = node.raft
        other = raft.voters[0]._replace(id=2, endpoints=(VoterEndpoint(CONTROLLER.name, *OTHER),))
        records = quorum_records(1, (raft.voters[0], other))
        raft.log.append_control(records, epoch=raft.epoch, now_ms=0)
        raft.flush()
        node.kill()
        node.start()
        wires.asked.clear()
        with trio.move_on_after(100):
            await node.services.quorum.run()
        assert not node.services.quorum.is_leader
        tries[backoff_ms] = sum(isinstance(request, VoteRequest) for _, _, request in wires.asked)
    assert 4 <= tries["20000"] <= 40
    assert tries["100"] > 20 * tries["20000"]


@pytest.mark.acts("metadata.max.idle.interval.ms")
async def test_a_leader_with_company_writes_now_and_then(wires: Wires, autojump_clock: object) -> None:
    written = {}
    for idle_ms in ("5000", "0"):
        leader = ControllerNode({"metadata.max.idle.interval.ms": idle_ms})
        leader.start()
        wires.nodes[LEADER] = leader
        node = FollowingNode()
        node.start()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(leader.services.quorum.run)
            nursery.start_soon(leader.controller.run)
            nursery.start_soon(node.quorum.run)
            await node.quorum.wait_caught_up()
            before = leader.image.offset
            await trio.sleep(60)
            written[idle_ms] = leader.image.offset - before
            assert node.image.offset == leader.image.offset
            nursery.cancel_scope.cancel()
    assert written["0"] == 0
    assert 8 <= written["5000"] <= 13
