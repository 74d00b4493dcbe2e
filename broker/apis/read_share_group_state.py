"""ReadShareGroupState (84): a partition's new leader learns how far a share group is."""

from broker.coordination.tickets import answer_of_all
from broker.network.call import Call
from broker.network.waiting import Waiting
from broker.share.state import Outcome
from broker.share.state_commands import ask_each, by_topic, is_answerable
from protocol.error_codes import ErrorCode
from protocol.messages.read_share_group_state import (
    PartitionResult,
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
    ReadStateResult,
    StateBatch,
)


def handle(
    request: ReadShareGroupStateRequest, call: Call
) -> ReadShareGroupStateResponse | Waiting[ReadShareGroupStateResponse]:
    if not is_answerable(request.group_id, request.topics):
        return ReadShareGroupStateResponse()
    asked = ask_each(
        call.services.share_coordinator,
        request.group_id,
        request.topics,
        "read",
        lambda key, wanted, count, ticket: (
            lambda machine, now: machine.read(key, wanted.leader_epoch, count, ticket, now)
        ),
    )
    return answer_of_all(
        [each.ticket for each in asked],
        lambda: ReadShareGroupStateResponse(
            results=[
                ReadStateResult(
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
        start_offset=outcome.start_offset,
        state_batches=[
            StateBatch(
                first_offset=first_offset,
                last_offset=last_offset,
                delivery_state=delivery_state,
                delivery_count=delivery_count,
            )
            for first_offset, last_offset, delivery_state, delivery_count in outcome.batches
        ],
    )


def error_response(request: ReadShareGroupStateRequest, code: ErrorCode) -> ReadShareGroupStateResponse:
    """``code`` for every partition: there is no other place for it."""
    return ReadShareGroupStateResponse(
        results=[
            ReadStateResult(
                topic_id=topic.topic_id,
                partitions=[result(wanted.partition, Outcome(code)) for wanted in topic.partitions],
            )
            for topic in request.topics
        ]
    )
