"""ReadShareGroupStateSummary (87): how far a share group is, without the records in flight."""

from broker.coordination.tickets import answer_of_all
from broker.network.call import Call
from broker.network.waiting import Waiting
from broker.share.state import Outcome
from broker.share.state_commands import ask_each, by_topic, is_answerable
from protocol.error_codes import ErrorCode
from protocol.messages.read_share_group_state_summary import (
    PartitionResult,
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
    ReadStateSummaryResult,
)


def handle(
    request: ReadShareGroupStateSummaryRequest, call: Call
) -> ReadShareGroupStateSummaryResponse | Waiting[ReadShareGroupStateSummaryResponse]:
    if not is_answerable(request.group_id, request.topics):
        return ReadShareGroupStateSummaryResponse()
    asked = ask_each(
        call.services.share_coordinator,
        request.group_id,
        request.topics,
        "read",
        lambda key, _, count, ticket: lambda machine, now: machine.read_summary(key, count, ticket),
        what="state summary",
    )
    return answer_of_all(
        [each.ticket for each in asked],
        lambda: ReadShareGroupStateSummaryResponse(
            results=[
                ReadStateSummaryResult(
                    topic_id=topic_id,
                    partitions=[result(partition, outcome) for partition, outcome in outcomes.items()],
                )
                for topic_id, outcomes in by_topic(asked).items()
            ]
        ),
    )


def result(partition: int, outcome: Outcome) -> PartitionResult:
    return PartitionResult(
        partition=partition,
        error_code=outcome.error,
        error_message=outcome.text,
        state_epoch=outcome.state_epoch,
        leader_epoch=outcome.leader_epoch,
        start_offset=outcome.start_offset,
        delivery_complete_count=outcome.delivery_complete_count,
    )


def error_response(
    request: ReadShareGroupStateSummaryRequest, code: ErrorCode
) -> ReadShareGroupStateSummaryResponse:
    """``code`` for every partition: there is no other place for it."""
    return ReadShareGroupStateSummaryResponse(
        results=[
            ReadStateSummaryResult(
                topic_id=topic.topic_id,
                partitions=[result(wanted.partition, Outcome(code)) for wanted in topic.partitions],
            )
            for topic in request.topics
        ]
    )
