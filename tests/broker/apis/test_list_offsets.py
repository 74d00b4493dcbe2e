"""ListOffsets, against what Kafka 4.4 answered to the same requests."""

from typing import Any

import pytest

from protocol.error_codes import ErrorCode
from protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from protocol.records.batch import RecordBatch
from protocol.records.builder import build_batch
from protocol.records.compression import Compression
from tests.broker.partitions.one_broker import OneBroker, one_broker, some_batch

NEWEST = 11

Found = tuple[int, int, int]
"""Offset, timestamp and leader epoch."""

NOTHING: Found = (-1, -1, -1)


def batch_at(*timestamps: int, **options: Any) -> bytearray:
    return build_batch([(timestamp, b"k", b"v", ()) for timestamp in timestamps], **options)


async def filled(broker: OneBroker) -> None:
    """What a transcript of Kafka's answers was made with."""
    broker.create_topic("t", partitions=4)
    for batch in (
        batch_at(1000, 1500, 1200),
        batch_at(5000, 5000, 5000),
        batch_at(2000, 2100, 2200, 2300, 2400, compression=Compression.GZIP),
        batch_at(-1, -1),
    ):
        broker.produce("t", batch)
    broker.produce("t", batch_at(-1, -1), partition=1)
    broker.produce("t", batch_at(7010, 7010, 7005), partition=3)


def asking(
    timestamp: int, partition: int = 0, topic: str = "t", epoch: int = -1, **options: Any
) -> ListOffsetsRequest:
    asked = ListOffsetsPartition(partition_index=partition, timestamp=timestamp, current_leader_epoch=epoch)
    return ListOffsetsRequest(
        topics=[ListOffsetsTopic(name=topic, partitions=[asked])], **{"replica_id": -1, **options}
    )


def ask(
    broker: OneBroker, timestamp: int, partition: int = 0, version: int = NEWEST, **options: Any
) -> ListOffsetsPartitionResponse:
    response = broker.ask(asking(timestamp, partition, **options), version)
    response = ListOffsetsResponse.decode(response.encode(version), version)
    reply = response.topics[0].partitions[0]
    assert isinstance(reply, ListOffsetsPartitionResponse)
    return reply


def found(broker: OneBroker, timestamp: int, partition: int = 0, **options: Any) -> Found:
    reply = ask(broker, timestamp, partition, **options)
    assert reply.error_code == 0
    return reply.offset, reply.timestamp, reply.leader_epoch


@pytest.mark.parametrize(
    ("timestamp", "answer"),
    [
        (-1, (13, -1, 0)),
        (-2, (0, -1, 0)),
        (-3, (3, 5000, 0)),
        (-4, (0, -1, 0)),
        (-5, NOTHING),
        (-6, NOTHING),
        (0, (0, 1000, 0)),
        (999, (0, 1000, 0)),
        (1000, (0, 1000, 0)),
        (1001, (1, 1500, 0)),
        (1500, (1, 1500, 0)),
        (1501, (3, 5000, 0)),
        (2400, (3, 5000, 0)),
        (5000, (3, 5000, 0)),
        (5001, NOTHING),
        (10**15, NOTHING),
    ],
)
async def test_times_and_markers(timestamp: int, answer: Found) -> None:
    async with one_broker() as broker:
        await filled(broker)
        assert found(broker, timestamp) == answer
        assert found(broker, timestamp, isolation_level=1) == answer


@pytest.mark.parametrize(
    ("partition", "timestamp", "answer"),
    [
        (2, -1, (0, -1, 0)),
        (2, -2, (0, -1, 0)),
        (2, -3, NOTHING),
        (2, 0, NOTHING),
        (1, -3, (0, -1, 0)),  # records without timestamps
        (1, 0, NOTHING),
        (3, -3, (0, 7010, 0)),  # the first of several with the same
    ],
)
async def test_unusual_logs(partition: int, timestamp: int, answer: Found) -> None:
    async with one_broker() as broker:
        await filled(broker)
        assert found(broker, timestamp, partition) == answer


async def test_inside_a_compressed_batch() -> None:
    async with one_broker() as broker:
        broker.create_topic("t")
        broker.produce("t", batch_at(2000, 2100, 2200, compression=Compression.ZSTD))
        assert found(broker, 2050) == (1, 2100, 0)


FIRST_VERSIONS = {-1: 1, -2: 1, -3: 7, -4: 8, -5: 9, -6: 11, -7: 99, -100: 99}


@pytest.mark.parametrize("version", range(1, NEWEST + 1))
@pytest.mark.parametrize("marker", FIRST_VERSIONS)
async def test_markers_by_version(version: int, marker: int) -> None:
    async with one_broker() as broker:
        await filled(broker)
        reply = ask(broker, marker, version=version)
        is_known = version >= FIRST_VERSIONS[marker]
        assert reply.error_code == (0 if is_known else ErrorCode.UNSUPPORTED_VERSION)
        if not is_known:
            assert (reply.offset, reply.timestamp) == (-1, -1)
            assert ask(broker, marker, version=version, topic="u").error_code == reply.error_code


@pytest.mark.parametrize(
    ("epoch", "code"),
    [
        (-1, 0),
        (2, 0),
        (1, ErrorCode.FENCED_LEADER_EPOCH),
        (-3, ErrorCode.FENCED_LEADER_EPOCH),
        (3, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
async def test_current_leader_epoch(epoch: int, code: int) -> None:
    async with one_broker() as broker:
        broker.create_topic("t", leader_epoch=2)
        assert ask(broker, -1, epoch=epoch).error_code == code


async def test_leader_epochs_in_answers() -> None:
    async with one_broker() as broker:
        topic_id = broker.create_topic("t")
        broker.produce("t", batch_at(1000))
        broker.change_leader(topic_id, 1)
        broker.produce("t", batch_at(2000))
        assert found(broker, -1) == (2, -1, 1)
        assert found(broker, -2) == (0, -1, 0)
        assert [found(broker, time) for time in (1000, 2000)] == [(0, 1000, 0), (1, 2000, 1)]
        broker.partitions.leader("t", 0).log.delete_records_before(1)
        assert found(broker, -2) == (1, -1, 1)


async def test_unknown_partitions() -> None:
    async with one_broker() as broker:
        broker.create_topic("t")
        for topic, partition in (("t", 9), ("t", -1), ("u", 0)):
            assert ask(broker, -1, partition, topic=topic).error_code == (
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            )


@pytest.mark.parametrize("topic", ["t", "u"])
async def test_an_unknown_isolation_level(topic: str) -> None:
    async with one_broker() as broker:
        broker.create_topic("t")
        for timestamp in (-1, -7):
            reply = ask(broker, timestamp, topic=topic, isolation_level=9)
            assert reply.error_code == ErrorCode.UNKNOWN_SERVER_ERROR


async def test_a_partition_asked_for_twice_is_refused_once() -> None:
    async with one_broker() as broker:
        broker.create_topic("t", partitions=3)
        asked = [
            ("t", [(0, -1), (0, -2), (1, -2)]),
            ("u", [(0, -1), (0, -1)]),
            ("t", [(2, -1), (0, -1)]),
            ("v", []),
        ]
        request = ListOffsetsRequest(
            replica_id=-1,
            topics=[
                ListOffsetsTopic(
                    name=name,
                    partitions=[
                        ListOffsetsPartition(partition_index=index, timestamp=timestamp)
                        for index, timestamp in partitions
                    ],
                )
                for name, partitions in asked
            ],
        )
        twice = ErrorCode.INVALID_REQUEST
        assert [
            (topic.name, [(reply.partition_index, reply.error_code) for reply in topic.partitions])
            for topic in broker.ask(request, NEWEST).topics
        ] == [("t", [(0, twice), (1, 0), (2, 0)]), ("u", [(0, twice)])]


async def test_consumers_see_what_is_committed_and_others_all() -> None:
    async with one_broker() as broker:
        broker.create_topic("t", settings={"flush.messages": "5"})
        broker.produce("t", some_batch(4))
        broker.hold_threads()
        leader = broker.partitions.leader("t", 0)
        leader.append(RecordBatch(batch_at(99, 99)), broker.clock.now_ms())
        assert (leader.log.high_watermark, leader.log.log_end) == (4, 6)
        assert [found(broker, -1, replica_id=replica)[0] for replica in (-1, -2, 1, 77)] == [4, 6, 6, 6]
        assert found(broker, 50) != NOTHING
        assert found(broker, 1_700_000_000_001) == NOTHING


async def test_damage_is_told_to_the_operator() -> None:
    async with one_broker() as broker:
        await filled(broker)
        broker.file_system.open("/data/t-0/00000000000000000000.log").pwrite(b"\xee" * 20, 0)
        for _ in range(3):
            assert ask(broker, 1600).error_code == ErrorCode.CORRUPT_MESSAGE
        (line,) = broker.lines.getvalue().splitlines()
        assert "t-0 cannot be read: /data/t-0/00000000000000000000.log: at byte 0: " in line
