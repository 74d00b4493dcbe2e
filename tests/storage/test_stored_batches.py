import pytest

from protocol.records.batch import RecordBatch
from storage import stored_batches
from storage.errors import CorruptLog, TornBatch, UnsupportedFormat
from storage.filesystem import File
from storage.memory_filesystem import MemoryFile, MemoryFileSystem
from storage.stored_batches import (
    find_batch,
    find_next_batch,
    read_batch_size,
    read_headers,
    read_stored_batches,
)
from tests.storage.builders import batch


def stored(*batches: RecordBatch, extra: bytes = b"") -> tuple[File, list[int]]:
    """A file of batches with consecutive offsets, and where each starts; the last position is the end."""
    file = MemoryFileSystem().open("log", create=True)
    positions = [0]
    next_offset = 0
    for each in batches:
        each.set_base_offset(next_offset)
        next_offset = each.next_offset
        file.pwrite(each.data, positions[-1])
        positions.append(positions[-1] + each.size_bytes)
    file.pwrite(extra, positions[-1])
    return file, positions


def various(count: int = 50) -> list[RecordBatch]:
    """Some smaller and some larger than what is read at once."""
    return [batch(*[b"x" * (number % 7) * 900] * (1 + number % 3)) for number in range(count)]


def test_finds_the_batch_of_every_offset() -> None:
    batches = various()
    file, positions = stored(*batches)
    for each, position in zip(batches, positions, strict=False):
        for offset in range(each.base_offset, each.next_offset):
            assert find_batch(file, offset, 0, positions[-1]) == position
            assert find_batch(file, offset, position, positions[-1]) == position
        assert read_batch_size(file, position) == each.size_bytes
    assert find_batch(file, batches[-1].next_offset, 0, positions[-1]) is None
    assert find_batch(file, 0, positions[-1], positions[-1]) is None


@pytest.mark.parametrize("window_size", [61, 100, 5000, 1 << 20])
def test_reads_every_batch(window_size: int) -> None:
    batches = various()
    file, positions = stored(*batches)
    found = list(read_stored_batches(file, 0, positions[-1], window_size=window_size))
    assert [position for position, _ in found] == positions[:-1]
    assert [bytes(each.data) for _, each in found] == [bytes(each.data) for each in batches]
    tail = list(read_stored_batches(file, positions[30], positions[40], window_size=window_size))
    assert [position for position, _ in tail] == positions[30:40]


def test_reads_every_header() -> None:
    batches = various()
    file, positions = stored(*batches)
    found = list(read_headers(file, 0, positions[-1]))
    assert [position for position, _ in found] == positions[:-1]
    assert [each.next_offset for _, each in found] == [each.next_offset for each in batches]


def test_large_batches_are_not_read_to_find_one() -> None:
    memory = MemoryFileSystem()
    file = memory.open("log", create=True)
    large = batch(bytes(1_000_000))
    file.pwrite(large.data, 0)
    second = batch(b"small")
    second.set_base_offset(1)
    file.pwrite(second.data, large.size_bytes)
    memory.reads = 0
    assert find_batch(file, 1, 0, large.size_bytes + second.size_bytes) == large.size_bytes
    assert memory.reads == 2


def test_a_torn_tail_is_damage_at_its_position() -> None:
    first, second = batch(b"one"), batch(b"two")
    for length in range(1, second.size_bytes):
        file, positions = stored(first, extra=bytes(second.data[:length]))
        for walk in (read_stored_batches, read_headers):
            batches = walk(file, 0, positions[-1] + length)
            assert next(batches)[0] == 0
            with pytest.raises(CorruptLog) as damage:
                next(batches)
            assert damage.value.position == positions[1]


@pytest.mark.parametrize("extra", [bytes(100), b"\xff" * 100, b"\x01" * 100])
def test_what_is_no_batch(extra: bytes) -> None:
    file, positions = stored(batch(b"one"), extra=extra)
    end = positions[-1] + len(extra)
    with pytest.raises((CorruptLog, UnsupportedFormat)):
        list(read_stored_batches(file, 0, end))
    with pytest.raises((CorruptLog, UnsupportedFormat)):
        find_batch(file, 99, 0, end)
    with pytest.raises((CorruptLog, UnsupportedFormat)):
        read_batch_size(file, positions[-1])


def test_a_file_that_ends_early() -> None:
    file, positions = stored(batch(b"one"), extra=b"short")
    with pytest.raises(CorruptLog, match="log"):
        find_batch(file, 99, 0, positions[-1] + 5)
    with pytest.raises(CorruptLog, match="log"):
        read_batch_size(file, positions[-1])


def test_a_batch_that_is_not_there_to_its_end_is_not_found() -> None:
    first, second = batch(b"one"), batch(b"two")
    for length in range(1, second.size_bytes):
        file, positions = stored(first, second)
        end = positions[1] + length
        assert find_batch(file, 0, 0, end) == 0
        for offset in (1, 2):
            with pytest.raises(TornBatch) as damage:
                find_batch(file, offset, 0, end)
            assert damage.value.position == positions[1]


def test_old_formats_are_not_damage() -> None:
    # Offset, size, CRC, magic 1: how Kafka before 0.11 stored a message.
    old = bytes.fromhex("0000000000000001 00000040 12345678 01") + bytes(60)
    file, positions = stored(batch(b"one"), extra=old)
    with pytest.raises(UnsupportedFormat):
        list(read_headers(file, 0, positions[-1] + len(old)))


def test_a_size_that_leaves_no_room_for_the_header() -> None:
    small = bytearray(batch(b"one").data)
    small[8:12] = (48).to_bytes(4)
    file, positions = stored(extra=bytes(small))
    with pytest.raises(CorruptLog):
        list(read_headers(file, 0, positions[-1] + len(small)))


def find_good(file: File, position: int, end: int, lowest: int = 0) -> int | None:
    return find_next_batch(file, position, end, lowest, lowest + 1000, end)


def test_finds_an_undamaged_batch_behind_a_damage() -> None:
    file, positions = stored(*various(6))
    end = positions[-1]
    assert find_good(file, positions[2] + 1, end) == positions[3]
    file.pwrite(b"\xee", positions[3] + 70)
    assert find_good(file, positions[2] + 1, end) == positions[4]
    assert find_good(file, positions[2] + 1, end, lowest=99) is None, "not with such an offset"
    assert find_good(file, positions[2] + 1, positions[4] + 80) is None, "not a whole one"
    assert find_good(file, positions[5] + 1, end) is None


def test_finds_a_batch_that_lies_across_two_windows() -> None:
    good = batch(b"good")
    for before in range((1 << 20) - 70, (1 << 20) + 3, 7):
        file = MemoryFileSystem().open("log", create=True)
        file.pwrite(bytes(before), 0)
        file.pwrite(good.data, before)
        assert find_good(file, 0, file.size()) == before


def test_a_file_full_of_beginnings_of_long_batches_takes_no_time_without_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each of them would have to be read to the file's end."""
    header = bytearray(batch(b"").data[:61])
    count = 2000
    header[8:12] = (61 * count // 2).to_bytes(4)
    file = MemoryFileSystem().open("log", create=True)
    file.pwrite(bytes(header) * count, 0)
    checked = 0
    read = type(file).pread

    def pread(file: MemoryFile, size: int, position: int) -> bytes:
        nonlocal checked
        checked += size
        return read(file, size, position)

    monkeypatch.setattr(type(file), "pread", pread)
    monkeypatch.setattr(stored_batches, "SEARCH_BYTES_MAX", 1 << 20)
    end = file.size()
    assert find_next_batch(file, 0, end, 0, 1000, end) is None
    assert find_next_batch(file, 0, end, 0, 1000, end, trusts_unseen=True) is not None
    assert checked <= 2 * (1 << 20) + 4 * end
