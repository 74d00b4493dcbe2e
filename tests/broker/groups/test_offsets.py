from broker.groups.offsets import CommittedOffset, OffsetTable, is_expired, offset_value
from protocol.stored.group_records import OffsetCommitKey, OffsetCommitValue

KEY = OffsetCommitKey(group="g", topic="t", partition=0)
OTHER = OffsetCommitKey(group="g", topic="t", partition=1)


def put(table: OffsetTable, key: OffsetCommitKey, offset: int, at: int, producer_id: int = -1) -> None:
    table.apply(key, OffsetCommitValue(offset=offset), at, producer_id)


def test_nothing_of_a_group_is_left_when_its_last_offset_goes() -> None:
    table = OffsetTable()
    put(table, KEY, 5, 0)
    put(table, OTHER, 6, 1)
    table.apply(KEY, None, 2, -1)
    assert list(table.group_ids()) == ["g"]
    table.apply(OTHER, None, 3, -1)
    assert list(table.group_ids()) == []
    table.apply(OTHER, None, 4, -1)


def test_two_transactions_may_be_pending_for_one_offset() -> None:
    table = OffsetTable()
    put(table, KEY, 1, 0, producer_id=7)
    put(table, KEY, 2, 1, producer_id=8)
    table.end_transaction(8, is_commit=True)
    assert table.is_pending("g", "t", 0)
    table.end_transaction(7, is_commit=True)
    committed = table.get("g", "t", 0)
    assert committed is not None
    assert committed.offset == 2  # the later record
    assert not table.is_pending("g", "t", 0)


def test_a_marker_for_a_producer_without_offsets_is_harmless() -> None:
    OffsetTable().end_transaction(9, is_commit=True)


def test_the_record_of_an_offset_says_what_was_committed() -> None:
    committed = CommittedOffset(5, 2, "m", 1000, -1, b"\x01" * 16, record_offset=9)
    value, version = offset_value(committed)
    table = OffsetTable()
    table.apply(KEY, OffsetCommitValue.decode(value.encode(version), version), 9, -1)
    assert table.get("g", "t", 0) == committed


def test_when_an_offset_is_expired() -> None:
    committed = CommittedOffset(5, 2, "m", 1000, -1, bytes(16), 0)
    assert not is_expired(committed, since_ms=1000, now_ms=1099, retention_ms=100)
    assert is_expired(committed, since_ms=1000, now_ms=1100, retention_ms=100)
    explicit = committed._replace(expire_timestamp_ms=2000)
    assert not is_expired(explicit, since_ms=0, now_ms=1999, retention_ms=100)
    assert is_expired(explicit, since_ms=1_000_000, now_ms=2000, retention_ms=100)
