"""What the five APIs of the share coordinator have in common: a question about each of many partitions."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

from broker.coordination.decision import Decision, Moment
from broker.coordination.tickets import Ticket
from broker.share.coordinator import ShareCoordinator
from broker.share.state import Outcome, SharePartitionKey, ShareStateMachine
from protocol.error_codes import ErrorCode

Command: TypeAlias = Callable[[ShareStateMachine, Moment], Decision]


class TopicRequest(Protocol):
    topic_id: bytes

    @property
    def partitions(self) -> Sequence[Any]: ...


class Asked(NamedTuple):
    """One partition of a request, and where its outcome will be."""

    topic_id: bytes
    partition: int
    ticket: Ticket[Outcome]


REFUSAL_TEXTS = {
    ErrorCode.NOT_COORDINATOR: "This is not the correct coordinator.",
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: ("The coordinator is loading and hence can't process requests."),
    ErrorCode.COORDINATOR_NOT_AVAILABLE: "The coordinator is not available.",
}


def ask_each(
    coordinator: ShareCoordinator,
    group_id: str,
    topics: Sequence[TopicRequest],
    doing: str,
    make_command: Callable[[SharePartitionKey, Any, int | None, Ticket[Outcome]], Command],
    *,
    what: str = "state",
) -> list[Asked]:
    """Ask the machines about every partition that a request names.

    ``doing`` and ``what`` make the text of refusals; ``make_command`` is given the key, what the request says
    of the partition, the number of partitions that the topic has, and the ticket.
    """

    def refuse(code: ErrorCode) -> Outcome:
        text = REFUSAL_TEXTS.get(code, "The server experienced an unexpected error.")
        return Outcome(code, f"Unable to {doing} share group {what}: {text}")

    asked = []
    for topic in topics:
        count = coordinator.partition_count_of(topic.topic_id)
        for wanted in topic.partitions:
            key = SharePartitionKey(group_id, topic.topic_id, wanted.partition)
            ticket = Ticket(refuse)
            coordinator.ask_about(key, ticket, make_command(key, wanted, count, ticket))
            asked.append(Asked(topic.topic_id, wanted.partition, ticket))
    return asked


def is_answerable(group_id: str, topics: Sequence[TopicRequest]) -> bool:
    """Whether a request asks for anything at all; Kafka's answer to another is empty."""
    return bool(group_id) and bool(topics) and all(topic.partitions for topic in topics)


def by_topic(asked: Sequence[Asked]) -> dict[bytes, dict[int, Outcome]]:
    """The outcomes, once there are all, by number.  Of what was asked twice, the last counts."""
    found: dict[bytes, dict[int, Outcome]] = {}
    for topic_id, partition, ticket in sorted(asked, key=lambda each: each.partition):
        found.setdefault(topic_id, {})[partition] = ticket.outcome
    return found
