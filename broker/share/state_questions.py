"""What the share coordinator is asked about share partitions, wherever it is."""

from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import trio

from broker.coordination.decision import Decision, Moment
from broker.coordination.tickets import Ticket
from broker.errors import ErrorCode, KafkaError
from broker.metadata.topic_names import SHARE_GROUP_STATE
from broker.share.state import Change, Outcome, SharePartitionKey, ShareStateMachine

if TYPE_CHECKING:
    from broker.services import Services

RETRY_SECONDS: Final = 1.0
RETRIES_MAX: Final = 5
"""How often, and after how long, a share coordinator that is not ready is asked again."""

NOT_READY: Final = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)


class InitializeState(NamedTuple):
    """Let a group begin with a share partition."""

    key: SharePartitionKey
    state_epoch: int
    start_offset: int

    def decide(
        self, machine: ShareStateMachine, count: int | None, ticket: Ticket[Outcome], now: Moment
    ) -> Decision:
        """``count``, here and below, is that of the topic's partitions; None if there is no such topic."""
        return machine.initialize(self.key, self.state_epoch, self.start_offset, count, ticket, now)


class ReadState(NamedTuple):
    """Everything that is known, for the new leader of the topic's partition."""

    key: SharePartitionKey
    leader_epoch: int

    def decide(
        self, machine: ShareStateMachine, count: int | None, ticket: Ticket[Outcome], now: Moment
    ) -> Decision:
        return machine.read(self.key, self.leader_epoch, count, ticket, now)


class WriteState(NamedTuple):
    """Keep what its leader tells."""

    key: SharePartitionKey
    change: Change

    def decide(
        self, machine: ShareStateMachine, count: int | None, ticket: Ticket[Outcome], now: Moment
    ) -> Decision:
        return machine.write(self.key, self.change, count, ticket, now)


class ReadStateSummary(NamedTuple):
    """How far the group is."""

    key: SharePartitionKey

    def decide(
        self, machine: ShareStateMachine, count: int | None, ticket: Ticket[Outcome], now: Moment
    ) -> Decision:
        return machine.read_summary(self.key, count, ticket)


class DeleteState(NamedTuple):
    """Forget it."""

    key: SharePartitionKey

    def decide(
        self, machine: ShareStateMachine, count: int | None, ticket: Ticket[Outcome], now: Moment
    ) -> Decision:
        return machine.delete(self.key, count, ticket)


StateQuestion: TypeAlias = InitializeState | ReadState | WriteState | ReadStateSummary | DeleteState


def ask_coordinator(services: "Services", question: StateQuestion, ticket: Ticket[Outcome]) -> None:
    """Ask the share coordinator of the question's key, which may be another broker, or none for now."""
    coordinator, key = services.share_coordinator, question.key
    place = services.image.partition(SHARE_GROUP_STATE, coordinator.partition_for(key.text))
    if place is None:
        ticket.refuse(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    elif place.leader == services.node_id:
        count = coordinator.partition_count_of(key.topic_id)
        coordinator.ask_about(key, ticket, lambda machine, now: question.decide(machine, count, ticket, now))
    elif services.image.is_alive(place.leader):
        coordinator.remote_state.ask(place.leader, question, ticket)
    else:
        ticket.refuse(ErrorCode.COORDINATOR_NOT_AVAILABLE)


async def ask_each(
    services: "Services", questions: Collection[StateQuestion]
) -> dict[SharePartitionKey, Outcome]:
    """What becomes of each; while a coordinator is not ready it is asked again, for some seconds.

    Each share partition is asked about once.
    """
    await trio.lowlevel.checkpoint()  # a shard may have asked for this, and be busy still
    outcomes: dict[SharePartitionKey, Outcome] = {}
    waiting = list(questions)
    if not waiting:
        return outcomes  # for which no topic has to be made
    for attempt in range(RETRIES_MAX + 1):
        if attempt:
            await trio.sleep(RETRY_SECONDS)
        await _state_topic_made(services)
        tickets = [(question.key, Ticket(Outcome)) for question in waiting]
        for question, (_, ticket) in zip(waiting, tickets, strict=True):
            ask_coordinator(services, question, ticket)
        for key, ticket in tickets:
            await settled(ticket)
            outcomes[key] = ticket.outcome
        waiting = [question for question in questions if outcomes[question.key].error in NOT_READY]
        if not waiting:
            break
    return outcomes


async def _state_topic_made(services: "Services") -> None:
    """See to it that there is a share coordinator, if that can be.

    Otherwise the next attempt tries again: there may be as many brokers by then as the topic needs.
    """
    made = trio.Event()

    def told(error: KafkaError | None) -> None:
        made.set()  # if it could not be made, the share coordinator says so

    services.automatic_topics.ensure(SHARE_GROUP_STATE, told)
    await made.wait()


async def settled(ticket: Ticket[Any]) -> None:
    """Return when there is an outcome."""
    has_outcome = trio.Event()
    ticket.then(has_outcome.set)
    await has_outcome.wait()
