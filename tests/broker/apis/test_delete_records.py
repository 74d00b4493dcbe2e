"""DeleteRecords, against what Kafka 4.4 answered to the same requests."""

import pytest

from protocol.error_codes import ErrorCode
from protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from tests.broker.partitions.one_broker import OneBroker, one_broker, some_batch

OUT_OF_RANGE = (ErrorCode.OFFSET_OUT_OF_RANGE, -1)


def request(*topics: tuple[str, list[tuple[int, int]]]) -> DeleteRecordsRequest:
    return DeleteRecordsRequest(
        timeout_ms=1000,
        topics=[
            DeleteRecordsTopic(
                name=name,
                partitions=[
                    DeleteRecordsPartition(partition_index=index, offset=offset) for index, offset in parts
                ],
            )
            for name, parts in topics
        ],
    )


def delete(broker: OneBroker, offset: int, topic: str = "t", partition: int = 0) -> tuple[int, int]:
    """Error and low watermark."""
    result = broker.ask(request((topic, [(partition, offset)])), 2).topics[0].partitions[0]
    assert isinstance(result, DeleteRecordsPartitionResult)
    return result.error_code, result.low_watermark


async def test_the_log_start_moves_forward_only() -> None:
    async with one_broker() as broker:
        broker.create_topic("t")
        broker.produce("t", some_batch(13))
        assert [delete(broker, offset) for offset in (-2, 0, 3, 2, 3, 100)] == [
            OUT_OF_RANGE,
            (0, 0),
            (0, 3),
            (0, 3),
            (0, 3),
            OUT_OF_RANGE,
        ]
        assert broker.fetch("t", 2).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        assert broker.fetch("t", 3).log_start_offset == 3
        assert [delete(broker, offset) for offset in (13, 14)] == [(0, 13), OUT_OF_RANGE]
        assert broker.produce("t").log_start_offset == 13


async def test_the_high_watermark_stands_for_all() -> None:
    async with one_broker() as broker:
        broker.create_topic("t", partitions=2)
        broker.produce("t", some_batch(2))
        assert [delete(broker, -1, partition=index) for index in (0, 1)] == [(0, 2), (0, 0)]


@pytest.mark.parametrize(
    ("policy", "answer"),
    [
        ("delete", (0, 2)),
        ("compact,delete", (0, 2)),
        ("", (0, 2)),
        ("compact", (ErrorCode.POLICY_VIOLATION, -1)),
    ],
)
async def test_what_is_only_compacted_is_not_deleted(policy: str, answer: tuple[int, int]) -> None:
    async with one_broker() as broker:
        broker.create_topic("t", settings={"cleanup.policy": policy})
        broker.produce("t", some_batch(5))
        assert delete(broker, 2) == answer


async def test_unknown_and_internal_topics() -> None:
    async with one_broker() as broker:
        broker.create_topic("t")
        assert delete(broker, 0, "__consumer_offsets") == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)
        broker.create_topic("__consumer_offsets")
        assert delete(broker, 0, "__consumer_offsets") == (ErrorCode.INVALID_TOPIC_EXCEPTION, -1)
        topic_id = broker.image.topics["__consumer_offsets"].id
        broker.change_leader(topic_id, -1)
        assert delete(broker, 0, "__consumer_offsets") == (ErrorCode.INVALID_TOPIC_EXCEPTION, -1)
        unknown = delete(broker, 0, "__consumer_offsets", partition=1)
        assert unknown == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)
        assert delete(broker, 0, "u") == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)
        assert delete(broker, 0, partition=9) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)


async def test_of_a_partition_named_twice_the_last_offset_counts() -> None:
    async with one_broker() as broker:
        broker.create_topic("t", partitions=2)
        broker.produce("t", some_batch(5))
        response = broker.ask(request(("t", [(0, 4), (1, 0)]), ("t", [(0, 2)])), 2)
        (topic,) = response.topics
        assert [(result.partition_index, result.low_watermark) for result in topic.partitions] == [
            (0, 2),
            (1, 0),
        ]


@pytest.mark.parametrize("version", [0, 1, 2])
async def test_every_version(version: int) -> None:
    async with one_broker() as broker:
        broker.create_topic("t")
        broker.produce("t", some_batch(5))
        response = broker.ask(request(("t", [(0, 2), (7, 0)])), version)
        again = type(response).decode(response.encode(version), version)
        assert [result.low_watermark for result in again.topics[0].partitions] == [2, -1]


async def test_nothing_is_deleted_from_internal_topics_whoever_leads_them() -> None:
    async with one_broker() as broker:
        broker.create_topic("__consumer_offsets", leader=2)
        assert delete(broker, 0, "__consumer_offsets") == (ErrorCode.INVALID_TOPIC_EXCEPTION, -1)
        for index in (-1, 1):
            unknown = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)
            assert delete(broker, 0, "__consumer_offsets", index) == unknown
