"""Two controllers, of which one takes over from the other: voters come and go, and elections are held."""

import errno
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
import trio.testing

from broker.controller.decision import Decision
from broker.controller.start import take_lead
from broker.metadata.image import Endpoint, ResourceType
from broker.metadata.topic_names import CLUSTER_METADATA
from broker.network.call import Address
from broker.raft.batches import build_control_batch, leader_change, quorum_records
from broker.raft.quorum import Quorum
from broker.raft.snapshots import BOOTSTRAP as BOOTSTRAP_SNAPSHOT
from broker.raft.snapshots import build_snapshot
from broker.raft.voter_changes import KRaftVersions, open_voter_changes
from broker.raft.voters import Voter, VoterEndpoint, VoterSet
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse, Listener
from protocol.messages.begin_quorum_epoch import BeginQuorumEpochRequest
from protocol.messages.controller_registration import ControllerRegistrationRequest
from protocol.messages.end_quorum_epoch import EndQuorumEpochRequest
from protocol.messages.fetch import FetchRequest
from protocol.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from protocol.messages.update_raft_voter import (
    KRaftVersionFeature,
    UpdateRaftVoterRequest,
    UpdateRaftVoterResponse,
)
from protocol.messages.update_raft_voter import Listener as UpdatedListener
from protocol.messages.vote import (
    VoteRequest,
    VoteRequestPartitionData,
    VoteRequestTopicData,
    VoteResponse,
)
from protocol.stored.metadata_records import ConfigRecord, FeatureLevelRecord
from storage.errors import DiskFailure
from storage.node_files import MetaProperties, read_quorum_state, write_meta_properties
from tests.broker.controller.node import CLUSTER_ID, CONTROLLER, DIRECTORY, METADATA, ControllerNode
from tests.broker.raft.wires import BOOTSTRAP, LEADER, Wires

SECOND = Address("127.0.0.1", 9094)

LONG_SECONDS = 60.0

DIRECTORY_IDS = {1: b"\x01" * 16, 2: b"\x02" * 16}
VOTERS = tuple(
    Voter(node_id, DIRECTORY_IDS[node_id], (VoterEndpoint("CONTROLLER", at.host, at.port),))
    for node_id, at in ((1, LEADER), (2, SECOND))
)
LEVEL_BY_FORMAT = 30

SNAPSHOTS = {
    "metadata.log.max.record.bytes.between.snapshots": "900",
    "metadata.log.max.snapshot.interval.ms": "0",
    "metadata.max.retention.bytes": "1",
    "internal.metadata.log.segment.bytes": "500",
}


class Voting(ControllerNode):
    """A node that is broker and controller, at an address of its own."""

    def __init__(self, node_id: int, at: Address, **settings: str) -> None:
        super().__init__(
            {"process.roles": "broker,controller", **BOOTSTRAP, **settings}, node_id=node_id, seed=node_id
        )
        self.at = at
        self.controller_endpoints = [Endpoint("CONTROLLER", at.host, at.port)]
        self.format = self.format._replace(joins=node_id != 1)
        self._scope = trio.CancelScope()

    @property
    def quorum(self) -> Quorum:
        return self.services.quorum

    @property
    def directory_id(self) -> bytes:
        return self.quorum.directory_id

    def format_for(self, voters: VoterSet) -> None:
        """Format it as one of several that vote from the beginning."""
        node_id = self.services.node_id
        content = build_snapshot(
            [(FeatureLevelRecord(name="metadata.version", feature_level=LEVEL_BY_FORMAT), 0)],
            BOOTSTRAP_SNAPSHOT,
            kraft_version=1,
            voters=voters,
            last_timestamp_ms=0,
            now_ms=0,
        )
        self.file_system.make_directory(METADATA)
        self.file_system.open(f"{METADATA}/{BOOTSTRAP_SNAPSHOT.name}", create=True).pwrite(
            b"".join(content), 0
        )
        write_meta_properties(
            self.file_system, DIRECTORY, MetaProperties(CLUSTER_ID, node_id, DIRECTORY_IDS[node_id])
        )

    async def run(self) -> None:
        """The quorum and the controller at work."""
        self._scope = trio.CancelScope()
        with self._scope:
            async with trio.open_nursery() as nursery, open_voter_changes(self.services) as changes:
                self.services.voter_changes = changes
                nursery.start_soon(self.quorum.run)
                nursery.start_soon(self.controller.run)
                await trio.sleep_forever()

    def end(self) -> None:
        """Do nothing more, at once."""
        self._scope.cancel()

    def crash(self) -> None:
        """End as by ``kill -9``."""
        self.end()
        self.kill()


class Pair:
    """Node 1, which leads, and node 2, which copies its log."""

    def __init__(
        self, wires: Wires, nursery: trio.Nursery, voters: VoterSet = (), /, **settings: str
    ) -> None:
        """``settings`` are those of the second one; ``voters`` both are formatted with, if any."""
        self.wires = wires
        self.first = Voting(1, LEADER)
        self.second = Voting(2, SECOND, **settings)
        self._nursery = nursery
        for node in (self.first, self.second):
            if voters:
                node.format_for(voters)
            self.start(node)

    def start(self, node: Voting) -> None:
        node.start()
        self.wires.nodes[node.at] = node
        self._nursery.start_soon(node.run)

    def start_again(self, node: Voting) -> None:
        """Let a node go on that has ended and is not gone."""
        self._nursery.start_soon(node.run)

    def crash(self, node: Voting) -> None:
        del self.wires.nodes[node.at]
        node.crash()

    async def until(self, holds: Callable[[], object]) -> None:
        with trio.fail_after(LONG_SECONDS):
            while not holds():  # noqa: ASYNC110  # virtual time, and what is waited for tells nobody
                await trio.sleep(0.01)

    async def until_same(self) -> None:
        await self.until(lambda: self.second.image.parts() == self.first.image.parts())

    async def add(self, newcomer: Voting, leader: Voting, *, waits: bool = True) -> ErrorCode:
        request = AddRaftVoterRequest(
            cluster_id=None,
            voter_id=newcomer.services.node_id,
            voter_directory_id=newcomer.directory_id,
            listeners=[Listener(name="CONTROLLER", host=newcomer.at.host, port=newcomer.at.port)],
            ack_when_committed=waits,
        )
        answer = await leader.ask(request, AddRaftVoterResponse, 1, listener=CONTROLLER.name)
        return ErrorCode(answer.error_code)

    async def remove(self, voter: Voting, leader: Voting) -> ErrorCode:
        request = RemoveRaftVoterRequest(
            cluster_id=None, voter_id=voter.services.node_id, voter_directory_id=voter.directory_id
        )
        answer = await leader.ask(request, RemoveRaftVoterResponse, 0, listener=CONTROLLER.name)
        return ErrorCode(answer.error_code)

    async def share(self) -> None:
        """Let both vote."""
        await self.until(lambda: self.second.image.offset >= 0)
        await trio.sleep(0.6)
        assert await self.add(self.second, self.first) == ErrorCode.NONE

    async def until_leads(self, node: Voting) -> None:
        await self.until(lambda: node.controller.is_active)


async def make(node: Voting, name: str) -> None:
    """Let the controller write something down."""
    record = ConfigRecord(
        resource_type=ResourceType.GROUP, resource_name=name, name="consumer.session.timeout.ms", value="1"
    )
    await node.controller.perform(lambda image: Decision([(record, 0)], None))


def made(node: Voting) -> set[str]:
    """What was written down, as far as the node knows."""
    return {name for kind, name in node.image.configs if kind == ResourceType.GROUP}


@pytest.fixture
def wires(monkeypatch: pytest.MonkeyPatch) -> Wires:
    async def kraft_versions(host: str, port: int) -> KRaftVersions:
        return KRaftVersions((0, 1), ErrorCode.NONE)

    monkeypatch.setattr("broker.raft.voter_changes.ask_kraft_versions", kraft_versions)
    return Wires(monkeypatch)


@asynccontextmanager
async def pair_of(wires: Wires, **settings: str) -> AsyncIterator[Pair]:
    async with trio.open_nursery() as nursery:
        yield Pair(wires, nursery, **settings)
        nursery.cancel_scope.cancel()


def asked(wires: Wires, kind: type[Any], of: Address | None = None) -> list[Any]:
    return [
        request
        for _, address, request in wires.asked
        if isinstance(request, kind) and (of is None or address == of)
    ]


class TestComing:
    async def test_a_copy_becomes_a_voter(self, wires: Wires, autojump_clock: object) -> None:
        async with pair_of(wires) as pair:
            await pair.share()
            assert [voter.id for voter in pair.first.quorum.voters] == [1, 2]
            await pair.until(lambda: pair.second.quorum.voters == pair.first.quorum.voters)
            assert pair.second.quorum.is_voter
            await make(pair.first, "t")
            await pair.until_same()
            assert not asked(wires, VoteRequest)
            assert not asked(wires, BeginQuorumEpochRequest)

    async def test_what_one_of_two_has_is_not_committed(self, wires: Wires, autojump_clock: object) -> None:
        async with pair_of(wires) as pair, trio.open_nursery() as nursery:
            await pair.share()
            wires.cut.add(LEADER)
            await trio.sleep(0.6)
            is_made = trio.Event()

            async def make_it() -> None:
                await make(pair.first, "t")
                is_made.set()

            nursery.start_soon(make_it)
            await trio.sleep(0.5)
            assert not is_made.is_set()
            assert "t" not in made(pair.first)
            wires.cut.clear()
            with trio.fail_after(1):
                await is_made.wait()
            assert "t" in made(pair.first)

    async def test_what_comes_before_damage_is_on_the_device_before_it_counts(
        self, wires: Wires, autojump_clock: object
    ) -> None:
        async with pair_of(wires) as pair:
            await pair.share()
            await pair.until_same()
            log = pair.second.quorum.log.log
            told: list[int] = []

            def damage(request: object, answer: Any) -> None:
                if not isinstance(request, FetchRequest):
                    return
                if told:
                    told.append(log.recovery_point - request.topics[0].partitions[0].fetch_offset)
                elif records := bytes(answer.responses[0].partitions[0].records or b""):
                    answer.responses[0].partitions[0].records = records + bytes(100)
                    told.append(0)

            wires.on_answer = damage
            await make(pair.first, "t")
            await pair.until_same()
            assert len(told) > 1
            assert min(told) >= 0

    async def test_one_that_lags_behind_must_wait(self, wires: Wires, autojump_clock: object) -> None:
        async with pair_of(wires) as pair:
            wires.cut.add(LEADER)
            await trio.sleep(0.1)
            assert await pair.add(pair.second, pair.first) == ErrorCode.REQUEST_TIMED_OUT
            wires.cut.clear()
            await pair.share()
            assert await pair.add(pair.second, pair.first) == ErrorCode.DUPLICATE_VOTER

    async def test_an_answer_before_the_commit(self, wires: Wires, autojump_clock: object) -> None:
        async with pair_of(wires) as pair:
            await pair.until(lambda: pair.second.image.offset == pair.first.image.offset)
            await trio.sleep(0.3)
            wires.cut.add(LEADER)
            await trio.sleep(0.6)
            assert await pair.add(pair.second, pair.first, waits=False) == ErrorCode.NONE
            assert await pair.remove(pair.second, pair.first) == ErrorCode.REQUEST_TIMED_OUT
            wires.cut.clear()
            await pair.until(lambda: pair.second.quorum.is_voter)

    async def test_only_a_leader_decides(self, wires: Wires, autojump_clock: object) -> None:
        async with pair_of(wires) as pair:
            await pair.share()
            assert await pair.add(pair.first, pair.second) == ErrorCode.NOT_LEADER_OR_FOLLOWER
            assert await pair.remove(pair.first, pair.second) == ErrorCode.NOT_LEADER_OR_FOLLOWER

    async def test_a_copy_that_may_vote_registers_as_a_controller(
        self, wires: Wires, autojump_clock: object
    ) -> None:
        async with pair_of(wires) as pair:
            await pair.until(lambda: 2 in pair.first.image.controllers)
            told = pair.first.image.controllers[2]
            assert told.incarnation_id == pair.second.quorum.incarnation_id
            assert [(at.name, at.port) for at in told.endpoints] == [("CONTROLLER", SECOND.port)]
            await trio.sleep(10)
            assert len(asked(wires, ControllerRegistrationRequest)) == 1
            pair.crash(pair.second)
            pair.start(pair.second)
            await pair.until(lambda: len(asked(wires, ControllerRegistrationRequest)) == 2)


class TestGoing:
    async def test_the_leader_goes_and_the_other_one_leads_at_once(
        self, wires: Wires, autojump_clock: object
    ) -> None:
        async with pair_of(wires) as pair:
            await make(pair.first, "before")
            await pair.share()
            began = trio.current_time()
            assert await pair.remove(pair.first, pair.first) == ErrorCode.NONE
            await pair.until_leads(pair.second)
            assert trio.current_time() - began < 0.5
            assert len(asked(wires, EndQuorumEpochRequest, SECOND)) == 1
            assert not asked(wires, VoteRequest)
            assert [voter.id for voter in pair.second.quorum.voters] == [2]
            assert pair.second.quorum.epoch == 2
            with pytest.raises(KafkaError, match="NOT_CONTROLLER"):
                await make(pair.first, "refused")
            await make(pair.second, "after")
            await pair.until_same()
            assert {"before", "after"} <= made(pair.first)
            assert not pair.first.quorum.is_voter
            assert (pair.first.quorum.leader_id, pair.first.quorum.epoch) == (2, 2)

    async def test_there_and_back(self, wires: Wires, autojump_clock: object) -> None:
        async with pair_of(wires) as pair:
            await pair.share()
            assert await pair.remove(pair.first, pair.first) == ErrorCode.NONE
            await pair.until_leads(pair.second)
            await pair.until(lambda: pair.first.quorum.leader_id == 2)
            await make(pair.second, "there")
            await pair.until_same()
            await trio.sleep(0.6)
            assert await pair.add(pair.first, pair.second) == ErrorCode.NONE
            assert await pair.remove(pair.second, pair.second) == ErrorCode.NONE
            await pair.until_leads(pair.first)
            await make(pair.first, "back")
            await pair.until_same()
            assert {"there", "back"} <= made(pair.second)
            assert pair.first.quorum.epoch == 3

    async def test_the_other_one_goes_again(self, wires: Wires, autojump_clock: object) -> None:
        async with pair_of(wires) as pair:
            await pair.share()
            assert await pair.remove(pair.second, pair.first) == ErrorCode.NONE
            pair.crash(pair.second)
            await make(pair.first, "alone")
            await trio.sleep(10)
            assert pair.first.controller.is_active

    async def test_a_leader_that_stops_leaves_the_other_one_in_its_place(
        self, wires: Wires, autojump_clock: object
    ) -> None:
        async with pair_of(wires) as pair:
            await pair.share()
            began = trio.current_time()
            await pair.first.quorum.leave()
            assert trio.current_time() - began < 0.5
            await pair.until_leads(pair.second)
            pair.crash(pair.first)
            await trio.sleep(1)
            assert pair.second.controller.is_active

    async def test_who_votes_alone_stays(self, wires: Wires, autojump_clock: object) -> None:
        async with pair_of(wires) as pair:
            await trio.sleep(0.1)
            assert await pair.remove(pair.first, pair.first) == ErrorCode.VOTER_NOT_FOUND


class TestCrashes:
    async def test_of_two_none_leads_alone(self, wires: Wires, autojump_clock: object) -> None:
        async with pair_of(wires) as pair:
            await pair.share()
            pair.crash(pair.second)
            await pair.until(lambda: not pair.first.controller.is_active)
            assert trio.current_time() < 10
            await trio.sleep(20)
            assert not pair.first.quorum.is_leader
            assert pair.first.quorum.epoch == 2, "it has given its own up, and asking costs none"
            with pytest.raises(KafkaError, match="NOT_CONTROLLER"):
                await make(pair.first, "t")

    async def test_they_go_on_when_both_are_there_again(self, wires: Wires, autojump_clock: object) -> None:
        async with pair_of(wires) as pair:
            await pair.share()
            await make(pair.first, "before")
            pair.crash(pair.second)
            await trio.sleep(10)
            pair.start(pair.second)
            await pair.until(lambda: pair.first.controller.is_active or pair.second.controller.is_active)
            leader = pair.first if pair.first.controller.is_active else pair.second
            await make(leader, "after")
            await pair.until_same()
            assert {"before", "after"} <= made(pair.first)

    @pytest.mark.parametrize("seed", range(5))
    async def test_the_old_leader_goes_on_as_a_follower_or_is_elected(
        self, wires: Wires, autojump_clock: object, seed: int
    ) -> None:
        async with pair_of(wires) as pair:
            pair.first.services.identifiers.random.seed(seed)
            pair.second.services.identifiers.random.seed(100 + seed)
            await pair.share()
            await make(pair.first, "before")
            pair.crash(pair.first)
            await trio.sleep(seed)
            assert not pair.second.controller.is_active, "it has one vote of two"
            pair.start(pair.first)
            await pair.until(lambda: pair.first.controller.is_active or pair.second.controller.is_active)
            leader = pair.first if pair.first.controller.is_active else pair.second
            await make(leader, "after")
            await pair.until_same()
            assert {"before", "after"} <= made(leader)
            assert leader.quorum.epoch >= 2

    @pytest.mark.parametrize("dies", [False, True])
    async def test_a_former_leader_ends_its_epoch_before_it_asks_for_votes(
        self, wires: Wires, autojump_clock: object, dies: bool
    ) -> None:
        """A node of Kafka's that has fetched from the leader of an epoch grants nothing more in it."""
        async with pair_of(wires) as pair:
            await pair.share()
            epoch = pair.first.quorum.epoch
            pair.crash(pair.second)
            if dies:
                pair.crash(pair.first)
                pair.start(pair.first)
            await pair.until(lambda: asked(wires, VoteRequest, SECOND))
            (partition,) = asked(wires, VoteRequest, SECOND)[0].topics[0].partitions
            assert partition.pre_vote
            assert partition.replica_epoch == epoch + 1

    async def test_one_that_resigns_before_it_has_published_anything_goes_on(
        self, wires: Wires, autojump_clock: object
    ) -> None:
        """Both were started anew, and their logs begin with a snapshot."""
        async with pair_of(wires, **SNAPSHOTS) as pair:
            await pair.share()
            for number in range(40):
                await make(pair.first, f"t{number}")
            await pair.until_same()
            await trio.sleep(1)
            pair.crash(pair.first)
            second = pair.second
            pair.crash(second)
            pair.start(second)
            second.end()
            assert second.quorum.log.log.log_start > 0
            second.quorum.vote(second.quorum.epoch + 1, 2, second.directory_id)
            take_lead(second.services, elected_in=second.quorum.epoch)
            assert second.image.offset == -1
            second.quorum.resign()
            pair.start(pair.first)
            pair.start_again(second)
            await pair.until(lambda: pair.first.controller.is_active or second.controller.is_active)
            await pair.until(lambda: "t39" in made(second))
            await pair.until_same()

    async def test_who_lacks_records_is_not_elected(self, wires: Wires, autojump_clock: object) -> None:
        """What the leader has written and the other one not is uncommitted, but may not be lost by a vote."""
        async with pair_of(wires) as pair, trio.open_nursery() as nursery:
            await pair.share()
            await trio.sleep(0.6)
            wires.cut.update((LEADER, SECOND))
            await trio.sleep(0.6)

            async def make_it() -> None:
                with pytest.raises(KafkaError, match="NOT_CONTROLLER"):
                    await make(pair.first, "undecided")

            nursery.start_soon(make_it)
            await pair.until(lambda: not pair.first.controller.is_active)
            await trio.sleep(10)
            wires.cut.clear()
            await pair.until_leads(pair.first)
            await pair.until_same()
            assert "undecided" in made(pair.second)
            assert not pair.second.controller.is_active

    async def test_an_answer_about_nothing_is_no_vote(self, wires: Wires, autojump_clock: object) -> None:
        async with pair_of(wires) as pair:
            await pair.share()

            def empty(request: object, answer: Any) -> None:
                if isinstance(request, VoteRequest):
                    answer.topics[0].partitions = []

            wires.on_answer = empty
            pair.crash(pair.first)
            pair.start(pair.first)
            await trio.sleep(10)
            assert len(asked(wires, VoteRequest)) > 2
            assert not pair.first.controller.is_active
            assert not pair.second.controller.is_active
            wires.on_answer = lambda request, answer: None
            await pair.until(lambda: pair.first.controller.is_active or pair.second.controller.is_active)

    async def test_a_vote_is_remembered(self, wires: Wires, autojump_clock: object) -> None:
        async with pair_of(wires) as pair:
            await pair.share()
            pair.crash(pair.first)
            await trio.sleep(5)
            pair.start(pair.first)
            await pair.until(lambda: pair.first.controller.is_active or pair.second.controller.is_active)
            leads_first = pair.first.controller.is_active
            follower = pair.second if leads_first else pair.first
            state = read_quorum_state(follower.file_system, METADATA)
            assert state is not None
            assert state.leader_epoch == follower.quorum.epoch

    async def test_a_vote_that_cannot_be_noted_leaves_the_one_before(
        self, wires: Wires, autojump_clock: object
    ) -> None:
        """A full disk keeps the node in its epoch, in which it has voted already."""
        async with pair_of(wires) as pair:
            await pair.share()
            second = pair.second
            second.end()

            async def grants(candidate_id: int, epoch: int) -> bool:
                partition = VoteRequestPartitionData(
                    replica_epoch=epoch, replica_id=candidate_id, last_offset_epoch=1, last_offset=1000
                )
                request = VoteRequest(
                    cluster_id=None,
                    topics=[VoteRequestTopicData(topic_name=CLUSTER_METADATA, partitions=[partition])],
                )
                answer = await second.ask(request, VoteResponse, 2, listener=CONTROLLER.name)
                return bool(answer.topics and answer.topics[0].partitions[0].vote_granted)

            assert await grants(3, epoch=5)
            second.file_system.refuse("write", errno.ENOSPC, path_suffix="quorum-state.tmp")
            with pytest.raises(DiskFailure):
                await grants(4, epoch=6)
            assert not await grants(4, epoch=5)
            assert await grants(3, epoch=5)
            assert await grants(4, epoch=6)

    async def test_a_voter_that_does_not_ask_is_told_who_leads(
        self, wires: Wires, autojump_clock: object
    ) -> None:
        async with pair_of(wires) as pair:
            await pair.share()
            wires.cut.add(LEADER)
            await pair.until(lambda: asked(wires, BeginQuorumEpochRequest, SECOND))
            wires.cut.clear()
            await pair.until(lambda: pair.second.quorum.leader_id == 1)
            assert pair.first.controller.is_active


class TestInitialControllers:
    async def test_of_two_one_is_elected_and_puts_both_into_the_log(
        self, wires: Wires, autojump_clock: object
    ) -> None:
        """The directories are as kafka-storage formats them with --initial-controllers."""
        async with trio.open_nursery() as nursery:
            pair = Pair(wires, nursery, VOTERS)
            await pair.until(lambda: pair.first.controller.is_active or pair.second.controller.is_active)
            leader, other = pair.first, pair.second
            if other.controller.is_active:
                leader, other = other, leader
            await pair.until(lambda: leader.image.metadata_version)
            await pair.until_same()
            for node in (leader, other):
                assert [voter.id for voter in node.quorum.voters] == [1, 2]
                assert node.quorum.kraft_version == 1
                assert node.image.metadata_version == LEVEL_BY_FORMAT
            assert not leader.raft.replicas.is_alone
            nursery.cancel_scope.cancel()

    def test_what_is_cut_from_the_log_leaves_what_the_format_says(self) -> None:
        node = Voting(1, LEADER)
        node.format_for(VOTERS)
        node.start()
        followed = node.quorum.followed
        assert followed is not None
        first = build_control_batch(
            [leader_change(2, [1, 2]), *quorum_records(1, VOTERS)], base_offset=0, epoch=1, now_ms=0
        )
        followed.append(first, epoch_max=1)
        followed.truncate(0, 0)
        assert (followed.voters, followed.kraft_version) == (VOTERS, 1)


class TestUpdates:
    async def test_a_voter_says_where_it_listens_now(self, wires: Wires, autojump_clock: object) -> None:
        async with pair_of(wires) as pair:
            await pair.share()
            request = UpdateRaftVoterRequest(
                cluster_id=None,
                current_leader_epoch=1,
                voter_id=2,
                voter_directory_id=pair.second.directory_id,
                listeners=[UpdatedListener(name="CONTROLLER", host="elsewhere", port=1)],
                kraft_version_feature=KRaftVersionFeature(max_supported_version=1),
            )

            async def update(changed: UpdateRaftVoterRequest) -> Any:
                return await pair.first.ask(changed, UpdateRaftVoterResponse, 0, listener=CONTROLLER.name)

            answer = await update(request)
            assert answer.error_code == ErrorCode.NONE
            assert (answer.current_leader.leader_id, answer.current_leader.port) == (1, LEADER.port)
            await pair.until(lambda: pair.second.quorum.voters[1].endpoints[0].host == "elsewhere")
            request.current_leader_epoch = 7
            assert (await update(request)).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
            request.current_leader_epoch = 1
            request.voter_id = 3
            assert (await update(request)).error_code == ErrorCode.VOTER_NOT_FOUND
            request.listeners = []
            assert (await update(request)).error_code == ErrorCode.INVALID_REQUEST

    async def test_one_that_is_back_elsewhere_is_found_there(
        self, wires: Wires, autojump_clock: object
    ) -> None:
        async with pair_of(wires) as pair:
            await pair.share()
            pair.crash(pair.second)
            pair.second.at = Address("127.0.0.1", 9095)
            pair.second.controller_endpoints = [Endpoint("CONTROLLER", "127.0.0.1", 9095)]
            pair.start(pair.second)
            await pair.until(lambda: pair.first.quorum.voter_address(2) == pair.second.at)
            await trio.sleep(5)
            assert len(asked(wires, UpdateRaftVoterRequest)) == 1


class TestJoining:
    @pytest.mark.acts("controller.quorum.auto.join.enable")
    async def test_a_controller_votes_by_itself(self, wires: Wires, autojump_clock: object) -> None:
        async with pair_of(wires, **{"controller.quorum.auto.join.enable": "true"}) as pair:
            await pair.until(lambda: pair.second.quorum.is_voter)
            await trio.sleep(10)
            assert len(asked(wires, AddRaftVoterRequest)) == 1
            await make(pair.first, "t")
            await pair.until_same()
