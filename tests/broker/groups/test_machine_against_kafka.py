"""A log that Kafka wrote is understood, and what is written here is what Kafka writes."""

from pathlib import Path

import pytest

from broker.groups.classic import ClassicGroup
from broker.groups.consumer import ConsumerGroup, ConsumerGroupState
from broker.groups.machine import CODEC
from broker.groups.states import GroupState
from protocol.error_codes import ErrorCode
from protocol.records.batch import read_batches
from tests import golden
from tests.broker.coordination.fake_log import FakeLog
from tests.broker.groups.rooms import Room

SEGMENT = Path(golden.__file__).parent / "groups" / "consumer_offsets.log"


@pytest.fixture
def log() -> FakeLog:
    log = FakeLog()
    for batch in read_batches(SEGMENT.read_bytes()):
        assert batch.base_offset == log.log_end
        log.append(bytearray(batch.data))
    return log


@pytest.fixture
async def room(log: FakeLog) -> Room:
    room = Room(log=log)
    await room.shard.load()
    return room


def classic(room: Room, group_id: str) -> ClassicGroup:
    group = room.machine.groups[group_id]
    assert isinstance(group, ClassicGroup)
    return group


async def test_stable_and_empty_groups_are_there(room: Room) -> None:
    workers = room.describe("workers")
    assert (workers.state, workers.protocol_type, workers.protocol_name) == ("Stable", "consumer", "range")
    assert {(member.instance_id, member.assignment) for member in workers.members} == {
        ("first", b"assigned to first"),
        (None, b"assigned to second"),
    }
    assert {(member.client_id, member.client_host) for member in workers.members} == {("app", "/127.0.0.1")}
    group = classic(room, "workers")
    assert group.generation == 2
    assert group.leader == group.members.static_ids["first"]
    assert group.subscribed_topics == frozenset({"orders"})
    assert classic(room, "former").state is GroupState.EMPTY
    assert classic(room, "former").generation == 2


async def test_its_members_go_on(room: Room) -> None:
    for member_id in classic(room, "workers").members.by_id:
        assert room.heartbeat(member_id, 2, group_id="workers") is ErrorCode.NONE
        assert room.sync(member_id, 2, group_id="workers").outcome.assignment.startswith(b"assigned to")
    heir = room.join(group_id="workers", instance_id="first", session_ms=45_000).outcome
    assert heir.skip_assignment
    assert heir.generation == 2


async def test_offsets_are_there(room: Room) -> None:
    assert room.fetch(group_id="workers") == {("orders", 0): 100, ("orders", 1): 200}
    assert room.fetch(group_id="former") == {("orders", 2): 7}
    assert room.fetch(group_id="simple") == {("payments", 0): 11, ("orders", 0): 3}
    assert room.fetch(group_id="kept") == {("payments", 0): 5}
    assert room.fetch(group_id="gone") == {}
    committed = room.machine.offsets.get("former", "orders", 2)
    assert committed is not None
    assert committed.metadata == "é"


async def test_transactions_are_followed(room: Room) -> None:
    assert room.fetch(group_id="exact") == {("orders", 0): 41}
    assert room.fetch({"orders": [0]}, group_id="undecided") == {("orders", 0): -1}
    assert room.fetch({"orders": [0]}, group_id="undecided", stable=True) == {
        ("orders", 0): ErrorCode.UNSTABLE_OFFSET_COMMIT
    }


async def test_a_consumer_group_is_there(room: Room) -> None:
    group = room.machine.groups["modern"]
    assert isinstance(group, ConsumerGroup)
    assert (group.members, group.target.by_member) == ({}, {})
    assert group.group_epoch == group.target.epoch == 3
    assert group.state is ConsumerGroupState.EMPTY
    assert room.lines.getvalue() == ""


def test_every_record_would_be_written_as_kafka_wrote_it(log: FakeLog) -> None:
    compared = 0
    for batch in log.batches:
        for view in read_batches(batch):
            for record in [] if view.is_control else view.records():
                stored = CODEC.decode(record.key, record.value)
                if stored is not None:
                    assert CODEC.encode(stored) == (record.key, record.value)
                    compared += 1
    assert compared == 31
