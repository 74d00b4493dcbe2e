"""Which transactions were aborted: kept per segment, found again by whoever reads only what is committed."""

import errno
import json
from pathlib import Path
from random import Random

import pytest

from protocol.records.batch import RecordBatch
from storage.config import LogConfig
from storage.descriptors import CachedFile, Descriptors
from storage.errors import CorruptFile, DiskFailure
from storage.memory_filesystem import MemoryFileSystem
from storage.partition_log import PartitionLog
from storage.transaction_index import AbortedTransaction, TransactionIndex, check_transaction_index
from tests.storage.builders import DIRECTORY, World, batch, marker, read_all

KAFKA = Path(__file__).parent / "kafka_4_4"
PATH = "00000000000000000100.txnindex"

SMALL = LogConfig(segment_bytes=600, index_interval_bytes=100)


@pytest.fixture
def memory() -> MemoryFileSystem:
    return MemoryFileSystem()


def index(memory: MemoryFileSystem) -> TransactionIndex:
    return TransactionIndex(CachedFile(Descriptors(memory), PATH), 100)


FIRST = AbortedTransaction(7, 90, 110, 105)
SECOND = AbortedTransaction(8, 105, 120, 121)


def test_there_is_no_file_without_an_aborted_transaction(memory: MemoryFileSystem) -> None:
    empty = index(memory)
    empty.store()
    empty.reset()
    assert empty.collect(0, 1000) == ([], False)
    assert empty.find_file() is None
    assert not memory.exists(PATH)


def test_entries_are_kafkas(memory: MemoryFileSystem) -> None:
    written = index(memory)
    written.append(FIRST)
    written.append(SECOND)
    written.store()
    assert memory.read_file(PATH).hex() == "".join(
        f"0000{producer_id:016x}{first:016x}{last:016x}{stable:016x}"
        for producer_id, first, last, stable in (FIRST, SECOND)
    )
    assert list(index(memory).entries()) == [FIRST, SECOND]
    check_transaction_index(memory, PATH, 100)


@pytest.mark.parametrize("stored", [0, 1, 2])
def test_collecting_ends_where_no_later_abort_can_reach(memory: MemoryFileSystem, stored: int) -> None:
    written = index(memory)
    for number, each in enumerate((FIRST, SECOND)):
        if number == stored:
            written.store()
        written.append(each)
    if stored == 2:
        written.store()
    assert written.collect(100, 105) == ([FIRST], True)
    assert written.collect(100, 106) == ([FIRST, SECOND], True)
    assert written.collect(110, 121) == ([FIRST, SECOND], True)
    assert written.collect(111, 122) == ([SECOND], False)
    assert written.collect(121, 122) == ([], False)


def test_what_a_file_can_end_with(memory: MemoryFileSystem) -> None:
    entry, before = (0, *SECOND), (0, *FIRST)
    assert index(memory).is_possible(entry, before, 1000)
    assert index(memory).is_possible(entry, None, 1000)
    assert not index(memory).is_possible(before, entry, 1000)
    assert not index(memory).is_possible((1, *SECOND), before, 1000)
    assert not index(memory).is_possible((0, 8, 130, 120, 121), before, 1000)
    assert not index(memory).is_possible((0, 8, 80, 99, 121), None, 1000)


def test_truncation_drops_transactions_whose_marker_goes(memory: MemoryFileSystem) -> None:
    written = index(memory)
    written.append(FIRST)
    written.store()
    written.append(SECOND)
    written.truncate_to(121)
    assert list(written.entries()) == [FIRST, SECOND]
    written.truncate_to(120)
    assert list(written.entries()) == [FIRST]
    written.truncate_to(110)
    assert list(written.entries()) == []
    assert memory.read_file(PATH) == b""
    assert written.find_file() is not None, "that it is empty must reach the device"


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[:-1],
        lambda content: b"\0\1" + content[2:],
        lambda content: content[34:] + content[:34],
        lambda content: content + content[34:],
    ],
    ids=["torn", "version", "order", "twice"],
)
def test_a_file_that_cannot_be_true_is_found_out(memory: MemoryFileSystem, damage: object) -> None:
    written = index(memory)
    written.append(FIRST)
    written.append(SECOND)
    written.store()
    assert callable(damage)
    content = damage(memory.read_file(PATH))
    memory.replace_file(PATH, content, sync=True)
    with pytest.raises(CorruptFile):
        check_transaction_index(memory, PATH, 100)


def test_an_entry_of_another_version_is_not_served(memory: MemoryFileSystem) -> None:
    memory.replace_file(PATH, b"\0\1" + bytes(32), sync=True)
    with pytest.raises(CorruptFile):
        index(memory).collect(0, 1)


# In a log


def send(log: PartitionLog, producer_id: int, text: bytes = b"x" * 50) -> int:
    new = batch(text, producer_id=producer_id, producer_epoch=0, base_sequence=0, is_transactional=True)
    return log.append_as_leader(new, 0, now_ms=0, from_client=False).base_offset


def end(log: PartitionLog, producer_id: int, *, commit: bool) -> int:
    closing = marker(commit=commit, producer_id=producer_id)
    return log.append_as_leader(closing, 0, now_ms=0, from_client=False).base_offset


def aborted(log: PartitionLog, offset: int, max_bytes: int = 1) -> list[tuple[int, int]]:
    records = log.read(offset, max_bytes)
    assert records is not None
    return [(each.producer_id, each.first_offset) for each in log.aborted_transactions(records)]


def write_history(log: PartitionLog, chance: Random) -> list[AbortedTransaction]:
    """Some transactions, interleaved; return the aborted ones."""
    starts: dict[int, int] = {}
    found = []
    for _ in range(60):
        producer_id = chance.randrange(4)
        if producer_id in starts and chance.random() < 0.5:
            commit = chance.random() < 0.5
            offset = end(log, producer_id, commit=commit)
            start = starts.pop(producer_id)
            if not commit:
                found.append(
                    AbortedTransaction(producer_id, start, offset, min([*starts.values(), offset + 1]))
                )
        else:
            starts.setdefault(producer_id, send(log, producer_id))
    return found


def stored_transactions(log: PartitionLog) -> list[AbortedTransaction]:
    return [entry for segment in log._segments for entry in segment.transaction_index.entries()]


def test_aborts_are_noted_in_the_segment_that_has_their_marker(seed: int) -> None:
    world = World()
    log = world.create(SMALL)
    expected = write_history(log, Random(seed))
    assert stored_transactions(log) == expected
    for segment in log._segments:
        for entry in segment.transaction_index.entries():
            assert segment.base_offset <= entry.last_offset <= segment.read_next_offset()
    log.close()
    reopened = world.open(SMALL)
    assert stored_transactions(reopened) == expected
    assert world.reports == []


@pytest.mark.parametrize("was_clean", [True, False])
def test_recovery_and_replication_note_the_same(seed: int, was_clean: bool) -> None:
    world = World()
    log = world.create(SMALL)
    expected = write_history(log, Random(seed))
    world.memory.kill()
    assert stored_transactions(world.open(SMALL, was_clean=False)) == expected

    follower = World().create(SMALL)
    for each in read_all(log):
        follower.append_as_follower(each.data, now_ms=0)
    assert stored_transactions(follower) == expected


def test_a_reader_is_told_of_every_abort_that_touches_what_it_got(seed: int) -> None:
    log = World().create(SMALL)
    history = write_history(log, Random(seed))
    log.advance_high_watermark(log.log_end)
    for offset in range(log.log_end):
        for max_bytes in (1, 400, 100_000):
            records = log.read(offset, max_bytes)
            assert records is not None
            last = max(each.last_offset for each in _whole(records.read()))
            told = log.aborted_transactions(records)
            needed = [each for each in history if each.last_offset >= offset and each.first_offset <= last]
            assert set(needed) <= set(told)
            assert all(each.last_offset >= offset for each in told)


def _whole(data: bytes) -> list[RecordBatch]:
    from protocol.records.batch import read_batches

    return list(read_batches(data))


@pytest.mark.parametrize("follows", [False, True])
def test_a_marker_is_not_written_where_the_index_cannot_take_it(follows: bool) -> None:
    """Else readers would be given, as committed, what was aborted; and a repeated marker ends nothing."""
    world = World()
    log = world.create()
    first = send(log, 7)
    end(log, 7, commit=False)
    second = send(log, 8)
    log.close()
    log = world.open()
    before = log.log_end

    def write_marker() -> None:
        if follows:
            closing = marker(commit=False, producer_id=8)
            closing.set_place(before, 0)
            log.append_as_follower(closing.buffer, now_ms=0)
        else:
            end(log, 8, commit=False)

    world.memory.refuse("open", errno.EIO, path_suffix=".txnindex")
    with pytest.raises(DiskFailure):
        write_marker()
    assert log.log_end == before
    write_marker()
    assert [entry.first_offset for entry in stored_transactions(log)] == [first, second]


def test_truncation_opens_the_transaction_again(seed: int) -> None:
    log = World().create(SMALL)
    write_history(log, Random(seed))
    start = send(log, 9)
    kept = stored_transactions(log)
    offset = end(log, 9, commit=False)
    assert stored_transactions(log)[-1].first_offset == start
    log.truncate_to(offset, now_ms=0)
    assert stored_transactions(log) == kept
    assert end(log, 9, commit=True) == offset
    assert stored_transactions(log) == kept


def test_a_damaged_index_is_rebuilt_even_after_a_clean_stop(seed: int) -> None:
    world = World()
    log = world.create(SMALL)
    expected = write_history(log, Random(seed))
    log.close()
    name = next(name for name in world.names() if name.endswith(".txnindex"))
    world.memory.open(f"{DIRECTORY}/{name}").truncate(33)
    reopened = world.open(SMALL)
    assert stored_transactions(reopened) == expected
    assert any(name in line for line in world.reports)


def test_an_index_goes_with_its_segment(seed: int) -> None:
    world = World()
    log = world.create(SMALL)
    write_history(log, Random(seed))
    log.roll(now_ms=0)
    log.advance_high_watermark(log.log_end)
    log.delete_records_before(log.log_end)
    log.remove_segments_below_log_start(now_ms=0)
    assert not [name for name in world.names() if name.endswith(".txnindex")]
    assert [name for name in world.names() if name.endswith(".txnindex.deleted")]


# Beside Kafka


def test_what_kafka_tells_readers_of_its_log_we_tell_them_too() -> None:
    """``kafka_4_4/aborted-0``: interleaved transactions, read at every offset with four limits.

    One transaction was still open; the last segment's indexes are left out, and rebuilt.  Where a range
    ends at just the place that an index's first entry names, Kafka's search goes one entry too far.
    """
    world = World()
    for path in sorted((KAFKA / "aborted-0").iterdir()):
        world.memory.open(f"{DIRECTORY}/{path.name}", create=True).pwrite(path.read_bytes(), 0)
    config = LogConfig(segment_bytes=2000, index_interval_bytes=200)
    log = world.open(config, was_clean=False)
    log.advance_high_watermark(log.log_end)
    assert len(log.segments) == 5
    first_entries = [segment.offset_index._read(0)[1] for segment in log._segments]
    answers = json.loads((KAFKA / "aborted-0-answers.json").read_text())
    for offset, max_bytes, size, told, last_stable, high_watermark, error_code in answers:
        assert error_code == 0
        assert (log.last_stable, log.high_watermark) == (last_stable, high_watermark)
        records = log.read(offset, max_bytes, upper=log.last_stable)
        where = f"offset {offset}, {max_bytes} bytes"
        assert (records.size_bytes if records else 0) == size, where
        found = log.aborted_transactions(records) if records else []
        pairs = [[each.producer_id, each.first_offset] for each in found]
        if records and records.position + records.size_bytes in first_entries:
            told = told[: len(pairs)]
        assert pairs == told, where
    log.close()
    for path in (KAFKA / "aborted-0").iterdir():
        if path.name.endswith((".txnindex", ".index")):
            assert world.memory.read_file(f"{DIRECTORY}/{path.name}") == path.read_bytes(), path.name
