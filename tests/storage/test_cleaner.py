"""Cleaning a log: what is chosen, what comes of it, and that no crash loses or revives a record."""

import json
from collections.abc import Callable, Iterator, Sequence
from itertools import islice, pairwise
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

from protocol.records.batch import RecordBatch, read_batch, read_batches
from protocol.records.builder import build_batch
from storage import paths
from storage.cleaned_segments import clean
from storage.cleaner import Cleanable, Cleaned, assess
from storage.config import LogConfig
from storage.errors import CorruptLog
from storage.memory_filesystem import Names, PowerCut
from storage.partition_log import LogChanged, PartitionLog
from storage.segment import Segment
from storage.stored_batches import read_stored_batches
from tests.storage.builders import DIRECTORY, World, marker, read_all

KAFKA = Path(__file__).parent / "kafka_4_4" / "compacted"
NOW_MS = 1_000_000
EIO = 5
ENOSPC = 28

CONFIG = LogConfig(
    segment_bytes=400,
    index_interval_bytes=100,
    deletes=False,
    compacts=True,
    min_cleanable_dirty_ratio=0.01,
    delete_retention_ms=1000,
    file_delete_delay_ms=5000,
)


# What is chosen


class Stored(NamedTuple):
    base_offset: int
    size_bytes: int
    age_ms: int = 500

    def latest_ms(self) -> int:
        return NOW_MS - self.age_ms

    @property
    def first_timestamp(self) -> int:
        return NOW_MS - self.age_ms - 50


SEGMENTS = [Stored(0, 100, 400), Stored(10, 200, 300), Stored(20, 300, 200), Stored(30, 400, 100)]


def assessed(
    checkpoint: int | None = None,
    *,
    log_start: int = 0,
    last_stable: int = 40,
    min_lag_ms: int = 0,
    max_lag_ms: int = (1 << 63) - 1,
) -> Cleanable:
    return assess(
        SEGMENTS,
        LogConfig(compacts=True, min_compaction_lag_ms=min_lag_ms, max_compaction_lag_ms=max_lag_ms),
        checkpoint=checkpoint,
        log_start=log_start,
        log_end=40,
        last_stable=last_stable,
        now_ms=NOW_MS,
    )


def test_everything_but_the_active_segment_may_be_cleaned() -> None:
    assert assessed() == Cleanable(0, 30, 0, 600, 0)
    assert assessed().ratio == 1.0
    assert assess(
        SEGMENTS[:1], LogConfig(), checkpoint=None, log_start=0, log_end=9, last_stable=9, now_ms=0
    ) == Cleanable(0, 0, 0, 0, 0)


def test_what_was_cleaned_counts_as_clean() -> None:
    assert assessed(10) == Cleanable(10, 30, 100, 500, 0)
    assert assessed(30) == Cleanable(30, 30, 600, 0, 0)
    assert assessed(15) == Cleanable(15, 30, 300, 500, 0)


@pytest.mark.parametrize(("checkpoint", "log_start"), [(41, 0), (5, 10)])
def test_a_checkpoint_outside_the_log_is_not_believed(checkpoint: int, log_start: int) -> None:
    assert assessed(checkpoint, log_start=log_start).first_dirty == log_start


@pytest.mark.parametrize(("last_stable", "upper"), [(40, 30), (30, 30), (29, 20), (20, 20), (19, 10), (5, 0)])
def test_undecided_segments_are_left_alone(last_stable: int, upper: int) -> None:
    assert assessed(last_stable=last_stable).first_uncleanable == upper
    assert assessed(20, last_stable=5).cleanable_bytes == 0


@pytest.mark.parametrize(("min_lag_ms", "upper"), [(200, 30), (201, 20), (301, 10), (401, 0)])
def test_young_segments_are_left_alone(min_lag_ms: int, upper: int) -> None:
    assert assessed(min_lag_ms=min_lag_ms).first_uncleanable == upper


def test_a_log_is_due_when_dirty_enough_or_overdue() -> None:
    config = LogConfig(min_cleanable_dirty_ratio=0.5)
    assert not Cleanable(0, 9, 50, 50, 0).is_due(config)
    assert Cleanable(0, 9, 49, 51, 0).is_due(config)
    assert Cleanable(0, 9, 99, 1, 1).is_due(config)
    assert not Cleanable(0, 9, 100, 0, 1).is_due(config)
    assert not Cleanable(0, 9, 0, 0, 0).is_due(config)
    assert assessed(max_lag_ms=450).overdue_ms == 0
    assert assessed(max_lag_ms=440).overdue_ms == 10
    assert assessed(10, max_lag_ms=340).overdue_ms == 10


# What comes of it


def batch(*pairs: tuple[bytes, bytes | None], timestamp: int = 100, **options: object) -> RecordBatch:
    records = [(timestamp, key, value, ()) for key, value in pairs]
    return read_batch(build_batch(records, **options))  # type: ignore[arg-type]


def append(log: PartitionLog, *pairs: tuple[bytes, bytes | None]) -> None:
    log.append_as_leader(batch(*pairs), 0, now_ms=0)
    log.advance_high_watermark(log.log_end)


def run(
    world: World, log: PartitionLog, checkpoint: int | None = None, *, keys_max: int = 1000, now_ms: int = 0
) -> Cleaned:
    """One round of cleaning, as the broker and its worker do it."""
    cleanable = log.assess(checkpoint, now_ms=now_ms)
    log.flush()
    job = log.begin_cleaning(cleanable, keys_max=keys_max, bytes_per_second=1e9, now_ms=now_ms)
    cuts = log.cuts

    def swap(bases: list[int]) -> None:
        assert log.swap_in(bases, cuts=cuts, now_ms=now_ms)

    return clean(world.services, job, swap, lambda _: None)


def filled(world: World, count: int = 40, config: LogConfig = CONFIG) -> PartitionLog:
    """Keys 0 to 6, over and over; every fifth record deletes its key."""
    log = world.create(config)
    for number in range(count):
        value = None if number % 5 == 4 else b"value %d" % number + bytes(30)
        append(log, (b"key %d" % (number % 7), value))
    log.roll(now_ms=0)
    append(log, (b"active", b"1"))
    return log


def contents(log: PartitionLog) -> list[tuple[int, bytes | None, bytes | None]]:
    return [(r.offset, r.key, r.value) for each in read_all(log) for r in each.records()]


def latest(records: Sequence[tuple[int, bytes | None, bytes | None]]) -> dict[bytes | None, bytes | None]:
    """What a reader from the start ends up with."""
    state: dict[bytes | None, bytes | None] = {}
    for _, key, value in records:
        state[key] = value
    return {key: value for key, value in state.items() if value is not None}


def test_a_clean_log_has_one_record_for_each_key() -> None:
    world = World()
    log = filled(world)
    before = contents(log)
    assert run(world, log) == Cleaned(40, log_bytes(before), sum(s.size_bytes for s in log.segments[:-1]))
    after = contents(log)
    assert len({key for _, key, _ in after}) == len(after) == 8
    assert set(after) <= set(before)
    assert latest(after) == latest(before)
    assert log.log_end == 41
    assert log.assess(40, now_ms=0).cleanable_bytes == 0


def log_bytes(records: Sequence[tuple[int, bytes | None, bytes | None]]) -> int:
    """Of one batch for each record but the active segment's."""
    return sum(batch((key or b"", value)).size_bytes for _, key, value in records if key != b"active")


def test_every_offset_can_still_be_asked_for() -> None:
    world = World()
    log = filled(world)
    run(world, log)
    left = [offset for offset, _, _ in contents(log)]
    for offset in range(41):
        piece = log.read(offset, 1)
        assert piece is not None
        (found,) = read_batches(piece.read())
        assert found.last_offset == min(each for each in left if each >= offset)


def test_a_clean_log_is_reopened_and_recovered_as_it_is() -> None:
    world = World()
    log = filled(world)
    run(world, log)
    log.flush()
    expected = contents(log)
    world.memory.kill()
    recovered = world.open(CONFIG, was_clean=False, high_watermark=41)
    assert contents(recovered) == expected
    recovered.close()
    assert contents(world.open(CONFIG)) == expected
    assert world.reports == []


def test_old_files_stay_for_those_who_read_them() -> None:
    world = World()
    log = filled(world)
    piece = log.read(0, 1000)
    assert piece is not None
    bytes_before = piece.read()
    run(world, log, now_ms=0)
    assert f"{0:020d}.log.deleted" in world.names()
    assert piece.read() == bytes_before
    remove = world.services.removals.begin(5000)
    assert remove is not None
    remove()
    assert piece.read() == bytes_before
    suffixes = {name[20:] for name in world.names() if name[:1] == "0"}
    assert suffixes == {".log", ".index", ".timeindex", ".snapshot"}


def test_small_memory_takes_more_rounds_to_the_same_end() -> None:
    world = World()
    log = filled(world)
    expected = latest(contents(log))
    checkpoint = 0
    rounds = 0
    while (cleanable := log.assess(checkpoint, now_ms=0)).cleanable_bytes:
        end_offset = run(world, log, checkpoint, keys_max=2).end_offset
        assert end_offset > checkpoint or cleanable.first_dirty == end_offset
        checkpoint = end_offset
        rounds += 1
        assert rounds < 60
        assert latest(contents(log)) == expected
    assert rounds > 3
    assert len(contents(log)) == 8


def test_segments_are_put_together_while_they_fit() -> None:
    world = World()
    log = filled(world)
    run(world, log)
    run(world, log, 0)
    sizes = [segment.size_bytes for segment in log.segments[:-1]]
    assert all(size <= 400 for size in sizes)
    assert all(first + second > 400 for first, second in pairwise(sizes))


def test_a_segment_without_timestamps_keeps_its_age() -> None:
    world = World()
    world.memory.now_ms = lambda: 777
    log = world.create(CONFIG)
    for number in range(12):
        log.append_as_leader(batch((b"k%d" % number, bytes(60)), timestamp=-1), 0, now_ms=0)
    log.roll(now_ms=0)
    log.advance_high_watermark(log.log_end)
    world.memory.now_ms = lambda: 9999
    run(world, log)
    assert [segment.latest_ms() for segment in log._segments[:-1]] == [777] * (len(log.segments) - 1)


def test_aborted_transactions_are_still_told_after_cleaning() -> None:
    world = World()
    log = world.create(CONFIG)
    options = {"producer_epoch": 0, "base_sequence": 0, "is_transactional": True}
    for number in range(12):
        new = batch((b"k%d" % number, bytes(50)), producer_id=number % 3, **options)
        log.append_as_leader(new, 0, now_ms=0, from_client=False)
    for producer_id in range(3):
        end = marker(commit=producer_id == 0, producer_id=producer_id)
        log.append_as_leader(end, 0, now_ms=0, from_client=False)
    log.roll(now_ms=0)
    log.advance_high_watermark(log.log_end)
    before = log.read(0, 1)
    run(world, log)
    for piece in (before, log.read(0, 1)):  # also for what was read from a segment that is replaced now
        assert piece is not None
        assert {each.producer_id for each in log.aborted_transactions(piece)} == {1, 2}
    assert {key for _, key, value in contents(log) if value and len(value) == 50} == {
        b"k0", b"k3", b"k6", b"k9"
    }  # fmt: skip
    log.close()
    assert [e for s in world.open(CONFIG)._segments for e in s.transaction_index.entries()]


def test_damage_is_found_before_it_gets_a_new_checksum() -> None:
    world = World()
    log = filled(world)
    path = f"{DIRECTORY}/{0:020d}.log"
    world.memory.open(path).pwrite(b"\xff", 70)
    with pytest.raises(CorruptLog) as caught:
        run(world, log)
    assert (caught.value.path, caught.value.position) == (path, 0)


# Swapping


def test_what_is_not_wanted_any_more_is_discarded() -> None:
    for change in ("truncated", "shortened", "gone"):
        world = World()
        log = filled(world)
        log.flush()
        job = log.begin_cleaning(log.assess(None, now_ms=0), keys_max=99, bytes_per_second=1, now_ms=0)
        cuts = log.cuts
        ready: list[list[int]] = []
        clean(world.services, job, ready.append, lambda _: None)
        if change == "truncated":
            log.truncate_to(35, now_ms=0)
        elif change == "shortened":
            log.delete_records_before(log.segments[1].base_offset)
            log.remove_segments_below_log_start(now_ms=0)
        else:
            log.abandon()
        swapped = [log.swap_in(bases, cuts=cuts, now_ms=0) for bases in ready]
        assert not swapped[0], change
        assert not [name for name in world.names() if name.endswith((paths.CLEANED, paths.SWAP))]


def test_a_power_cut_leaves_no_index_of_a_swap_that_has_not_begun() -> None:
    """Whatever names the file system keeps of those that became swap files just now."""
    for seed in range(100):
        world = World()
        log = filled(world)
        log.flush()
        world.memory.sync_everything()
        before = contents(log)
        job = log.begin_cleaning(log.assess(None, now_ms=0), keys_max=99, bytes_per_second=1e9, now_ms=0)
        ready: list[list[int]] = []
        clean(world.services, job, ready.append, lambda _: None)
        next(log.swap_in_steps(ready[0], cuts=log.cuts, now_ms=0))
        world.memory.lose_power(Random(seed), names=Names.ANY)
        log = world.open(CONFIG, was_clean=False, recovery_point=log.log_end)
        assert latest(contents(log)) == latest(before), seed
        for segment in log._segments[:-1]:
            places = {position: found.last_offset for position, found in segment_batches(segment)}
            for entry in range(segment.offset_index.count):
                offset, position = segment.offset_index._read(entry)
                assert places.get(position) == segment.base_offset + offset, seed


def segment_batches(segment: Segment) -> list[tuple[int, RecordBatch]]:
    segment.load()
    return list(read_stored_batches(segment.file.open(), 0, segment.size_bytes))


def cleaned_and_begun(world: World) -> tuple[PartitionLog, list[int], Iterator[Callable[[], None]]]:
    """A log, the bases of segments that a cleaned one has begun to replace, and the steps that are left."""
    log = filled(world)
    log.flush()
    world.memory.sync_everything()
    job = log.begin_cleaning(log.assess(None, now_ms=0), keys_max=99, bytes_per_second=1e9, now_ms=0)
    ready: list[list[int]] = []
    clean(world.services, job, ready.append, lambda _: None)
    steps = log.swap_in_steps(ready[0], cuts=log.cuts, now_ms=0)
    next(steps)()
    return log, ready[0], steps


def test_what_is_replaced_goes_when_the_new_name_is_on_the_device() -> None:
    world = World()
    log, bases, steps = cleaned_and_begun(world)
    before = contents(log)
    old = {f"{base:020d}.log" for base in bases}
    swap = f"{bases[0]:020d}.log.swap"
    assert {swap, *old} <= set(world.names()), "both are there"
    next(steps)
    assert swap in world.names()
    assert not old & set(world.names())
    assert latest(contents(log)) == latest(before), "it is read as a swap file"
    world.memory.lose_power()
    assert {swap, *old} <= set(world.names()), "what was not fsynced is gone"
    assert latest(contents(world.open(CONFIG, was_clean=False))) == latest(before)


def test_a_swap_file_gets_its_plain_name_when_what_it_replaces_is_gone_from_the_device() -> None:
    world = World()
    log, bases, steps = cleaned_and_begun(world)
    before = contents(log)
    for sync in steps:
        sync()
    assert not [name for name in world.names() if name.endswith(paths.SWAP)]
    world.memory.lose_power()
    left = [name for name in world.names() if name.endswith((".log", ".log.swap"))]
    assert f"{bases[0]:020d}.log" in left
    assert not {f"{base:020d}.log" for base in bases[1:]} & set(left)
    assert latest(contents(log)) == latest(before)
    assert latest(contents(world.open(CONFIG, was_clean=False))) == latest(before)


def test_a_power_cut_brings_no_replaced_segment_back_beside_the_one_that_replaces_it() -> None:
    """Whatever names the file system keeps, and after whichever step the power was cut."""
    for seed in range(200):
        chance = Random(seed)
        world = World()
        log, _, steps = cleaned_and_begun(world)
        before = latest(contents(log))
        for sync in islice(steps, chance.randrange(5)):
            if chance.random() < 0.5:
                sync()
                continue
            break  # it has not come that far
        log_end = log.log_end
        world.memory.lose_power(chance, names=Names.ANY)
        log = world.open(CONFIG, was_clean=False, recovery_point=log_end)
        offsets = [offset for offset, _, _ in contents(log)]
        assert offsets == sorted(set(offsets)), seed
        assert (latest(contents(log)), log.log_end) == (before, log_end), seed
        assert not [report for report in world.reports if "removed" in report and "compacted" not in report]


def test_a_clean_stop_amid_a_swap_leaves_nothing_strange() -> None:
    """Not even what the stop before it has left inside the segment that was active then."""
    world = World()
    log = filled(world)
    end = log.log_end
    log.close()
    log = world.open(CONFIG)
    append(log, (b"key 1", b"later"))
    log.roll(now_ms=0)
    append(log, (b"active", b"2"))
    log.flush()
    assert f"{end:020d}.snapshot" in world.names()
    job = log.begin_cleaning(log.assess(None, now_ms=0), keys_max=99, bytes_per_second=1e9, now_ms=0)
    ready: list[list[int]] = []
    clean(world.services, job, ready.append, lambda _: None)
    for bases in ready[:-1]:
        assert log.swap_in(bases, cuts=log.cuts, now_ms=0)
    assert ready[-1][-1] < end < log.segments[-1].base_offset
    steps = log.swap_in_steps(ready[-1], cuts=log.cuts, now_ms=0)
    next(steps)()
    next(steps)
    before = contents(log)
    log.close()
    log = world.open(CONFIG)
    assert world.reports == []
    assert contents(log) == before


@pytest.mark.parametrize("change", ["truncated", "shortened", "moved", "closed", "deleted"])
@pytest.mark.parametrize("steps_gone", [1, 2])
def test_a_log_may_change_while_a_swap_file_is_read(change: str, steps_gone: int) -> None:
    world = World()
    log, _, steps = cleaned_and_begun(world)
    for _ in range(steps_gone):
        next(steps)()
    log.flush()
    before = contents(log)
    if change == "truncated":
        log.truncate_to(before[0][0] + 1, now_ms=0)
        before = before[:1]
    elif change == "shortened":
        log.delete_records_before(log.segments[1].base_offset)
        log.remove_segments_below_log_start(now_ms=0)
        before = contents(log)
    elif change == "moved":
        moved = DIRECTORY + "-moved"
        world.memory.rename(DIRECTORY, moved)
        log.note_renamed(moved)
    elif change == "closed":
        log.close()
    else:
        log.abandon()
    assert contents(log) == before
    for sync in steps:
        sync()
    if change == "moved":
        assert contents(log) == before
        log.close()
        world.memory.rename(moved, DIRECTORY)
    elif change != "deleted":
        append(log, (b"more", b"1"))
        before = contents(log)
        log.flush()
        world.memory.lose_power(Random(steps_gone), names=Names.ANY)
    assert contents(world.open(CONFIG, was_clean=False, log_start=log.log_start)) == before


@pytest.mark.parametrize("change", ["truncated", "shortened", "closed"])
def test_a_swap_that_has_begun_is_given_up_when_the_log_changes(change: str) -> None:
    world = World()
    log, bases, steps = cleaned_and_begun(world)
    if change == "truncated":
        log.truncate_to(35, now_ms=0)
    elif change == "shortened":
        log.delete_records_before(log.segments[1].base_offset)
        log.remove_segments_below_log_start(now_ms=0)
    else:
        log.close()
    left = contents(log)
    mine = [name for name in world.names() if name.startswith(f"{bases[0]:020d}.")]
    assert not [name for name in mine if name.endswith(paths.SWAP)]
    next(steps)()
    with pytest.raises(LogChanged):
        next(steps)
    mine = [name for name in world.names() if name.startswith(f"{bases[0]:020d}.")]
    assert not [name for name in mine if name.endswith(paths.CLEANED)]
    log.close()
    world.reports.clear()
    assert contents(world.open(CONFIG, log_start=log.log_start)) == left
    assert world.reports == []


def test_the_active_segment_is_never_replaced() -> None:
    world = World()
    log = world.create(CONFIG)
    append(log, (b"a", b"1"))
    assert not log.swap_in([0], cuts=log.cuts, now_ms=0)
    assert contents(log) == [(0, b"a", b"1")]


@pytest.mark.parametrize(
    ("operation", "path_suffix"),
    [("write", ".log.cleaned"), ("sync", ".log.cleaned"), ("write", ".timeindex.cleaned")],
)
def test_a_full_disk_leaves_the_log_as_it_is_and_gets_back_what_did_fit(
    operation: str, path_suffix: str
) -> None:
    world = World()
    log = filled(world)
    expected = contents(log)
    world.memory.refuse(operation, ENOSPC, path_suffix=path_suffix)
    with pytest.raises(OSError, match="No space left"):
        run(world, log)
    assert not world.memory.refuses
    assert not [name for name in world.memory.list_names(DIRECTORY) if name.endswith(".cleaned")]
    assert contents(log) == expected
    run(world, log)
    assert latest(contents(log)) == latest(expected)


@pytest.mark.parametrize("crash", ["kill", "power"])
def test_a_crash_at_any_step_leaves_a_log_with_the_same_state(crash: str, seed: int) -> None:
    chance = Random(seed)
    stop_after = 0
    finished = False
    while not finished:
        stop_after += 1
        world = World()
        log = filled(world, 12)
        log.flush()
        before = contents(log)
        world.memory.sync_everything()
        world.memory.stop_after = stop_after
        try:
            run(world, log)
            world.memory.sync_directory(DIRECTORY)
            finished = True
        except PowerCut:
            pass
        if crash == "kill":
            world.memory.kill()
        else:
            world.memory.lose_power(chance)
        recovered = world.open(CONFIG, was_clean=False, recovery_point=13, high_watermark=13)
        after = contents(recovered)
        assert set(after) <= set(before), stop_after
        assert latest(after) == latest(before), stop_after
        assert (recovered.log_start, recovered.log_end) == (0, 13)
        transient = (paths.CLEANED, paths.SWAP, paths.DELETED)
        assert not [name for name in world.names() if name.endswith(transient)], stop_after
        # And the work can be done again.
        run(world, recovered)
        assert latest(contents(recovered)) == latest(before)
        assert stop_after < 1000


@pytest.mark.parametrize("number", range(15))
def test_random_histories_keep_the_state_of_every_key(number: int, seed: int) -> None:
    """Append, clean, delete from the start and restart, in any order; tombstones go when they may."""
    chance = Random(seed + number)
    world = World(open_files_max=chance.choice([2, 100]))
    config = LogConfig(
        segment_bytes=chance.choice([300, 1000]),
        index_interval_bytes=chance.choice([0, 200]),
        deletes=False,
        compacts=True,
        min_cleanable_dirty_ratio=0.0,
        delete_retention_ms=chance.choice([0, 50]),
    )
    log = world.create(config)
    state: dict[bytes | None, bytes | None] = {}
    checkpoint: int | None = None
    now_ms = 0
    sequence = 0
    for step in range(120):
        now_ms += chance.randrange(30)
        action = chance.random()
        if action < 0.7:
            pairs = [
                (b"k%d" % chance.randrange(9), None if chance.random() < 0.3 else b"%d" % step)
                for _ in range(chance.randrange(1, 4))
            ]
            options = {}
            if chance.random() < 0.3:
                options = {"producer_id": 1, "producer_epoch": 0, "base_sequence": sequence}
                sequence += len(pairs)
            log.append_as_leader(batch(*pairs, **options), 0, now_ms=now_ms)
            log.advance_high_watermark(log.log_end)
            state.update(pairs)
        elif action < 0.9:
            if chance.random() < 0.5:
                log.roll(now_ms=now_ms)
            if log.assess(checkpoint, now_ms=now_ms).cleanable_bytes:
                keys_max = chance.choice([3, 100])
                checkpoint = run(world, log, checkpoint, keys_max=keys_max, now_ms=now_ms).end_offset
        else:
            log_end = log.log_end
            clean_stop = chance.random() < 0.5
            if clean_stop:
                log.close()
            world.memory.kill()
            log = world.open(config, was_clean=clean_stop, high_watermark=log_end, now_ms=now_ms)
            assert log.log_end == log_end
        found = contents(log)
        assert [offset for offset, _, _ in found] == sorted({offset for offset, _, _ in found})
        assert latest(found) == {key: value for key, value in state.items() if value is not None}
    if sequence:
        assert [producer.last_sequence for producer in log.active_producers()] == [sequence - 1]


# Beside Kafka


def test_what_kafka_makes_of_a_log_we_make_of_it_too() -> None:
    """``kafka_4_4/compacted``: transactions, an idempotent producer, tombstones and all codecs, two rounds.

    ``delete.retention.ms`` was 0, so what one round gave a horizon the next one removed.
    """
    facts = json.loads((KAFKA / "facts.json").read_text())
    config = LogConfig(
        segment_bytes=3000,
        index_interval_bytes=300,
        deletes=False,
        compacts=True,
        min_cleanable_dirty_ratio=0.01,
        delete_retention_ms=0,
    )
    world = World()
    log = world.create(config)
    checkpoint = None
    for number in range(2):
        for each in read_batches((KAFKA / f"{number}-before.log").read_bytes()):
            log.append_as_follower(each.data, now_ms=0)
        log.advance_high_watermark(log.log_end)
        checkpoint = run(world, log, checkpoint, now_ms=facts["now_ms"][number]).end_offset
        assert checkpoint == facts["clean_below"][number]
        assert [segment.base_offset for segment in log.segments] == facts["segments"][number]
        theirs = list(read_batches((KAFKA / f"{number}-after.log").read_bytes()))
        assert [described(each) for each in read_all(log)] == [described(each) for each in theirs]


def described(each: RecordBatch) -> tuple[object, ...]:
    """Everything but the bytes, which depend on the compressor."""
    return (
        each.base_offset,
        each.last_offset,
        each.attributes,
        each.base_timestamp,
        each.max_timestamp,
        each.producer_id,
        each.producer_epoch,
        each.base_sequence,
        each.partition_leader_epoch,
        list(each.records()),
    )
