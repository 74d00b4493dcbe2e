"""Groups in one partition, with a log in memory and a clock that moves when a test says so."""

import io
from collections.abc import Callable, Sequence
from typing import Any, Self

from broker.config.broker_config import BrokerConfig
from broker.coordination.decision import Decision, Moment
from broker.coordination.shard import Shard
from broker.coordination.tickets import Ticket
from broker.groups import member_requests, offset_requests
from broker.groups.classic import ClassicGroup
from broker.groups.cluster import Cluster
from broker.groups.machine import CODEC, GroupMachine
from broker.groups.offsets import CommittedOffset
from broker.groups.requests import (
    Committing,
    Fetched,
    GroupDescription,
    Joined,
    Joining,
    Leaving,
    Left,
    Listed,
    OffsetsDeleted,
    OffsetToCommit,
    Synced,
    Syncing,
    TopicOffsets,
)
from broker.groups.settings import GroupSettings
from broker.groups.states import GroupState
from broker.logs import Log
from broker.metadata.image import empty_image
from protocol.error_codes import ErrorCode
from protocol.stored.consumer_protocol import ConsumerProtocolSubscription
from protocol.stored.group_records import GroupMetadataKey, GroupMetadataValue, OffsetCommitKey
from protocol.uuids import ZERO_UUID
from tests.broker.coordination.fake_log import FakeLog

WALL_START_MS = 1_700_000_000_000
SESSION_MS = 10_000
REBALANCE_MS = 60_000
TOPIC_ID = bytes(range(16))

Name = str | tuple[str, bytes]


def protocols(*names: Name) -> tuple[tuple[str, bytes], ...]:
    """Protocols with some metadata each, unless it is given."""
    return tuple(name if isinstance(name, tuple) else (name, b"about " + name.encode()) for name in names)


def subscription(*topics: str) -> bytes:
    """The metadata of a consumer that reads these topics."""
    return b"\x00\x01" + ConsumerProtocolSubscription(topics=list(topics)).encode(1)


class Room:
    """What clients do with groups of one shard.  ``group`` is the one most tests are about."""

    def __init__(
        self,
        settings: GroupSettings | None = None,
        log: FakeLog | None = None,
        cluster: Cluster | None = None,
    ) -> None:
        self.settings = GroupSettings() if settings is None else settings
        self.cluster = Cluster(empty_image("cluster"), BrokerConfig({})) if cluster is None else cluster
        self.log = FakeLog() if log is None else log
        self.steady_ms = 1_000_000
        self.lines = io.StringIO()
        self.ids = 0
        self.reloads = 0
        self.performed: list[Any] = []
        """Effects of decisions."""
        self.shard: Shard[GroupMachine] = Shard(
            "__consumer_offsets-0",
            CODEC,
            lambda: GroupMachine(self.settings, self.cluster),
            now=lambda: self.now,
            commit_timeout_ms=5000,
            log=Log(self.lines),
            reload=self._reload,
            perform=self.performed.append,
        )
        self.needs_load = self.shard.begin(self.log)

    def _reload(self, shard: Shard[GroupMachine]) -> None:
        self.reloads += 1

    @property
    def now(self) -> Moment:
        return Moment(self.steady_ms, WALL_START_MS + self.steady_ms)

    @property
    def machine(self) -> GroupMachine:
        assert self.shard.machine is not None, self.lines.getvalue()
        return self.shard.machine

    @property
    def group(self) -> ClassicGroup:
        return self.classic("group")

    def classic(self, group_id: str) -> ClassicGroup:
        return self.classic_groups()[group_id]

    def classic_groups(self) -> dict[str, ClassicGroup]:
        return classic_groups(self.machine)

    def state(self) -> GroupState:
        return self.group.state

    async def restarted(self) -> Self:
        """The same log, loaded by a broker that knows nothing else."""
        room = type(self)(self.settings, self.log.copy(), self.cluster)
        room.steady_ms = self.steady_ms
        room.ids = self.ids
        if room.needs_load:
            await room.shard.load()
        return room

    def pass_ms(self, milliseconds: int) -> None:
        """Let time pass, and what is due happen at its moment."""
        end_ms = self.steady_ms + milliseconds
        for _ in range(100_000):
            deadline_ms = self.shard.deadline_ms()
            if deadline_ms is None or deadline_ms > end_ms:
                break
            self.steady_ms = max(self.steady_ms, deadline_ms)
            self.shard.advance()
        else:
            raise AssertionError("time stands still")
        self.steady_ms = end_ms

    def ask(
        self,
        ticket: Ticket[Any],
        command: Callable[[GroupMachine, Moment], Decision],
    ) -> None:
        self.shard.run(command, ticket)

    def join(
        self,
        member_id: str = "",
        *,
        group_id: str = "group",
        instance_id: str | None = None,
        offers: Sequence[Name] = ("range",),
        kind: str = "consumer",
        session_ms: int = SESSION_MS,
        rebalance_ms: int = REBALANCE_MS,
        version: int = 9,
        client_id: str = "client",
    ) -> Ticket[Joined]:
        self.ids += 1
        prefix = client_id if instance_id is None else instance_id
        joining = Joining(
            member_id=member_id,
            instance_id=instance_id,
            client_id=client_id,
            client_host="/10.0.0.1",
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=rebalance_ms,
            protocol_type=kind,
            protocols=protocols(*offers),
            new_member_id=f"{prefix}-{self.ids}",
            new_consumer_id=f"consumer-{self.ids}",
            must_rejoin_with_id=version >= 4 and not member_id and instance_id is None,
            can_skip_assignment=version >= 9,
        )
        ticket: Ticket[Joined] = Ticket(lambda code: Joined("", code))
        self.ask(ticket, lambda machine, now: member_requests.join(machine, group_id, joining, ticket, now))
        return ticket

    def sync(
        self,
        member_id: str,
        generation: int,
        assignments: dict[str, bytes] | None = None,
        *,
        group_id: str = "group",
        instance_id: str | None = None,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
    ) -> Ticket[Synced]:
        syncing = Syncing(member_id, instance_id, generation, protocol_type, protocol_name, assignments or {})
        ticket = Ticket(Synced)
        self.ask(ticket, lambda machine, now: member_requests.sync(machine, group_id, syncing, ticket, now))
        return ticket

    def heartbeat(
        self,
        member_id: str,
        generation: int,
        *,
        group_id: str = "group",
        instance_id: str | None = None,
    ) -> ErrorCode:
        ticket: Ticket[ErrorCode] = Ticket(lambda code: code)
        self.ask(
            ticket,
            lambda machine, now: member_requests.heartbeat(
                machine, group_id, member_id, instance_id, generation, ticket, now
            ),
        )
        return ticket.outcome

    def leave(self, *who: str | tuple[str, str | None], group_id: str = "group") -> list[ErrorCode]:
        leaving = [Leaving(*(one if isinstance(one, tuple) else (one, None))) for one in who]
        ticket = Ticket(Left)
        self.ask(ticket, lambda machine, now: member_requests.leave(machine, group_id, leaving, ticket, now))
        return list(ticket.outcome.codes)

    def commit(
        self,
        offsets: dict[tuple[str, int], int],
        *,
        member_id: str = "",
        generation: int = -1,
        instance_id: str | None = None,
        group_id: str = "group",
        metadata: str = "",
        retention_ms: int = -1,
        version: int = 9,
    ) -> Ticket[Sequence[ErrorCode]]:
        committing = Committing(
            member_id,
            instance_id,
            generation,
            retention_ms,
            ErrorCode.GROUP_ID_NOT_FOUND if version >= 9 else ErrorCode.ILLEGAL_GENERATION,
            version >= 9,
            tuple(
                OffsetToCommit(topic, TOPIC_ID, partition, offset, 3, metadata)
                for (topic, partition), offset in offsets.items()
            ),
        )
        ticket: Ticket[Sequence[ErrorCode]] = Ticket(lambda code: [code] * len(offsets))
        self.ask(
            ticket, lambda machine, now: offset_requests.commit(machine, group_id, committing, ticket, now)
        )
        return ticket

    def fetch(
        self,
        topics: dict[str, Sequence[int]] | None = None,
        *,
        group_id: str = "group",
        stable: bool = False,
        topic_id: bytes = ZERO_UUID,
    ) -> dict[tuple[str, int], int | ErrorCode]:
        """Offsets by topic and partition, or why there is none."""
        wanted = (
            None
            if topics is None
            else [TopicOffsets(topic, topic_id, tuple(of)) for topic, of in topics.items()]
        )
        ticket = Ticket(Fetched)
        self.ask(ticket, lambda machine, _: offset_requests.fetch(machine, group_id, wanted, stable, ticket))
        return {
            (topic.topic, found.partition): found.error or found.offset
            for topic in ticket.outcome.topics
            for found in topic.partitions
        }

    def delete_offsets(self, *partitions: tuple[str, int], group_id: str = "group") -> OffsetsDeleted:
        ticket = Ticket(OffsetsDeleted)
        self.ask(
            ticket, lambda machine, _: offset_requests.delete_offsets(machine, group_id, partitions, ticket)
        )
        return ticket.outcome

    def delete(self, group_id: str = "group") -> ErrorCode:
        ticket: Ticket[ErrorCode] = Ticket(lambda code: code)
        self.ask(ticket, lambda machine, _: machine.delete(group_id, ticket))
        return ticket.outcome

    def forget_topic(self, topic: str, topic_id: bytes = TOPIC_ID) -> None:
        deleted = {topic_id: topic}
        ticket: Ticket[None] = Ticket(lambda code: None)
        self.ask(ticket, lambda machine, _: machine.topics_deleted(deleted, ticket))

    def describe(self, group_id: str = "group") -> GroupDescription:
        ticket = Ticket(lambda code: GroupDescription(group_id, code, ""))
        self.ask(ticket, lambda machine, _: machine.describe(group_id, ticket))
        return ticket.outcome

    def list_groups(self, states: Sequence[str] = (), kinds: Sequence[str] = ()) -> list[str]:
        ticket = Ticket(Listed)
        self.ask(ticket, lambda machine, _: machine.list_groups(states, kinds, ticket))
        return [group.group_id for group in ticket.outcome.groups]

    # Shorthands for the way to an interesting moment

    def join_alone(self, **how: Any) -> Joined:
        """The first member: it leads, and its generation is complete at once."""
        first = self.join(**how).outcome
        if first.error is ErrorCode.MEMBER_ID_REQUIRED:
            first = self.join(first.member_id, **how).outcome
        assert first.error is ErrorCode.NONE, first
        return first

    def stable(self, count: int = 1, **how: Any) -> list[str]:
        """A stable group of so many dynamic members; their ids, the leader's first."""
        leader = self.join_alone(**how)
        joins = [self.join(version=3, **how) for _ in range(count - 1)]
        if joins:
            leader = self.join(leader.member_id, **how).outcome
        members = [leader.member_id, *(ticket.outcome.member_id for ticket in joins)]
        self.assign(leader, {member: f"for {member}".encode() for member in members})
        return members

    def assign(self, leader: Joined, assignments: dict[str, bytes]) -> None:
        """The leader and everybody else ask for their assignments."""
        self.sync(leader.member_id, leader.generation, assignments)
        for member in leader.members:
            self.sync(member.member_id, leader.generation)

    # What is in the log

    def stored(self) -> dict[str, GroupMetadataValue | dict[tuple[str, int], tuple[int, str]]]:
        """What replaying the log would give, by the simplest means."""
        groups: dict[str, Any] = {}
        for record in self.log.records():
            decoded = CODEC.decode(record.key, record.value)
            assert decoded is not None
            if isinstance(decoded.key, GroupMetadataKey):
                groups[f"group {decoded.key.group}"] = decoded.value
            else:
                assert isinstance(decoded.key, OffsetCommitKey)
                place = f"{decoded.key.group} {decoded.key.topic}-{decoded.key.partition}"
                groups[place] = decoded.value
        return {key: value for key, value in groups.items() if value is not None}


def settled(machine: GroupMachine) -> dict[str, GroupMetadataValue]:
    """Every group of a machine as its record would say it."""
    return {group_id: group.stored() for group_id, group in classic_groups(machine).items()}


def offsets_of(machine: GroupMachine) -> dict[tuple[str, str, int], CommittedOffset]:
    """All offsets of a machine."""
    return {
        (group_id, topic, partition): committed
        for group_id in machine.offsets.group_ids()
        for topic, partitions in machine.offsets.of_group(group_id).items()
        for partition, committed in partitions.items()
    }


def classic_groups(machine: GroupMachine) -> dict[str, ClassicGroup]:
    """The groups, when all of them are classic."""
    found = {}
    for group_id, group in machine.groups.items():
        assert isinstance(group, ClassicGroup)
        found[group_id] = group
    return found
