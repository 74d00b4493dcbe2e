"""InitializeShareGroupState (83): let a share group begin with a partition."""

from broker.coordination.tickets import answer_of_all
from broker.network.call import Call
from broker.network.waiting import Waiting
from broker.share.state import Outcome
from broker.share.state_commands import ask_each, by_topic
from protocol.error_codes import ErrorCode
from protocol.messages.initialize_share_group_state import (
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
    InitializeStateResult,
    PartitionResult,
)


def handle(
    request: InitializeShareGroupStateRequest, call: Call
) -> InitializeShareGroupStateResponse | Waiting[InitializeShareGroupStateResponse]:
    """Topics without partitions are passed over here, unlike in the other APIs about this state."""
    if not request.group_id:
        return InitializeShareGroupStateResponse()
    asked = ask_each(
        call.services.share_coordinator,
        request.group_id,
        request.topics,
        "initialize",
        lambda key, wanted, count, ticket: (
            lambda machine, now: machine.initialize(
                key, wanted.state_epoch, wanted.start_offset, count, ticket, now
            )
        ),
    )
    return answer_of_all(
        [each.ticket for each in asked],
        lambda: InitializeShareGroupStateResponse(
            results=[
                InitializeStateResult(
                    topic_id=topic_id,
                    partitions=[result(partition, outcome) for partition, outcome in outcomes.items()],
                )
                for topic_id, outcomes in by_topic(asked).items()
            ]
        ),
    )


def result(partition: int, outcome: Outcome) -> PartitionResult:
    return PartitionResult(partition=partition, error_code=outcome.error, error_message=outcome.text)


def error_response(
    request: InitializeShareGroupStateRequest, code: ErrorCode
) -> InitializeShareGroupStateResponse:
    """``code`` for every partition: there is no other place for it."""
    return InitializeShareGroupStateResponse(
        results=[
            InitializeStateResult(
                topic_id=topic.topic_id,
                partitions=[result(wanted.partition, Outcome(code)) for wanted in topic.partitions],
            )
            for topic in request.topics
        ]
    )
