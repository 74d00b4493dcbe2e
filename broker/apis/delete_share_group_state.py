"""DeleteShareGroupState (86): forget how far a share group is."""

from broker.coordination.tickets import answer_of_all
from broker.network.call import Call
from broker.network.waiting import Waiting
from broker.share.state import Outcome
from broker.share.state_commands import ask_each, by_topic, is_answerable
from protocol.error_codes import ErrorCode
from protocol.messages.delete_share_group_state import (
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateResponse,
    DeleteStateResult,
    PartitionResult,
)


def handle(
    request: DeleteShareGroupStateRequest, call: Call
) -> DeleteShareGroupStateResponse | Waiting[DeleteShareGroupStateResponse]:
    if not is_answerable(request.group_id, request.topics):
        return DeleteShareGroupStateResponse()
    asked = ask_each(
        call.services.share_coordinator,
        request.group_id,
        request.topics,
        "delete",
        lambda key, _, count, ticket: lambda machine, now: machine.delete(key, count, ticket),
    )
    return answer_of_all(
        [each.ticket for each in asked],
        lambda: DeleteShareGroupStateResponse(
            results=[
                DeleteStateResult(
                    topic_id=topic_id,
                    partitions=[result(partition, outcome) for partition, outcome in outcomes.items()],
                )
                for topic_id, outcomes in by_topic(asked).items()
            ]
        ),
    )


def result(partition: int, outcome: Outcome) -> PartitionResult:
    return PartitionResult(partition=partition, error_code=outcome.error, error_message=outcome.text)


def error_response(request: DeleteShareGroupStateRequest, code: ErrorCode) -> DeleteShareGroupStateResponse:
    """``code`` for every partition: there is no other place for it."""
    return DeleteShareGroupStateResponse(
        results=[
            DeleteStateResult(
                topic_id=topic.topic_id,
                partitions=[result(wanted.partition, Outcome(code)) for wanted in topic.partitions],
            )
            for topic in request.topics
        ]
    )
