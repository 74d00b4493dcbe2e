"""A classic group: members that join, elect a leader, and are given what the leader assigns them."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from broker.coordination.decision import Decision, Moment, StoredRecord
from broker.coordination.tickets import Ticket
from broker.groups.member import Member
from broker.groups.requests import (
    NO_MEMBER_ID,
    Committing,
    GroupDescription,
    Joined,
    JoinedMember,
    Joining,
    Leaving,
    Left,
    MemberDescription,
    Protocols,
    Synced,
    Syncing,
)
from broker.groups.roster import Roster
from broker.groups.settings import NEW_MEMBER_JOIN_TIMEOUT_MS, PENDING_MEMBERS_MAX, GroupSettings
from broker.groups.states import ANSWERS, NEXT, GroupState
from protocol.error_codes import ErrorCode
from protocol.schema import Message
from protocol.stored.group_records import GroupMetadataKey, GroupMetadataValue, MemberMetadata

GROUP_METADATA_VERSION = 3
"""What Kafka 4.4 writes; version 4 would only add room for tags."""

CONSUMER_PROTOCOL_TYPE = "consumer"

_BEGINS_REBALANCE = frozenset({GroupState.STABLE, GroupState.COMPLETING_REBALANCE, GroupState.EMPTY})
"""The states in which a change of membership begins a rebalance; in PREPARING_REBALANCE one is under way."""


class ClassicGroup:
    """One group, its members, and the generation that they form.

    Stored, and therefore changed by ``apply`` alone: generation, protocol, leader and members with their
    assignments, as of the last time the group was stable or became empty.  A rebalance is soft: it works
    on the same fields in memory until a record settles them, and is forgotten by a crash, after which
    the members of the last settled generation find out from their heartbeats.

    Invariants: a group with members has a leader among them; in PREPARING_REBALANCE nobody waits for an
    assignment, in the other states nobody waits to join.
    """

    kind: Final = "classic"
    expires: Final = True
    yields_to_classic: Final = False

    def __init__(self, group_id: str, settings: GroupSettings) -> None:
        """A group without members of which there is no record."""
        self.group_id = group_id
        self.settings = settings
        self.state = GroupState.EMPTY
        self.state_since_ms = -1
        """Wall time of the last transition."""
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol_name: str | None = None
        self.leader: str | None = None
        self.members = Roster()
        self.subscribed_topics: frozenset[str] | None = None
        """None if they are not known: the group is not one of consumers, or its metadata is unreadable."""
        self.pending: dict[str, int] = {}
        """Ids given out, of members that have yet to join with them; the steady time when each expires."""
        self.pending_sync: set[str] = set()
        """Members that have not asked for their assignment of this generation."""
        self.wake_ms: int | None = None
        """No deadline of the group is earlier than this steady time; it may itself be too early."""
        self._join_deadline_ms: int | None = None
        self._sync_deadline_ms: int | None = None
        self._initial_left_ms: int | None = None
        """While an empty group gathers its first members: by how much that may still be extended."""
        self._initial_delay_ms = 0
        self._member_added = False

    def __repr__(self) -> str:
        return f"<ClassicGroup {self.group_id!r} {self.state.value} generation {self.generation}>"

    # Stored state

    def apply(self, key: Message, value: Message | None) -> None:
        """What the log says is so.  Members that it names keep their tickets and deadlines."""
        assert isinstance(value, GroupMetadataValue)
        settled = GroupState.STABLE if value.members else GroupState.EMPTY
        if self.state is GroupState.EMPTY:
            self.state = settled  # nothing was known of the group: the record tells all
        elif self.state is not settled:
            self._become(settled, value.current_state_timestamp)
        self.state_since_ms = value.current_state_timestamp
        self.generation = value.generation
        self.protocol_type = value.protocol_type or None
        self.protocol_name = value.protocol
        self.leader = value.leader
        members = []
        for stored in value.members:
            member = self.members.get(stored.member_id) or Member.stored(stored, value.protocol)
            member.assignment = stored.assignment
            members.append(member)
        self.members = Roster(members)
        self._note_subscriptions()

    def stored(self, *, assignments: dict[str, bytes] | None = None) -> GroupMetadataValue:
        """The record that settles the present generation; ``assignments`` are new ones by member id."""
        return GroupMetadataValue(
            protocol_type=self.protocol_type or "",
            generation=self.generation,
            protocol=self.protocol_name,
            leader=self.leader,
            current_state_timestamp=self.state_since_ms,
            members=[
                MemberMetadata(
                    member_id=member.member_id,
                    group_instance_id=member.instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    rebalance_timeout=member.rebalance_timeout_ms,
                    session_timeout=member.session_timeout_ms,
                    subscription=member.metadata(self.protocol_name),
                    assignment=(
                        member.assignment if assignments is None else assignments.get(member.member_id, b"")
                    ),
                )
                for member in self.members
            ],
        )

    def tombstones(self) -> list[StoredRecord]:
        """What removes the group; its offsets are removed before."""
        return [StoredRecord(GroupMetadataKey(group=self.group_id), None)]

    @property
    def is_empty(self) -> bool:
        return self.state is GroupState.EMPTY

    @property
    def is_simple(self) -> bool:
        """Whether it has never had members: there is no record of it but its offsets."""
        return self.protocol_type is None and self.is_empty and not self.pending

    def waiting_tickets(self) -> Iterator[Ticket[Any]]:
        return self.members.waiting_tickets()

    def forget_topics(self, topic_ids: Collection[bytes], decision: Decision) -> None:
        """Members find out by themselves."""

    def start_afresh(self, now: Moment) -> Decision:
        """After loading: every session begins anew, and a group above the limit has to shrink."""
        decision = Decision()
        for member in self.members:
            self._restart_session(member, now)
        if len(self.members) > self.settings.group_max_size:
            self._prepare_rebalance(now, decision)
        return decision

    # JoinGroup

    def join(self, joining: Joining, ticket: Ticket[Joined], now: Moment) -> Decision:
        """Let a member in, or back in.  Its ticket is settled when the new generation is known."""
        decision = Decision()
        member_id = joining.member_id
        if not self._has_room_for(member_id):
            self._remove(member_id, decision)
            decision.reply(ticket, Joined(NO_MEMBER_ID, ErrorCode.GROUP_MAX_SIZE_REACHED))
            self._complete_join_if_all_are_here(now, decision)
        elif not self._supports(joining):
            decision.reply(ticket, Joined(member_id, ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
        elif member_id == NO_MEMBER_ID:
            self._join_new(joining, ticket, now, decision)
        elif member_id in self.pending:
            if joining.instance_id is not None:  # ids are only announced to dynamic members
                decision.reply(ticket, Joined(NO_MEMBER_ID, ErrorCode.UNKNOWN_SERVER_ERROR))
            else:
                self._add(member_id, joining, ticket, now, decision)
        elif (error := self.members.check(member_id, joining.instance_id)) is not ErrorCode.NONE:
            decision.reply(ticket, Joined(member_id, error))
        else:
            self._rejoin(self.members[member_id], joining, ticket, now, decision)
        return decision

    def _join_new(self, joining: Joining, ticket: Ticket[Joined], now: Moment, decision: Decision) -> None:
        member_id = joining.new_member_id
        heir_of = None if joining.instance_id is None else self.members.static_ids.get(joining.instance_id)
        if heir_of is not None:
            self._replace(self.members[heir_of], joining, ticket, now, decision)
        elif not joining.must_rejoin_with_id:
            self._add(member_id, joining, ticket, now, decision)
        elif len(self.pending) >= PENDING_MEMBERS_MAX:
            decision.reply(ticket, Joined(NO_MEMBER_ID, ErrorCode.GROUP_MAX_SIZE_REACHED))
        else:
            deadline_ms = now.steady_ms + joining.session_timeout_ms
            self.pending[member_id] = deadline_ms
            self._wake_by(deadline_ms)
            decision.reply(ticket, Joined(member_id, ErrorCode.MEMBER_ID_REQUIRED))

    def _add(
        self, member_id: str, joining: Joining, ticket: Ticket[Joined], now: Moment, decision: Decision
    ) -> None:
        if not self.members:
            self.protocol_type = joining.protocol_type
        if self._initial_left_ms is not None:
            self._member_added = True
        self.pending.pop(member_id, None)
        member = Member.joining(member_id, joining)
        self.members.add(member)
        self.members.wait_to_join(member, ticket)
        if self.leader is None:
            self.leader = member_id
        # It cannot send heartbeats before it knows its id, nor can we see that it has gone away.
        self._set_session_deadline(member, now.steady_ms + NEW_MEMBER_JOIN_TIMEOUT_MS)
        self._rebalance(now, decision)

    def _rejoin(
        self, member: Member, joining: Joining, ticket: Ticket[Joined], now: Moment, decision: Decision
    ) -> None:
        is_unchanged = member.protocols == joining.protocols
        if self.state is GroupState.COMPLETING_REBALANCE and is_unchanged:
            # The answer to its last JoinGroup may have been lost.
            decision.reply(ticket, self._joined(member))
        elif self.state is GroupState.STABLE and is_unchanged and member.member_id != self.leader:
            # A follower with nothing new to say.  The leader's rejoin is how it asks for a rebalance.
            decision.reply(ticket, self._joined(member))
        else:
            self._update(member, joining, ticket, decision)
            self._rebalance(now, decision)

    def _update(self, member: Member, joining: Joining, ticket: Ticket[Joined], decision: Decision) -> None:
        """What a known member says now; from here on it waits for the next generation."""
        self.members.change_protocols(member, joining.protocols)
        member.rebalance_timeout_ms = joining.rebalance_timeout_ms
        member.session_timeout_ms = joining.session_timeout_ms
        # Kafka forgets whoever asked first under this id, and leaves it waiting.
        self.members.answer_join(member, Joined(NO_MEMBER_ID, ErrorCode.UNKNOWN_MEMBER_ID), decision)
        self.members.wait_to_join(member, ticket)

    def _replace(
        self, former: Member, joining: Joining, ticket: Ticket[Joined], now: Moment, decision: Decision
    ) -> None:
        """A static member has come back without its id: it inherits its place under a new one (KIP-345)."""
        former_leader = self.leader
        member = former.heir(joining.new_member_id)
        self._fence(former, member, decision)
        self.members.remove(former)
        self.members.add(member)
        if self.leader == former.member_id:
            self.leader = member.member_id
        self._restart_session(member, now)
        self._update(member, joining, ticket, decision)
        if self.state is not GroupState.STABLE:
            # In the middle of a rebalance the leader may be assigning to the former id.
            self._rebalance(now, decision)
        elif self.members.choose_protocol() != self.protocol_name:
            self._rebalance(now, decision)
        else:
            joined = self._joined(member)
            if not joining.can_skip_assignment:
                # An older client that hears that it leads would assign anew, and nobody would rejoin.
                joined = joined._replace(leader=former_leader or "", members=())
            elif member.member_id == self.leader:
                joined = joined._replace(skip_assignment=True)
            self.members.answer_join(member, joined, decision)
            decision.write(GroupMetadataKey(group=self.group_id), self.stored(), GROUP_METADATA_VERSION)

    def _fence(self, former: Member, heir: Member, decision: Decision) -> None:
        code = ErrorCode.FENCED_INSTANCE_ID
        self.members.answer_join(former, Joined(former.member_id, code), decision)
        self.members.answer_sync(former, Synced(code), decision)
        if former.member_id in self.pending_sync:
            self.pending_sync.remove(former.member_id)
            self.pending_sync.add(heir.member_id)

    def _joined(self, member: Member) -> Joined:
        """The present generation, as ``member`` is told of it."""
        return Joined(
            member.member_id,
            generation=self.generation,
            protocol_type=self.protocol_type,
            protocol_name=self.protocol_name,
            leader=self.leader or "",
            members=self._joined_members() if member.member_id == self.leader else (),
        )

    def _joined_members(self) -> tuple[JoinedMember, ...]:
        return tuple(
            JoinedMember(member.member_id, member.instance_id, member.metadata(self.protocol_name))
            for member in self.members
        )

    # The rebalance

    def _rebalance(self, now: Moment, decision: Decision) -> None:
        """Membership has changed: begin a rebalance, or see whether the one under way is complete."""
        if self.state in _BEGINS_REBALANCE:
            self._prepare_rebalance(now, decision)
        else:
            self._complete_join_if_all_are_here(now, decision)

    def _prepare_rebalance(self, now: Moment, decision: Decision) -> None:
        if self.state is GroupState.COMPLETING_REBALANCE:
            self._withhold_assignments(ErrorCode.REBALANCE_IN_PROGRESS, now, decision)
        self.pending_sync.clear()
        self._sync_deadline_ms = None
        was_empty = self.state is GroupState.EMPTY
        self._become(GroupState.PREPARING_REBALANCE, now.wall_ms)
        delay_ms = self.settings.initial_rebalance_delay_ms
        if was_empty and delay_ms > 0:
            # More members are likely to come: let them, rather than rebalance for each.
            self._initial_left_ms = max(self.members.rebalance_timeout_ms() - delay_ms, 0)
            self._initial_delay_ms = delay_ms
            self._member_added = False
            self._set_join_deadline(now.steady_ms + delay_ms)
        elif was_empty or self._all_are_here():
            self._complete_join(now, decision)
        else:
            self._set_join_deadline(now.steady_ms + self.members.rebalance_timeout_ms())

    def _complete_join_if_all_are_here(self, now: Moment, decision: Decision) -> None:
        if (
            self.state is GroupState.PREPARING_REBALANCE
            and self._initial_left_ms is None
            and self._all_are_here()
        ):
            self._complete_join(now, decision)

    def _all_are_here(self) -> bool:
        return not self.pending and self.members.all_have_joined

    def _complete_join(self, now: Moment, decision: Decision) -> None:
        """Form the next generation of those who have joined.  Static members stay although they have not."""
        self._join_deadline_ms = None
        self._initial_left_ms = None
        for member in list(self.members):
            if member.join_ticket is None and member.instance_id is None:
                self._remove(member.member_id, decision)
        if not self.members:
            self.generation += 1
            self.protocol_name = None
            self.state_since_ms = now.wall_ms
            decision.write(GroupMetadataKey(group=self.group_id), self.stored(), GROUP_METADATA_VERSION)
            return
        joined = self.members.first_joined()
        if joined is None:
            # Only static members, and none of them is back.  They have as long again.
            self._set_join_deadline(now.steady_ms + self.members.rebalance_timeout_ms())
            return
        if self.leader is None or self.members[self.leader].join_ticket is None:
            self.leader = joined.member_id
        self.generation += 1
        self.protocol_name = self.members.choose_protocol()
        self._note_subscriptions()
        self._become(GroupState.COMPLETING_REBALANCE, now.wall_ms)
        for member in self.members:
            if member.join_ticket is not None:
                self.members.answer_join(member, self._joined(member), decision)
            member.is_new = False
            self._restart_session(member, now)
        self.pending_sync = set(self.members.by_id)
        self._sync_deadline_ms = now.steady_ms + self.members.rebalance_timeout_ms()
        self._wake_by(self._sync_deadline_ms)

    # SyncGroup

    def sync(self, syncing: Syncing, ticket: Ticket[Synced], now: Moment) -> Decision:
        """Give a member its assignment, as soon as the leader has made it."""
        decision = Decision()
        member_id = syncing.member_id
        error = self._check_generation(member_id, syncing.instance_id, syncing.generation)
        if error is ErrorCode.NONE:
            if _differ(syncing.protocol_type, self.protocol_type) or _differ(
                syncing.protocol_name, self.protocol_name
            ):
                error = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
            else:
                error = ANSWERS[self.state].sync
        if error is not ErrorCode.NONE:
            decision.reply(ticket, Synced(error))
            return decision
        member = self.members[member_id]
        self.pending_sync.discard(member_id)
        if not self.pending_sync:
            self._sync_deadline_ms = None
        if self.state is GroupState.STABLE:
            decision.reply(ticket, self._synced(member.assignment))
            return decision
        # As with JoinGroup: Kafka would leave whoever asked first under this id waiting.
        self.members.answer_sync(member, Synced(ErrorCode.UNKNOWN_MEMBER_ID), decision)
        member.sync_ticket = ticket
        if member_id == self.leader:
            self._assign(syncing.assignments, now, decision)
        return decision

    def _assign(self, assignments: dict[str, bytes], now: Moment, decision: Decision) -> None:
        """Store what the leader decided; it holds, and is told, once it is in the log."""
        decision.write(
            GroupMetadataKey(group=self.group_id),
            self.stored(assignments=assignments),
            GROUP_METADATA_VERSION,
        )
        for member in self.members:
            synced = self._synced(assignments.get(member.member_id, b""))
            if self.members.answer_sync(member, synced, decision):
                self._restart_session(member, now)
        told = [reply.ticket for reply in decision.replies]
        decision.if_refused = lambda code, now: self._assignment_refused(told, code, now)

    def _assignment_refused(self, told: list[Ticket[Any]], code: ErrorCode, now: Moment) -> Decision:
        """The log did not take the assignment: the members must try again."""
        decision = Decision()
        for ticket in told:
            decision.reply(ticket, Synced(code))
        self._withhold_assignments(code, now, decision)
        self._rebalance(now, decision)
        return decision

    def _withhold_assignments(self, code: ErrorCode, now: Moment, decision: Decision) -> None:
        """Whoever waits for an assignment of this generation gets ``code`` instead."""
        for member in self.members:
            member.assignment = b""
            if self.members.answer_sync(member, Synced(code), decision):
                self._restart_session(member, now)

    def _synced(self, assignment: bytes) -> Synced:
        return Synced(
            protocol_type=self.protocol_type, protocol_name=self.protocol_name, assignment=assignment
        )

    # Heartbeat, LeaveGroup, OffsetCommit

    def heartbeat(self, member_id: str, instance_id: str | None, generation: int, now: Moment) -> ErrorCode:
        """Keep a member's session alive, and tell it whether to rejoin."""
        error = self._check_generation(member_id, instance_id, generation)
        if error is not ErrorCode.NONE:
            return error
        self._restart_session(self.members[member_id], now)
        return ANSWERS[self.state].heartbeat

    def leave(self, leaving: Sequence[Leaving], ticket: Ticket[Left], now: Moment) -> Decision:
        """Let members go, all of them before the group rebalances."""
        decision = Decision()
        codes = tuple(self._leave_one(who, decision) for who in leaving)
        decision.reply(ticket, Left(codes=codes))
        if ErrorCode.NONE in codes and self.state is not GroupState.EMPTY:
            self._rebalance(now, decision)
        return decision

    def _leave_one(self, who: Leaving, decision: Decision) -> ErrorCode:
        member_id = who.member_id
        if member_id == NO_MEMBER_ID:
            # An operator removes a static member, and does not know its id.
            known = None if who.instance_id is None else self.members.static_ids.get(who.instance_id)
            if known is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            member_id = known
        elif member_id not in self.pending:
            error = self.members.check(member_id, who.instance_id)
            if error is not ErrorCode.NONE:
                return error
        self._remove(member_id, decision)
        return ErrorCode.NONE

    def downgraded(
        self, protocols: Mapping[str, Protocols], *, must_rebalance: bool, now: Moment
    ) -> Decision:
        """The group was one of the consumer protocol until now; ``protocols`` are what its members offer.

        A member that left, or that took another's place and reads something else, leaves an assignment that
        does not fit any more.
        """
        for member in self.members:
            self.members.change_protocols(member, protocols[member.member_id])
        decision = self.start_afresh(now)
        if must_rebalance and self.state is GroupState.STABLE:
            self._prepare_rebalance(now, decision)
        return decision

    def check_fetch(self, member_id: str | None, member_epoch: int) -> ErrorCode:
        """Anybody may ask for the offsets of a classic group: its members have no epochs."""
        return ErrorCode.NONE

    def check_delete(self) -> ErrorCode:
        """Whether the group may be deleted."""
        return ANSWERS[self.state].delete_group

    def check_commit(self, committing: Committing, *, is_transactional: bool = False) -> ErrorCode:
        """Whether offsets may be committed in the name of this member, or of nobody.

        Older transactional producers do not tell who reads for them (before KIP-447).  What the group is
        doing does not matter to them, since the offsets count only later.
        """
        member_id, instance_id = committing.member_id, committing.instance_id
        generation = committing.generation
        if self.state is GroupState.EMPTY and generation < 0:
            return ErrorCode.NONE  # an operator, or a consumer that assigns itself
        if generation < 0 and member_id == NO_MEMBER_ID and instance_id is None:
            return ErrorCode.NONE if is_transactional else ErrorCode.UNKNOWN_MEMBER_ID
        error = self._check_generation(member_id, instance_id, generation)
        if error is not ErrorCode.NONE or is_transactional:
            return error
        return ANSWERS[self.state].commit

    def committed(self, member_id: str, now: Moment) -> None:
        """A member's commit is as good as a heartbeat."""
        member = self.members.get(member_id)
        if member is not None:
            self._restart_session(member, now)

    # Time

    def advance(self, now: Moment) -> Decision:
        """Do what is due at or before ``now``, up to the first that needs a record."""
        decision = Decision()
        for act in self._due(now.steady_ms):
            act(now, decision)
            if decision.records:
                break  # the next must see what the record changes
        self.wake_ms = min(self._deadlines(), default=None)
        return decision

    def _due(self, steady_ms: int) -> list[Callable[[Moment, Decision], None]]:
        """What is due, the oldest first."""
        due: list[tuple[int, int, Callable[[Moment, Decision], None]]] = []

        def add(deadline_ms: int | None, act: Callable[[Moment, Decision], None]) -> None:
            if deadline_ms is not None and deadline_ms <= steady_ms:
                due.append((deadline_ms, len(due), act))

        for member in self.members:
            add(member.session_deadline_ms, partial(self._session_expired, member))
        for member_id, deadline_ms in self.pending.items():
            add(deadline_ms, partial(self._pending_expired, member_id))
        add(self._join_deadline_ms, self._join_time_is_up)
        add(self._sync_deadline_ms, self._sync_time_is_up)
        due.sort()
        return [act for _, _, act in due]

    def _deadlines(self) -> Iterator[int]:
        for member in self.members:
            if member.session_deadline_ms is not None:
                yield member.session_deadline_ms
        yield from self.pending.values()
        if self._join_deadline_ms is not None:
            yield self._join_deadline_ms
        if self._sync_deadline_ms is not None:
            yield self._sync_deadline_ms

    # Each of these may find that an earlier one of the same moment has made it void.

    def _session_expired(self, member: Member, now: Moment, decision: Decision) -> None:
        deadline_ms = member.session_deadline_ms
        if deadline_ms is None or deadline_ms > now.steady_ms:
            return
        if self.members.get(member.member_id) is not member:
            return
        member.session_deadline_ms = None
        if member.is_waiting and not member.is_new:
            return  # its session begins again with our answer
        self._remove(member.member_id, decision)
        if self.state in _BEGINS_REBALANCE:
            self._prepare_rebalance(now, decision)
        else:
            self._somebody_has_expired(now, decision)

    def _pending_expired(self, member_id: str, now: Moment, decision: Decision) -> None:
        if self.pending.get(member_id, now.steady_ms + 1) <= now.steady_ms:
            del self.pending[member_id]
            self._somebody_has_expired(now, decision)

    def _somebody_has_expired(self, now: Moment, decision: Decision) -> None:
        """Kafka does not wait any longer then, not even while an empty group gathers its first members."""
        if self.state is GroupState.PREPARING_REBALANCE and self._all_are_here():
            self._complete_join(now, decision)

    def _join_time_is_up(self, now: Moment, decision: Decision) -> None:
        if self._join_deadline_ms is None or self._join_deadline_ms > now.steady_ms:
            return
        if self._member_added and self._initial_left_ms:
            # Somebody came during the initial delay: wait that long again, if the timeout allows it.
            left_ms = self._initial_left_ms
            self._member_added = False
            self._initial_left_ms = max(left_ms - self._initial_delay_ms, 0)
            self._initial_delay_ms = min(self.settings.initial_rebalance_delay_ms, left_ms)
            self._set_join_deadline(now.steady_ms + self._initial_delay_ms)
        else:
            self._complete_join(now, decision)

    def _sync_time_is_up(self, now: Moment, decision: Decision) -> None:
        if self._sync_deadline_ms is None or self._sync_deadline_ms > now.steady_ms:
            return
        self._sync_deadline_ms = None
        if self.pending_sync:
            for member_id in list(self.pending_sync):
                self._remove(member_id, decision)
            self._prepare_rebalance(now, decision)

    # Operators

    def is_in_state(self, states: Collection[str]) -> bool:
        return self.state.value.lower() in states

    def describe(self) -> GroupDescription:
        """What DescribeGroups shows; metadata and the protocol's name only of a stable group."""
        is_stable = self.state is GroupState.STABLE
        return GroupDescription(
            self.group_id,
            ErrorCode.NONE,
            self.state.value,
            self.protocol_type or "",
            (self.protocol_name or "") if is_stable else "",
            tuple(
                MemberDescription(
                    member.member_id,
                    member.instance_id,
                    member.client_id,
                    member.client_host,
                    member.metadata(self.protocol_name) if is_stable else b"",
                    member.assignment,
                )
                for member in self.members
            ),
        )

    def summarize(self) -> GroupDescription:
        """What ListGroups shows."""
        return GroupDescription(self.group_id, ErrorCode.NONE, self.state.value, self.protocol_type or "")

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether the group's members read ``topic``; supposed of consumers whose topics are unknown."""
        if self.subscribed_topics is None:
            return self.protocol_type == CONSUMER_PROTOCOL_TYPE
        return topic in self.subscribed_topics

    def check_offset_delete(self) -> ErrorCode:
        """Whether offsets may be deleted at all; those of subscribed topics may not, in any case."""
        if self.state is GroupState.EMPTY or self.protocol_type == CONSUMER_PROTOCOL_TYPE:
            return ErrorCode.NONE
        return ErrorCode.NON_EMPTY_GROUP

    def retention_began_ms(self, topic: str, commit_timestamp_ms: int) -> int | None:
        """Since when (wall time) an offset counts as unused; None while it must stay.

        Of a group without members: since the last one left.  Of a stable group of consumers: since the
        commit, if none of them reads the topic.  Of one that never had members: since the commit.
        """
        if self.is_subscribed_to(topic):
            return None
        if self.protocol_type is None:
            return commit_timestamp_ms
        if self.state is GroupState.EMPTY:
            return commit_timestamp_ms if self.state_since_ms == -1 else self.state_since_ms
        if self.state is GroupState.STABLE and self.subscribed_topics is not None:
            return commit_timestamp_ms
        return None

    # Small things

    def _note_subscriptions(self) -> None:
        is_of_consumers = self.protocol_type == CONSUMER_PROTOCOL_TYPE
        topics = self.members.subscribed_topics(self.protocol_name) if is_of_consumers else None
        self.subscribed_topics = topics

    def _become(self, state: GroupState, wall_ms: int) -> None:
        assert state in NEXT[self.state], f"{self!r} cannot become {state.value}"
        self.state = state
        self.state_since_ms = wall_ms

    def _has_room_for(self, member_id: str) -> bool:
        """``group.max.size``, which may have been lowered: during a rebalance those who come first stay."""
        limit = self.settings.group_max_size
        if self.state is GroupState.PREPARING_REBALANCE:
            member = self.members.get(member_id)
            if member is not None and member.join_ticket is not None:
                return True
            return self.members.joined_count < limit
        return self.state is GroupState.EMPTY or member_id in self.members or len(self.members) < limit

    def _supports(self, joining: Joining) -> bool:
        """Whether there is a protocol that this member shares with all others."""
        if self.state is GroupState.EMPTY:
            return bool(joining.protocol_type and joining.protocols)
        if joining.protocol_type != self.protocol_type:
            return False
        return self.members.all_support_one_of(joining.protocols)

    def _check_generation(self, member_id: str, instance_id: str | None, generation: int) -> ErrorCode:
        error = self.members.check(member_id, instance_id)
        if error is ErrorCode.NONE and generation != self.generation:
            return ErrorCode.ILLEGAL_GENERATION
        return error

    def _remove(self, member_id: str, decision: Decision) -> None:
        """Forget a member, or an id that was given out; whoever still waits for it has to begin anew."""
        self.pending.pop(member_id, None)
        self.pending_sync.discard(member_id)
        member = self.members.get(member_id)
        if member is None:
            return
        self.members.answer_join(member, Joined(NO_MEMBER_ID, ErrorCode.UNKNOWN_MEMBER_ID), decision)
        self.members.answer_sync(member, Synced(ErrorCode.UNKNOWN_MEMBER_ID), decision)  # not so in Kafka
        self.members.remove(member)
        if self.leader == member_id:
            self.leader = next(iter(self.members.by_id), None)

    def _restart_session(self, member: Member, now: Moment) -> None:
        self._set_session_deadline(member, now.steady_ms + member.session_timeout_ms)

    def _set_session_deadline(self, member: Member, deadline_ms: int) -> None:
        member.session_deadline_ms = deadline_ms
        self._wake_by(deadline_ms)

    def _set_join_deadline(self, deadline_ms: int) -> None:
        self._join_deadline_ms = deadline_ms
        self._wake_by(deadline_ms)

    def _wake_by(self, deadline_ms: int) -> None:
        if self.wake_ms is None or deadline_ms < self.wake_ms:
            self.wake_ms = deadline_ms


def _differ(claimed: str | None, actual: str | None) -> bool:
    """Whether a member believes in another protocol; versions before 5 do not say (KIP-559)."""
    return claimed is not None and actual is not None and claimed != actual
