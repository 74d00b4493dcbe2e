"""Having the share coordinator make the state of share partitions that a group is to read."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import trio

from broker.coordination.decision import Decision
from broker.coordination.tickets import Ticket
from broker.errors import ErrorCode, KafkaError
from broker.metadata.topic_names import SHARE_GROUP_STATE
from broker.share.group import Initialize
from broker.share.group_commands import Partitions, initialized, not_initialized
from broker.share.service import NOT_READY, RETRIES_MAX, RETRY_SECONDS
from broker.share.state import Outcome, SharePartitionKey

if TYPE_CHECKING:
    from broker.services import Services


async def initialize(services: "Services", wanted: Initialize) -> None:
    """See to it, and tell the group which partitions it may read.

    If this broker stops meanwhile, the group's next heartbeats ask again.
    """
    await trio.lowlevel.checkpoint()  # the shard that asks is still busy
    await _state_topic_made(services)
    keys = {
        SharePartitionKey(wanted.group_id, topic_id, partition): offset
        for topic_id, offsets in wanted.start_offsets.items()
        for partition, offset in offsets.items()
    }
    outcomes = dict.fromkeys(keys, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    for attempt in range(RETRIES_MAX + 1):
        if attempt:
            await trio.sleep(RETRY_SECONDS)
        waiting = {key: keys[key] for key, outcome in outcomes.items() if outcome in NOT_READY}
        outcomes.update(await _ask(services, wanted.state_epoch, waiting))
        if not any(outcome in NOT_READY for outcome in outcomes.values()):
            break
    ready: dict[bytes, set[int]] = {}
    failed: dict[bytes, set[int]] = {}
    for key, outcome in outcomes.items():
        found = ready if outcome is ErrorCode.NONE else failed
        found.setdefault(key.topic_id, set()).add(key.partition)
        if outcome is not ErrorCode.NONE:
            services.log.error(f"the state of share partition {key.text} is not initialized: {outcome.name}")
    _tell(services, wanted.group_id, ready, initialized)
    _tell(services, wanted.group_id, failed, not_initialized)


def _tell(
    services: "Services", group_id: str, partitions: Partitions, command: Callable[..., Decision]
) -> None:
    if partitions:
        ticket: Ticket[ErrorCode] = Ticket(lambda code: code)
        services.groups.ask(
            group_id, ticket, lambda machine, _: command(machine, group_id, partitions, ticket)
        )


async def _state_topic_made(services: "Services") -> None:
    made = trio.Event()

    def told(error: KafkaError | None) -> None:
        made.set()  # if it could not be made, the share coordinator says so

    services.automatic_topics.ensure(SHARE_GROUP_STATE, told)
    await made.wait()


async def _ask(
    services: "Services", state_epoch: int, wanted: Mapping[SharePartitionKey, int]
) -> dict[SharePartitionKey, ErrorCode]:
    tickets = {key: _ask_one(services, key, state_epoch, offset) for key, offset in wanted.items()}
    outcomes = {}
    for key, ticket in tickets.items():
        settled = trio.Event()
        if not ticket.is_settled:
            ticket.when_settled(settled.set)
            await settled.wait()
        outcomes[key] = ticket.outcome.error
    return outcomes


def _ask_one(
    services: "Services", key: SharePartitionKey, state_epoch: int, start_offset: int
) -> Ticket[Outcome]:
    ticket = Ticket(Outcome)
    coordinator = services.share_coordinator
    count = coordinator.partition_count_of(key.topic_id)
    coordinator.ask_about(
        key,
        ticket,
        lambda machine, now: machine.initialize(key, state_epoch, start_offset, count, ticket, now),
    )
    return ticket
