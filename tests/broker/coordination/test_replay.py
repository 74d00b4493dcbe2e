"""Replaying a piece of a log gives what applying every record in order would give."""

import random

import pytest

from broker.config.broker_config import BrokerConfig
from broker.coordination.decision import Moment, StoredRecord
from broker.coordination.record_codec import RecordCodec
from broker.coordination.replay import Replay
from broker.groups.classic import ClassicGroup
from broker.groups.cluster import Cluster
from broker.groups.consumer import ConsumerGroup
from broker.groups.machine import CODEC, GroupMachine
from broker.groups.settings import GroupSettings
from broker.metadata.image import empty_image
from protocol.records.batch import RecordBatch, read_batches
from protocol.records.builder import build_batch
from protocol.records.compression import Compression
from protocol.records.control import EndTransactionMarker, build_end_transaction_marker
from protocol.stored.group_records import (
    ConsumerGroupMetadataKey,
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from tests.broker.coordination.fake_log import FakeLog
from tests.broker.coordination.group_lives import GROUPS, TOLD, Partition, random_lives, state_of
from tests.broker.groups.rooms import offsets_of, settled

PLAIN = RecordCodec({2: GroupMetadataKey}, {2: GroupMetadataValue})


class Notes(GroupMachine):
    """Writes down what is applied."""

    def __init__(self) -> None:
        super().__init__(GroupSettings(), Cluster(empty_image("cluster"), BrokerConfig({})))
        self.applied: list[int] = []

    def apply(self, record: StoredRecord, offset: int, producer_id: int) -> None:
        self.applied.append(offset)
        super().apply(record, offset, producer_id)


def a_log(*groups: str) -> FakeLog:
    """One batch with a record for each name."""
    log = FakeLog()
    records = [
        PLAIN.encode(StoredRecord(GroupMetadataKey(group=group), GroupMetadataValue(generation=index), 3))
        for index, group in enumerate(groups)
    ]
    log.append(build_batch([(0, key, value, ()) for key, value in records]))
    return log


def replayed(log: FakeLog, *, is_compacted: bool = True, start: int = 0) -> Notes:
    machine = Notes()
    replay = Replay(machine, CODEC, start, is_compacted=is_compacted)
    for _ in replay.apply(b"".join(log.batches)):
        pass
    assert replay.position == log.log_end
    machine.loaded(Moment(0, 0))
    return machine


def test_what_a_later_record_replaces_is_not_applied() -> None:
    machine = replayed(a_log("a", "b", "a", "c", "a"))
    assert machine.applied == [1, 3, 4]
    group = machine.groups["a"]
    assert isinstance(group, ClassicGroup)
    assert group.generation == 4


def test_in_a_topic_that_is_not_compacted_every_record_counts() -> None:
    assert replayed(a_log("a", "b", "a"), is_compacted=False).applied == [0, 1, 2]


def test_what_is_before_the_position_is_left_out() -> None:
    log = a_log("a")
    log.append(a_log("b").batches[0])
    assert replayed(log, start=1).applied == [1]


def test_the_caller_is_asked_for_patience_inside_large_batches() -> None:
    log = a_log(*(f"g{number}" for number in range(1000)))
    assert sum(1 for _ in Replay(Notes(), CODEC, 0, is_compacted=True).apply(log.batches[0])) == 2000


@pytest.mark.parametrize("compression", list(Compression))
def test_compressed_batches_are_read(compression: Compression) -> None:
    (record,) = a_log("a").records()
    log = FakeLog()
    log.append(build_batch([(0, record.key, record.value, ())], compression=compression))
    assert set(replayed(log).groups) == {"a"}


def a_commit(key: OffsetCommitKey, value: OffsetCommitValue | None, producer_id: int = -1) -> bytearray:
    """The batch of an offset's commit, or of its tombstone."""
    key_bytes, value_bytes = CODEC.encode(StoredRecord(key, value, 4))
    return build_batch(
        [(0, key_bytes, value_bytes, ())],
        producer_id=producer_id,
        producer_epoch=-1 if producer_id == -1 else 0,
        is_transactional=producer_id != -1,
    )


def random_log(chance: random.Random) -> FakeLog:
    """Groups, offsets and transactions, with many records for few keys."""
    log = FakeLog()
    for number in range(200):
        group, partition = chance.choice("ab"), chance.randrange(2)
        kind = chance.random()
        if kind < 0.2:
            value = GroupMetadataValue(generation=number) if chance.random() < 0.7 else None
            key_bytes, value_bytes = CODEC.encode(StoredRecord(GroupMetadataKey(group=group), value, 3))
            log.append(build_batch([(0, key_bytes, value_bytes, ())]))
        elif kind < 0.8:
            offset = OffsetCommitValue(offset=number) if chance.random() < 0.7 else None
            key = OffsetCommitKey(group=group, topic="t", partition=partition)
            producer_id = chance.choice((-1, -1, 7, 8)) if offset is not None else -1
            log.append(a_commit(key, offset, producer_id))
        else:
            marker = EndTransactionMarker(chance.random() < 0.5, 0)
            producer_id = chance.choice((7, 8))
            log.append(
                build_end_transaction_marker(marker, producer_id=producer_id, producer_epoch=0, timestamp=0)
            )
    return log


@pytest.mark.parametrize("turn", range(30))
def test_leaving_out_what_is_replaced_changes_nothing(seed: int, turn: int) -> None:
    log = random_log(random.Random(seed * 100 + turn))
    every, latest = replayed(log, is_compacted=False), replayed(log)
    assert len(latest.applied) < len(every.applied)
    assert offsets_of(latest) == offsets_of(every)
    # A group that only had offsets, and has none left, is not worth mentioning: compaction forgets it, too.
    worth = {group for group, _, _ in offsets_of(every)} | settled(latest).keys()
    assert settled(latest) == {group: value for group, value in settled(every).items() if group in worth}
    for group in "ab":
        assert set(latest.offsets.pending_partitions(group)) == set(every.offsets.pending_partitions(group))


@pytest.mark.parametrize("is_compacted", [True, False])
def test_a_tombstone_that_is_replaced_still_ends_what_a_transaction_has_begun(is_compacted: bool) -> None:
    key = OffsetCommitKey(group="b", topic="t", partition=0)
    log = FakeLog()
    log.append(a_commit(key, OffsetCommitValue(offset=1), producer_id=7))
    log.append(
        build_batch([(0, *CODEC.encode(StoredRecord(GroupMetadataKey(group="b"), None, 3)), ())]),
    )
    log.append(a_commit(key, None))
    log.append(
        build_end_transaction_marker(
            EndTransactionMarker(is_commit=True, coordinator_epoch=0),
            producer_id=7,
            producer_epoch=0,
            timestamp=0,
        )
    )
    log.append(a_commit(key, None))
    assert replayed(log, is_compacted=is_compacted).groups == {}


@pytest.mark.parametrize("turn", range(10))
def test_leaving_out_what_is_replaced_changes_no_kind_of_group(seed: int, turn: int) -> None:
    for history in range(60):
        log = random_lives(random.Random(f"{seed} {turn} {history}"), steps=60).log
        every, latest = replayed(log, is_compacted=False), replayed(log)
        assert offsets_of(latest) == offsets_of(every)
        for group in GROUPS:
            assert set(latest.offsets.pending_partitions(group)) == set(
                every.offsets.pending_partitions(group)
            )
        assert state_of(latest) == {
            group_id: state
            for group_id, state in state_of(every).items()
            if group_id in latest.groups or not is_forgotten_by_compaction(every, group_id)
        }, f"history {history}"


def is_forgotten_by_compaction(machine: GroupMachine, group_id: str) -> bool:
    """Whether the group only had offsets, and has none left: there is nothing of it in the log any more."""
    group = machine.groups[group_id]
    return (
        isinstance(group, ClassicGroup)
        and group.is_simple
        and not list(machine.offsets.partitions_of(group_id))
    )


@pytest.mark.parametrize("is_compacted", [True, False])
@pytest.mark.parametrize("kind", TOLD)
def test_a_deleted_group_is_gone_even_if_only_its_offsets_are_read(kind: type, is_compacted: bool) -> None:
    """Its records are left out, and the transaction's are not: they make a classic group at first."""
    partition = Partition()
    partition.write(*TOLD[kind]("a", "m", 1))
    partition.commit("a", 0, 5, producer_id=7)
    partition.end_transaction(7, is_commit=True)
    partition.empty("a")
    partition.forget_offsets("a")
    partition.end("a")
    assert replayed(partition.log, is_compacted=is_compacted).groups == {}


@pytest.mark.parametrize("is_compacted", [True, False])
def test_offsets_outlive_their_group_as_a_classic_one(is_compacted: bool) -> None:
    partition = Partition()
    partition.write(*TOLD[ConsumerGroup]("a", "m", 1))
    partition.commit("a", 0, 5, producer_id=7)
    partition.end_transaction(7, is_commit=True)
    partition.end("a")
    machine = replayed(partition.log, is_compacted=is_compacted)
    assert isinstance(machine.groups["a"], ClassicGroup)
    assert machine.groups["a"].is_simple
    assert list(offsets_of(machine)) == [("a", "t", 0)]


def test_the_end_of_another_kind_leaves_a_group_that_has_had_members() -> None:
    partition = Partition()
    partition.write(*TOLD[ClassicGroup]("a", "m", 1))
    partition.write(StoredRecord(ConsumerGroupMetadataKey(group_id="a"), None))
    assert isinstance(replayed(partition.log).groups["a"], ClassicGroup)


def test_the_log_of_this_test_is_well_formed(chance: random.Random) -> None:
    log = random_log(chance)
    assert [RecordBatch(batch).base_offset for batch in log.batches] == list(range(200))
    assert len(list(read_batches(b"".join(log.batches)))) == 200
