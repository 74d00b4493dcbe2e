"""Having the share coordinator make the state of share partitions that a group is to read."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from broker.coordination.decision import Decision
from broker.coordination.tickets import Ticket
from broker.errors import ErrorCode
from broker.share.group import Initialize
from broker.share.group_commands import Partitions, initialized, not_initialized
from broker.share.state import Outcome, SharePartitionKey
from broker.share.state_questions import InitializeState, ask_each

if TYPE_CHECKING:
    from broker.services import Services


async def initialize(services: "Services", wanted: Initialize) -> dict[SharePartitionKey, Outcome]:
    """See to it, and tell the group which partitions it may read.

    If this broker stops meanwhile, the group's next heartbeats ask again.
    """
    outcomes = await ask_each(
        services,
        [
            InitializeState(
                SharePartitionKey(wanted.group_id, topic_id, partition), wanted.state_epoch, offset
            )
            for topic_id, offsets in wanted.start_offsets.items()
            for partition, offset in offsets.items()
        ],
    )
    ready: dict[bytes, set[int]] = {}
    failed: dict[bytes, set[int]] = {}
    for key, outcome in outcomes.items():
        found = ready if outcome.error is ErrorCode.NONE else failed
        found.setdefault(key.topic_id, set()).add(key.partition)
        if outcome.error is not ErrorCode.NONE:
            services.log.error(
                f"the state of share partition {key.text} is not initialized: {outcome.error.name}"
            )
    _tell(services, wanted.group_id, ready, initialized)
    _tell(services, wanted.group_id, failed, not_initialized)
    return outcomes


def _tell(
    services: "Services", group_id: str, partitions: Partitions, command: Callable[..., Decision]
) -> None:
    if partitions:
        ticket: Ticket[ErrorCode] = Ticket(lambda code: code)
        services.groups.ask(
            group_id, ticket, lambda machine, _: command(machine, group_id, partitions, ticket)
        )
