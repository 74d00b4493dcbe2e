"""Dead letter queues (KIP-1191), where the oracle does not reach: disks, leaders and crashes."""

import errno
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from broker.metadata.topic_names import SHARE_GROUP_STATE
from broker.share.acquiring import AcquireMode, Offsets
from broker.share.dead_letters import READ_BYTES_MAX
from broker.share.partition import Acknowledgement, AcknowledgeType, SharePartition, ShareSettings
from broker.share.sessions import SessionKey, TopicPartition
from protocol.error_codes import ErrorCode
from protocol.records.batch import RecordBatch, read_batches
from protocol.records.builder import build_batch
from protocol.records.compression import Compression
from protocol.stored.metadata_records import ConfigRecord, FeatureLevelRecord
from storage.errors import CorruptLog
from storage.partition_log import PartitionLog
from tests.broker.partitions.one_broker import NODE_ID, START_MS, some_batch
from tests.broker.share.desk import ACCEPT, GROUP, LOCK_SECONDS, REJECT, Desk, desk

QUEUE = "dlq.q"
ENABLED = {"errors.deadletterqueue.group.enable": "true"}


def set_up(it: Desk, *, copies: bool = False, **more: str) -> None:
    """Let the group send its dead letters to the queue; ``more`` are other settings of it."""
    settings = {
        **{name.replace("_", "."): value for name, value in more.items()},
        "errors.deadletterqueue.topic.name": QUEUE,
        "errors.deadletterqueue.copy.record.enable": str(copies).lower(),
    }
    records = [
        ConfigRecord(resource_type=GROUP, resource_name="g", name=name, value=value)
        for name, value in settings.items()
    ]
    it.broker.broker.apply(FeatureLevelRecord(name="share.version", feature_level=2), *records)


def make_queue(it: Desk, **settings: str) -> bytes:
    more = {name.replace("_", "."): value for name, value in settings.items()}
    return it.broker.broker.create_topic(QUEUE, 1, settings={**ENABLED, **more})


def letters(it: Desk) -> list[tuple[str, bytes | None]]:
    """Which offset each letter tells of, and what it copies of the record's value."""
    return [
        (bytes(dict(record.headers)[b"__dlq.errors.offset"] or b"").decode(), record.value)
        for batch in batches(it)
        for record in batch.records()
    ]


def batches(it: Desk) -> list[RecordBatch]:
    """What is in the queue."""
    records: Any = it.broker.broker.fetch(QUEUE).records
    return list(read_batches(records.read())) if records else []


def told_of(*offsets: int) -> list[tuple[str, None]]:
    return [(str(offset), None) for offset in offsets]


async def reject(it: Desk, *ranges: tuple[int, int], epoch: int = 1) -> None:
    await it.fetch("a", epoch, *((first, last, REJECT) for first, last in ranges))


async def test_a_queue_without_leader_is_tried_again(autojump_clock: MockClock) -> None:
    async with desk() as it:
        set_up(it)
        queue_id = make_queue(it)
        await it.enter("a")
        await it.fetch("a", 0)
        it.broker.broker.change_leader(queue_id, NODE_ID + 1)
        await reject(it, (0, 1))
        await trio.sleep(2.5)
        it.broker.broker.change_leader(queue_id, NODE_ID)
        await trio.sleep(3)
        assert letters(it) == told_of(0, 1)
        assert "dead letter" not in it.broker.lines


async def test_the_group_goes_on_when_the_queue_has_no_leader_for_long(autojump_clock: MockClock) -> None:
    async with desk() as it:
        set_up(it)
        queue_id = make_queue(it)
        await it.enter("a")
        await it.fetch("a", 0)
        it.broker.broker.change_leader(queue_id, NODE_ID + 1)
        await reject(it, (0, 1))
        await trio.sleep(14)
        assert await it.standing() == [(0, 10)], "there is still hope"
        await trio.sleep(2)
        assert await it.standing() == [(0, 8)]
        (line,) = [line for line in it.broker.lines.splitlines() if "dead letter" in line]
        assert "records 0 to 1 of t-0, which share group g has given up" in line
        assert "NOT_LEADER_OR_FOLLOWER" in line


async def test_what_was_on_its_way_at_a_crash_is_sent_again(autojump_clock: MockClock) -> None:
    async with desk() as it:
        set_up(it)
        queue_id = make_queue(it)
        await it.enter("a")
        await it.fetch("a", 0)
        it.broker.broker.change_leader(queue_id, NODE_ID + 1)
        await reject(it, (3, 4))
        await trio.sleep(1)
        it.broker.broker.change_leader(queue_id, NODE_ID)
        file_system, image = it.broker.broker.file_system, it.broker.image
    async with desk(file_system, image) as again:
        await trio.sleep(1)
        assert [each[:2] for each in await again.fetch("b", 0)] == [(0, 2), (5, 9)]
        await trio.sleep(1)
        assert letters(again) == told_of(3, 4)


async def test_a_queue_of_small_batches_gets_as_many_as_it_takes(autojump_clock: MockClock) -> None:
    async with desk() as it:
        set_up(it, copies=True)
        make_queue(it, max_message_bytes="600")
        it.broker.broker.produce("t", some_batch(3, size=150))
        await it.enter("a")
        await it.fetch("a", 0)
        await reject(it, (0, 12))
        await trio.sleep(1)
        small = [(str(index), bytes([index]) * 10) for index in range(10)]
        large = [(str(10 + index), bytes([index]) * 150) for index in range(3)]
        assert letters(it) == small + large
        assert max(batch.size_bytes for batch in batches(it)) <= 600


@pytest.mark.acts("errors.deadletterqueue.copy.record.enable")
async def test_a_record_too_large_to_copy_is_told_of_without(autojump_clock: MockClock) -> None:
    async with desk() as it:
        set_up(it, copies=True)
        make_queue(it, max_message_bytes="600")
        records = [(START_MS, None, b"x" * 1000, ()), (START_MS, None, b"y", ())]
        it.broker.broker.produce("t", build_batch(records, compression=Compression.GZIP))
        await it.enter("a")
        await it.fetch("a", 0)
        await reject(it, (9, 11))
        await trio.sleep(1)
        assert letters(it) == [("9", bytes([9]) * 10), ("10", None), ("11", None)]


async def test_what_cannot_be_read_is_told_of_without_its_contents(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = PartitionLog.read

    def fail(log: PartitionLog, offset: int, max_bytes: int, **more: Any) -> Any:
        if max_bytes == READ_BYTES_MAX:
            raise CorruptLog(log.topic, 0, "bytes are missing")
        return read(log, offset, max_bytes, **more)

    async with desk() as it:
        set_up(it, copies=True)
        make_queue(it)
        await it.enter("a")
        await it.fetch("a", 0)
        monkeypatch.setattr(PartitionLog, "read", fail)
        await reject(it, (2, 2))
        await trio.sleep(1)
        monkeypatch.undo()
        assert letters(it) == told_of(2)
        assert "without their contents" in it.broker.lines


async def test_a_disk_that_cannot_be_read_takes_the_contents_and_not_the_broker(
    autojump_clock: MockClock,
) -> None:
    async with desk() as it:
        set_up(it, copies=True)
        make_queue(it)
        await it.enter("a")
        await it.fetch("a", 0)
        it.broker.broker.file_system.refuse("read", errno.EIO, path_suffix="/t-0/00000000000000000000.log")
        await reject(it, (0, 0))
        await trio.sleep(1)
        assert letters(it) == told_of(0)
        assert "go to a dead letter queue without their contents: cannot read" in it.broker.lines


@pytest.mark.acts(
    "errors.deadletterqueue.auto.create.topics.enable",
    "errors.deadletterqueue.group.enable",
    "errors.deadletterqueue.topic.name",
)
async def test_a_queue_is_made_if_the_cluster_allows_it(autojump_clock: MockClock) -> None:
    async with desk(errors_deadletterqueue_auto_create_topics_enable="true") as it:
        set_up(it)
        await it.enter("a")
        await it.fetch("a", 0)
        await reject(it, (0, 0))
        await trio.sleep(1)
        assert letters(it) == told_of(0)
        settings = it.broker.image.topic_config(QUEUE)
        assert settings == {**ENABLED, "message.timestamp.type": "CreateTime"}


async def test_what_is_being_buried_holds_nobody_up(autojump_clock: MockClock) -> None:
    async with desk() as it:
        set_up(it)
        queue_id = make_queue(it)
        it.broker.broker.change_leader(queue_id, NODE_ID + 1)
        await it.enter("a")
        await it.fetch("a", 0)
        await reject(it, (0, 4))
        assert await it.fetch("a", 2, (5, 9, ACCEPT)) == []
        it.broker.broker.produce("t", some_batch(2))
        assert await it.fetch("a", 3) == [(10, 11, 1)]


@pytest.mark.acts("share.delivery.count.limit")
async def test_what_nobody_acknowledges_in_time_goes_to_the_queue(autojump_clock: MockClock) -> None:
    async with desk() as it:
        set_up(it, share_delivery_count_limit="2")
        make_queue(it)
        await it.enter("a")
        assert await it.fetch("a", 0) == [(0, 9, 1)]
        await it.fetch("a", 1, (0, 6, ACCEPT))
        await trio.sleep(LOCK_SECONDS + 1)
        assert await it.fetch("b", 0) == [(7, 9, 2)]
        assert letters(it) == []
        await trio.sleep(LOCK_SECONDS + 1)
        assert letters(it) == told_of(7, 8, 9)


async def test_what_is_given_up_while_the_broker_stops_is_sent_at_its_next_start(
    autojump_clock: MockClock,
) -> None:
    async with desk() as it:
        set_up(it)
        make_queue(it)
        await it.enter("a")
        await it.fetch("a", 0)
        broker = it.broker.broker
        broker.change_settings(SHARE_GROUP_STATE, {"flush.messages": "1"})
        broker.hold_threads()
        told = broker.services.share.service.acknowledge(
            SessionKey("g", "a"), TopicPartition(it.topic_id, 0), [Acknowledgement(3, 4, [REJECT])]
        )
        assert not told.is_settled
        broker.services.share.end()
        broker.release_threads()
        await trio.sleep(1)
        assert told.outcome.error is ErrorCode.NONE
        assert letters(it) == []
        file_system, image = broker.file_system, it.broker.image
    async with desk(file_system, image) as again:
        await trio.sleep(1)
        assert [each[:2] for each in await again.fetch("b", 0)] == [(0, 2), (5, 9)]
        await trio.sleep(1)
        assert letters(again) == told_of(3, 4)


def test_what_the_log_has_lost_meanwhile_is_not_counted() -> None:
    """Who describes the group would be told of a smaller lag than it has."""
    partition = SharePartition(ShareSettings(has_dead_letter_queue=True))
    partition.load(0, 0, ())
    for first in (0, 10):
        fetched = [Offsets(first, first + 9)]
        partition.acquire("ann", AcquireMode.BATCH_OPTIMIZED, 10, 10, first, fetched, (), now_ms=0)
    rejected = partition.acknowledge("ann", [Acknowledgement(0, 9, [AcknowledgeType.REJECT])], now_ms=0)
    (dead,) = partition.finish(rejected, 0, is_stored=True)
    partition.move_to(5)
    partition.archive_dead(dead)
    assert partition.delivery_complete_count == 5
    partition.settle()
    assert (partition.start_offset, partition.delivery_complete_count) == (10, 0)
