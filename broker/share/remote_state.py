"""Asking other brokers, which are share coordinators, about share partitions.

Questions of one kind about one group go together into a request.
"""

from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from broker.coordination.tickets import Ticket
from broker.network.node_batches import NodeBatches
from broker.network.node_client import NodeClient, NodeUnreachable
from broker.share.state import NO_COUNT, Outcome, SharePartitionKey
from broker.share.state_batches import StateBatch
from broker.share.state_questions import (
    DeleteState,
    InitializeState,
    ReadState,
    ReadStateSummary,
    StateQuestion,
    WriteState,
)
from protocol.error_codes import ErrorCode
from protocol.messages import (
    delete_share_group_state,
    initialize_share_group_state,
    read_share_group_state,
    read_share_group_state_summary,
    write_share_group_state,
)
from protocol.schema import Message

if TYPE_CHECKING:
    import trio

    from broker.services import Services

QUESTIONS_PER_REQUEST_MAX: Final = 1000

Asked = tuple[StateQuestion, Ticket[Outcome]]


class RemoteState:
    """The share coordinators on other brokers."""

    def __init__(self, services: "Services", nursery: "Callable[[], trio.Nursery | None]") -> None:
        self._services = services
        self._batches: NodeBatches[Asked] = NodeBatches(services, nursery, "share-state", self._exchange)
        self._timeout_seconds = services.config.get("request.timeout.ms") / 1000

    def ask(self, broker_id: int, question: StateQuestion, ticket: Ticket[Outcome]) -> None:
        """``ticket`` is settled later: refused with COORDINATOR_NOT_AVAILABLE if nobody answers."""
        self._batches.add(broker_id, (question, ticket))

    async def _exchange(self, broker_id: int, client: NodeClient, queue: deque[Asked]) -> None:
        asked = _taken(queue)
        try:
            answer = await client.ask(
                _request([question for question, _ in asked.values()]),
                timeout_seconds=self._timeout_seconds,
            )
        except NodeUnreachable as error:
            self._services.log.warn_seldom(
                f"broker {broker_id}, which keeps the state of share groups, cannot be asked: {error}"
            )
        else:
            for topic in answer.results:
                for result in topic.partitions:
                    known = asked.get((topic.topic_id, result.partition))
                    if known is not None:
                        known[1].settle(_outcome(result))
        for _, ticket in asked.values():
            ticket.refuse(ErrorCode.COORDINATOR_NOT_AVAILABLE)  # only those that are not in the answer


def _taken(queue: deque[Asked]) -> dict[tuple[bytes, int], Asked]:
    """What goes into the next request; the rest stays.  What is asked about one share partition keeps its
    order."""
    first = queue[0][0]
    taken: dict[tuple[bytes, int], Asked] = {}
    left: list[Asked] = []
    left_keys: set[SharePartitionKey] = set()
    while queue and len(taken) < QUESTIONS_PER_REQUEST_MAX:
        asked = queue.popleft()
        key = asked[0].key
        place = key.topic_id, key.partition
        if (
            type(asked[0]) is type(first)
            and key.group_id == first.key.group_id
            and place not in taken
            and key not in left_keys
        ):
            taken[place] = asked
        else:
            left.append(asked)
            left_keys.add(key)
    queue.extendleft(reversed(left))
    return taken


class _Form(NamedTuple):
    """How a kind of question looks on the wire."""

    request: Callable[..., Message]
    topic: Callable[..., Any]
    partition: Callable[[Any], Any]


def _initialize(question: InitializeState) -> initialize_share_group_state.PartitionData:
    return initialize_share_group_state.PartitionData(
        partition=question.key.partition,
        state_epoch=question.state_epoch,
        start_offset=question.start_offset,
    )


def _read(question: ReadState) -> read_share_group_state.PartitionData:
    return read_share_group_state.PartitionData(
        partition=question.key.partition, leader_epoch=question.leader_epoch
    )


def _write(question: WriteState) -> write_share_group_state.PartitionData:
    change = question.change
    return write_share_group_state.PartitionData(
        partition=question.key.partition,
        state_epoch=change.state_epoch,
        leader_epoch=change.leader_epoch,
        start_offset=change.start_offset,
        delivery_complete_count=change.delivery_complete_count,
        state_batches=[
            write_share_group_state.StateBatch(
                first_offset=first_offset,
                last_offset=last_offset,
                delivery_state=delivery_state,
                delivery_count=delivery_count,
            )
            for first_offset, last_offset, delivery_state, delivery_count in change.batches
        ],
    )


def _read_summary(question: ReadStateSummary) -> read_share_group_state_summary.PartitionData:
    return read_share_group_state_summary.PartitionData(
        partition=question.key.partition, leader_epoch=NO_LEADER_EPOCH
    )


def _delete(question: DeleteState) -> delete_share_group_state.PartitionData:
    return delete_share_group_state.PartitionData(partition=question.key.partition)


NO_LEADER_EPOCH: Final = 0
"""Of a group's coordinator, which leads nothing of the topic."""

_FORMS: Final[dict[type, _Form]] = {
    InitializeState: _Form(
        initialize_share_group_state.InitializeShareGroupStateRequest,
        initialize_share_group_state.InitializeStateData,
        _initialize,
    ),
    ReadState: _Form(
        read_share_group_state.ReadShareGroupStateRequest, read_share_group_state.ReadStateData, _read
    ),
    WriteState: _Form(
        write_share_group_state.WriteShareGroupStateRequest, write_share_group_state.WriteStateData, _write
    ),
    ReadStateSummary: _Form(
        read_share_group_state_summary.ReadShareGroupStateSummaryRequest,
        read_share_group_state_summary.ReadStateSummaryData,
        _read_summary,
    ),
    DeleteState: _Form(
        delete_share_group_state.DeleteShareGroupStateRequest,
        delete_share_group_state.DeleteStateData,
        _delete,
    ),
}


def _request(questions: list[StateQuestion]) -> Message:
    """They are of one kind and one group."""
    form = _FORMS[type(questions[0])]
    topics: dict[bytes, Any] = {}
    for question in questions:
        topic_id = question.key.topic_id
        if topic_id not in topics:
            topics[topic_id] = form.topic(topic_id=topic_id)
        topics[topic_id].partitions.append(form.partition(question))
    return form.request(group_id=questions[0].key.group_id, topics=list(topics.values()))


def _outcome(result: Any) -> Outcome:
    """What a broker answers about one share partition; no kind of answer has all of it."""
    return Outcome(
        ErrorCode(result.error_code),
        result.error_message,
        state_epoch=getattr(result, "state_epoch", 0),
        leader_epoch=getattr(result, "leader_epoch", 0),
        start_offset=getattr(result, "start_offset", 0),
        delivery_complete_count=getattr(result, "delivery_complete_count", NO_COUNT),
        batches=tuple(_batches(result)),
    )


def _batches(result: Any) -> Iterator[StateBatch]:
    for batch in getattr(result, "state_batches", ()):
        yield StateBatch(batch.first_offset, batch.last_offset, batch.delivery_state, batch.delivery_count)
