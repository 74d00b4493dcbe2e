"""Random lives of consumers of both protocols in changing clusters: what must hold after every step, does."""

import random
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

import pytest

from broker.groups.classic import ClassicGroup
from broker.groups.consumer import ConsumerGroup
from broker.groups.consumer_member import ConsumerMember
from broker.groups.embedded_protocol import read_assignment, write_assignment
from broker.groups.requests import Beaten, Joined
from broker.groups.settings import GroupSettings
from broker.groups.subscriptions import topics_of
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.stored.consumer_protocol import (
    ConsumerProtocolSubscription,
    ConsumerProtocolSubscriptionTopicPartition,
)
from tests.broker.groups.consumer_rooms import ConsumerRoom

STEPS = 400
TOPICS = ("t.a", "t.b", "u", "v")
GROUPS = ("group-0", "group-1")
REBALANCE_MS = 20_000
REGEXES = (r"t\..*", ".*", "u|v")

Place = tuple[str, int]
"""A topic's id, or name, and a partition."""


class Consumer:
    """A member that speaks the new protocol.  ``owned`` is what it believes to own: topic ids, partitions."""

    def __init__(self, world: "World", group_id: str, number: int) -> None:
        self.world = world
        self.group_id = group_id
        self.number = number
        self.lives = 0
        self.instance_id = f"static-{number}" if number % 4 == 0 else None
        self.assignor: str | None = None
        self.start()

    def start(self) -> None:
        self.lives += 1
        self.member_id = f"consumer-{self.number}-{self.lives}"
        self.epoch = 0
        self.owned: set[tuple[bytes, int]] = set()
        self.to_revoke: set[tuple[bytes, int]] = set()
        self.has_news = True
        self.topics: list[str] | None = None
        self.regex: str | None = None
        self.subscribe()

    def subscribe(self) -> None:
        chance = self.world.chance
        self.has_news = True
        if chance.random() < 0.3:
            self.topics, self.regex = [], chance.choice(REGEXES)
        else:
            self.topics, self.regex = sorted(chance.sample(TOPICS, chance.randrange(1, 4))), ""

    def step(self) -> None:
        chance = self.world.chance
        what = chance.random()
        if what < 0.8:
            self.beat(is_heard=chance.random() < 0.85)
        elif what < 0.86:
            self.subscribe()
        elif what < 0.90:
            self.leave(-1 if self.instance_id is None or chance.random() < 0.5 else -2)
        elif what < 0.94:
            self.start()  # it crashed; the group does not know
        elif what < 0.96:
            self.assignor = chance.choice(("range", "uniform"))
            self.has_news = True
        elif what < 0.98:
            self.owned -= self.to_revoke  # and says so with its next heartbeat
            self.to_revoke = set()

    def beat(self, *, is_heard: bool = True) -> None:
        """One heartbeat; an answer that is not heard may have changed the group all the same."""
        is_joining = self.epoch == 0
        if is_joining:
            self.owned, self.to_revoke = set(), set()
        self.owned -= self.to_revoke
        self.to_revoke = set()
        tells_all = is_joining or self.has_news
        claimed: dict[str, list[int]] = defaultdict(list)
        for topic_id, partition in sorted(self.owned):
            claimed[self.world.room.name_of(topic_id)].append(partition)
        beaten = self.world.room.beat_later(
            self.member_id,
            self.epoch,
            group_id=self.group_id,
            topics=self.topics if tells_all else None,
            regex=self.regex if tells_all else None,
            owned=claimed,
            rebalance_ms=REBALANCE_MS if tells_all else -1,
            instance_id=self.instance_id,
            assignor=self.assignor if tells_all else None,
        )
        if is_heard and beaten.is_settled:
            self.hear(beaten.outcome)

    def hear(self, beaten: Beaten) -> None:
        if beaten.error is ErrorCode.UNRELEASED_INSTANCE_ID:
            return
        if beaten.error in (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR):
            return
        if beaten.error is not ErrorCode.NONE:
            assert beaten.error in (
                ErrorCode.FENCED_MEMBER_EPOCH,
                ErrorCode.UNKNOWN_MEMBER_ID,
                ErrorCode.GROUP_ID_NOT_FOUND,
                ErrorCode.FENCED_INSTANCE_ID,
                ErrorCode.GROUP_MAX_SIZE_REACHED,
            ), beaten
            self.epoch = 0
            self.owned, self.to_revoke, self.has_news = set(), set(), True
            return
        self.epoch = beaten.member_epoch
        self.has_news = False
        if beaten.assignment is not None:
            told = {
                (topic_id, partition)
                for topic_id, partitions in beaten.assignment.items()
                for partition in partitions
            }
            self.to_revoke = self.owned - told
            self.owned |= told

    def leave(self, epoch: int) -> None:
        self.world.room.beat_later(
            self.member_id, epoch, group_id=self.group_id, instance_id=self.instance_id
        )
        self.start()

    def known_as(self, group: ConsumerGroup) -> ConsumerMember | None:
        """The member that the group takes it for, if it is one that it may still act as."""
        member = group.members.get(self.member_id)
        if member is None or self.epoch == 0 or self.epoch != member.member_epoch:
            return None
        return member


class OldConsumer:
    """A member that speaks the classic protocol with the eager rules: it gives up everything to rejoin."""

    def __init__(self, world: "World", group_id: str, number: int) -> None:
        self.world = world
        self.group_id = group_id
        self.number = number
        self.member_id = ""
        self.generation = -1
        self.owned: set[Place] = set()
        self.joining: Any = None
        self.syncing: Any = None
        self.topics = sorted(world.chance.sample(TOPICS, 2))

    def step(self) -> None:
        chance = self.world.chance
        if self.joining is not None:
            self.take_joined()
        elif self.syncing is not None:
            self.take_synced()
        elif self.generation < 0:
            self.join()
        elif chance.random() < 0.05:
            self.world.room.leave(self.member_id, group_id=self.group_id)
            self.forget()
        elif chance.random() < 0.05:
            self.forget()  # it crashed
        else:
            code = self.world.room.heartbeat(self.member_id, self.generation, group_id=self.group_id)
            if code is ErrorCode.REBALANCE_IN_PROGRESS:
                if chance.random() < 0.5:
                    self.owned = set()
                self.join()
            elif code is not ErrorCode.NONE:
                self.forget()

    def beat(self) -> None:
        self.step()

    def forget(self) -> None:
        self.member_id, self.generation, self.owned = "", -1, set()
        self.joining = self.syncing = None

    def join(self) -> None:
        owned: dict[str, list[int]] = defaultdict(list)
        for topic, partition in sorted(self.owned):
            owned[topic].append(partition)
        metadata = ConsumerProtocolSubscription(
            topics=self.topics,
            owned_partitions=[
                ConsumerProtocolSubscriptionTopicPartition(topic=topic, partitions=partitions)
                for topic, partitions in owned.items()
            ],
        )
        self.joining = self.world.room.join(
            self.member_id,
            group_id=self.group_id,
            offers=[("range", b"\x00\x01" + bytes(metadata.encode(1)))],
            session_ms=30_000,
            rebalance_ms=10_000,
            version=3,
        )
        self.take_joined()

    def take_joined(self) -> None:
        if not self.joining.is_settled:
            return
        joined: Joined = self.joining.outcome
        self.joining = None
        if joined.error is not ErrorCode.NONE:
            if joined.error is not ErrorCode.REBALANCE_IN_PROGRESS:
                self.forget()
            return
        self.member_id, self.generation = joined.member_id, joined.generation
        assignments = {
            member.member_id: write_assignment({"u": [0] if number == 0 else []}, 1)
            for number, member in enumerate(joined.members)
        }
        self.syncing = self.world.room.sync(
            self.member_id, self.generation, assignments, group_id=self.group_id
        )
        self.take_synced()

    def take_synced(self) -> None:
        if not self.syncing.is_settled:
            return
        synced = self.syncing.outcome
        self.syncing = None
        if synced.error is ErrorCode.REBALANCE_IN_PROGRESS:
            self.join()
        elif synced.error is not ErrorCode.NONE:
            self.forget()
        elif synced.assignment:
            self.owned = {
                (owned.topic, partition)
                for owned in read_assignment(synced.assignment).assigned_partitions
                for partition in owned.partitions
            }


class NamingRoom(ConsumerRoom):
    """Knows topics that are gone, so that their partitions can be claimed."""

    def name_of(self, topic_id: bytes) -> str:
        topic = self.cluster.topic_of(topic_id)
        return topic_id.hex() if topic is None else topic.name


class World:
    def __init__(self, chance: random.Random, *, with_old: bool) -> None:
        self.chance = chance
        self.room = NamingRoom(
            GroupSettings(
                consumer_max_size=8,
                group_max_size=6,
                offsets_retention_ms=120_000,
                offsets_retention_check_interval_ms=30_000,
            )
        )
        for topic in TOPICS[:3]:
            self.room.create_topic(topic, chance.randrange(1, 5))
        self.crashes = 0
        self.epochs: dict[tuple[str, ...], int] = {}
        self.seen: Counter[str] = Counter()
        self.members: list[Any] = [
            Consumer(self, GROUPS[number % len(GROUPS)], number) for number in range(8)
        ]
        if with_old:
            self.members += [OldConsumer(self, GROUPS[number % len(GROUPS)], number) for number in range(4)]

    def step(self) -> None:
        what = self.chance.random()
        if what < 0.86:
            self.chance.choice(self.members).step()
        elif what < 0.93:
            self.room.pass_ms(self.chance.choice((1, 900, 1100, 6000, 11_000, 50_000)))
        elif what < 0.97:
            self.change_topics()
        elif what < 0.98:
            self.room.delete(self.chance.choice(GROUPS))
        elif what < 0.99:
            self.room.configure(
                "consumer.assignment.interval.ms",
                self.chance.choice(("0", "1000", None)),
                self.chance.choice(GROUPS),
            )
        else:
            self.room.log.refusal = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
            self.chance.choice(self.members).step()
            self.room.pass_ms(self.chance.choice((0, 11_000, 50_000)))
            self.room.log.refusal = None
        self.check()

    def change_topics(self) -> None:
        room, topic = self.room, self.chance.choice(TOPICS)
        if topic not in room.cluster.image.topics:
            room.create_topic(topic, self.chance.randrange(1, 5))
        elif self.chance.random() < 0.6:
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
        for member in self.members:
            if isinstance(member, OldConsumer):
                member.joining = member.syncing = None

    def check(self) -> None:
        if not self.room.shard.is_active:
            return
        for group_id, group in self.room.machine.groups.items():
            if isinstance(group, ConsumerGroup):
                check_group(group)
                self.check_epochs(group)
                self.check_beliefs(group)
                self.seen[group.state.value] += 1
                self.seen["mixed"] += 0 < group.classic_count < len(group.members)
            else:
                assert isinstance(group, ClassicGroup)
                self.seen[f"classic {group_id}"] += 1
        alive = {
            group_id
            for group_id, group in self.room.machine.groups.items()
            if isinstance(group, ConsumerGroup)
        }
        self.epochs = {what: epoch for what, epoch in self.epochs.items() if what[1] in alive}

    def check_epochs(self, group: ConsumerGroup) -> None:
        """They never go back, as long as the group lives."""
        self.rises(("group", group.group_id), group.group_epoch)
        self.rises(("target", group.group_id), group.target.epoch)
        assert group.target.epoch <= group.group_epoch
        for member in group.members.values():
            if member.member_epoch > 0:
                self.rises(("member", group.group_id, member.member_id), member.member_epoch)

    def rises(self, what: tuple[str, ...], epoch: int) -> None:
        assert epoch >= self.epochs.get(what, 0), what
        self.epochs[what] = epoch

    def check_beliefs(self, group: ConsumerGroup) -> None:
        """What members believe to own, the group knows that they hold: so no two believe the same."""
        for member in self.members:
            if isinstance(member, Consumer) and member.group_id == group.group_id:
                known = member.known_as(group)
                if known is not None:
                    held = set(places(known))
                    assert member.owned <= held, (member.member_id, member.owned - held)

    async def come_to_rest(self) -> None:
        """Everybody behaves from now on: then everything is assigned, once, to somebody who reads it."""
        self.members = [member for member in self.members if isinstance(member, Consumer)]
        for member in self.members:
            member.start()
        self.room.pass_ms(120_000)
        for _ in range(60):
            for member in self.members:
                member.beat()
            self.room.pass_ms(1100)
        before = self.room.log.log_end
        for member in self.members:
            member.beat()
            member.beat()
        assert self.room.log.log_end == before, "it does not come to rest"
        for group_id in GROUPS:
            group = self.room.consumer_group(group_id)
            assert group.state.value == "Stable"
            owners = Counter(place for member in group.members.values() for place in places(member))
            read = {
                topic.id: len(topic.partitions)
                for member in group.members.values()
                for name in topics_of(member, group.regexes)
                if (topic := self.room.cluster.topic(name)) is not None
            }
            wanted = {(topic_id, number) for topic_id, count in read.items() for number in range(count)}
            assert owners == Counter(wanted)
            believed = Counter(
                place for member in self.members if member.group_id == group_id for place in member.owned
            )
            assert believed == owners


def places(member: ConsumerMember) -> list[tuple[bytes, int]]:
    return [
        (topic_id, partition)
        for owned in (member.assigned, member.revoking)
        for topic_id, partitions in owned.items()
        for partition in partitions
    ]


def check_group(group: ConsumerGroup) -> None:
    """What the group counts is what its members say, and nobody holds what another holds."""
    held = Counter(place for member in group.members.values() for place in places(member))
    assert not [place for place, count in held.items() if count > 1], held
    assert set(held) == {
        (topic_id, partition) for topic_id, holders in group.holders.items() for partition in holders
    }
    names = Counter(name for member in group.members.values() for name in member.topic_names)
    assert group.subscriptions.by_name == names
    regexes = Counter(member.topic_regex for member in group.members.values() if member.topic_regex)
    assert group.subscriptions.regexes == regexes
    assert group.regexes.keys() <= regexes.keys()
    matched = Counter(topic for regex in group.regexes.values() for topic in regex.topics)
    assert group.subscriptions.by_regex == matched
    static = {
        member.instance_id: member.member_id
        for member in group.members.values()
        if member.instance_id is not None
    }
    assert group.static_ids == static
    assert all(("session", member_id) in group.deadlines for member_id in group.members), (
        "nobody stays for ever"
    )
    assert group.classic_count == sum(member.classic is not None for member in group.members.values())
    assert group.target.by_member.keys() <= group.members.keys()
    for member in group.members.values():
        assert ("session", member.member_id) in group.deadlines, member.member_id


def everything_stored(room: ConsumerRoom) -> dict[str, object]:
    """By group id; of classic groups, which are soft between generations, nothing."""
    return {
        group_id: everything(group)
        for group_id, group in room.machine.groups.items()
        if isinstance(group, ConsumerGroup)
    }


def everything(group: ConsumerGroup) -> object:
    """All that a group's records say."""
    return (
        group.group_epoch,
        group.metadata_hash,
        group.members,
        group.static_ids,
        (group.target.epoch, group.target.computed_ms, group.target.by_member),
        group.regexes,
        group.state,
        group.assignor_name(),
        group.has_partition_metadata,
        group.holders,
        group.classic_support,
    )


def history(seed: int, turn: int, *, with_old: bool) -> World:
    return World(random.Random(seed * 1000 + turn), with_old=with_old)


@pytest.mark.parametrize("with_old", [False, True], ids=["new", "mixed"])
@pytest.mark.parametrize("turn", range(3))
async def test_groups_keep_their_promises(seed: int, turn: int, with_old: bool) -> None:
    world = history(seed, turn, with_old=with_old)
    for _ in range(STEPS):
        world.step()
        if not world.room.shard.is_active or world.chance.random() < 0.01:
            await world.crash()
            world.check()
    await world.come_to_rest()
    await world.crash()


async def test_histories_reach_every_state(chance: random.Random) -> None:
    """The test above would be worth little if its members never got anywhere."""
    world = World(random.Random(7), with_old=True)
    for _ in range(4 * STEPS):
        world.step()
        if not world.room.shard.is_active:
            await world.crash()
    seen: Callable[[str], bool] = world.seen.__contains__
    assert all(map(seen, ("Empty", "Assigning", "Reconciling", "Stable", "mixed")))
    assert any(name.startswith("classic") for name in world.seen)
