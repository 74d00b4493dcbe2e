"""Clients that join, die, return and commit at random, in a partition whose broker crashes at random.

After every step the groups are looked over, after every crash the log has to give back what was stored,
and in the end nobody is left waiting.
"""

import random
from collections import defaultdict
from collections.abc import Callable
from typing import Any, TypeVar

import pytest

from broker.coordination.tickets import Ticket
from broker.groups.classic import ClassicGroup
from broker.groups.machine import CODEC
from broker.groups.requests import Joined, Synced
from broker.groups.settings import GroupSettings
from broker.groups.states import GroupState
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.stored.group_records import GroupMetadataKey, GroupMetadataValue
from tests.broker.groups.rooms import SESSION_MS, Room, classic_groups, offsets_of, subscription

Outcome = TypeVar("Outcome")

PARTITIONS = 12
STEPS = 700
OFFERS = [
    (("range", subscription("t")), ("sticky", b"s")),
    (("sticky", b"s"), ("range", subscription("t"))),
    (("range", subscription("t", "u")),),
]


class Client:
    """A consumer that follows the protocol, as long as it lives; or does something silly now and then."""

    def __init__(self, world: "World", group_id: str, instance_id: str | None) -> None:
        self.world = world
        self.group_id = group_id
        self.instance_id = instance_id
        self.member_id = ""
        self.generation = -1
        self.joining: Ticket[Joined] | None = None
        self.syncing: Ticket[Synced] | None = None

    def step(self) -> None:
        chance = self.world.chance
        if self.joining is not None:
            if self.joining.is_settled:
                joined, self.joining = self.joining.outcome, None
                self.joined(joined)
            elif chance.random() < 0.03:
                self.joining = None  # it lost its connection
        elif self.syncing is not None:
            if self.syncing.is_settled:
                synced, self.syncing = self.syncing.outcome, None
                self.synced(synced)
            elif chance.random() < 0.03:
                self.syncing = None
        elif self.generation < 0 or chance.random() < 0.1:
            self.join()
        else:
            self.live()

    def join(self) -> None:
        chance = self.world.chance
        if self.instance_id is not None and chance.random() < 0.2:
            self.member_id = ""  # it was restarted
        self.joining = self.world.watch(
            self.world.room.join(
                self.member_id,
                group_id=self.group_id,
                instance_id=self.instance_id,
                offers=chance.choice(OFFERS),
                session_ms=SESSION_MS,
                rebalance_ms=chance.choice((3000, 20_000)),
                version=chance.choice((3, 5, 9)),
            ),
            lambda joined: self.world.saw_generation(self.group_id, joined),
        )

    def joined(self, joined: Joined) -> None:
        world = self.world
        if joined.error is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = joined.member_id
            self.join()
        elif joined.error is not ErrorCode.NONE:
            self.forget(joined.error)
        else:
            self.member_id, self.generation = joined.member_id, joined.generation
            if world.chance.random() < 0.9:
                self.sync(joined)

    def sync(self, joined: Joined) -> None:
        assignments: dict[str, bytes] = {}
        if joined.leader == self.member_id and not joined.skip_assignment:
            members = [member.member_id for member in joined.members]
            if self.world.chance.random() < 0.1:
                members.pop()
            for index, member in enumerate(members):
                assignments[member] = bytes(range(index, PARTITIONS, len(members)))
        member_id, generation = self.member_id, self.generation
        self.syncing = self.world.watch(
            self.world.room.sync(
                member_id,
                generation,
                assignments,
                group_id=self.group_id,
                instance_id=self.instance_id,
            ),
            lambda synced: self.world.saw_assignment(self.group_id, generation, member_id, synced),
        )

    def synced(self, synced: Synced) -> None:
        if synced.error is not ErrorCode.NONE:
            self.forget(synced.error)

    def live(self) -> None:
        room, chance = self.world.room, self.world.chance
        what = chance.random()
        if what < 0.6:
            code = room.heartbeat(
                self.member_id, self.generation, group_id=self.group_id, instance_id=self.instance_id
            )
            if code is ErrorCode.REBALANCE_IN_PROGRESS:
                self.join()
            elif code is not ErrorCode.NONE:
                self.forget(code)
        elif what < 0.85:
            room.commit(
                {("t", chance.randrange(PARTITIONS)): chance.randrange(1000)},
                member_id=self.member_id,
                generation=self.generation,
                group_id=self.group_id,
                retention_ms=chance.choice((-1, -1, 60_000)),
            )
        elif what < 0.93:
            room.leave((self.member_id, None), group_id=self.group_id)
            self.forget(ErrorCode.UNKNOWN_MEMBER_ID)
        else:
            self.forget(ErrorCode.UNKNOWN_MEMBER_ID)  # it dies without a word

    def forget(self, code: ErrorCode) -> None:
        self.generation = -1
        if code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
            self.member_id = ""


class World:
    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.room = Room(
            GroupSettings(
                group_max_size=chance.choice((3, 100)),
                initial_rebalance_delay_ms=chance.choice((0, 500)),
                offsets_retention_ms=120_000,
                offsets_retention_check_interval_ms=30_000,
            )
        )
        self.tickets: list[Ticket[Any]] = []
        self.leaders: dict[object, set[str]] = defaultdict(set)
        self.owners: dict[object, dict[str, set[bytes]]] = defaultdict(lambda: defaultdict(set))
        self.crashes = 0
        self.clients = [
            Client(self, f"group-{number % 3}", f"static-{number}" if number % 4 == 0 else None)
            for number in range(12)
        ]

    def watch(self, ticket: Ticket[Outcome], note: Callable[[Outcome], None]) -> Ticket[Outcome]:
        """Have ``note`` called in the moment of the outcome, before the group moves on."""
        self.tickets.append(ticket)
        if ticket.is_settled:
            note(ticket.outcome)
        else:
            ticket.when_settled(lambda: note(ticket.outcome))
        return ticket

    def life(self, group_id: str) -> object:
        """Names the time in which a generation's number means one thing: crashes and deletions end it."""
        deaths = sum(
            1
            for record in self.room.log.records()
            if record.value is None and record.key == b"\x00\x02\x00\x07" + group_id.encode()
        )
        return group_id, self.crashes, deaths

    def saw_generation(self, group_id: str, joined: Joined) -> None:
        if joined.members:
            assert joined.leader == joined.member_id
            assert joined.leader in {member.member_id for member in joined.members}
            if not joined.skip_assignment:
                self.leaders[self.life(group_id), joined.generation].add(joined.leader)

    def saw_assignment(self, group_id: str, generation: int, member_id: str, synced: Synced) -> None:
        if synced.error is ErrorCode.NONE:
            self.owners[self.life(group_id), generation][member_id].add(synced.assignment)

    def step(self) -> None:
        what = self.chance.random()
        if what < 0.90:
            self.chance.choice(self.clients).step()
        elif what < 0.96:
            self.room.pass_ms(self.chance.choice((1, 400, 2500, 2500, 30_000)))
        elif what < 0.97:
            self.room.delete(f"group-{self.chance.randrange(3)}")
        elif what < 0.98:
            self.room.forget_topic("t")
        else:
            self.fail_to_write()
        self.check()

    def fail_to_write(self) -> None:
        self.room.log.refusal = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
        self.chance.choice(self.clients).step()
        self.room.log.refusal = None

    async def crash(self) -> None:
        """What was stored is there again, and nothing else is."""
        before = self.room
        stored = last_records(before)
        self.room = await before.restarted()
        self.crashes += 1
        if before.shard.is_active:
            assert offsets_of(self.room.machine).keys() == offsets_of(before.machine).keys()
            for group_id, group in classic_groups(before.machine).items():
                if group.state in (GroupState.STABLE, GroupState.EMPTY):
                    assert group_id not in stored or stored[group_id] == group.stored()
        for group_id, value in stored.items():
            group = self.room.classic(group_id)
            # One above the limit begins to shrink at once: static members who were away came on top of it.
            if len(group.members) <= self.room.settings.group_max_size:
                assert group.stored() == value
        for client in self.clients:  # whoever waited has lost its connection
            client.joining = client.syncing = None
        self.tickets.clear()

    def check(self) -> None:
        if not self.room.shard.is_active:
            return
        for group in self.room.classic_groups().values():
            check_group(group)
        for of_generation, leaders in self.leaders.items():
            assert len(leaders) == 1, f"{of_generation} was given to {leaders} to assign"
        for of_generation, assigned in self.owners.items():
            owned: list[int] = []
            for member_id, assignments in assigned.items():
                assert len(assignments) == 1, f"{member_id} was told {assignments} in {of_generation}"
                owned += assignments.copy().pop()
            # An heir takes over what its predecessor, which is fenced, was given.
            dynamic = [
                partition
                for member_id, assignments in assigned.items()
                if not member_id.startswith("static")
                for partition in assignments.copy().pop()
            ]
            assert len(dynamic) == len(set(dynamic)), f"{of_generation} has a partition twice: {assigned}"
            assert set(owned) <= set(range(PARTITIONS))


def check_group(group: ClassicGroup) -> None:
    members = group.members.by_id
    assert (group.leader in members) if members else group.leader is None, group
    static = {member.instance_id: member.member_id for member in members.values() if member.instance_id}
    assert group.members.static_ids == static
    waiting_to_join = [member for member in members.values() if member.join_ticket is not None]
    waiting_to_sync = [member for member in members.values() if member.sync_ticket is not None]
    assert group.members.joined_count == len(waiting_to_join)
    assert not any(ticket.is_settled for ticket in group.members.waiting_tickets())
    if group.state is GroupState.PREPARING_REBALANCE:
        assert not waiting_to_sync
    else:
        assert not waiting_to_join
    if group.state is not GroupState.COMPLETING_REBALANCE:
        assert not waiting_to_sync
    assert (group.state is GroupState.EMPTY) <= (not members)
    assert group.pending_sync <= set(members)
    support: dict[str, int] = defaultdict(int)
    for member in members.values():
        for name in member.protocol_names:
            support[name] += 1
    assert group.members._support == support
    if group.state in (GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
        assert support[group.protocol_name or ""] == len(members)
    earliest_ms = min(group._deadlines(), default=None)
    if earliest_ms is not None:
        assert group.wake_ms is not None
        assert group.wake_ms <= earliest_ms
    for member in members.values():
        # Whoever owes us nothing and is owed nothing has a session that ends.
        assert member.session_deadline_ms is not None or member.is_waiting


def last_records(room: Room) -> dict[str, GroupMetadataValue]:
    """The last record of each group that is not gone; generations only grow on the way there."""
    found: dict[str, GroupMetadataValue] = {}
    for record in room.log.records():
        decoded = CODEC.decode(record.key, record.value)
        assert decoded is not None
        if not isinstance(decoded.key, GroupMetadataKey):
            continue
        group_id = decoded.key.group
        if decoded.value is None:
            found.pop(group_id, None)
            continue
        assert isinstance(decoded.value, GroupMetadataValue)
        if group_id in found:
            assert decoded.value.generation >= found[group_id].generation
        found[group_id] = decoded.value
    return found


@pytest.mark.parametrize("history", range(6))
async def test_groups_keep_their_promises(seed: int, history: int) -> None:
    world = World(random.Random(seed * 1000 + history))
    for _ in range(STEPS):
        world.step()
        if not world.room.shard.is_active or world.chance.random() < 0.01:
            await world.crash()
            world.check()
    # Everybody falls silent: sessions, rebalances and retention run out, and nobody waits for ever.
    world.room.pass_ms(20 * 60_000)
    assert [ticket for ticket in world.tickets if not ticket.is_settled] == []
    assert all(group.state is GroupState.EMPTY for group in world.room.classic_groups().values())
    assert last_records(world.room) == {}


async def test_histories_reach_every_state_and_every_kind_of_answer(chance: random.Random) -> None:
    """The test above would be worth little if its clients never got anywhere."""
    world = World(random.Random(5))
    states: set[GroupState] = set()
    for _ in range(3 * STEPS):
        world.step()
        if not world.room.shard.is_active:
            await world.crash()
        states |= {group.state for group in world.room.classic_groups().values()}
    assert states == set(GroupState) - {GroupState.DEAD}
    assert len(world.owners) > 20
    assert len(offsets_of(world.room.machine)) > 0
