"""Fetching from a leader that tests play: which requests come, and what becomes of the answers."""

import errno
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from broker.network.node_client import NodeUnreachable
from broker.partitions.follower import Follower
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from protocol.schema import Message
from protocol.stored.metadata_records import PartitionChangeRecord, PartitionRecord, TopicRecord
from protocol.uuids import ZERO_UUID
from storage.errors import CorruptFile
from storage.memory_filesystem import MemoryFileSystem
from storage.partition_log import PartitionLog
from tests.broker.partitions.one_broker import NODE_ID, PATH, OneBroker, one_broker, setting_records, settle
from tests.storage.builders import World, batch

LEADER = 2
OTHER = 3


class FakeLeader:
    """Answers from logs of its own, as a leader that keeps one session does."""

    def __init__(self) -> None:
        self.logs: dict[tuple[bytes, int], PartitionLog] = {}
        self.names: dict[bytes, str] = {}
        self.requests: list[FetchRequest] = []
        self.versions: list[int | None] = []
        self.timeouts: list[float] = []
        self.offsets_asked: list[tuple[int, str, int]] = []
        """Timestamp, topic and leader epoch of ListOffsets."""
        self.asked: dict[tuple[bytes, int], FetchPartition] = {}
        self.answer_with: Callable[[FetchRequest], FetchResponse] | None = None
        self.errors: dict[tuple[bytes, int], int] = {}
        self.is_reachable = True
        self.news = trio.Event()
        self.closed = 0
        self._epoch = 0
        self._told: dict[tuple[bytes, int], int] = {}

    def append(self, key: tuple[bytes, int], *contents: bytes, epoch: int = 0) -> None:
        self.logs[key].append_as_leader(batch(*contents), epoch, now_ms=0)
        self.logs[key].advance_high_watermark(self.logs[key].log_end)
        self.wake()

    def wake(self) -> None:
        self.news.set()
        self.news = trio.Event()

    # The client

    async def ask(self, request: Message, *, version: int | None = None, timeout_seconds: float) -> Any:
        await trio.lowlevel.checkpoint()
        if not self.is_reachable:
            raise NodeUnreachable("nobody is there")
        if isinstance(request, ListOffsetsRequest):
            return self._list_offsets(request)
        assert isinstance(request, FetchRequest)
        assert version is not None
        request = FetchRequest.decode(request.encode(version), version)
        self.requests.append(request)
        self.versions.append(version)
        self.timeouts.append(timeout_seconds)
        if self.answer_with is not None:
            return self.answer_with(request)
        if request.session_epoch == 0:
            self._epoch = 0
            self.asked.clear()
            self._told.clear()
        assert request.session_epoch == self._epoch, "requests of a session are counted"
        self._epoch += 1
        for topic in request.topics:
            for partition in topic.partitions:
                self.asked[topic.topic_id, partition.partition] = partition
        for forgotten in request.forgotten_topics_data:
            for index in forgotten.partitions:
                del self.asked[forgotten.topic_id, index]
        with trio.move_on_after(request.max_wait_ms / 1000):
            while not (answers := self._read()):
                await self.news.wait()
        return FetchResponse(session_id=9, responses=answers)

    def _read(self) -> list[FetchableTopicResponse]:
        found = []
        for key, asked in self.asked.items():
            data = PartitionData(partition_index=key[1])
            log = self.logs[key]
            if (error := self.errors.get(key)) is not None:
                data.error_code = error
                self._told[key] = -1
                found.append(FetchableTopicResponse(topic_id=key[0], partitions=[data]))
                continue
            data.high_watermark, data.log_start_offset = log.high_watermark, log.log_start
            if asked.last_fetched_epoch >= 0:
                epoch, end = log.end_offset_for_epoch(asked.last_fetched_epoch)
                if epoch < asked.last_fetched_epoch or end < asked.fetch_offset:
                    data.diverging_epoch = EpochEndOffset(epoch=epoch, end_offset=end)
            if data.diverging_epoch.epoch < 0 and asked.fetch_offset < log.log_end:
                piece = log.read(asked.fetch_offset, asked.partition_max_bytes)
                assert piece is not None
                data.records = memoryview(piece.read())
            if data.records or data.diverging_epoch.epoch >= 0 or self._told.get(key) != log.high_watermark:
                self._told[key] = log.high_watermark
                found.append(FetchableTopicResponse(topic_id=key[0], partitions=[data]))
        return found

    def _list_offsets(self, request: ListOffsetsRequest) -> ListOffsetsResponse:
        assert request.replica_id == NODE_ID
        answer = ListOffsetsResponse()
        for topic in request.topics:
            (topic_id,) = [key for key, name in self.names.items() if name == topic.name]
            partitions = []
            for asked in topic.partitions:
                self.offsets_asked.append((asked.timestamp, topic.name, asked.current_leader_epoch))
                log = self.logs[topic_id, asked.partition_index]
                offset = log.log_end if asked.timestamp == -1 else log.log_start
                partitions.append(
                    ListOffsetsPartitionResponse(partition_index=asked.partition_index, offset=offset)
                )
            answer.topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=partitions))
        return answer

    def close(self) -> None:
        self.closed += 1


class FakeNodes:
    def __init__(self) -> None:
        self.leaders = {LEADER: FakeLeader(), OTHER: FakeLeader()}
        self.clients: list[tuple[int, str]] = []

    def new_fetcher_client(self, broker_id: int, purpose: str) -> FakeLeader:
        self.clients.append((broker_id, purpose))
        return self.leaders[broker_id]


class Scene:
    """A broker, and the leaders of what it follows."""

    def __init__(self, broker: OneBroker, nodes: FakeNodes) -> None:
        self.broker = broker
        self.nodes = nodes
        self.leader = nodes.leaders[LEADER]
        self._topics = 0

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        *,
        leader: int = LEADER,
        epoch: int = 0,
        directory: bytes = ZERO_UUID,
        **settings: str,
    ) -> bytes:
        self._topics += 1
        topic_id = self._topics.to_bytes(16, "big")
        for fake in self.nodes.leaders.values():
            fake.names[topic_id] = name
            for index in range(partitions):
                fake.logs[topic_id, index] = World().create()
        self.broker.apply(
            TopicRecord(name=name, topic_id=topic_id),
            *(
                PartitionRecord(
                    partition_id=index,
                    topic_id=topic_id,
                    replicas=[leader, NODE_ID] if leader != NODE_ID else [NODE_ID, LEADER],
                    isr=[leader, NODE_ID] if leader != NODE_ID else [NODE_ID, LEADER],
                    leader=leader,
                    leader_epoch=epoch,
                    directories=[ZERO_UUID, directory] if leader != NODE_ID else [directory, ZERO_UUID],
                )
                for index in range(partitions)
            ),
            *setting_records(name, {key.replace("_", "."): value for key, value in settings.items()}),
        )
        return topic_id

    def change_leader(self, topic_id: bytes, leader: int, partition: int = 0) -> None:
        self.broker.apply(PartitionChangeRecord(partition_id=partition, topic_id=topic_id, leader=leader))

    def follower(self, topic: str, partition: int = 0) -> Follower:
        return self.broker.partitions.follower_at((topic, partition))

    def log(self, topic: str, partition: int = 0) -> PartitionLog:
        return self.broker.partitions.local_log(topic, partition)

    async def wait_for_pauses(self) -> None:
        """Let a pause after an error be over, whatever it is."""
        await trio.sleep(1.5)
        await settle()


@asynccontextmanager
async def scene(
    *, file_system: MemoryFileSystem | None = None, paths: Sequence[str] = (PATH,), **settings: str
) -> AsyncGenerator[Scene]:
    given = {name.replace("_", "."): value for name, value in settings.items()}
    async with one_broker(given, file_system=file_system, paths=paths) as broker:
        nodes = FakeNodes()
        broker.nodes = nodes
        yield Scene(broker, nodes)


def same(first: PartitionLog, second: PartitionLog) -> bool:
    def content(log: PartitionLog) -> bytes:
        found = log.read(log.log_start, 1 << 30)
        return b"" if found is None else found.read()

    return content(first) == content(second) and first.log_end == second.log_end


@pytest.fixture
def clock(autojump_clock: MockClock) -> MockClock:
    return autojump_clock


async def test_a_partition_of_several_replicas_is_followed(clock: MockClock) -> None:
    async with scene() as it:
        topic_id = it.create_topic("t", epoch=3)
        it.leader.append((topic_id, 0), b"a", b"b", epoch=3)
        await settle()
        assert same(it.log("t"), it.leader.logs[topic_id, 0])
        assert it.log("t").high_watermark == 2
        first, second = it.leader.requests[:2]
        assert it.nodes.clients == [(LEADER, "fetcher-0")]
        assert it.leader.versions[0] == 17, "what the lowest level of metadata.version says"
        epoch = it.broker.image.brokers[NODE_ID].epoch
        assert (first.replica_state.replica_id, first.replica_state.replica_epoch) == (NODE_ID, epoch)
        assert (first.max_wait_ms, first.min_bytes, first.max_bytes) == (500, 1, 10 << 20)
        (asked,) = first.topics[0].partitions
        assert (asked.current_leader_epoch, asked.fetch_offset, asked.last_fetched_epoch) == (3, 0, -1)
        assert (asked.log_start_offset, asked.partition_max_bytes) == (0, 1 << 20)
        (asked,) = second.topics[0].partitions
        assert (asked.fetch_offset, asked.last_fetched_epoch) == (2, 3)
        assert (second.session_id, second.session_epoch) == (9, 1)
        it.leader.append((topic_id, 0), b"c", epoch=3)
        await settle()
        assert it.log("t").log_end == 3


async def test_only_what_has_changed_is_named(clock: MockClock) -> None:
    async with scene() as it:
        topic_id = it.create_topic("t", 3)
        await trio.sleep(1)
        it.leader.append((topic_id, 1), b"a")
        await settle()
        last = [request for request in it.leader.requests if request.topics][-1]
        assert [[p.partition for p in topic.partitions] for topic in last.topics] == [[1]]
        count = len(it.leader.requests)
        await trio.sleep(2)
        idle = it.leader.requests[count:]
        assert 3 <= len(idle) <= 5
        assert not any(request.topics for request in idle)


async def test_a_partition_that_comes_need_not_wait_for_the_answer_about_others(clock: MockClock) -> None:
    async with scene() as it:
        it.create_topic("t")
        await trio.sleep(1)
        topic_id = it.create_topic("u")
        it.leader.append((topic_id, 0), b"a")
        await trio.sleep(0.1)
        assert it.log("u").log_end == 1
        assert any(len(each.topics) == 2 and each.session_epoch == 0 for each in it.leader.requests)


async def test_many_partitions_that_come_one_by_one_are_not_named_anew_each_time(clock: MockClock) -> None:
    async with scene() as it:
        it.create_topic("t", 100)
        await trio.sleep(1)
        count = len(it.leader.requests)
        for number in range(40):
            it.create_topic(f"u{number}")
            await trio.sleep(0.05)
        anew = [each for each in it.leader.requests[count:] if each.session_epoch == 0]
        assert 2 <= len(anew) <= 10  # in 2 s, at intervals of 0.2 s and more
        assert len(anew[0].topics) == 2, "the first need not wait"


async def test_the_leader_hears_of_a_log_start_that_moved_here(clock: MockClock) -> None:
    async with scene() as it:
        topic_id = it.create_topic("t")
        it.leader.append((topic_id, 0), b"a", b"b")
        await settle()
        it.log("t").delete_records_before(1)
        await trio.sleep(1.1)
        assert it.leader.asked[topic_id, 0].log_start_offset == 1


@pytest.mark.acts("num.replica.fetchers")
async def test_num_replica_fetchers_share_the_partitions_of_a_leader(clock: MockClock) -> None:
    async with scene(num_replica_fetchers="2") as it:
        seen: list[FetchRequest] = []

        def answer(request: FetchRequest) -> FetchResponse:
            seen.append(request)
            raise NodeUnreachable("the fake does not tell sessions apart")

        it.leader.answer_with = answer
        it.create_topic("t", 4)
        await trio.sleep(5)
        assert sorted(it.nodes.clients) == [(LEADER, "fetcher-0"), (LEADER, "fetcher-1")]
        named = {
            tuple(sorted(partition.partition for topic in request.topics for partition in topic.partitions))
            for request in seen[-4:]
        }
        assert sorted(named) == [(0, 2), (1, 3)]
        it.broker.config.apply_dynamic({"num.replica.fetchers": "1"}, {})
        it.broker.partitions.fetchers.apply_settings()
        await trio.sleep(5)
        assert sorted(partition.partition for topic in seen[-1].topics for partition in topic.partitions) == [
            0,
            1,
            2,
            3,
        ]


async def test_a_leader_that_is_not_there_is_asked_again_after_pauses(clock: MockClock) -> None:
    async with scene() as it:
        it.leader.is_reachable = False
        topic_id = it.create_topic("t")
        await settle()
        await trio.sleep(10)
        it.leader.is_reachable = True
        it.leader.append((topic_id, 0), b"a")
        await it.wait_for_pauses()
        assert it.log("t").log_end == 1
        it.leader.is_reachable = False
        it.leader.wake()
        await trio.sleep(10)
        it.leader.is_reachable = True
        it.leader.append((topic_id, 0), b"b")
        it.broker.register(LEADER)
        await settle()
        assert it.log("t").log_end == 2, "who has registered again is asked at once"


@pytest.mark.acts(
    "replica.fetch.max.bytes",
    "replica.fetch.min.bytes",
    "replica.fetch.response.max.bytes",
    "replica.fetch.wait.max.ms",
    "replica.socket.timeout.ms",
)
async def test_how_much_is_asked_for_and_how_long_it_is_waited_for(clock: MockClock) -> None:
    async with scene(
        replica_fetch_max_bytes="1001",
        replica_fetch_min_bytes="5",
        replica_fetch_response_max_bytes="3003",
        replica_fetch_wait_max_ms="77",
        replica_socket_timeout_ms="4000",
    ) as it:
        it.create_topic("t")
        await settle()
        request = it.leader.requests[0]
        assert (request.max_wait_ms, request.min_bytes, request.max_bytes) == (77, 5, 3003)
        assert request.topics[0].partitions[0].partition_max_bytes == 1001
        assert it.leader.timeouts[0] == 4


@pytest.mark.acts("replica.fetch.backoff.ms")
@pytest.mark.parametrize(("backoff_ms", "times"), [(1000, range(100, 108)), (10_000, range(14, 22))])
async def test_how_long_a_leader_is_left_alone(clock: MockClock, backoff_ms: int, times: range) -> None:
    async with scene(replica_fetch_backoff_ms=str(backoff_ms)) as it:
        it.create_topic("t")
        asked = 0

        def refuse(_: FetchRequest) -> FetchResponse:
            nonlocal asked
            asked += 1
            raise NodeUnreachable("not now")

        it.leader.answer_with = refuse
        await trio.sleep(100)
        assert asked in times


async def test_errors_of_one_partition_do_not_hold_the_others(clock: MockClock) -> None:
    async with scene() as it:
        topic_id = it.create_topic("t", 2)
        it.leader.errors[topic_id, 0] = ErrorCode.UNKNOWN_LEADER_EPOCH
        await settle()
        it.leader.append((topic_id, 0), b"a")
        it.leader.append((topic_id, 1), b"a")
        await settle()
        assert (it.log("t", 0).log_end, it.log("t", 1).log_end) == (0, 1)
        assert (topic_id, 0) not in it.leader.asked
        await trio.sleep(5)
        count = sum(
            partition.partition == 0
            for request in it.leader.requests
            for topic in request.topics
            for partition in topic.partitions
        )
        assert 5 <= count <= 12
        del it.leader.errors[topic_id, 0]
        await it.wait_for_pauses()
        assert it.log("t", 0).log_end == 1


async def test_a_fenced_follower_waits_for_another_leadership(clock: MockClock) -> None:
    async with scene() as it:
        topic_id = it.create_topic("t", epoch=3)
        it.leader.errors[topic_id, 0] = ErrorCode.FENCED_LEADER_EPOCH
        await settle()
        count = len(it.leader.requests)
        await trio.sleep(60)
        assert not any(request.topics for request in it.leader.requests[count:])
        del it.leader.errors[topic_id, 0]
        it.leader.append((topic_id, 0), b"a", epoch=4)
        it.change_leader(topic_id, LEADER)
        await settle()
        assert it.log("t").log_end == 1


async def test_another_leader_is_fetched_from_by_another_fetcher(clock: MockClock) -> None:
    async with scene() as it:
        topic_id = it.create_topic("t")
        it.leader.append((topic_id, 0), b"a")
        await settle()
        other = it.nodes.leaders[OTHER]
        other.append((topic_id, 0), b"a")
        other.append((topic_id, 0), b"b", epoch=1)
        it.change_leader(topic_id, OTHER)
        await settle()
        assert same(it.log("t"), other.logs[topic_id, 0])
        assert it.leader.closed == 1, "nothing is left to fetch from there"
        it.change_leader(topic_id, -1)
        await settle()
        assert other.closed == 1
        assert it.follower("t").leader_id == -1


async def test_a_log_that_has_diverged_is_cut_between_two_checkpoints(clock: MockClock) -> None:
    async with scene() as it:
        topic_id = it.create_topic("t", 2)
        for index in range(2):
            it.leader.append((topic_id, index), b"a")
            it.leader.append((topic_id, index), b"b")
        await settle()
        other = it.nodes.leaders[OTHER]
        for index in range(2):
            it.log("t", index).flush()
            other.append((topic_id, index), b"a")
            other.append((topic_id, index), b"c", epoch=1)
            it.change_leader(topic_id, OTHER, index)
        threads = it.broker.threads_run
        await settle()
        for index in range(2):
            assert same(it.log("t", index), other.logs[topic_id, index])
            assert it.log("t", index).leader_epochs.entries == ((0, 0), (1, 1))
        assert it.log("t").recovery_point == 1
        assert it.broker.threads_run - threads == 2, "one checkpoint before and one after, for both"


async def test_what_came_with_a_divergence_is_told_again(clock: MockClock) -> None:
    """The leader's session takes its high watermark and log start for known then."""
    async with scene() as it:
        topic_id = it.create_topic("t")
        for content in (b"a", b"b"):
            it.leader.append((topic_id, 0), content)
        await settle()
        it.log("t").assign_leader_epoch(1)  # as one that led for a moment, and wrote nothing
        other = it.nodes.leaders[OTHER]
        for content in (b"a", b"b"):
            other.append((topic_id, 0), content)
        other.logs[topic_id, 0].assign_leader_epoch(2)
        other.logs[topic_id, 0].delete_records_before(1)
        it.change_leader(topic_id, OTHER)
        await trio.sleep(2)
        assert (it.log("t").log_start, it.log("t").high_watermark) == (1, 2)
        assert other.asked[topic_id, 0].log_start_offset == 1


async def test_a_cut_waits_until_there_is_room_for_its_checkpoints(clock: MockClock) -> None:
    async with scene() as it:
        topic_id = it.create_topic("t")
        for content in (b"a", b"b"):
            it.leader.append((topic_id, 0), content)
        await settle()
        other = it.nodes.leaders[OTHER]
        other.append((topic_id, 0), b"a")
        other.append((topic_id, 0), b"c", epoch=1)
        for _ in range(3):
            it.broker.file_system.refuse(
                "write", errno.ENOSPC, path_suffix="recovery-point-offset-checkpoint.tmp"
            )
        it.change_leader(topic_id, OTHER)
        await trio.sleep(0.1)
        assert it.log("t").log_end == 2
        await trio.sleep(20)
        assert not it.broker.file_system.refuses
        assert same(it.log("t"), other.logs[topic_id, 0])


async def test_a_damaged_log_does_not_hold_up_others(
    clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with scene() as it:
        topic_id = it.create_topic("t", 2)
        await settle()

        def refuse(*_: object, **__: object) -> None:
            raise CorruptFile("t-0", "nobody expected this")

        monkeypatch.setattr(it.log("t", 0), "writes_of", refuse)
        for index in range(2):
            it.leader.append((topic_id, index), b"a")
        await trio.sleep(1)
        assert it.log("t", 1).log_end == 1
        assert it.follower("t", 0).has_failed
        assert "nobody expected this" in it.broker.lines.getvalue()


async def test_who_leads_again_while_its_log_is_cut_waits_for_that(clock: MockClock) -> None:
    async with scene() as it:
        topic_id = it.create_topic("t")
        it.leader.append((topic_id, 0), b"a")
        it.leader.append((topic_id, 0), b"b")
        await settle()
        other = it.nodes.leaders[OTHER]
        other.append((topic_id, 0), b"a")
        it.broker.hold_threads()
        it.change_leader(topic_id, OTHER)
        other.logs[topic_id, 0].assign_leader_epoch(1)
        await settle()
        assert it.follower("t").is_busy
        it.change_leader(topic_id, NODE_ID)
        with pytest.raises(KafkaError) as refused:
            it.broker.partitions.leader("t", 0)
        assert refused.value.code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        it.broker.release_threads()
        await settle()
        leader = it.broker.partitions.open_leader(("t", 0))
        assert leader is not None
        assert leader.log.log_end == 2, "the cut had not begun"


async def test_a_topic_that_is_deleted_while_its_log_is_cut_is_gone(clock: MockClock) -> None:
    async with scene() as it:
        topic_id = it.create_topic("t")
        it.leader.append((topic_id, 0), b"a")
        it.leader.append((topic_id, 0), b"b")
        await settle()
        it.broker.hold_threads()
        it.nodes.leaders[OTHER].logs[topic_id, 0].assign_leader_epoch(1)
        it.change_leader(topic_id, OTHER)
        await settle()
        it.broker.delete_topic(topic_id)
        new_id = it.create_topic("t")
        it.leader.append((new_id, 0), b"new")
        it.broker.release_threads()
        await settle()
        assert same(it.log("t"), it.leader.logs[new_id, 0])


async def test_a_leader_that_has_lost_records_is_followed_in_that(clock: MockClock) -> None:
    """OFFSET_OUT_OF_RANGE and a shorter log: an unclean election."""
    async with scene() as it:
        topic_id = it.create_topic("t")
        for content in (b"a", b"b", b"c"):
            it.leader.append((topic_id, 0), content)
        await settle()
        it.leader.errors[topic_id, 0] = ErrorCode.OFFSET_OUT_OF_RANGE
        it.leader.logs[topic_id, 0].truncate_to(1, now_ms=0)
        it.leader.wake()
        await settle()
        assert it.log("t").log_end == 1
        assert it.leader.offsets_asked[:2] == [(-1, "t", 0), (-2, "t", 0)]


async def test_a_leader_whose_log_starts_later_is_followed_from_there(clock: MockClock) -> None:
    async with scene() as it:
        topic_id = it.create_topic("t")
        it.leader.append((topic_id, 0), b"a")
        await settle()
        log = it.leader.logs[topic_id, 0]
        log.truncate_fully_and_start_at(7, now_ms=0)
        it.leader.errors[topic_id, 0] = ErrorCode.OFFSET_OUT_OF_RANGE
        it.leader.wake()
        await settle()
        del it.leader.errors[topic_id, 0]
        it.leader.append((topic_id, 0), b"b")
        await it.wait_for_pauses()
        assert same(it.log("t"), log)
        assert it.log("t").log_start == 7


async def test_a_log_may_start_inside_a_batch(clock: MockClock) -> None:
    async with scene() as it:
        topic_id = it.create_topic("t")
        it.leader.append((topic_id, 0), b"a", b"b", b"c")
        log = it.leader.logs[topic_id, 0]
        log.delete_records_before(2)
        it.leader.errors[topic_id, 0] = ErrorCode.OFFSET_OUT_OF_RANGE
        await settle()
        assert it.log("t").log_end == 2
        del it.leader.errors[topic_id, 0]
        it.leader.wake()
        await it.wait_for_pauses()
        assert (it.log("t").log_start, it.log("t").log_end) == (2, 3)


async def test_a_session_that_is_refused_begins_anew(clock: MockClock) -> None:
    async with scene() as it:
        topic_id = it.create_topic("t")
        await settle()
        it.leader.answer_with = lambda _: FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        it.leader.wake()
        await trio.sleep(3)
        count = len(it.leader.requests)
        assert count < 30, "not in a tight loop"
        it.leader.answer_with = None
        it.leader.append((topic_id, 0), b"a")
        await it.wait_for_pauses()
        assert it.log("t").log_end == 1


async def test_followers_flush_before_the_leader_hears_of_it(clock: MockClock) -> None:
    async with scene() as it:
        topic_id = it.create_topic("t", flush_messages="1")
        await settle()
        it.broker.hold_threads()
        it.leader.append((topic_id, 0), b"a")
        await settle()
        assert it.log("t").log_end == 1
        assert it.leader.asked[topic_id, 0].fetch_offset == 0
        it.broker.release_threads()
        await settle()
        assert it.leader.asked[topic_id, 0].fetch_offset == 1
        assert it.log("t").recovery_point == 1


async def test_a_full_disk_is_tried_again(clock: MockClock) -> None:
    async with scene() as it:
        topic_id = it.create_topic("t")
        await settle()
        for _ in range(3):
            it.broker.file_system.refuse("write", errno.ENOSPC, path_suffix=".log")
        it.leader.append((topic_id, 0), b"a")
        await settle()
        assert it.log("t").log_end == 0
        await it.wait_for_pauses()
        assert it.log("t").log_end == 1


@pytest.mark.acts("follower.replication.throttled.rate", "follower.replication.throttled.replicas")
async def test_a_throttled_replica_has_to_wait_while_it_is_behind(clock: MockClock) -> None:
    async with scene(replica_fetch_max_bytes="1000") as it:
        it.broker.config.apply_dynamic({"follower.replication.throttled.rate": "500"}, {})
        topic_id = it.create_topic("t", 2, follower_replication_throttled_replicas=f"0:{NODE_ID},1:77")
        await settle()
        for _ in range(20):
            for index in range(2):
                it.leader.append((topic_id, index), bytes(930))
        start_ms = it.broker.clock.wall_ms
        reached = {}
        for seconds in range(1, 60):
            await trio.sleep(1)
            it.broker.clock.wall_ms = start_ms + 1000 * seconds
            reached[seconds] = it.log("t").log_end
        assert it.log("t", 1).log_end == 20
        assert reached[2] < 5 <= reached[15] < 12
        assert reached[59] == 20
        assert it.follower("t").is_in_sync
        it.leader.append((topic_id, 0), bytes(930))
        await settle()
        it.leader.append((topic_id, 0), bytes(930))
        await settle()
        assert it.log("t").log_end == 22, "who is in sync does not wait"


# Roles


async def test_roles_follow_the_image(clock: MockClock) -> None:
    async with scene() as it:
        topic_id = it.create_topic("t", leader=NODE_ID)
        await settle()
        leader = it.broker.partitions.open_leader(("t", 0))
        assert leader is not None, "it watches who is in sync, so nobody has to ask for it"
        it.change_leader(topic_id, LEADER)
        assert leader.ended is not None
        follower = it.follower("t")
        assert follower.log is leader.log
        it.leader.append((topic_id, 0), b"a", epoch=1)
        await settle()
        assert follower.log.log_end == 1
        it.change_leader(topic_id, NODE_ID)
        again = it.broker.partitions.leader("t", 0)
        assert again.log is follower.log
        assert follower.ended is not None
        assert again.log.leader_epochs.latest == 2
        await settle()
        assert it.leader.closed == 1


async def test_an_answer_that_comes_too_late_is_not_written(clock: MockClock) -> None:
    async with scene() as it:
        topic_id = it.create_topic("t", 2)
        await settle()
        it.change_leader(topic_id, NODE_ID)
        it.leader.append((topic_id, 0), b"a")
        await settle()
        assert it.broker.partitions.leader("t", 0).log.log_end == 0


@pytest.mark.parametrize("then", ["leads", "is deleted", "follows another"])
async def test_what_is_being_written_is_finished_before_anything_else(clock: MockClock, then: str) -> None:
    async with scene() as it:
        topic_id = it.create_topic("t", 2)  # the fetcher goes on for the other
        await settle()
        it.broker.hold_threads()
        it.leader.append((topic_id, 0), bytes(200_000))
        await settle()
        follower = it.follower("t")
        assert follower.is_busy
        assert follower.log.log_end == 0
        if then == "is deleted":
            it.broker.delete_topic(topic_id)
            it.broker.release_threads()
            await settle()
            assert "t-0" not in it.broker.file_system.list_directories("/data")
            return
        it.change_leader(topic_id, NODE_ID if then == "leads" else OTHER)
        other = it.nodes.leaders[OTHER]
        other.append((topic_id, 0), b"b", epoch=1)
        await settle()
        if then == "leads":
            assert it.broker.partitions.open_leader(("t", 0)) is None
        it.broker.release_threads()
        await settle()
        if then == "leads":
            leader = it.broker.partitions.open_leader(("t", 0))
            assert leader is not None
            assert leader.log.log_end == 1
            assert leader.log.leader_epochs.entries == ((0, 0), (1, 1))
        else:
            assert same(it.log("t"), other.logs[topic_id, 0])
        assert not it.log("t").is_being_written


async def test_a_replica_that_is_not_wanted_any_more_goes(clock: MockClock) -> None:
    async with scene() as it:
        topic_id = it.create_topic("t")
        it.leader.append((topic_id, 0), b"a")
        await settle()
        follower = it.follower("t")
        it.broker.move_replicas(topic_id, [LEADER, OTHER])
        assert follower.ended is not None
        assert [name for name in it.broker.file_system.list_directories("/data") if name == "t-0"] == []
        it.broker.move_replicas(topic_id, [LEADER, NODE_ID])
        await settle()
        assert same(it.log("t"), it.leader.logs[topic_id, 0])


async def test_closed_replicas_are_opened_in_the_background() -> None:
    file_system = MemoryFileSystem()
    async with scene(file_system=file_system) as it:
        topic_id = it.create_topic("t")
        it.leader.append((topic_id, 0), b"a")
        await settle()
        image = it.broker.image
        it.broker.directory.close()
    async with one_broker(file_system=file_system, image=image) as broker:
        nodes = FakeNodes()
        broker.nodes = nodes
        nodes.leaders[LEADER].logs[topic_id, 0] = World().create()
        nodes.leaders[LEADER].append((topic_id, 0), b"a")
        await settle()
        (follower,) = broker.partitions.open_followers
        assert follower.log.log_end == 1
        assert nodes.leaders[LEADER].asked[topic_id, 0].last_fetched_epoch == 0


async def test_consumers_may_read_a_follower(clock: MockClock) -> None:
    async with scene() as it:
        topic_id = it.create_topic("t")
        it.leader.append((topic_id, 0), b"a")
        await settle()
        assert it.broker.partitions.replica_for(("t", 0), -1) is it.follower("t")
        assert it.broker.partitions.replica_for((topic_id, 0), 0) is it.follower("t")


async def test_settings_of_topics_reach_followers(clock: MockClock) -> None:
    async with scene() as it:
        it.create_topic("t")
        await settle()
        it.broker.change_settings("t", {"segment.bytes": "12345678"})
        assert it.log("t").config.segment_bytes == 12345678
