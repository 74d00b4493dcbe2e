"""WriteShareGroupState (85): a partition's leader tells how far a share group is."""

from broker.coordination.tickets import answer_of_all
from broker.network.call import Call
from broker.network.waiting import Waiting
from broker.share.state import Change, Outcome
from broker.share.state_batches import StateBatch
from broker.share.state_commands import ask_each, by_topic, is_answerable
from protocol.error_codes import ErrorCode
from protocol.messages.write_share_group_state import (
    PartitionData,
    PartitionResult,
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
    WriteStateResult,
)


def handle(
    request: WriteShareGroupStateRequest, call: Call
) -> WriteShareGroupStateResponse | Waiting[WriteShareGroupStateResponse]:
    if not is_answerable(request.group_id, request.topics):
        return WriteShareGroupStateResponse()
    asked = ask_each(
        call.services.share_coordinator,
        request.group_id,
        request.topics,
        "write",
        lambda key, wanted, count, ticket: (
            lambda machine, now: machine.write(key, change_of(wanted), count, ticket, now)
        ),
    )
    return answer_of_all(
        [each.ticket for each in asked],
        lambda: WriteShareGroupStateResponse(
            results=[
                WriteStateResult(
                    topic_id=topic_id,
                    partitions=[result(partition, outcome) for partition, outcome in outcomes.items()],
                )
                for topic_id, outcomes in by_topic(asked).items()
            ]
        ),
    )


def change_of(wanted: PartitionData) -> Change:
    return Change(
        wanted.state_epoch,
        wanted.leader_epoch,
        wanted.start_offset,
        wanted.delivery_complete_count,
        [
            StateBatch(batch.first_offset, batch.last_offset, batch.delivery_state, batch.delivery_count)
            for batch in wanted.state_batches
        ],
    )


def result(partition: int, outcome: Outcome) -> PartitionResult:
    return PartitionResult(partition=partition, error_code=outcome.error, error_message=outcome.text)


def error_response(request: WriteShareGroupStateRequest, code: ErrorCode) -> WriteShareGroupStateResponse:
    """``code`` for every partition: there is no other place for it."""
    return WriteShareGroupStateResponse(
        results=[
            WriteStateResult(
                topic_id=topic.topic_id,
                partitions=[result(wanted.partition, Outcome(code)) for wanted in topic.partitions],
            )
            for topic in request.topics
        ]
    )
