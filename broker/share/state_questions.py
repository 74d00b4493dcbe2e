"""Asking the share coordinator about many share partitions, for whoever can wait for its answers."""

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, TypeAlias

import trio

from broker.coordination.tickets import Ticket
from broker.errors import KafkaError
from broker.metadata.topic_names import SHARE_GROUP_STATE
from broker.share.service import NOT_READY, RETRIES_MAX, RETRY_SECONDS
from broker.share.state import Outcome, SharePartitionKey
from broker.share.state_commands import Command

if TYPE_CHECKING:
    from broker.services import Services

Question: TypeAlias = Callable[[SharePartitionKey, int | None, Ticket[Outcome]], Command]
"""Given a share partition, how many partitions its topic has, and who is told: what the machine is to do."""


async def ask_each(
    services: "Services", keys: Collection[SharePartitionKey], question: Question
) -> dict[SharePartitionKey, Outcome]:
    """What becomes of each; while the coordinator is not ready it is asked again, for some seconds."""
    await trio.lowlevel.checkpoint()  # a shard may have asked for this, and be busy still
    await _state_topic_made(services)
    outcomes: dict[SharePartitionKey, Outcome] = {}
    waiting = list(keys)
    for attempt in range(RETRIES_MAX + 1):
        if attempt:
            await trio.sleep(RETRY_SECONDS)
        tickets = {key: _ask(services, key, question) for key in waiting}
        for key, ticket in tickets.items():
            await _settled(ticket)
            outcomes[key] = ticket.outcome
        waiting = [key for key in keys if outcomes[key].error in NOT_READY]
        if not waiting:
            break
    return outcomes


async def _state_topic_made(services: "Services") -> None:
    made = trio.Event()

    def told(error: KafkaError | None) -> None:
        made.set()  # if it could not be made, the share coordinator says so

    services.automatic_topics.ensure(SHARE_GROUP_STATE, told)
    await made.wait()


def _ask(services: "Services", key: SharePartitionKey, question: Question) -> Ticket[Outcome]:
    ticket = Ticket(Outcome)
    coordinator = services.share_coordinator
    count = coordinator.partition_count_of(key.topic_id)
    coordinator.ask_about(key, ticket, question(key, count, ticket))
    return ticket


async def _settled(ticket: Ticket[Outcome]) -> None:
    settled = trio.Event()
    ticket.then(settled.set)
    await settled.wait()
