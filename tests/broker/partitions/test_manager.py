"""Following the image: which logs are made, opened, deleted and put aside."""

import errno
from collections.abc import Callable
from threading import Event, Thread
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from broker.metadata.image import MetadataImage
from broker.network.waiting import NotYet, Waiting
from broker.partitions.manager import MADE_AT_ONCE, MAKERS
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.records.batch import RecordBatch
from protocol.schema import Message
from storage.memory_filesystem import MemoryFileSystem
from storage.partition_log import PartitionLog
from tests.broker.partitions.one_broker import (
    PATH,
    START_MS,
    OneBroker,
    fetch_request,
    one_broker,
    produce_request,
    settle,
    some_batch,
)


def code_of_leader(broker: OneBroker, topic: str | bytes, partition: int = 0) -> ErrorCode | None:
    try:
        broker.partitions.leader(topic, partition)
    except KafkaError as error:
        return error.code
    return None


NAMING_PARTITIONS: dict[str, Callable[[bytes], tuple[Message, int]]] = {
    "Produce": lambda _: (produce_request("t"), 12),
    "Produce, by id": lambda topic_id: (
        ProduceRequest(
            acks=1,
            topic_data=[
                TopicProduceData(
                    topic_id=topic_id, partition_data=[PartitionProduceData(index=0, records=some_batch())]
                )
            ],
        ),
        13,
    ),
    "Fetch": lambda _: (fetch_request("t"), 12),
    "Fetch, by id": lambda topic_id: (
        FetchRequest(topics=[FetchTopic(topic_id=topic_id, partitions=[FetchPartition()])]),
        13,
    ),
    "ListOffsets": lambda _: (
        ListOffsetsRequest(topics=[ListOffsetsTopic(name="t", partitions=[ListOffsetsPartition()])]),
        7,
    ),
    "OffsetForLeaderEpoch": lambda _: (
        OffsetForLeaderEpochRequest(
            topics=[OffsetForLeaderTopic(topic="t", partitions=[OffsetForLeaderPartition()])]
        ),
        4,
    ),
    "DeleteRecords": lambda _: (
        DeleteRecordsRequest(topics=[DeleteRecordsTopic(name="t", partitions=[DeleteRecordsPartition()])]),
        2,
    ),
    "DescribeProducers": lambda _: (
        DescribeProducersRequest(topics=[TopicRequest(name="t", partition_indexes=[0])]),
        0,
    ),
}


def folders(broker: OneBroker) -> list[str]:
    return sorted(name for name in broker.file_system.list_directories(PATH))


async def restarted_disk(broker: OneBroker) -> MemoryFileSystem:
    """The disk after a clean stop of everything."""
    broker.directory.close()
    return broker.file_system


def other_topic_image() -> MetadataImage:
    """A cluster with a topic ``t`` whose id nobody has seen before."""
    elsewhere = OneBroker({}, MemoryFileSystem())
    elsewhere.create_topic("first")
    elsewhere.create_topic("second")
    elsewhere.create_topic("t")
    for name in ("first", "second"):
        elsewhere.delete_topic(elsewhere.image.topics[name].id)
    return elsewhere.image


async def test_who_leads_what() -> None:
    async with one_broker() as broker:
        topic_id = broker.create_topic("t", partitions=2)
        broker.create_topic("elsewhere", leader=2)
        broker.create_topic("nowhere", leader=-1)
        leader = broker.partitions.leader("t", 1)
        assert (leader.topic, leader.partition, leader.topic_id) == ("t", 1, topic_id)
        assert broker.partitions.leader(topic_id, 1) is leader
        assert broker.partitions.leader_at(("t", 1)) is leader
        assert [
            code_of_leader(broker, *key)
            for key in (("t", 2), ("t", -1), ("u", 0), (b"u" * 16, 0), (topic_id, 2))
        ] == [
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode.UNKNOWN_TOPIC_ID,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ]
        assert code_of_leader(broker, "elsewhere") == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert code_of_leader(broker, "nowhere") == ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_new_partitions_get_their_folders_in_the_background() -> None:
    async with one_broker() as broker:
        broker.hold_threads()
        broker.create_topic("t", partitions=3)
        assert folders(broker) == []
        broker.partitions.leader("t", 1)
        assert folders(broker) == ["t-1"]  # whoever asks does not wait for the others
        await settle()
        broker.release_threads()
        await settle()
        assert folders(broker) == ["t-0", "t-1", "t-2"]
        assert [len(broker.partitions.open_leaders), len(broker.directory.logs)] == [1, 3]


def wait_made(broker: OneBroker, *keys: tuple[str | bytes, int]) -> Waiting[None]:
    with pytest.raises(NotYet) as caught:
        broker.partitions.require_made(keys)
    return caught.value.waiting


async def test_those_that_somebody_waits_for_are_made_first() -> None:
    async with one_broker() as broker:
        broker.hold_threads()
        topic_id = broker.create_topic("t", partitions=200)
        await settle()
        waiting = wait_made(
            broker, ("t", 198), (topic_id, 199), ("t", 198), ("unknown", 0), (b"u" * 16, 0), ("t", 200)
        )
        made: list[str] = []
        waiting.notify(lambda: made.extend(folders(broker)))
        broker.release_threads()
        await settle()
        assert {"t-198", "t-199"} < set(made)
        assert len(made) <= 2 * MAKERS * MADE_AT_ONCE  # which were on their way, or are made along with these
        assert len(folders(broker)) == 200
        broker.partitions.require_made([("t", 198), (topic_id, 199)])
        assert broker.partitions.open_leaders == []


async def test_many_are_made_at_the_same_time() -> None:
    async with one_broker() as broker:
        broker.hold_threads()
        broker.create_topic("t", partitions=MAKERS * MADE_AT_ONCE)
        await settle()
        assert broker.threads_run == MAKERS
        broker.release_threads()
        await settle()
        assert broker.threads_run == MAKERS


@pytest.mark.parametrize("is_deleted", [False, True])
async def test_whoever_needs_one_that_a_thread_makes_just_now_waits_for_that(
    monkeypatch: pytest.MonkeyPatch, is_deleted: bool
) -> None:
    async with one_broker() as broker:
        broker.hold_threads()
        topic_id = broker.create_topic("t")
        partitions = broker.partitions
        is_begun, may_end = Event(), Event()
        make = broker.directory.create_log

        def slow(*arguments: Any, **more: Any) -> PartitionLog:
            is_begun.set()
            may_end.wait()
            return make(*arguments, **more)

        monkeypatch.setattr(broker.directory, "create_log", slow)
        made: list[bool] = []
        thread = Thread(target=lambda: made.append(partitions._make_missing_one(("t", 0))))
        thread.start()
        is_begun.wait()
        wait = partitions.disk_lock.wait

        def waiting() -> bool:
            may_end.set()
            return wait()

        monkeypatch.setattr(partitions.disk_lock, "wait", waiting)
        if is_deleted:
            broker.delete_topic(topic_id)
            assert folders(broker) == [name for name in folders(broker) if name.endswith("-delete")]
        else:
            assert partitions.leader("t", 0).log is broker.directory.log("t", 0)
        thread.join()
        assert made == [True]
        broker.release_threads()
        await settle()
        assert not partitions.missing


async def test_nobody_waits_for_what_was_deleted_meanwhile_or_cannot_be_made() -> None:
    async with one_broker() as broker:
        broker.hold_threads()
        topic_id = broker.create_topic("t", partitions=2)
        broker.create_topic("u")
        deleted, refused = wait_made(broker, ("t", 0), ("t", 1)), wait_made(broker, ("u", 0))
        broker.delete_topic(topic_id)
        broker.file_system.refuse("sync", errno.ENOSPC)
        broker.release_threads()
        await settle()
        assert deleted.is_answered
        assert refused.is_answered
        assert "partition 0 of u cannot be made yet" in broker.lines.getvalue()
        assert code_of_leader(broker, "u") is None  # whoever asks tries again


async def test_nobody_waits_for_what_somebody_else_has_made() -> None:
    async with one_broker() as broker:
        broker.create_topic("t")
        waiting = wait_made(broker, ("t", 0))
        broker.partitions.leader("t", 0)
        assert not broker.partitions.missing
        await settle()
        assert waiting.is_answered


@pytest.mark.parametrize("api", NAMING_PARTITIONS)
async def test_a_request_waits_for_the_thread_that_makes_its_partitions(api: str) -> None:
    async with one_broker() as broker:
        topic_id = broker.create_topic("t")
        request, version = NAMING_PARTITIONS[api](topic_id)
        with pytest.raises(NotYet):
            broker.handle(request, version)
        assert folders(broker) == []
        await settle()
        assert broker.handle(request, version) is not None
        assert folders(broker) == ["t-0"]


async def test_a_topic_deleted_before_its_folders_are_made() -> None:
    async with one_broker() as broker:
        broker.hold_threads()
        topic_id = broker.create_topic("t", partitions=3)
        await settle()
        broker.delete_topic(topic_id)
        broker.release_threads()
        await settle()
        assert folders(broker) == []


async def test_a_folder_that_cannot_be_made_yet() -> None:
    async with one_broker() as broker:
        broker.file_system.refuse("sync", errno.ENOSPC)
        broker.create_topic("t")
        await settle()
        assert "partition 0 of t cannot be made yet" in broker.lines.getvalue()
        assert broker.produce("t").error_code == 0


async def test_a_folder_that_cannot_be_made_for_somebody_who_waits() -> None:
    async with one_broker() as broker:
        broker.hold_threads()
        broker.create_topic("t")
        broker.file_system.refuse("sync", errno.ENOSPC)
        assert code_of_leader(broker, "t") == ErrorCode.KAFKA_STORAGE_ERROR
        broker.file_system.refuse("sync", errno.ENOSPC)
        assert code_of_leader(broker, "t") == ErrorCode.KAFKA_STORAGE_ERROR
        assert broker.lines.getvalue().count("partition 0 of t cannot be opened") == 1
        assert code_of_leader(broker, "t") is None


async def test_deletion_renames_at_once_and_removes_later() -> None:
    async with one_broker() as broker:
        topic_id = broker.create_topic("t", settings={"file.delete.delay.ms": "7000"})
        leader = broker.partitions.leader("t", 0)
        leader.append(RecordBatch(some_batch()), START_MS)
        await settle()
        broker.delete_topic(topic_id)
        assert leader.ended is not None
        assert code_of_leader(broker, "t") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert code_of_leader(broker, topic_id) == ErrorCode.UNKNOWN_TOPIC_ID
        (name,) = folders(broker)
        assert name.startswith("t-0.")
        assert name.endswith("-delete")
        assert broker.directory.services.removals.next_due_ms == START_MS + 7000


async def test_a_topic_made_again_under_its_name_is_another_one() -> None:
    async with one_broker() as broker:
        first_id = broker.create_topic("t")
        broker.produce("t", some_batch(5))
        broker.delete_topic(first_id)
        second_id = broker.create_topic("t")
        assert broker.produce("t").base_offset == 0
        assert broker.partitions.leader("t", 0).topic_id == second_id
        assert code_of_leader(broker, first_id) == ErrorCode.UNKNOWN_TOPIC_ID


async def test_leader_epochs_follow_the_image() -> None:
    async with one_broker() as broker:
        topic_id = broker.create_topic("t")
        broker.produce("t", some_batch(2))
        leader = broker.partitions.leader("t", 0)
        broker.change_leader(topic_id, 1)
        assert broker.partitions.leader("t", 0) is leader
        assert leader.leader_epoch == 1
        broker.produce("t")
        assert leader.log.end_offset_for_epoch(0) == (0, 2)
        assert leader.log.end_offset_for_epoch(1) == (1, 3)


async def test_leadership_comes_and_goes() -> None:
    async with one_broker() as broker:
        topic_id = broker.create_topic("t")
        broker.produce("t", some_batch(2))
        before = broker.partitions.leader("t", 0)
        broker.change_leader(topic_id, -1)
        assert before.ended is not None
        assert before.ended.code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert code_of_leader(broker, "t") == ErrorCode.NOT_LEADER_OR_FOLLOWER
        broker.change_leader(topic_id, 1)
        after = broker.partitions.leader("t", 0)
        assert after is not before
        assert (after.leader_epoch, after.log.log_end) == (2, 2)


async def test_nothing_is_begun_after_the_end() -> None:
    """A controller in the same process may decide something after the partitions have ended."""
    async with one_broker() as broker:
        topic_id = broker.create_topic("t", leader=2)
        broker.partitions.local_log("t", 0)
    broker.create_topic("u", leader=2)
    broker.change_leader(topic_id, 3)
    broker.partitions.start_soon(settle)
    assert folders(broker) == ["t-0"]


async def test_changed_settings_hold_from_the_next_batch_on() -> None:
    async with one_broker() as broker:
        broker.create_topic("t")
        broker.create_topic("u")
        leader, other = (broker.partitions.leader(topic, 0) for topic in ("t", "u"))
        other_settings = other.settings
        broker.change_settings("t", {"max.message.bytes": "100", "segment.bytes": "1048576"})
        assert leader.policy.max_message_bytes == 100
        assert leader.log.config.segment_bytes == 1_048_576
        assert broker.produce("t", some_batch(size=200)).error_code == ErrorCode.MESSAGE_TOO_LARGE
        assert other.settings is other_settings


async def test_settings_changed_before_anybody_asked() -> None:
    async with one_broker() as broker:
        broker.create_topic("t")
        await settle()
        broker.change_settings("t", {"segment.bytes": "1048576"})
        assert broker.partitions.leader("t", 0).log.config.segment_bytes == 1_048_576


async def test_replicas_that_move_away_are_deleted_here() -> None:
    async with one_broker() as broker:
        topic_id = broker.create_topic("t")
        broker.produce("t")
        await settle()
        broker.move_replicas(topic_id, [2])
        assert code_of_leader(broker, "t") == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert [name.endswith("-delete") for name in folders(broker)] == [True]


# Starting


async def test_after_a_clean_stop_logs_are_opened_when_somebody_asks() -> None:
    async with one_broker() as broker:
        broker.create_topic("t", partitions=3)
        broker.produce("t", some_batch(4), partition=1)
        await settle()
        image, disk = broker.image, await restarted_disk(broker)
    async with one_broker(file_system=disk, image=image) as broker:
        assert broker.directory.logs == []
        assert broker.partitions.leader("t", 1).log.high_watermark == 4
        assert len(broker.directory.logs) == 1


async def test_after_a_crash_everything_is_recovered_before_anything_is_served() -> None:
    async with one_broker() as broker:
        broker.create_topic("t", partitions=3)
        broker.produce("t", some_batch(4), partition=1)
        await settle()
        image = broker.image
    async with one_broker(file_system=broker.file_system, image=image) as broker:
        assert "recovering 3 partitions" in broker.lines.getvalue()
        assert len(broker.directory.logs) == 3
        assert broker.partitions.leader("t", 1).log.high_watermark == 4


async def test_what_the_cluster_does_not_know_is_put_aside() -> None:
    async with one_broker() as broker:
        broker.create_topic("t")
        broker.create_topic("u")
        await settle()
        disk = await restarted_disk(broker)
    async with one_broker(file_system=disk) as broker:
        assert [name.rpartition("-")[2] for name in folders(broker)] == ["stray", "stray"]
        assert "t-0 is not in the cluster's metadata; it is kept as" in broker.lines.getvalue()


@pytest.mark.parametrize("name", ["t-0", "u-0"])
async def test_a_folder_that_was_never_finished_is_removed(name: str, autojump_clock: MockClock) -> None:
    """Whether the cluster knows its topic or not."""
    disk = MemoryFileSystem()
    disk.make_directory(f"{PATH}/{name}")
    async with one_broker(file_system=disk, image=other_topic_image()) as broker:
        assert broker.produce("t").base_offset == 0
        await trio.sleep(10)
        assert folders(broker) == ["t-0"]
        assert "nothing is in it, so it is removed" in broker.lines.getvalue()


async def test_an_older_topic_of_the_same_name_is_put_aside() -> None:
    async with one_broker() as broker:
        broker.create_topic("t")
        broker.produce("t", some_batch(4))
        await settle()
        disk = await restarted_disk(broker)

    async with one_broker(file_system=disk, image=other_topic_image()) as broker:
        assert broker.produce("t").base_offset == 0
        assert sum(name.endswith("-stray") for name in folders(broker)) == 1


async def test_replicas_missing_on_disk_are_made() -> None:
    async with one_broker(image=other_topic_image()) as broker:
        await settle()
        assert folders(broker) == ["t-0"]


async def test_a_damaged_replica_does_not_keep_the_others_from_serving() -> None:
    async with one_broker() as broker:
        broker.create_topic("t", partitions=2)
        broker.produce("t")
        await settle()
        image = broker.image
    disk = broker.file_system
    disk.refuse("open", errno.EIO, path_suffix="t-0/00000000000000000000.log")
    async with one_broker(file_system=disk, image=image) as broker:
        assert "partition 0 of t cannot be recovered" in broker.lines.getvalue()
        assert code_of_leader(broker, "t", 1) is None


@pytest.mark.parametrize("count", [2000])
async def test_many_partitions_cost_little_until_they_are_used(count: int) -> None:
    async with one_broker() as broker:
        broker.create_topic("t", partitions=count)
        image, disk = broker.image, await restarted_disk(broker)
    async with one_broker(file_system=disk, image=image) as broker:
        broker.hold_threads()
        assert len(broker.partitions.open_leaders) == 0
        for index in (0, count - 1):
            assert code_of_leader(broker, "t", index) is None
        assert len(broker.directory.logs) == 2
