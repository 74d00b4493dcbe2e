"""Ten thousand groups that do nothing: what they take while they are there, and at a start."""

import struct
import time
from collections.abc import Iterator, Sequence
from typing import TypeVar

from benchmarks.coordinators.lines import (
    PAUSE_SECONDS,
    TIMEOUT_SECONDS,
    Line,
    check,
    framed,
    read,
    until_coordinated,
)
from benchmarks.librdkafka import new_topic
from benchmarks.storage.brokers import StoredBroker
from benchmarks.storage.partitions import memory, wait_until_connected
from protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from protocol.schema import Message

M = TypeVar("M", bound=Message)

FULL_GROUPS = 10_000
OFFSETS = 10
"""That each group has committed."""
SESSION_MS = 1_800_000
LINES = 50
PIPELINED = 20
"""Requests on their way on each connection."""
NOT_THERE_YET = frozenset((14, 15, 16))

JOIN_VERSION, SYNC_VERSION, COMMIT_VERSION, HEARTBEAT_VERSION = 3, 3, 8, 3

FORM = "form 10,000 groups with a member and ten offsets each"
MEMORY = "memory that 10,000 idle groups take"
START = "start after kill -9 until 10,000 groups answer"
START_MEMORY = "memory after that start"
SETTINGS = {"group.initial.rebalance.delay.ms": "0"}


def idle_groups_round(broker: StoredBroker, share: float) -> dict[str, float]:
    """Groups of one member, each with committed offsets."""
    broker.launch()
    wait_until_connected(broker)
    topic = new_topic(broker.address, OFFSETS)
    names = [f"idle-{number}" for number in range(max(1, round(FULL_GROUPS * share)))]
    until_coordinated(broker.address, names[0])
    before = memory(broker)
    began = time.perf_counter()
    members = _form(broker.address, names, topic)
    values = {FORM: time.perf_counter() - began}
    values[MEMORY] = memory(broker) - before
    broker.kill()
    began = time.perf_counter()
    broker.launch()
    wait_until_connected(broker)
    _until_all_answer(broker.address, names, members)
    values[START] = time.perf_counter() - began
    values[START_MEMORY] = memory(broker)
    return values


def _form(address: str, names: Sequence[str], topic: str) -> list[tuple[str, int]]:
    """Member ids and generations of groups that are at rest, in the order of ``names``."""
    lines = [Line(address) for _ in range(LINES)]
    try:
        joins = [
            JoinGroupRequest(
                group_id=name,
                session_timeout_ms=SESSION_MS,
                rebalance_timeout_ms=60_000,
                protocol_type="consumer",
                protocols=[JoinGroupRequestProtocol(name="range", metadata=b"\0\1" + bytes(50))],
            )
            for name in names
        ]
        joined = _asked(lines, joins, JoinGroupResponse, JOIN_VERSION)
        for join in joined:
            check(join)
        members = [(join.member_id, join.generation_id) for join in joined]
        assignment = struct.pack(">hi", 1, 0) + bytes(50)
        syncs = [
            SyncGroupRequest(
                group_id=name,
                generation_id=generation,
                member_id=member_id,
                assignments=[SyncGroupRequestAssignment(member_id=member_id, assignment=assignment)],
            )
            for name, (member_id, generation) in zip(names, members, strict=True)
        ]
        for sync in _asked(lines, syncs, SyncGroupResponse, SYNC_VERSION):
            check(sync)
        places = [
            OffsetCommitRequestPartition(partition_index=index, committed_offset=1000 + index)
            for index in range(OFFSETS)
        ]
        commits = [
            OffsetCommitRequest(
                group_id=name,
                generation_id_or_member_epoch=generation,
                member_id=member_id,
                topics=[OffsetCommitRequestTopic(name=topic, partitions=places)],
            )
            for name, (member_id, generation) in zip(names, members, strict=True)
        ]
        for commit in _asked(lines, commits, OffsetCommitResponse, COMMIT_VERSION):
            for partition in commit.topics[0].partitions:
                check(partition)
        return members
    finally:
        for line in lines:
            line.close()


def _until_all_answer(address: str, names: Sequence[str], members: Sequence[tuple[str, int]]) -> None:
    """Until a heartbeat of every member is taken."""
    deadline = time.monotonic() + TIMEOUT_SECONDS
    lines = [Line(address) for _ in range(LINES)]
    try:
        waiting = [
            HeartbeatRequest(group_id=name, member_id=member_id, generation_id=generation)
            for name, (member_id, generation) in zip(names, members, strict=True)
        ]
        # One alone until it is there: asking for all again and again would only be in the way.
        while waiting:
            (answer,) = _asked(lines, waiting[:1], HeartbeatResponse, HEARTBEAT_VERSION)
            check(answer, *NOT_THERE_YET)
            if answer.error_code:
                if time.monotonic() > deadline:
                    raise RuntimeError(f"{len(waiting)} groups are not there after {TIMEOUT_SECONDS} s")
                time.sleep(PAUSE_SECONDS)
                continue
            answers = _asked(lines, waiting, HeartbeatResponse, HEARTBEAT_VERSION)
            for answer in answers:
                check(answer, *NOT_THERE_YET)
            waiting = [request for request, answer in zip(waiting, answers, strict=True) if answer.error_code]
    finally:
        for line in lines:
            line.close()


def _asked(lines: Sequence[Line], requests: Sequence[Message], response: type[M], version: int) -> list[M]:
    """The answers, in the order of the requests; some requests at a time on each connection."""
    answers: list[M] = []
    for some in _pieces(requests, len(lines) * PIPELINED):
        shares = [some[number :: len(lines)] for number in range(len(lines))]
        for line, mine in zip(lines, shares, strict=True):
            if mine:
                line.send(*(framed(request, version) for request in mine))
        received = [
            [read(line.receive(), response, version) for _ in mine]
            for line, mine in zip(lines, shares, strict=True)
        ]
        answers += [received[number % len(lines)][number // len(lines)] for number in range(len(some))]
    return answers


def _pieces(requests: Sequence[Message], size: int) -> Iterator[Sequence[Message]]:
    for first in range(0, len(requests), size):
        yield requests[first : first + size]
