"""Random lives of streams applications in changing clusters: what must hold after every step, does."""

import random
from collections import Counter, defaultdict
from typing import Any

import pytest

from broker.groups.settings import GroupSettings
from broker.groups.streams.group import StreamsGroup
from broker.groups.streams.member import StreamsMember
from broker.groups.streams.requests import StreamsBeaten
from broker.groups.streams.stored import TaskHolders
from broker.groups.streams.tasks import told_tasks
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.messages.streams_group_heartbeat import Topology
from tests.broker.groups.streams.streams_room import StreamsRoom, counting, reading

STEPS = 400
SOURCES = ("t", "u")
INTERNAL = ("t-by-word", "t-counts-log", "t-seen-log")
GROUPS = ("group-0", "group-1")
REBALANCE_MS = 20_000
PROCESSES = 3

Task = tuple[str, int]
"""A subtopology and a partition."""


class Worker:
    """A member.  ``active`` and ``standby`` are the tasks that it believes to have."""

    def __init__(self, world: "World", group_id: str, number: int) -> None:
        self.world = world
        self.group_id = group_id
        self.number = number
        self.lives = 0
        self.instance_id = f"static-{number}" if number % 4 == 0 else None
        self.process_id = f"process-{number % PROCESSES}"
        self.tags: dict[str, str] | None = None
        self.start()

    def start(self) -> None:
        self.lives += 1
        self.member_id = f"worker-{self.number}-{self.lives}"
        self.forget()

    def forget(self) -> None:
        """It has to join, and has given up everything."""
        self.epoch = 0
        self.active: set[Task] = set()
        self.standby: set[Task] = set()
        self.active_to_go: set[Task] = set()
        self.standby_to_go: set[Task] = set()

    def step(self) -> None:
        chance = self.world.chance
        what = chance.random()
        if what < 0.84:
            self.beat(is_heard=chance.random() < 0.85)
        elif what < 0.88:
            self.leave(-1 if self.instance_id is None or chance.random() < 0.5 else -2)
        elif what < 0.92:
            self.start()  # it crashed; the group does not know
        elif what < 0.96:
            self.tags = {"zone": chance.choice("ab")}
        else:
            self.give_up()  # and says so with its next heartbeat

    def give_up(self) -> None:
        self.active -= self.active_to_go
        self.standby -= self.standby_to_go
        self.active_to_go, self.standby_to_go = set(), set()

    def beat(self, *, is_heard: bool = True) -> None:
        """One heartbeat; an answer that is not heard may have changed the group all the same."""
        is_joining = self.epoch == 0
        if is_joining:
            self.forget()
        if self.world.chance.random() < 0.8:
            self.give_up()
        how: dict[str, Any] = {}
        if is_joining:
            how = {
                "topology": self.world.topologies[self.group_id],
                "process_id": self.process_id,
                "rebalance_ms": REBALANCE_MS,
            }
        if self.world.chance.random() < 0.2:
            how["offsets"] = [(name, partition, 5) for name, partition in sorted(self.standby)]
        beaten = self.world.room.report_later(
            self.member_id,
            self.epoch,
            group_id=self.group_id,
            instance_id=self.instance_id,
            owned=by_subtopology(self.active),
            standby=by_subtopology(self.standby),
            tags=self.tags,
            **how,
        )
        if beaten.is_settled:
            self.world.note_missing(beaten.outcome)
            if is_heard:
                self.hear(beaten.outcome)

    def hear(self, beaten: StreamsBeaten) -> None:
        response = beaten.response
        error = ErrorCode(response.error_code)
        if error in (
            ErrorCode.UNRELEASED_INSTANCE_ID,
            ErrorCode.COORDINATOR_NOT_AVAILABLE,
            ErrorCode.NOT_COORDINATOR,
        ):
            return
        if error is not ErrorCode.NONE:
            assert error in (
                ErrorCode.FENCED_MEMBER_EPOCH,
                ErrorCode.UNKNOWN_MEMBER_ID,
                ErrorCode.GROUP_ID_NOT_FOUND,
                ErrorCode.FENCED_INSTANCE_ID,
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                ErrorCode.INVALID_REQUEST,  # it has a task that its topology does not make any more
            ), response
            self.forget()
            return
        self.epoch = response.member_epoch
        if response.active_tasks is not None:
            told = tasks_in(response.active_tasks)
            self.active_to_go = self.active - told
            self.active |= told
        if response.standby_tasks is not None:
            told = tasks_in(response.standby_tasks)
            self.standby_to_go = self.standby - told
            self.standby |= told

    def leave(self, epoch: int) -> None:
        self.world.room.report_later(
            self.member_id, epoch, group_id=self.group_id, instance_id=self.instance_id
        )
        self.start()

    def known_as(self, group: StreamsGroup) -> StreamsMember | None:
        member = group.members.get(self.member_id)
        # One that it has not heard of may have gone on without it.
        return member if member is not None and self.epoch > 0 else None


class World:
    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.room = StreamsRoom(
            GroupSettings(
                streams_max_size=6,
                offsets_retention_ms=120_000,
                offsets_retention_check_interval_ms=30_000,
            )
        )
        self.topologies: dict[str, Topology] = {GROUPS[0]: counting("t"), GROUPS[1]: reading("t", "u")}
        for topic in SOURCES:
            self.room.create_topic(topic, chance.randrange(1, 5))
        self.missing: dict[str, int] = {}
        self.crashes = 0
        self.epochs: dict[tuple[str, ...], int] = {}
        self.seen: Counter[str] = Counter()
        self.members = [Worker(self, GROUPS[number % len(GROUPS)], number) for number in range(12)]

    def note_missing(self, beaten: StreamsBeaten) -> None:
        self.missing.update((topic.name, topic.partition_count) for topic in beaten.missing_topics.values())

    def make_topics(self) -> None:
        for name, count in self.missing.items():
            if name not in self.room.cluster.image.topics:
                self.room.create_topic(name, count)
        self.missing.clear()

    def step(self) -> None:
        what = self.chance.random()
        if what < 0.84:
            self.chance.choice(self.members).step()
        elif what < 0.88:
            self.mend_topics()
        elif what < 0.94:
            self.room.pass_ms(self.chance.choice((1, 900, 1100, 3000, 11_000, 21_000, 50_000)))
        elif what < 0.95:
            self.change_topics()
        elif what < 0.97:
            self.room.delete(self.chance.choice(GROUPS))
        elif what < 0.99:
            name, values = self.chance.choice(
                (
                    ("streams.assignment.interval.ms", ("0", "1000", None)),
                    ("streams.num.standby.replicas", ("0", "1", "2")),
                    ("streams.initial.rebalance.delay.ms", ("0", "3000")),
                )
            )
            self.room.configure(name, self.chance.choice(values), self.chance.choice(GROUPS))
        else:
            self.room.log.refusal = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
            self.chance.choice(self.members).step()
            self.room.pass_ms(self.chance.choice((0, 11_000, 50_000)))
            self.room.log.refusal = None
        self.check()

    def mend_topics(self) -> None:
        """What the broker does, and an operator who sees that an application cannot work."""
        self.make_topics()
        for topic in SOURCES:
            if topic not in self.room.cluster.image.topics:
                self.room.create_topic(topic, self.chance.randrange(1, 5))
        topics = self.room.cluster.image.topics
        if any(len(topics[name].partitions) != len(topics["t"].partitions) for name in self.internal()):
            self.reset_application()

    def internal(self) -> list[str]:
        return [name for name in INTERNAL if name in self.room.cluster.image.topics]

    def reset_application(self) -> None:
        for name in self.internal():
            self.room.delete_topic(name)

    def change_topics(self) -> None:
        room = self.room
        topic = self.chance.choice((*SOURCES, *INTERNAL))
        if topic not in room.cluster.image.topics:
            if topic in SOURCES:
                room.create_topic(topic, self.chance.randrange(1, 5))
        elif self.chance.random() < 0.3:
            room.add_partitions(topic, 1)
        else:
            room.delete_topic(topic)

    async def crash(self) -> None:
        """What is stored says everything: a broker that reads it knows the same."""
        before = self.room
        self.room = await before.restarted()
        self.crashes += 1
        if before.shard.is_active:
            assert everything_stored(self.room) == everything_stored(before)

    def check(self) -> None:
        if not self.room.shard.is_active:
            return
        for group_id in self.room.machine.groups:
            group = self.room.streams_group(group_id)
            check_group(group)
            self.check_epochs(group)
            self.check_beliefs(group)
            self.seen[group.state.value] += 1
            self.seen["delayed"] += group.is_delayed
            for member in group.members.values():
                self.seen[member.state.name] += 1
                self.seen["standby"] += bool(member.assigned.standby)
        alive = self.room.machine.groups
        self.epochs = {what: epoch for what, epoch in self.epochs.items() if what[1] in alive}

    def check_epochs(self, group: StreamsGroup) -> None:
        """They never go back, as long as the group lives."""
        self.rises(("group", group.group_id), group.group_epoch)
        self.rises(("target", group.group_id), group.target_epoch)
        assert group.target_epoch <= group.group_epoch
        for member in group.members.values():
            if member.member_epoch > 0:
                self.rises(("member", group.group_id, member.member_id), member.member_epoch)

    def rises(self, what: tuple[str, ...], epoch: int) -> None:
        assert epoch >= self.epochs.get(what, 0), what
        self.epochs[what] = epoch

    def check_beliefs(self, group: StreamsGroup) -> None:
        """What members believe to work on, the group knows that they have: so no two believe the same."""
        for worker in self.members:
            if worker.group_id == group.group_id:
                known = worker.known_as(group)
                if known is not None:
                    held = set(tasks_of(known.assigned.active)) | set(tasks_of(known.revoking.active))
                    assert worker.active <= held, (worker.member_id, worker.active - held)

    async def come_to_rest(self) -> None:
        """Everybody behaves from now on: then every task is somebody's, and has the copies that it should."""
        for topic in SOURCES:
            if topic not in self.room.cluster.image.topics:
                self.room.create_topic(topic, 2)
        self.reset_application()
        for group_id in GROUPS:
            self.room.configure("streams.num.standby.replicas", "1", group_id)
        for member in self.members:
            member.start()
        self.room.pass_ms(120_000)
        for _ in range(40):
            for member in self.members:
                member.beat()
            self.make_topics()
            self.room.pass_ms(1100)
        for member in self.members:
            member.beat()
            member.give_up()
        before = self.room.log.log_end
        for member in self.members:
            member.beat()
        assert self.room.log.log_end == before, "it does not come to rest"
        for group_id in GROUPS:
            self.check_rest(self.room.streams_group(group_id))

    def check_rest(self, group: StreamsGroup) -> None:
        assert group.state.value == "Stable"
        assert group.configured is not None
        parts = group.configured.subtopologies
        assert parts is not None
        wanted = {(name, number) for name, part in parts.items() for number in range(part.task_count)}
        owners = Counter(
            task for member in group.members.values() for task in tasks_of(member.assigned.active)
        )
        assert owners == Counter(wanted)
        processes = {member.process_id for member in group.members.values()}
        copies = Counter(
            task for member in group.members.values() for task in tasks_of(member.assigned.standby)
        )
        with_state = {task for task in wanted if parts[task[0]].is_stateful}
        assert copies == Counter(with_state if len(processes) > 1 else ())
        believed = Counter(
            task for worker in self.members if worker.group_id == group.group_id for task in worker.active
        )
        assert believed == owners


def by_subtopology(tasks: set[Task]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = defaultdict(list)
    for name, partition in sorted(tasks):
        found[name].append(partition)
    return found


def tasks_in(ids: Any) -> set[Task]:
    return set(tasks_of(told_tasks(ids)))


def tasks_of(tasks: Any) -> list[Task]:
    return [(name, partition) for name, of in tasks.items() for partition in of]


def check_group(group: StreamsGroup) -> None:
    """Nobody works on what another works on, and a process has a task once."""
    active: dict[Task, set[str]] = defaultdict(set)
    standby: dict[Task, set[str]] = defaultdict(set)
    in_process: dict[tuple[str, Task], set[str]] = defaultdict(set)
    assert all(("session", member_id) in group.deadlines for member_id in group.members), (
        "nobody stays for ever"
    )
    for member_id, member in group.members.items():
        for owned in (member.assigned, member.revoking):
            for task in tasks_of(owned.active):
                active[task].add(member_id)
                in_process[member.process_id, task].add(member_id)
            for task in tasks_of(owned.standby):
                standby[task].add(member_id)
                in_process[member.process_id, task].add(member_id)
            assert not owned.warmup
    assert not [task for task, owners in active.items() if len(owners) > 1]
    assert not [place for place, owners in in_process.items() if len(owners) > 1]
    assert holders(group.active_holders) == active
    assert holders(group.standby_holders) == standby
    assert holders(group.warmup_holders) == {}
    static = {
        member.instance_id: member.member_id
        for member in group.members.values()
        if member.instance_id is not None
    }
    assert group.static_ids == static
    assert group.targets.keys() <= group.members.keys()
    for member_id in group.members:
        assert ("session", member_id) in group.deadlines, member_id


def holders(of: TaskHolders) -> dict[Task, set[str]]:
    return dict(iter(of))


def everything_stored(room: StreamsRoom) -> dict[str, object]:
    return {group_id: everything(room.streams_group(group_id)) for group_id in room.machine.groups}


def everything(group: StreamsGroup) -> object:
    """All that a group's records say."""
    return (
        group.group_epoch,
        group.metadata_hash,
        group.topology,
        group.validated_topology_epoch,
        group.assignment_settings,
        group.members,
        group.static_ids,
        (group.target_epoch, group.target_computed_ms, group.targets),
        group.state,
        [holders(of) for of in (group.active_holders, group.standby_holders, group.warmup_holders)],
    )


@pytest.mark.parametrize("turn", range(4))
async def test_groups_keep_their_promises(seed: int, turn: int) -> None:
    world = World(random.Random(seed * 1000 + turn))
    for _ in range(STEPS):
        world.step()
        if not world.room.shard.is_active or world.chance.random() < 0.01:
            await world.crash()
            world.check()
    await world.come_to_rest()
    await world.crash()


async def test_histories_reach_every_state() -> None:
    """The test above would be worth little if its members never got anywhere."""
    world = World(random.Random(7))
    for _ in range(3 * STEPS):
        world.step()
        if not world.room.shard.is_active:
            await world.crash()
    groups = {"Empty", "NotReady", "Assigning", "Reconciling", "Stable", "delayed", "standby"}
    assert groups <= world.seen.keys()
    assert {"STABLE", "UNREVOKED_TASKS", "UNRELEASED_TASKS"} <= world.seen.keys()
    assert all(world.seen[state] for state in groups)
