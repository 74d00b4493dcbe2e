"""Which records survive, batch by batch: the rules, one at a time."""

from collections.abc import Sequence
from random import Random

import pytest

from protocol.records.batch import RecordBatch, TimestampType, read_batch
from protocol.records.builder import append_record, assemble_batch, build_batch
from protocol.records.compression import Compression
from protocol.records.control import EndTransactionMarker, build_end_transaction_marker
from protocol.records.errors import CorruptRecords
from storage.compaction import LastRecord, Survivors, Transactions, note_keys
from storage.offset_map import OffsetMap
from storage.transaction_index import AbortedTransaction

NOW_MS = 1_000_000
RETENTION_MS = 1000

Pair = tuple[bytes | None, bytes | None]


def batch(base_offset: int, *pairs: Pair, times: Sequence[int] = (), **options: object) -> RecordBatch:
    stamps = times or [100 + index for index in range(len(pairs))]
    records = [(stamp, key, value, ()) for stamp, (key, value) in zip(stamps, pairs, strict=True)]
    return read_batch(build_batch(records, base_offset=base_offset, partition_leader_epoch=3, **options))  # type: ignore[arg-type]


def marker(base_offset: int, *, commit: bool, producer_id: int = 7) -> RecordBatch:
    return read_batch(
        build_end_transaction_marker(
            EndTransactionMarker(commit, 1),
            producer_id=producer_id,
            producer_epoch=0,
            timestamp=500,
            base_offset=base_offset,
        )
    )


def sent(base_offset: int, *pairs: Pair, producer_id: int = 7) -> RecordBatch:
    """A batch inside a transaction."""
    return batch(
        base_offset, *pairs, producer_id=producer_id, producer_epoch=0, base_sequence=0, is_transactional=True
    )


def compact(
    *batches: RecordBatch,
    aborted: Sequence[AbortedTransaction] = (),
    last_records: dict[int, LastRecord] | None = None,
    high_watermark: int = 1000,
    now_ms: int = NOW_MS,
    keys_max: int = 100,
    first_dirty: int = 0,
) -> list[RecordBatch]:
    """What is left of a log in which everything may be cleaned."""
    offsets = OffsetMap(keys_max, first_dirty)
    noting = Transactions(aborted)
    for each in batches:
        if not note_keys(offsets, noting, each):
            break
    survivors = Survivors(
        offsets,
        Transactions(aborted),
        last_records or {},
        high_watermark=high_watermark,
        now_ms=now_ms,
        delete_retention_ms=RETENTION_MS,
    )
    left = [survivors.filter(each) for each in batches]
    found = [read_batch(each) for each in left if each is not None]
    for each in found:
        each.check_crc()
    return found


def records(batches: Sequence[RecordBatch]) -> list[tuple[int, int, bytes | None, bytes | None]]:
    return [(r.offset, r.timestamp, r.key, r.value) for each in batches for r in each.records()]


def test_the_last_record_of_each_key_stays_where_it_is() -> None:
    left = compact(
        batch(0, (b"a", b"1"), (b"b", b"1"), (b"a", b"2")), batch(3, (b"c", b"1"), (b"b", b"2"), (b"b", b"3"))
    )
    assert records(left) == [
        (2, 102, b"a", b"2"),
        (3, 100, b"c", b"1"),
        (5, 102, b"b", b"3"),
    ]


def test_a_batch_of_which_everything_stays_is_not_touched() -> None:
    whole = batch(5, (b"a", b"1"), (b"b", b"1"), compression=Compression.ZSTD)
    assert [bytes(each.data) for each in compact(whole)] == [bytes(whole.data)]


def test_a_batch_of_which_nothing_stays_goes() -> None:
    assert [each.base_offset for each in compact(batch(0, (b"a", b"1")), batch(1, (b"a", b"2")))] == [1]


@pytest.mark.parametrize("codec", list(Compression))
def test_a_smaller_batch_keeps_its_place_and_its_header(codec: Compression) -> None:
    first = batch(
        10,
        (b"a", b"1"),
        (b"b", b"1"),
        (b"c", b"1"),
        times=[900, 700, 500],
        compression=codec,
        producer_id=9,
        producer_epoch=2,
        base_sequence=40,
    )
    (left, _) = compact(first, batch(13, (b"a", b"2")))
    assert (left.base_offset, left.last_offset, left.record_count) == (10, 12, 2)
    assert (left.producer_id, left.producer_epoch, left.base_sequence, left.last_sequence) == (9, 2, 40, 42)
    assert (left.partition_leader_epoch, left.compression) == (3, codec)
    assert (left.base_timestamp, left.max_timestamp) == (700, 700)
    assert records([left]) == [(11, 700, b"b", b"1"), (12, 500, b"c", b"1")]


def test_append_times_stay() -> None:
    first = batch(0, (b"a", b"1"), (b"b", b"1"))
    first.set_max_timestamp(TimestampType.LOG_APPEND_TIME, 5555)
    left = compact(first, batch(2, (b"a", b"2")))
    assert left[0].timestamp_type is TimestampType.LOG_APPEND_TIME
    assert records(left)[0] == (1, 5555, b"b", b"1")


def test_records_without_a_key_go() -> None:
    assert records(compact(batch(0, (None, b"1"), (b"", b"2")))) == [(1, 101, b"", b"2")]


@pytest.mark.parametrize("size", [15, 16, 17, 62, 63, 64, 1000])
def test_long_keys_are_told_apart(size: int) -> None:
    keys = [bytes([number]).rjust(size, b"k") for number in range(3)]
    left = compact(batch(0, *[(key, b"1") for key in keys]), batch(3, (keys[1], b"2")))
    assert [offset for offset, *_ in records(left)] == [0, 2, 3]


def test_headers_stay() -> None:
    pairs = [(100, b"a", b"1", ()), (100, b"b", b"1", ((b"name", b"x"), (b"none", None)))]
    first = read_batch(build_batch(pairs))
    left = compact(first, batch(2, (b"a", b"2")))
    (record,) = left[0].records()
    assert list(record.headers) == [(b"name", b"x"), (b"none", None)]


# Memory


def test_a_full_map_shortens_the_round() -> None:
    """Records that the map has not seen stay, whatever their key."""
    log = [batch(0, (b"a", b"1"), (b"b", b"1"), (b"a", b"2")), batch(3, (b"c", b"1"), (b"c", b"2"))]
    assert [offset for offset, *_ in records(compact(*log, keys_max=2))] == [0, 1, 2, 3, 4]
    assert [offset for offset, *_ in records(compact(*log, keys_max=3))] == [1, 2, 3, 4]
    assert [offset for offset, *_ in records(compact(*log, keys_max=4))] == [1, 2, 4]


def test_a_map_says_how_far_it_knows() -> None:
    offsets = OffsetMap(2)
    assert note_keys(offsets, Transactions(()), batch(0, (b"a", b"1"), (None, b"1")))
    assert offsets.latest_offset == 1
    assert not note_keys(offsets, Transactions(()), batch(2, (b"b", b"1"), (b"c", b"1"), (b"d", b"1")))
    assert (offsets.latest_offset, len(offsets)) == (2, 2)


def test_what_is_clean_already_is_only_compared() -> None:
    log = [batch(0, (b"a", b"1"), (b"b", b"1")), batch(2, (b"a", b"2"))]
    assert [offset for offset, *_ in records(compact(*log, first_dirty=2))] == [1, 2]


def test_a_log_that_is_clean_in_part_and_known_in_part(seed: int) -> None:
    """Against the rule itself, over batches with gaps, tombstones, and records without a key."""
    chance = Random(seed)
    for _ in range(200):
        log = []
        offset = 0
        for _ in range(chance.randrange(1, 9)):
            deltas = sorted(chance.sample(range(20), chance.randrange(1, 21)))
            if chance.random() < 0.1:
                chance.shuffle(deltas)
            log.append(with_gaps(chance, offset, deltas))
            offset = log[-1].next_offset
        first_dirty, keys_max = chance.randrange(offset), chance.randrange(1, 12)
        last, known_to = noted(log, first_dirty, keys_max)
        expected = [
            record
            for record in [record for each in log for record in each.records()]
            if record.offset > known_to or (record.key and record.offset >= last.get(record.key, -1))
        ]
        left = compact(*log, keys_max=keys_max, first_dirty=first_dirty)
        assert records(left) == [tuple(record[:4]) for record in expected]


def noted(log: Sequence[RecordBatch], first_dirty: int, keys_max: int) -> tuple[dict[bytes, int], int]:
    """The last offset of each key, and up to where that is so."""
    last: dict[bytes, int] = {}
    known_to = -1
    for each in log:
        for record in each.records():
            if record.key is not None and record.offset >= first_dirty:
                if len(last) == keys_max:
                    return last, known_to
                last[record.key] = known_to = record.offset
        if each.last_offset >= first_dirty:
            known_to = each.last_offset
    return last, known_to


def with_gaps(chance: Random, base_offset: int, deltas: list[int]) -> RecordBatch:
    section = bytearray()
    for delta in deltas:
        key = None if chance.random() < 0.1 else b"%d" % chance.randrange(14)
        append_record(section, delta, delta, key, None if chance.random() < 0.1 else b"v", ())
    return read_batch(
        assemble_batch(
            section,
            base_offset=base_offset,
            partition_leader_epoch=0,
            attributes=0,
            level=None,
            last_offset_delta=max(deltas) + chance.randrange(2),
            base_timestamp=1000,
            max_timestamp=1000 + max(deltas),
            producer_id=-1,
            producer_epoch=-1,
            base_sequence=-1,
            record_count=len(deltas),
        )
    )


# Tombstones (KIP-534)


def test_a_tombstone_gets_a_delete_horizon_and_goes_after_it() -> None:
    log = [batch(0, (b"a", b"1"), (b"b", b"1")), batch(2, (b"a", None), (b"c", b"1"))]
    first = compact(*log)
    assert records(first) == [(1, 101, b"b", b"1"), (2, 100, b"a", None), (3, 101, b"c", b"1")]
    assert [each.delete_horizon for each in first] == [None, NOW_MS + RETENTION_MS]
    again = compact(*first, now_ms=NOW_MS + RETENTION_MS - 1)
    assert [bytes(each.data) for each in again] == [bytes(each.data) for each in first]
    last = compact(*again, now_ms=NOW_MS + RETENTION_MS)
    assert records(last) == [(1, 101, b"b", b"1"), (3, 101, b"c", b"1")]
    assert [each.delete_horizon for each in last] == [None, NOW_MS + RETENTION_MS]


def test_a_horizon_once_set_stays_as_it_is() -> None:
    first = compact(batch(0, (b"a", None), (b"b", b"1")))
    left = compact(*first, batch(2, (b"b", b"2")), now_ms=NOW_MS + 10)
    assert left[0].delete_horizon == NOW_MS + RETENTION_MS
    assert records(left) == [(0, 100, b"a", None), (2, 100, b"b", b"2")]


def test_an_overwritten_tombstone_goes_at_once() -> None:
    assert [offset for offset, *_ in records(compact(batch(0, (b"a", None)), batch(1, (b"a", b"2"))))] == [1]


# Empty batches


def test_the_last_batch_of_a_producer_stays_without_its_records() -> None:
    log = [
        batch(0, (b"a", b"1"), producer_id=9, producer_epoch=1, base_sequence=4, compression=Compression.LZ4),
        batch(1, (b"a", b"2"), producer_id=9, producer_epoch=1, base_sequence=5),
        batch(2, (b"a", b"3")),
    ]
    left = compact(*log, last_records={9: LastRecord(1, 1)})
    empty = left[0]
    assert (empty.base_offset, empty.last_offset, empty.record_count) == (1, 1, 0)
    assert (empty.producer_id, empty.base_sequence, empty.attributes) == (9, 5, 0)
    assert (empty.base_timestamp, empty.max_timestamp) == (-1, 100)
    assert [each.base_offset for each in left] == [1, 2]
    assert [each.base_offset for each in compact(*left, last_records={9: LastRecord(1, 1)})] == [1, 2]
    assert [each.base_offset for each in compact(*left)] == [2]


def test_the_batch_at_the_high_watermark_stays_known() -> None:
    log = [batch(0, (b"a", b"2")), batch(1, (None, b"x"), (None, b"y"))]
    left = compact(*log, high_watermark=3)
    assert [(each.base_offset, each.next_offset, each.record_count) for each in left] == [
        (0, 1, 1),
        (1, 3, 0),
    ]
    assert [each.base_offset for each in compact(*log, high_watermark=4)] == [0]


# Transactions


def test_committed_records_are_compacted_like_others() -> None:
    left = compact(sent(0, (b"a", b"1")), marker(1, commit=True), batch(2, (b"a", b"2")))
    assert [each.base_offset for each in left] == [1, 2]


def test_aborted_records_go_and_hide_no_others() -> None:
    aborted = [AbortedTransaction(7, 1, 2, 3)]
    left = compact(
        batch(0, (b"a", b"1")), sent(1, (b"a", b"2"), (b"b", b"2")), marker(3, commit=False), aborted=aborted
    )
    assert records(left[:1]) == [(0, 100, b"a", b"1")]
    assert [each.base_offset for each in left] == [0, 3]


def test_a_marker_outlives_its_transaction_by_one_horizon() -> None:
    aborted = [AbortedTransaction(7, 0, 1, 2)]
    first = compact(sent(0, (b"a", b"1")), marker(1, commit=False), aborted=aborted)
    assert [(each.base_offset, each.delete_horizon) for each in first] == [(1, None)]
    second = compact(*first, aborted=aborted)
    assert [(each.base_offset, each.delete_horizon) for each in second] == [(1, NOW_MS + RETENTION_MS)]
    (record,) = second[0].records()
    assert record.timestamp == 500
    assert compact(*second, aborted=aborted, now_ms=NOW_MS + RETENTION_MS - 1)
    assert compact(*second, aborted=aborted, now_ms=NOW_MS + RETENTION_MS) == []


def test_a_commit_marker_stays_as_long_as_a_batch_of_its_transaction_does() -> None:
    log = [sent(0, (b"a", b"1"), (b"b", b"1")), marker(2, commit=True)]
    for _ in range(3):
        log = compact(*log)
    assert [(each.base_offset, each.delete_horizon) for each in log] == [(0, None), (2, None)]


def test_the_last_marker_of_a_producer_without_data_stays() -> None:
    last_records = {7: LastRecord(-1, 0)}
    (left,) = compact(marker(0, commit=True))
    (left,) = compact(left, last_records=last_records, now_ms=NOW_MS + RETENTION_MS)
    assert (left.record_count, left.is_control, left.is_transactional) == (0, True, True)
    (left,) = compact(left, last_records=last_records)
    assert compact(left) == []


def test_kept_abort_markers_go_into_the_new_index() -> None:
    aborted = [AbortedTransaction(7, 0, 1, 2), AbortedTransaction(8, 2, 3, 4)]
    transactions = Transactions(aborted)
    survivors = Survivors(OffsetMap(9), transactions, {}, high_watermark=9, now_ms=0, delete_retention_ms=0)
    survivors.filter(sent(0, (b"a", b"1")))
    survivors.filter(marker(1, commit=False))
    survivors.filter(marker(3, commit=False, producer_id=8))
    assert transactions.kept == aborted[:1]


def test_transactions_of_one_producer_follow_each_other() -> None:
    aborted = [AbortedTransaction(7, 0, 1, 2)]
    left = compact(
        sent(0, (b"a", b"1")), marker(1, commit=False), sent(2, (b"b", b"2")), marker(3, commit=True),
        aborted=aborted,
    )  # fmt: skip
    assert [each.base_offset for each in left] == [1, 2, 3]


# Damage


@pytest.mark.parametrize("position", [61, 65, 66])
def test_damaged_records_are_not_compacted(position: int) -> None:
    damaged = bytearray(batch(0, (b"a", b"1")).data)
    damaged[position] = 0xFD
    with pytest.raises(CorruptRecords):
        compact(read_batch(damaged))


def test_records_of_all_sizes(seed: int) -> None:
    """Against what the readers of records make of the same batches: each integer in all its lengths."""
    chance = Random(seed)

    def some(bits_max: int) -> bytes:
        return bytes(chance.randrange(1 << chance.randrange(bits_max)))

    pairs: list[Pair] = [
        (b"%d" % chance.randrange(3000) + some(9), None if chance.random() < 0.1 else some(15))
        for _ in range(9000)
    ]
    times = [chance.randrange(1 << chance.randrange(1, 41)) for _ in pairs]
    whole = batch(0, *pairs, times=times)
    last = {key: offset for offset, (key, _) in enumerate(pairs)}
    expected = [
        (offset, times[offset], key, value)
        for offset, (key, value) in enumerate(pairs)
        if last[key] == offset
    ]
    assert records(compact(whole, keys_max=10_000)) == expected
