"""From a member's coming or going until everybody has its part, with all members asking without a pause."""

import statistics
import struct
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from benchmarks.coordinators.lines import (
    TIMEOUT_SECONDS,
    Line,
    ask_all,
    check,
    framed,
    read,
    set_up_group,
    until_coordinated,
)
from benchmarks.librdkafka import new_topic
from benchmarks.storage.brokers import StoredBroker
from benchmarks.storage.partitions import wait_until_connected
from protocol.messages import consumer_group_heartbeat as consumer
from protocol.messages import share_group_heartbeat as share
from protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse

SIZES = (3, 30, 300)
TIMES = {3: 15, 30: 7, 300: 3}
"""How often a member joins and leaves; the figure is the median."""

SETTINGS = {
    "group.initial.rebalance.delay.ms": "500",
    "group.coordinator.rebalance.protocols": "classic,consumer,share",
    "group.share.max.size": "1000",
}
"""A new group of the classic protocol waits for its members, so that there is one rebalance for them all."""

JOIN_VERSION, SYNC_VERSION, HEARTBEAT_VERSION, LEAVE_VERSION = 9, 5, 4, 5
MODERN_VERSION, METADATA_VERSION = 1, 12
MEMBER_ID_REQUIRED, REBALANCE_IN_PROGRESS = 79, 27
LEAVING = -1
ROUND_PAUSE_SECONDS = 0.002
"""Between rounds in which nothing has moved: what a broker does behind its answers must have its turn."""


class Crowd(ABC):
    """A group, and a topic with a partition for each of the members that it has at most."""

    def __init__(self, address: str, size: int) -> None:
        self.address = address
        self.size = size
        self.name = f"crowd-{uuid.uuid4()}"
        self.topic = new_topic(address, size)
        until_coordinated(address, self.name)

    @abstractmethod
    def form(self) -> None:
        """Let all but one member join, and come to rest."""

    @abstractmethod
    def enter(self) -> Callable[[], None]:
        """A member more that is connected: what it does to join, until all are at rest again."""

    @abstractmethod
    def leave(self) -> None:
        """The last member leaves, and the others come to rest."""

    @abstractmethod
    def close(self) -> None: ...


class ClassicCrowd(Crowd):
    """The classic protocol: everybody joins again, and the leader says who reads what."""

    def __init__(self, address: str, size: int) -> None:
        super().__init__(address, size)
        self._lines: list[Line] = []
        self._member_ids: list[str] = []
        self._generation = -1

    def close(self) -> None:
        for line in self._lines:
            line.close()

    def form(self) -> None:
        for _ in range(self.size - 1):
            self._connect()
        while not self._rebalance(self._joins()):
            pass  # somebody came too late for the first generation

    def enter(self) -> Callable[[], None]:
        old = len(self._lines)
        self._connect()
        joins = self._joins()

        def join() -> None:
            self._lines[-1].send(joins[-1])
            self._hear_of_it(old)
            if not self._rebalance(joins[:-1]):
                raise RuntimeError("a member is missing from the new generation")

        return join

    def leave(self) -> None:
        joins = self._joins()
        identity = MemberIdentity(member_id=self._member_ids.pop())
        line = self._lines.pop()
        request = LeaveGroupRequest(group_id=self.name, members=[identity])
        check(line.ask(request, LeaveGroupResponse, LEAVE_VERSION))
        line.close()
        self._hear_of_it(len(self._lines))
        if not self._rebalance(joins[:-1]):
            raise RuntimeError("a member is missing from the new generation")

    def _connect(self) -> None:
        line = Line(self.address)
        answer = line.ask(self._join(""), JoinGroupResponse, JOIN_VERSION)
        check(answer, MEMBER_ID_REQUIRED)
        self._lines.append(line)
        self._member_ids.append(answer.member_id)

    def _join(self, member_id: str) -> JoinGroupRequest:
        return JoinGroupRequest(
            group_id=self.name,
            session_timeout_ms=60_000,
            rebalance_timeout_ms=60_000,
            member_id=member_id,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=b"\0\1" + bytes(50))],
        )

    def _joins(self) -> list[bytes]:
        return [framed(self._join(member_id), JOIN_VERSION) for member_id in self._member_ids]

    def _hear_of_it(self, count: int) -> None:
        """Let the first ``count`` members learn from a heartbeat that they have to join again."""
        waiting = list(range(count))
        while waiting:
            answers = ask_all(
                [self._lines[index] for index in waiting],
                [
                    HeartbeatRequest(
                        group_id=self.name,
                        generation_id=self._generation,
                        member_id=self._member_ids[index],
                    )
                    for index in waiting
                ],
                HeartbeatResponse,
                HEARTBEAT_VERSION,
            )
            for answer in answers:
                check(answer, REBALANCE_IN_PROGRESS)
            waiting = [index for index, answer in zip(waiting, answers, strict=True) if not answer.error_code]

    def _rebalance(self, joins: Sequence[bytes]) -> bool:
        """Send these, the rest being sent; whether all members are in one generation, and have their part."""
        for line, request in zip(self._lines, joins, strict=False):
            line.send(request)
        joined = [read(line.receive(), JoinGroupResponse, JOIN_VERSION) for line in self._lines]
        for answer in joined:
            check(answer)
        if len({answer.generation_id for answer in joined}) > 1:
            return False
        self._generation = joined[0].generation_id
        synced = ask_all(
            self._lines,
            [self._sync(answer) for answer in joined],
            SyncGroupResponse,
            SYNC_VERSION,
        )
        for each in synced:
            check(each)
            if not each.assignment:
                raise RuntimeError("a member has nothing")
        return len(joined) == max(len(answer.members) for answer in joined)

    def _sync(self, joined: JoinGroupResponse) -> SyncGroupRequest:
        return SyncGroupRequest(
            group_id=self.name,
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=[
                SyncGroupRequestAssignment(
                    member_id=member.member_id, assignment=struct.pack(">hi", 1, number)
                )
                for number, member in enumerate(joined.members)
            ],
        )


class ModernMember:
    """A member that the broker tells what it reads."""

    def __init__(self, address: str) -> None:
        self.line = Line(address)
        self.member_id = str(uuid.uuid4())
        self.epoch = 0
        self.partitions: tuple[int, ...] = ()
        self.must_tell = True
        """Whether the next heartbeat says what it has."""


class ModernCrowd(Crowd):
    """A protocol in which members send heartbeats, and are told by the answers what they read."""

    interval: str
    """The setting for how often a group assigns anew: each second while it forms, then without a pause."""
    response: type[consumer.ConsumerGroupHeartbeatResponse | share.ShareGroupHeartbeatResponse]

    def __init__(self, address: str, size: int) -> None:
        super().__init__(address, size)
        self._members: list[ModernMember] = []
        line = Line(address)
        wanted = MetadataRequest(topics=[MetadataRequestTopic(name=self.topic)])
        self.topic_id = line.ask(wanted, MetadataResponse, METADATA_VERSION).topics[0].topic_id
        line.close()

    def close(self) -> None:
        for member in self._members:
            member.line.close()

    def form(self) -> None:
        self._members = [ModernMember(self.address) for _ in range(self.size - 1)]
        self._settle(self._members)
        set_up_group(self._members[0].line, self.name, self.interval, "0")

    def enter(self) -> Callable[[], None]:
        newcomer = ModernMember(self.address)

        def join() -> None:
            self._members.append(newcomer)
            self._settle([newcomer])

        return join

    def leave(self) -> None:
        member = self._members.pop()
        member.epoch = LEAVING
        check(member.line.ask(self.beat(member), self.response, MODERN_VERSION))
        member.line.close()
        self._settle(self._members)

    @abstractmethod
    def beat(
        self, member: ModernMember
    ) -> consumer.ConsumerGroupHeartbeatRequest | share.ShareGroupHeartbeatRequest: ...

    def _settle(self, first: Sequence[ModernMember]) -> None:
        """Let ``first`` send heartbeats, and then everybody until all have their parts."""
        deadline = time.monotonic() + TIMEOUT_SECONDS
        self._round(first)
        while not self.is_at_rest:
            before = [(member.epoch, member.partitions) for member in self._members]
            self._round(self._members)
            if before == [(member.epoch, member.partitions) for member in self._members]:
                time.sleep(ROUND_PAUSE_SECONDS)
            if time.monotonic() > deadline:
                raise RuntimeError(f"no rest within {TIMEOUT_SECONDS} s")

    def _round(self, members: Sequence[ModernMember]) -> None:
        requests = [self.beat(member) for member in members]
        answers = ask_all([member.line for member in members], requests, self.response, MODERN_VERSION)
        for member, answer in zip(members, answers, strict=True):
            check(answer)
            member.epoch = answer.member_epoch
            member.must_tell = False
            if answer.assignment is not None:
                told = [index for topic in answer.assignment.topic_partitions for index in topic.partitions]
                member.must_tell = True
                member.partitions = tuple(told)

    @property
    def is_at_rest(self) -> bool:
        """Whether all members are in one epoch, and share the partitions evenly."""
        owned = sum((member.partitions for member in self._members), ())
        counts = {len(member.partitions) for member in self._members}
        return (
            len({member.epoch for member in self._members}) == 1
            and len(owned) == len(set(owned)) == self.size
            and max(counts) - min(counts) <= 1
        )


class ConsumerCrowd(ModernCrowd):
    """The protocol of KIP-848."""

    interval = "consumer.assignment.interval.ms"
    response = consumer.ConsumerGroupHeartbeatResponse

    def beat(self, member: ModernMember) -> consumer.ConsumerGroupHeartbeatRequest:
        request = consumer.ConsumerGroupHeartbeatRequest(
            group_id=self.name, member_id=member.member_id, member_epoch=member.epoch
        )
        if member.epoch == 0:
            request.rebalance_timeout_ms = 60_000
            request.subscribed_topic_names = [self.topic]
        if member.must_tell:
            owned = consumer.TopicPartitions(topic_id=self.topic_id, partitions=list(member.partitions))
            request.topic_partitions = [owned] if member.partitions else []
        return request


class ShareCrowd(ModernCrowd):
    """The protocol of KIP-932."""

    interval = "share.assignment.interval.ms"
    response = share.ShareGroupHeartbeatResponse

    def beat(self, member: ModernMember) -> share.ShareGroupHeartbeatRequest:
        return share.ShareGroupHeartbeatRequest(
            group_id=self.name,
            member_id=member.member_id,
            member_epoch=member.epoch,
            subscribed_topic_names=[self.topic] if member.epoch == 0 else None,
        )


CROWDS: dict[str, type[Crowd]] = {"classic": ClassicCrowd, "consumer": ConsumerCrowd, "share": ShareCrowd}


def joins(protocol: str, size: int) -> str:
    return f"{protocol}: a member joins, then there are {size}"


def leaves(protocol: str, size: int) -> str:
    return f"{protocol}: a member leaves, then there are {size - 1}"


def rebalances_round(broker: StoredBroker, sizes: Sequence[int], share: float) -> dict[str, float]:
    """Milliseconds for each protocol and each size."""
    broker.launch()
    wait_until_connected(broker)
    values: dict[str, float] = {}
    for protocol, kind in CROWDS.items():
        for size in sizes:
            values |= _measure(protocol, kind(broker.address, size), max(2, round(TIMES[size] * share)))
    return values


def _measure(protocol: str, crowd: Crowd, times: int) -> dict[str, float]:
    """The first time is to warm up and does not count."""
    joined, left = [], []
    try:
        crowd.form()
        for _ in range(times + 1):
            join = crowd.enter()
            began = time.perf_counter()
            join()
            joined.append(time.perf_counter() - began)
            began = time.perf_counter()
            crowd.leave()
            left.append(time.perf_counter() - began)
    finally:
        crowd.close()
    return {
        joins(protocol, crowd.size): statistics.median(joined[1:]) * 1000,
        leaves(protocol, crowd.size): statistics.median(left[1:]) * 1000,
    }
