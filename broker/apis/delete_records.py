"""DeleteRecords (21): move the start of partitions forward."""

import trio

from broker.errors import error_code_of
from broker.metadata.topic_names import INTERNAL_TOPICS
from broker.network.call import Call
from broker.network.waiting import Waiting
from broker.partitions.leader import Leader
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


def handle(
    request: DeleteRecordsRequest, call: Call
) -> DeleteRecordsResponse | Waiting[DeleteRecordsResponse]:
    """The answer waits, for as long as the request allows, until the other replicas have followed."""
    asked: dict[tuple[str, int], DeleteRecordsPartition] = {
        (topic.name, partition.partition_index): partition  # where one is named twice, the last one counts
        for topic in request.topics
        for partition in topic.partitions
    }
    if call.services.partitions.missing:
        call.services.partitions.require_made(asked)
    results: dict[str, DeleteRecordsTopicResult] = {}
    gathering = Gathering(request, results)
    for (topic, _), partition in asked.items():
        if topic not in results:
            results[topic] = DeleteRecordsTopicResult(name=topic)
        results[topic].partitions.append(delete(call, topic, partition, gathering))
    return gathering.close()


def delete(
    call: Call, topic: str, asked: DeleteRecordsPartition, gathering: "Gathering"
) -> DeleteRecordsPartitionResult:
    result = DeleteRecordsPartitionResult(partition_index=asked.partition_index, low_watermark=-1)
    try:
        if (
            topic in INTERNAL_TOPICS
            and call.services.image.partition(topic, asked.partition_index) is not None
        ):
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION)  # whoever leads it
        leader = call.services.partitions.leader(topic, asked.partition_index)
        if leader.settings.compact and not leader.settings.delete:
            raise KafkaError(ErrorCode.POLICY_VIOLATION)
        offset = leader.log.high_watermark if asked.offset == HIGH_WATERMARK else asked.offset
        if offset < 0:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
        leader.log.delete_records_before(offset)
    except (KafkaError, StorageError) as error:
        result.error_code = error_code_of(error)
    else:
        result.low_watermark = leader.low_watermark
        if result.low_watermark < offset:
            gathering.wait(leader, offset, result)
    return result


class Gathering:
    """An answer that waits until all replicas of all partitions have followed, or time is over."""

    def __init__(self, request: DeleteRecordsRequest, results: dict[str, DeleteRecordsTopicResult]) -> None:
        deadline = trio.current_time() + request.timeout_ms / 1000
        self._results = results
        self._waiting: Waiting[DeleteRecordsResponse] = Waiting(deadline, self._answer)
        self._missing = 0

    def wait(self, leader: Leader, offset: int, result: DeleteRecordsPartitionResult) -> None:
        def deleted(error: KafkaError | None) -> None:
            if self._waiting.is_answered:
                return
            result.error_code = 0 if error is None else error.code
            result.low_watermark = leader.low_watermark if error is None else -1
            self._missing -= 1
            if not self._missing:
                self._answer()

        result.error_code = ErrorCode.REQUEST_TIMED_OUT  # unless it happens before that
        self._missing += 1
        leader.when_deleted(offset, deleted)

    def close(self) -> DeleteRecordsResponse | Waiting[DeleteRecordsResponse]:
        return self._waiting if self._missing else self._response()

    def _answer(self) -> None:
        self._waiting.answer(self._response())

    def _response(self) -> DeleteRecordsResponse:
        return DeleteRecordsResponse(topics=list(self._results.values()))
