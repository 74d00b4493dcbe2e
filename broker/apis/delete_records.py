"""DeleteRecords (21): move the start of partitions forward."""

from broker.errors import error_code_of
from broker.metadata.topic_names import INTERNAL_TOPICS
from broker.network.call import Call
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from storage.errors import StorageError

HIGH_WATERMARK = -1
"""Stands in the place of an offset for the high watermark: delete all that may be deleted."""


def handle(request: DeleteRecordsRequest, call: Call) -> DeleteRecordsResponse:
    """The request's timeout has no meaning while no other replica has to follow."""
    asked: dict[tuple[str, int], DeleteRecordsPartition] = {
        (topic.name, partition.partition_index): partition  # where one is named twice, the last one counts
        for topic in request.topics
        for partition in topic.partitions
    }
    if call.services.partitions.missing:
        call.services.partitions.require_made(asked)
    results: dict[str, DeleteRecordsTopicResult] = {}
    for (topic, _), partition in asked.items():
        if topic not in results:
            results[topic] = DeleteRecordsTopicResult(name=topic)
        results[topic].partitions.append(delete(call, topic, partition))
    return DeleteRecordsResponse(topics=list(results.values()))


def delete(call: Call, topic: str, asked: DeleteRecordsPartition) -> DeleteRecordsPartitionResult:
    try:
        leader = call.services.partitions.leader(topic, asked.partition_index)
        if topic in INTERNAL_TOPICS:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION)
        if leader.settings.compact and not leader.settings.delete:
            raise KafkaError(ErrorCode.POLICY_VIOLATION)
        offset = leader.log.high_watermark if asked.offset == HIGH_WATERMARK else asked.offset
        if offset < 0:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
        low_watermark = leader.log.delete_records_before(offset)
    except (KafkaError, StorageError) as error:
        return DeleteRecordsPartitionResult(
            partition_index=asked.partition_index, low_watermark=-1, error_code=error_code_of(error)
        )
    return DeleteRecordsPartitionResult(partition_index=asked.partition_index, low_watermark=low_watermark)
