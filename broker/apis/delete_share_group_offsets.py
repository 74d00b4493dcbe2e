"""DeleteShareGroupOffsets (92): let a share group without members forget topics."""

from broker.apis.error_texts import fitting
from broker.coordination.tickets import answer_of
from broker.metadata.image import MetadataImage
from broker.network.call import Call
from broker.network.waiting import Waiting
from broker.share.acknowledging import check_enabled
from broker.share.group_admin import Done, delete_offsets
from broker.share.state import TEXTS
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponseTopic,
)

NOTHING_TO_DELETE = "There is no offset information to delete."


def handle(
    request: DeleteShareGroupOffsetsRequest, call: Call
) -> DeleteShareGroupOffsetsResponse | Waiting[DeleteShareGroupOffsetsResponse]:
    try:
        check_enabled(call)
    except KafkaError as error:
        response = error_response(request, error.code)
        response.error_message = "The version of API is not supported."
        return response
    if not request.group_id:
        return DeleteShareGroupOffsetsResponse(
            error_code=ErrorCode.INVALID_GROUP_ID, error_message="The group id is invalid."
        )
    names = [topic.topic_name for topic in request.topics]
    ticket = delete_offsets(call.services.groups, request.group_id, names)
    return answer_of(ticket, lambda done: answer(done, call.services.image))


def answer(done: Done, image: MetadataImage) -> DeleteShareGroupOffsetsResponse:
    if done.error is not ErrorCode.NONE:
        return DeleteShareGroupOffsetsResponse(error_code=done.error, error_message=fitting(done.text))
    errors: dict[bytes, ErrorCode] = {}
    for (topic_id, _), outcome in done.outcomes.items():
        if errors.get(topic_id, ErrorCode.NONE) is ErrorCode.NONE:
            errors[topic_id] = outcome.error
    found = [
        DeleteShareGroupOffsetsResponseTopic(
            topic_name=name,
            error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            error_message=(
                NOTHING_TO_DELETE if name in image.topics else TEXTS[ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
            ),
        )
        for name in done.unknown
    ]
    for topic_id, error in errors.items():
        topic = image.topics_by_id.get(topic_id)
        found.append(
            DeleteShareGroupOffsetsResponseTopic(
                topic_name="" if topic is None else topic.name,
                topic_id=topic_id,
                error_code=error,
                error_message=TEXTS.get(error),
            )
        )
    return DeleteShareGroupOffsetsResponse(responses=found)


def error_response(
    request: DeleteShareGroupOffsetsRequest, code: ErrorCode
) -> DeleteShareGroupOffsetsResponse:
    return DeleteShareGroupOffsetsResponse(error_code=code)
