"""DescribeProducers (61): the producers that wrote to a partition lately (KIP-664)."""

from broker.metadata import topic_names
from broker.network.call import Call
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)

UNKNOWN_TOPIC = "This server does not host this topic-partition."


def handle(request: DescribeProducersRequest, call: Call) -> DescribeProducersResponse:
    partitions = call.services.partitions
    if partitions.missing:
        partitions.require_made(
            (topic.name, partition) for topic in request.topics for partition in topic.partition_indexes
        )
    return DescribeProducersResponse(
        topics=[
            TopicResponse(
                name=topic.name,
                partitions=[describe(call, topic.name, partition) for partition in topic.partition_indexes],
            )
            for topic in request.topics
        ]
    )


def describe(call: Call, topic: str, partition: int) -> PartitionResponse:
    """Followers know the producers as well as the leader does."""
    reply = PartitionResponse(partition_index=partition)
    try:
        topic_names.check(topic)
        if call.services.image.topic_id(topic) is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC)
        call.services.partitions.check_not_lost((topic, partition))
        log = call.services.partitions.local_log(topic, partition)
    except KafkaError as error:
        reply.error_code = error.code
        reply.error_message = error.message
        return reply
    reply.active_producers = [
        ProducerState(
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            last_sequence=producer.last_sequence,
            last_timestamp=producer.last_timestamp,
            coordinator_epoch=producer.coordinator_epoch,
            current_txn_start_offset=producer.transaction_start,
        )
        for producer in log.active_producers()
    ]
    return reply
