import pytest

from storage.errors import CorruptFile
from storage.memory_filesystem import MemoryFileSystem
from storage.producer_snapshot import ProducerSnapshots, decode_producer_snapshot, encode_producer_snapshot
from storage.producer_state import ProducerBatch, ProducerEntry

# Derived by hand from Kafka's schema, and read by its kafka-dump-log.
VECTOR = bytes.fromhex(
    "0001 e3e509f4 00000001"
    "0000000000000007 0003 00000029 0000000000000063 00000004 0000018bcfe56800 ffffffff ffffffffffffffff"
)


def entry(producer_id: int = 7) -> ProducerEntry:
    found = ProducerEntry(producer_id, 3, last_timestamp=1_700_000_000_000)
    found.batches.append(ProducerBatch(37, 41, 95, 99, 1_700_000_000_000))
    return found


def facts(entries: list[ProducerEntry]) -> list[tuple[object, ...]]:
    return [
        (
            e.producer_id,
            e.producer_epoch,
            e.coordinator_epoch,
            e.last_timestamp,
            e.transaction_start,
            e.batches,
        )
        for e in entries
    ]


def test_bytes_are_those_of_kafka() -> None:
    assert encode_producer_snapshot([entry()]) == VECTOR
    assert facts(decode_producer_snapshot("file", VECTOR)) == facts([entry()])


def test_round_trips() -> None:
    marker_only = ProducerEntry(8, 0, coordinator_epoch=5, last_timestamp=12, transaction_start=-1)
    in_transaction = entry(9)
    in_transaction.transaction_start = 95
    wrapped = ProducerEntry(10, 1, last_timestamp=1)
    wrapped.batches.append(ProducerBatch((1 << 31) - 2, 1, 10, 13, 1))
    without_sequence = ProducerEntry(11, 1, last_timestamp=1)
    without_sequence.batches.append(ProducerBatch(-1, -1, 10, 13, 1))
    entries = [marker_only, in_transaction, wrapped, without_sequence]
    assert facts(decode_producer_snapshot("file", encode_producer_snapshot(entries))) == facts(entries)
    assert decode_producer_snapshot("file", encode_producer_snapshot([])) == []


def test_only_the_newest_batch_is_kept() -> None:
    several = entry()
    several.batches.insert(0, ProducerBatch(0, 36, 0, 94, 0))
    (read,) = decode_producer_snapshot("file", encode_producer_snapshot([several]))
    assert read.batches == entry().batches


def test_any_damage_is_found() -> None:
    for length in range(len(VECTOR)):
        with pytest.raises(CorruptFile):
            decode_producer_snapshot("file", VECTOR[:length])
    for position in range(len(VECTOR)):
        damaged = bytearray(VECTOR)
        damaged[position] ^= 0x40
        with pytest.raises(CorruptFile, match="file"):
            decode_producer_snapshot("file", bytes(damaged))
    with pytest.raises(CorruptFile):
        decode_producer_snapshot("file", VECTOR + b"\0")


def test_a_version_that_nobody_knows_is_damage() -> None:
    with pytest.raises(CorruptFile):
        decode_producer_snapshot("file", b"\0\2" + VECTOR[2:])


# The files of one log


def snapshots(memory: MemoryFileSystem, reports: list[str] | None = None) -> ProducerSnapshots:
    return ProducerSnapshots(
        memory, "d", memory.list_names("d"), (reports if reports is not None else []).append
    )


@pytest.fixture
def memory() -> MemoryFileSystem:
    file_system = MemoryFileSystem()
    file_system.make_directory("d")
    return file_system


def test_the_newest_that_is_not_above_is_loaded(memory: MemoryFileSystem) -> None:
    files = snapshots(memory)
    assert files.newest is None
    assert files.load_newest(100) is None
    for offset in (10, 30, 20):
        files.write(offset, [entry(offset)])
    files = snapshots(memory)
    assert files.newest == 30
    for end_offset, expected in ((9, None), (10, 10), (29, 20), (30, 30), (99, 30)):
        loaded = files.load_newest(end_offset)
        assert (loaded and loaded[1]) == expected
        assert loaded is None or loaded[0][0].producer_id == expected


def test_a_damaged_one_is_removed_and_the_next_tried(memory: MemoryFileSystem) -> None:
    reports: list[str] = []
    files = snapshots(memory, reports)
    files.write(10, [entry()])
    files.write(20, [entry()])
    memory.open(files.path(20)).pwrite(b"x", 30)
    loaded = files.load_newest(50)
    assert loaded is not None
    assert loaded[1] == 10
    assert memory.list_names("d") == ["00000000000000000010.snapshot"]
    assert len(reports) == 1
    assert "00000000000000000020.snapshot" in reports[0]


def test_strays_are_removed(memory: MemoryFileSystem) -> None:
    files = snapshots(memory)
    for offset in (5, 10, 15, 20, 25):
        files.write(offset, [])
    files.remove_strays([0, 10, 20])
    assert sorted(memory.list_names("d")) == [f"{offset:020d}.snapshot" for offset in (10, 20, 25)]
    files.write(30, [])
    files.remove_strays([10, 40])
    assert sorted(memory.list_names("d")) == [f"{10:020d}.snapshot"]


def test_between_two_offsets_are_neither_of_them(memory: MemoryFileSystem) -> None:
    files = snapshots(memory)
    for offset in (10, 20, 25, 30):
        files.write(offset, [])
    assert files.between(10, 30) == [20, 25]
    assert files.between(9, 31) == [10, 20, 25, 30]
    assert files.between(20, 21) == []


def test_removing(memory: MemoryFileSystem) -> None:
    files = snapshots(memory)
    for offset in (10, 20, 30):
        files.write(offset, [])
    files.remove(15)
    files.remove_above(20)
    assert files.newest == 20
    files.clear()
    assert memory.list_names("d") == []
    assert files.unsynced == {}


def test_what_was_written_during_an_fsync_is_not_synced_by_it(memory: MemoryFileSystem) -> None:
    files = snapshots(memory)
    files.write(10, [])
    files.write(20, [])
    taken = dict(files.unsynced)
    files.write(20, [entry()])
    files.note_synced(taken)
    assert set(files.unsynced) == {20}
    files.note_synced(dict(files.unsynced))
    assert files.unsynced == {}
