"""AlterShareGroupOffsets (91): let a share group without members go on elsewhere."""

from broker.apis.error_texts import fitting
from broker.coordination.tickets import answer_of
from broker.network.call import Call
from broker.network.waiting import Waiting
from broker.share.acknowledging import check_enabled
from broker.share.group_admin import Done, alter_offsets
from broker.share.state import Outcome, refused
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
)
from protocol.uuids import ZERO_UUID


def handle(
    request: AlterShareGroupOffsetsRequest, call: Call
) -> AlterShareGroupOffsetsResponse | Waiting[AlterShareGroupOffsetsResponse]:
    try:
        check_enabled(call)
    except KafkaError as error:
        response = error_response(request, error.code)
        response.error_message = "The version of API is not supported."
        return response
    if not request.group_id:
        return AlterShareGroupOffsetsResponse(
            error_code=ErrorCode.INVALID_GROUP_ID, error_message="The group id is invalid."
        )
    topics = call.services.image.topics
    start_offsets = {}
    ids = {}
    for wanted in request.topics:
        topic = topics.get(wanted.topic_name)
        if topic is not None:
            ids[wanted.topic_name] = topic.id
            start_offsets[topic.id] = {
                each.partition_index: each.start_offset
                for each in wanted.partitions
                if each.partition_index < len(topic.partitions)
            }
    ticket = alter_offsets(call.services.groups, request.group_id, start_offsets)
    return answer_of(ticket, lambda done: answer(request, ids, done))


def answer(
    request: AlterShareGroupOffsetsRequest, ids: dict[str, bytes], done: Done
) -> AlterShareGroupOffsetsResponse:
    if done.error is not ErrorCode.NONE:
        return AlterShareGroupOffsetsResponse(error_code=done.error, error_message=fitting(done.text))
    unknown = refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return AlterShareGroupOffsetsResponse(
        responses=[
            AlterShareGroupOffsetsResponseTopic(
                topic_name=topic.topic_name,
                topic_id=ids.get(topic.topic_name, ZERO_UUID),
                partitions=[
                    result(
                        each.partition_index,
                        done.outcomes.get(
                            (ids.get(topic.topic_name, ZERO_UUID), each.partition_index), unknown
                        ),
                    )
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def result(partition: int, outcome: Outcome) -> AlterShareGroupOffsetsResponsePartition:
    return AlterShareGroupOffsetsResponsePartition(
        partition_index=partition, error_code=outcome.error, error_message=outcome.text
    )


def error_response(request: AlterShareGroupOffsetsRequest, code: ErrorCode) -> AlterShareGroupOffsetsResponse:
    return AlterShareGroupOffsetsResponse(error_code=code)
