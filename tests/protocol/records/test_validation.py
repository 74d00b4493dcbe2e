"""Checks of produced records, held against what Apache Kafka 4.4.0 answered to the same bytes."""

import json
from typing import NamedTuple

import pytest

from protocol.error_codes import ErrorCode
from protocol.limits import RECORD_ERRORS_MAX
from protocol.records.builder import build_batch
from protocol.records.compression import Compression
from protocol.records.conversion import convert_produced
from protocol.records.errors import RecordsTooLarge
from protocol.records.validation import (
    CheckedBatch,
    MalformedBatch,
    ProducePolicy,
    RecordError,
    RefusedBatch,
    check_produced,
    read_produced,
)
from tests.protocol.records.golden import GOLDEN
from tests.protocol.records.produce_cases import (
    FIFTY,
    FLIPPED_BIT,
    NOW,
    THEN,
    THREE,
    TOPICS,
    ProduceCase,
    batch_of,
    patched,
    produce_cases,
    sealed,
    section_of,
    with_payload,
)

CASES = {case.name: case for case in produce_cases()}
PLAIN = TOPICS["plain"].policy
CODECS = list(Compression)
DAY_MS = 86_400_000


class Answer(NamedTuple):
    """What a Produce answer says about one partition."""

    code: int
    reached_log: bool
    message: str | None
    record_errors: list[list[object]]


def ask_kafka() -> dict[str, Answer]:
    answers = {}
    for line in (GOLDEN / "produce_answers.jsonl").read_text().splitlines():
        answer = json.loads(line)
        name = answer.pop("name")
        answers[name] = Answer(**answer)
    return answers


def refusal_of(records: bytes, policy: ProducePolicy, now_ms: int = NOW) -> RefusedBatch | None:
    """Why the records are not stored; None if they are."""
    try:
        checked = check_produced(read_produced(bytearray(records)), policy, now_ms=now_ms)
        convert_produced(checked, policy, now_ms=now_ms)
    except RefusedBatch as refusal:
        return refusal
    return None


def ask_us(case: ProduceCase) -> Answer:
    refusal = refusal_of(case.records or b"", TOPICS[case.topic].policy)
    if refusal is None:
        return Answer(0, True, None, [])
    errors: list[list[object]] = [[error.batch_index, error.message] for error in refusal.record_errors]
    return Answer(int(refusal.code), refusal.reached_log, refusal.message, errors)


ANSWERS = ask_kafka()

REFUSED = Answer(ErrorCode.INVALID_RECORD, True, None, [])
NOT_UNPACKED = Answer(ErrorCode.UNKNOWN_SERVER_ERROR, True, None, [])
INCOMPLETE = Answer(ErrorCode.INVALID_RECORD, False, None, [])

DEVIATIONS = {
    # The size overflows an int in Kafka, which answers UNKNOWN_SERVER_ERROR to the whole request.
    "length 2147483636": INCOMPLETE,
    "length 2147483647": INCOMPLETE,
    # An exception that Kafka does not expect, again UNKNOWN_SERVER_ERROR.
    "record: size in 6 bytes": REFUSED,
    "first record: size in 6 bytes": REFUSED,
    "second record: size in 6 bytes": REFUSED,
    # Kafka does not compare a compressed record's size with its contents.  It stores what its own
    # consumers then cannot read.
    **{
        f"{kind}: size {size} (gzip)": REFUSED
        for kind in ("record", "first record", "second record")
        for size in ("1 too large", "1 too small", "2 too small", "0")
    },
    # Accepted by Kafka, though other clients cannot read it.
    "LZ4 payload: with wrong content checksum": NOT_UNPACKED,
    "ZSTD payload: and half a skippable frame": NOT_UNPACKED,
    "ZSTD payload: and 5 bytes of a frame": NOT_UNPACKED,
    "ZSTD payload: and 3 bytes of a frame": NOT_UNPACKED,
}


def test_every_case_has_an_answer() -> None:
    assert list(ANSWERS) == list(CASES)
    assert set(DEVIATIONS) <= set(CASES)


def test_the_answer_is_kafka_s() -> None:
    ours = {name: ask_us(case) for name, case in CASES.items()}
    wanted = {**ANSWERS, **DEVIATIONS}
    assert {name: answer for name, answer in ours.items() if answer != wanted[name]} == {}


def test_a_deviation_is_one() -> None:
    assert [name for name, answer in DEVIATIONS.items() if ANSWERS[name] == answer] == []


FLIPS = {flips["codec"]: flips for flips in json.loads((GOLDEN / "payload_flips.json").read_text())}

GZIP_FLAGS = 3


@pytest.mark.parametrize("codec", FLIPS)
def test_flipped_bytes_of_a_payload(codec: str) -> None:
    """What Kafka refuses, we refuse.  The code may differ where both a codec and records are wrong."""
    payload = bytes.fromhex(FLIPS[codec]["payload"])
    for position, code in enumerate(map(int, FLIPS[codec]["codes"].split())):
        flipped = bytearray(payload)
        flipped[position] ^= FLIPPED_BIT
        refusal = refusal_of(with_payload(bytes(flipped), len(FIFTY), Compression[codec]), PLAIN)
        if refusal is None:
            assert code == ErrorCode.NONE, position
            continue
        assert refusal.code in (ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.INVALID_RECORD)
        if code == ErrorCode.NONE:
            is_size = "size and its contents differ" in refusal.reason  # see DEVIATIONS
            assert is_size or (codec == "GZIP" and position == GZIP_FLAGS), (position, refusal.reason)


# Timestamps against the clock, which recorded answers cannot hold.  The texts are Kafka's.


def check(batch: bytes | bytearray, policy: ProducePolicy, now_ms: int = NOW) -> CheckedBatch:
    return check_produced(read_produced(bytearray(batch)), policy, now_ms=now_ms)


def at(*timestamps: int, key: bytes | None = b"k", compression: Compression = Compression.NONE) -> bytearray:
    return build_batch([(time, key, b"v", ()) for time in timestamps], compression=compression)


@pytest.mark.parametrize("compression", CODECS)
def test_too_late_by_more_than_an_hour(compression: Compression) -> None:
    latest = NOW + 3_600_000
    check(at(NOW, latest, NOW, compression=compression), PLAIN)
    with pytest.raises(RefusedBatch) as caught:
        check(at(NOW, latest + 1, latest, compression=compression), PLAIN)
    assert caught.value.code is ErrorCode.INVALID_TIMESTAMP
    assert caught.value.message == "One or more records have been rejected due to invalid timestamp"
    assert caught.value.reached_log
    assert caught.value.record_errors == (
        RecordError(
            1,
            f"Timestamp {latest + 1} of message with offset 1 is out of range. "
            f"The timestamp should be within [{NOW - 2**63 + 1}, {latest}]",
        ),
    )


def test_too_early_and_too_late() -> None:
    policy = PLAIN._replace(timestamp_before_max_ms=60_000, timestamp_after_max_ms=120_000)
    earliest, latest = NOW - 60_000, NOW + 120_000
    check(at(earliest, latest), policy)
    with pytest.raises(RefusedBatch) as caught:
        check(at(earliest - 1, NOW, latest + 1), policy)
    bounds = f"The timestamp should be within [{earliest}, {latest}]"
    assert caught.value.record_errors == (
        RecordError(0, f"Timestamp {earliest - 1} of message with offset 0 is out of range. {bounds}"),
        RecordError(2, f"Timestamp {latest + 1} of message with offset 2 is out of range. {bounds}"),
    )


def test_no_timestamp_is_never_too_early() -> None:
    policy = PLAIN._replace(timestamp_before_max_ms=60_000)
    checked = check(at(-1, -1), policy)
    assert (checked.max_timestamp, checked.min_timestamp) == (-1, -1)
    checked = check(at(NOW - 60_000, -1, NOW + 5, NOW + 5), policy)
    assert (checked.max_timestamp, checked.max_timestamp_index) == (NOW + 5, 2)
    with pytest.raises(RefusedBatch):
        check(at(0), policy)


def test_one_wrong_timestamp_decides_the_code() -> None:
    compacted = TOPICS["compacted"].policy
    batch = build_batch(
        [(NOW, None, b"v", ()), (NOW + DAY_MS, None, b"v", ()), (NOW + DAY_MS, b"k", None, ())]
    )
    with pytest.raises(RefusedBatch) as caught:
        check(batch, compacted)
    assert caught.value.code is ErrorCode.INVALID_TIMESTAMP
    no_key = "Compacted topic cannot accept message without key in topic partition compacted-0"
    assert [error.message.split(" of ")[0] for error in caught.value.record_errors] == [
        no_key,
        no_key,
        f"Timestamp {NOW + DAY_MS}",
    ]


def test_timestamps_wrap_as_they_do_in_kafka() -> None:
    """Base THEN and a delta of -2**63: the text shows what 64-bit arithmetic makes of it."""
    section = section_of([(b"k", b"v")], None, [-(2**63)])
    with pytest.raises(RefusedBatch) as caught:
        check(batch_of(section, 1), PLAIN._replace(timestamp_before_max_ms=DAY_MS))
    assert f"Timestamp {THEN - 2**63} of message" in caught.value.record_errors[0].message
    base_is_low = sealed(patched(batch_of(section, 1), 27, "q", -5))
    with pytest.raises(RefusedBatch) as caught:
        check(base_is_low, PLAIN)
    assert f"Timestamp {2**63 - 5} of message" in caught.value.record_errors[0].message


def test_timestamps_that_nobody_minds_wrap_as_well() -> None:
    for delta, wrapped in ((2**63 - 1, THEN - 2**63 - 1), (-(2**63), THEN - 2**63)):
        section = section_of([(b"k", b"v"), (b"k", b"v")], None, [delta, 0])
        checked = check(batch_of(section, 2), TOPICS["append-time"].policy)
        assert (checked.min_timestamp, checked.max_timestamp) == (wrapped, THEN)
        assert checked.max_timestamp_index == 1


def test_a_batch_that_claims_append_time_has_one_time() -> None:
    batch = batch_of(section_of(THREE), 3, attributes=0x08, max_timestamp=NOW + DAY_MS)
    with pytest.raises(RefusedBatch) as caught:
        check(batch, PLAIN)
    assert caught.value.code is ErrorCode.INVALID_TIMESTAMP
    assert [error.batch_index for error in caught.value.record_errors] == [0, 1, 2]
    far_records = section_of(THREE, None, [DAY_MS * 9] * 3)
    checked = check(batch_of(far_records, 3, attributes=0x08, max_timestamp=NOW - 7), PLAIN)
    assert (checked.max_timestamp, checked.max_timestamp_index) == (NOW - 7, 0)


def test_many_objections_are_counted_and_few_are_told() -> None:
    count = RECORD_ERRORS_MAX + 5
    batch = batch_of(section_of([(None, None)] * count), count, Compression.ZSTD)
    with pytest.raises(RefusedBatch) as caught:
        check(batch, TOPICS["compacted"].policy)
    assert len(caught.value.record_errors) == RECORD_ERRORS_MAX
    assert caught.value.message is not None
    assert f"due to {count} record errors in total" in caught.value.message


# The facts that come back with a good batch.


@pytest.mark.parametrize("compression", CODECS)
def test_facts(compression: Compression) -> None:
    checked = check(at(THEN, THEN + 9, THEN - 4, THEN + 9, compression=compression), PLAIN)
    assert (checked.max_timestamp, checked.max_timestamp_index) == (THEN + 9, 1)
    assert checked.min_timestamp == THEN - 4
    assert checked.is_in_order
    assert bytes(checked.section) == bytes(checked.batch.payload())


def test_large_records_are_not_copied() -> None:
    buffer = bytearray(build_batch([(THEN, None, bytes(5000), ())]))
    checked = check_produced(read_produced(memoryview(buffer)), PLAIN, now_ms=NOW)
    assert isinstance(checked.section, memoryview)
    assert checked.section.obj is buffer


def test_records_beyond_the_limit_make_clients_split_their_batch() -> None:
    policy = PLAIN._replace(records_size_max=10_000)
    batch = at(*[THEN] * 2000, compression=Compression.GZIP)
    with pytest.raises(RefusedBatch) as caught:
        check(batch, policy)
    assert caught.value.code is ErrorCode.MESSAGE_TOO_LARGE
    assert not caught.value.reached_log


def test_whoever_is_in_a_hurry_is_told_that_there_is_more() -> None:
    batch = read_produced(at(*[THEN] * 2000, compression=Compression.GZIP))
    size = len(batch.payload())
    for limit in (1, size - 1):
        with pytest.raises(RecordsTooLarge):
            check_produced(batch, PLAIN, now_ms=NOW, unpacked_max=limit)
    assert len(check_produced(batch, PLAIN, now_ms=NOW, unpacked_max=size).section) == size
    with pytest.raises(RefusedBatch):
        check_produced(batch, PLAIN._replace(records_size_max=size - 1), now_ms=NOW, unpacked_max=size)


# What comes before a batch is looked at.


def test_null_records_are_refused() -> None:
    """Kafka never answers these."""
    with pytest.raises(RefusedBatch) as caught:
        read_produced(None)
    assert (caught.value.code, caught.value.reached_log) == (ErrorCode.INVALID_RECORD, False)


def test_zstd_needs_produce_version_7() -> None:
    batch = at(THEN, compression=Compression.ZSTD)
    assert read_produced(batch).compression is Compression.ZSTD
    with pytest.raises(RefusedBatch) as caught:
        read_produced(batch, zstd_allowed=False)
    assert caught.value.code is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert read_produced(at(THEN, compression=Compression.LZ4), zstd_allowed=False).record_count == 1


def test_before_produce_version_7_an_unknown_codec_is_noticed_early() -> None:
    batch = with_payload(b"", 1, Compression.NONE, attributes=5)
    assert read_produced(batch).codec_number == 5
    with pytest.raises(MalformedBatch) as caught:
        read_produced(batch, zstd_allowed=False)
    assert (caught.value.code, caught.value.reached_log) == (ErrorCode.UNKNOWN_SERVER_ERROR, False)


def test_a_first_batch_that_cannot_be_is_told_apart() -> None:
    good = at(THEN)
    for malformed in (patched(good, 16, "b", 3), patched(good, 8, "i", 13)):
        with pytest.raises(MalformedBatch):
            read_produced(malformed)
        with pytest.raises(RefusedBatch) as caught:
            read_produced(good + malformed)
        assert not isinstance(caught.value, MalformedBatch)


@pytest.mark.parametrize("compression", CODECS)
def test_every_truncation_and_flip_is_refused_or_checked(compression: Compression) -> None:
    whole = bytes(at(*range(THEN, THEN + 20), compression=compression))
    for size in range(len(whole)):
        with pytest.raises(RefusedBatch):
            read_produced(whole[:size])
    recompressing = PLAIN._replace(compression=Compression.LZ4)
    for position in range(len(whole)):
        flipped = bytearray(whole)
        flipped[position] ^= 0xFF
        is_covered_by_crc = position >= 21
        refusal = refusal_of(bytes(flipped), recompressing)
        assert refusal is not None or not is_covered_by_crc
        refusal_of(sealed(flipped), recompressing)  # whatever comes of it
