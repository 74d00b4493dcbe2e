"""DescribeProducers, against what Kafka 4.4 answered to the same requests."""

import errno

from protocol.error_codes import ErrorCode
from protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicRequest,
)
from protocol.records.builder import build_batch
from tests.broker.partitions.one_broker import OneBroker, directory_id, one_broker, some_batch


def ask(broker: OneBroker, topic: str, *partitions: int) -> list[PartitionResponse]:
    request = DescribeProducersRequest(topics=[TopicRequest(name=topic, partition_indexes=list(partitions))])
    response = broker.ask(request, 0)
    response = DescribeProducersResponse.decode(response.encode(0), 0)
    assert [described.name for described in response.topics] == [topic]
    return list(response.topics[0].partitions)


async def test_active_producers() -> None:
    async with one_broker() as broker:
        broker.create_topic("t", partitions=2)
        records = [(1234, b"k", b"v", ()), (1200, b"k", b"v", ())]
        broker.produce("t", build_batch(records, producer_id=7, producer_epoch=3, base_sequence=4))
        broker.produce("t", some_batch())
        assert ask(broker, "t", 0, 1, 1) == [
            PartitionResponse(
                partition_index=0,
                active_producers=[
                    ProducerState(
                        producer_id=7,
                        producer_epoch=3,
                        last_sequence=5,
                        last_timestamp=1234,
                        coordinator_epoch=-1,
                        current_txn_start_offset=-1,
                    )
                ],
            ),
            PartitionResponse(partition_index=1),
            PartitionResponse(partition_index=1),
        ]


async def test_refusals() -> None:
    async with one_broker() as broker:
        broker.create_topic("t")
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert ask(broker, "t", 9) == [PartitionResponse(partition_index=9, error_code=unknown)]
        assert ask(broker, "u", 0) == [
            PartitionResponse(
                partition_index=0,
                error_code=unknown,
                error_message="This server does not host this topic-partition.",
            )
        ]
        assert ask(broker, "a b", 0) == [
            PartitionResponse(
                partition_index=0,
                error_code=ErrorCode.INVALID_TOPIC_EXCEPTION,
                error_message="Topic name is invalid: 'a b' contains one or more characters other than "
                "ASCII alphanumerics, '.', '_' and '-'",
            )
        ]
        assert ask(broker, "t") == []


async def test_the_producers_of_what_lies_in_a_failed_directory_are_not_known() -> None:
    async with one_broker(paths=("/a", "/b")) as broker:
        broker.create_topic("t", directory=directory_id("/b"))
        assert broker.produce("t").error_code == 0
        broker.file_system.refuse("write", errno.EIO, path_suffix="/b/t-0/00000000000000000000.log")
        assert broker.produce("t").error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert ask(broker, "t", 0, 1) == [
            PartitionResponse(partition_index=0, error_code=ErrorCode.KAFKA_STORAGE_ERROR),
            PartitionResponse(partition_index=1, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ]
