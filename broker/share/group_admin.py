"""What operators ask of share groups: to move, show and delete what is kept of their partitions.

A group's partitions are known to its own machine, their state to the share coordinator: each operation goes
from one to the other.  If the broker stops halfway it is asked again.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from broker.coordination.decision import Decision, Moment
from broker.coordination.tickets import Ticket
from broker.errors import ErrorCode, KafkaError
from broker.share.group import Initialize, PartitionStates, ShareGroup, TopicState, combined
from broker.share.group_commands import Partitions, find
from broker.share.partition_ends import Place, high_watermarks
from broker.share.state import Outcome, SharePartitionKey
from broker.share.state_batches import NO_START_OFFSET
from broker.share.state_commands import REFUSAL_TEXTS
from broker.share.state_questions import DeleteState, ReadStateSummary, ask_each, settled

if TYPE_CHECKING:
    from broker.groups.machine import GroupMachine
    from broker.groups.service import GroupService
    from broker.services import Services

NO_LAG = -1
NO_COUNT = -1


class Begun(NamedTuple):
    """What the group's machine says: a refusal, or what the share coordinator is to do."""

    error: ErrorCode = ErrorCode.NONE
    text: str | None = None
    epoch: int = 0
    partitions: Partitions = {}
    unknown: Collection[str] = ()
    """Topics of which there is nothing to delete."""


class Done(NamedTuple):
    """What has become of each partition, unless all was refused."""

    error: ErrorCode = ErrorCode.NONE
    text: str | None = None
    outcomes: Mapping[Place, Outcome] = {}
    ends: Mapping[Place, int | ErrorCode] = {}
    """Of those partitions whose lag is asked for."""
    unknown: Collection[str] = ()


# Commands of the group's machine


def begin_altering(
    machine: "GroupMachine",
    group_id: str,
    start_offsets: Mapping[bytes, Mapping[int, int]],
    ticket: Ticket[Begun],
) -> Decision:
    """A group without members is to go on elsewhere; it is made if there is none."""
    decision = Decision(tentative=True)
    group = machine.groups.get(group_id)
    if group is None:
        group = ShareGroup(group_id, machine.settings, machine.cluster)
    if not isinstance(group, ShareGroup):
        text = f"Group {group_id} is not a share group."
        decision.reply(ticket, Begun(ErrorCode.GROUP_ID_NOT_FOUND, text))
    elif not group.is_empty:
        decision.reply(ticket, _not_empty())
    else:
        wanted = {
            topic_id: TopicState(machine.cluster.image.topics_by_id[topic_id].name, frozenset(offsets))
            for topic_id, offsets in start_offsets.items()
            if topic_id in machine.cluster.image.topics_by_id
        }
        if wanted:
            group.write_initializing(wanted, decision)
            decision.then = lambda now: _is_being_made(machine, group_id, wanted, now)
        decision.reply(ticket, Begun(epoch=group.group_epoch))
    return decision


def _is_being_made(
    machine: "GroupMachine", group_id: str, topic_ids: Collection[bytes], now: Moment
) -> Decision:
    """A member that comes now must not have it made, too: it would begin somewhere else."""
    group = machine.groups[group_id]
    assert isinstance(group, ShareGroup)
    group.asked_ms.update(dict.fromkeys(topic_ids, now.steady_ms))
    return Decision()


def begin_deleting(
    machine: "GroupMachine", group_id: str, names: Collection[str] | None, ticket: Ticket[Begun]
) -> Decision:
    """What is kept of these topics is to be deleted; None: of all, because the group is."""
    decision = Decision(tentative=True)
    try:
        group = find(machine, group_id)
    except KafkaError as error:
        decision.reply(ticket, Begun(error.code, error.message))
        return decision
    if not group.is_empty:
        decision.reply(ticket, _not_empty())
        return decision
    known, unknown = _to_delete(group, names)
    states = group.states
    left = PartitionStates(
        {} if names is None else states.initializing,
        {topic_id: state for topic_id, state in states.initialized.items() if topic_id not in known},
        {**states.deleting, **{topic_id: state.name for topic_id, state in known.items()}},
    )
    if left != states:
        group.write_states(left, decision)
    partitions = {topic_id: state.partitions for topic_id, state in known.items()}
    decision.reply(ticket, Begun(partitions=partitions, unknown=unknown))
    return decision


def _to_delete(
    group: ShareGroup, names: Collection[str] | None
) -> tuple[dict[bytes, TopicState], Collection[str]]:
    """Partitions with state by topic; and the names of topics that have none."""
    states, cluster = group.states, group.cluster
    unfinished = {
        topic_id: TopicState(name, frozenset(range(cluster.partition_count(topic_id))))
        for topic_id, name in states.deleting.items()
        if cluster.topic_of(topic_id) is not None
    }
    if names is None:
        return combined(combined(states.initialized, states.initializing), unfinished), ()
    known, unknown = {}, []
    for name in names:
        topic = cluster.topic(name)
        state = None
        if topic is not None:
            state = states.initialized.get(topic.id) or unfinished.get(topic.id)
        if topic is None or state is None:
            unknown.append(name)
        else:
            known[topic.id] = state
    return known, unknown


def end_deleting(
    machine: "GroupMachine", group_id: str, topic_ids: Collection[bytes], ticket: Ticket[ErrorCode]
) -> Decision:
    """The state of these topics is deleted."""
    decision = Decision(tentative=True)
    decision.reply(ticket, ErrorCode.NONE)
    group = machine.groups.get(group_id)
    if isinstance(group, ShareGroup) and topic_ids:
        states = group.states
        left = {each: name for each, name in states.deleting.items() if each not in topic_ids}
        group.write_states(states._replace(deleting=left), decision)
    return decision


def initialized_partitions(machine: "GroupMachine", group_id: str, ticket: Ticket[Begun]) -> Decision:
    """Everything that the group has a state of; nothing if there is no such group."""
    decision = Decision()
    group = machine.groups.get(group_id)
    partitions: Partitions = {}
    if isinstance(group, ShareGroup):
        partitions = {topic_id: state.partitions for topic_id, state in group.states.initialized.items()}
    decision.reply(ticket, Begun(partitions=partitions))
    return decision


def _not_empty() -> Begun:
    return Begun(ErrorCode.NON_EMPTY_GROUP, "The group is not empty.")


# Operations


def alter_offsets(
    groups: "GroupService", group_id: str, start_offsets: Mapping[bytes, Mapping[int, int]]
) -> Ticket[Done]:
    """AlterShareGroupOffsets, for partitions that exist."""

    async def go_on(begun: Begun) -> Done:
        wanted = Initialize(group_id, begun.epoch, start_offsets)
        from broker.share.initializing import initialize

        service = groups.services.share.service
        service.end_group(group_id)
        outcomes = await initialize(groups.services, wanted)
        service.end_group(group_id)  # the epoch is the same: it would not be fenced
        return Done(outcomes=_by_place(outcomes))

    return _operate(
        groups,
        group_id,
        lambda machine, _, ticket: begin_altering(machine, group_id, start_offsets, ticket),
        go_on,
    )


def delete_offsets(groups: "GroupService", group_id: str, names: Sequence[str]) -> Ticket[Done]:
    """DeleteShareGroupOffsets."""

    async def go_on(begun: Begun) -> Done:
        outcomes = await _delete_states(groups.services, group_id, begun.partitions)
        failed = {key.topic_id for key, outcome in outcomes.items() if outcome.error is not ErrorCode.NONE}
        gone = begun.partitions.keys() - failed
        ticket: Ticket[ErrorCode] = Ticket(lambda code: code)
        groups.ask(group_id, ticket, lambda machine, _: end_deleting(machine, group_id, gone, ticket))
        await settled(ticket)
        if ticket.outcome is not ErrorCode.NONE:
            return Done(ticket.outcome, REFUSAL_TEXTS.get(ticket.outcome))
        return Done(outcomes=_by_place(outcomes), unknown=begun.unknown)

    return _operate(
        groups, group_id, lambda machine, _, ticket: begin_deleting(machine, group_id, names, ticket), go_on
    )


def delete_group(groups: "GroupService", group_id: str) -> Ticket[ErrorCode]:
    """DeleteGroups, when it is a share group: the state of its partitions first."""
    deleted: Ticket[ErrorCode] = Ticket(lambda code: code)

    async def go_on(begun: Begun) -> Done:
        outcomes = await _delete_states(groups.services, group_id, begun.partitions)
        errors = (outcome.error for outcome in outcomes.values())
        return Done(next((error for error in errors if error is not ErrorCode.NONE), ErrorCode.NONE))

    done = _operate(
        groups, group_id, lambda machine, _, ticket: begin_deleting(machine, group_id, None, ticket), go_on
    )

    def states_are_gone() -> None:
        if done.outcome.error is ErrorCode.NONE:
            groups.ask(group_id, deleted, lambda machine, _: machine.delete(group_id, deleted))
        else:
            deleted.settle(done.outcome.error)

    done.then(states_are_gone)
    return deleted


class Described(NamedTuple):
    """Where a share group stands in one partition."""

    start_offset: int = NO_START_OFFSET
    leader_epoch: int = 0
    lag: int = NO_LAG
    error: ErrorCode = ErrorCode.NONE
    text: str | None = None


def describe_offsets(groups: "GroupService", group_id: str, partitions: Partitions | None) -> Ticket[Done]:
    """DescribeShareGroupOffsets; None: every partition of which there is a state."""

    async def go_on(begun: Begun) -> Done:
        keys = _keys(group_id, begun.partitions)
        outcomes = _by_place(await ask_each(groups.services, [ReadStateSummary(key) for key in keys]))
        started = [place for place, outcome in outcomes.items() if _has_lag(outcome)]
        return Done(outcomes=outcomes, ends=await high_watermarks(groups.services, started))

    if partitions is None:
        return _operate(
            groups,
            group_id,
            lambda machine, _, ticket: initialized_partitions(machine, group_id, ticket),
            go_on,
        )
    done: Ticket[Done] = Ticket(Done)
    _go_on(groups, Begun(partitions=partitions), go_on, done)
    return done


def _has_lag(outcome: Outcome) -> bool:
    return (
        outcome.error is ErrorCode.NONE
        and outcome.start_offset != NO_START_OFFSET
        and outcome.delivery_complete_count != NO_COUNT
    )


def described(done: Done, place: Place) -> Described:
    """What the share coordinator says of a partition, and how far its end is."""
    outcome = done.outcomes[place]
    if outcome.error is not ErrorCode.NONE:
        return Described()
    if not _has_lag(outcome):
        return Described(outcome.start_offset, outcome.leader_epoch)
    end = done.ends[place]
    if isinstance(end, ErrorCode):
        return Described(0, 0, NO_LAG, end, None)
    lag = end - outcome.start_offset - outcome.delivery_complete_count
    return Described(outcome.start_offset, outcome.leader_epoch, lag)


async def _delete_states(
    services: "Services", group_id: str, partitions: Partitions
) -> dict[SharePartitionKey, Outcome]:
    outcomes = await ask_each(services, [DeleteState(key) for key in _keys(group_id, partitions)])
    services.share.service.end_group(group_id)
    return outcomes


def _keys(group_id: str, partitions: Partitions) -> list[SharePartitionKey]:
    return [
        SharePartitionKey(group_id, topic_id, partition)
        for topic_id, of_topic in partitions.items()
        for partition in sorted(of_topic)
    ]


def _by_place(outcomes: Mapping[SharePartitionKey, Outcome]) -> dict[Place, Outcome]:
    return {(key.topic_id, key.partition): outcome for key, outcome in outcomes.items()}


def _operate(
    groups: "GroupService",
    group_id: str,
    begin: Callable[["GroupMachine", Moment, Ticket[Begun]], Decision],
    go_on: Callable[[Begun], Awaitable[Done]],
) -> Ticket[Done]:
    """Ask the group's machine first, and the share coordinator when it agrees."""
    done: Ticket[Done] = Ticket(Done)
    begun: Ticket[Begun] = Ticket(lambda code: Begun(code, REFUSAL_TEXTS.get(code)))

    def has_begun() -> None:
        if begun.outcome.error is not ErrorCode.NONE:
            done.settle(Done(begun.outcome.error, begun.outcome.text))
        else:
            _go_on(groups, begun.outcome, go_on, done)

    groups.ask(group_id, begun, lambda machine, now: begin(machine, now, begun))
    begun.then(has_begun)
    return done


def _go_on(
    groups: "GroupService", begun: Begun, go_on: Callable[[Begun], Awaitable[Done]], done: Ticket[Done]
) -> None:
    if groups.nursery is None:
        done.refuse(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return

    async def run() -> None:
        try:
            done.settle(await go_on(begun))
        finally:
            done.refuse(ErrorCode.COORDINATOR_NOT_AVAILABLE)  # only if it was cancelled

    groups.nursery.start_soon(run)
