"""What is stored of a produced batch, held against what Apache Kafka 4.4.0 had in its log."""

import json

import pytest

from protocol.error_codes import ErrorCode
from protocol.records.batch import RecordBatch, TimestampType, read_batch
from protocol.records.builder import build_batch
from protocol.records.compression import Compression, compress
from protocol.records.conversion import convert_produced, needs_new_batch
from protocol.records.validation import ProducePolicy, RefusedBatch, check_produced, read_produced
from tests.protocol.records.golden import GOLDEN
from tests.protocol.records.produce_cases import NOW, THEN, TOPICS, batch_of, section_of, stored_cases

STORED = {entry["name"]: entry for entry in json.loads((GOLDEN / "stored_batches.json").read_text())}
CASES = {case.name: case for case in stored_cases()}
CODECS = list(Compression)


def convert(batch: bytes | bytearray, policy: ProducePolicy, now_ms: int = NOW) -> RecordBatch:
    checked = check_produced(read_produced(bytearray(batch)), policy, now_ms=now_ms)
    return convert_produced(checked, policy, now_ms=now_ms)


def test_every_case_was_recorded() -> None:
    assert list(STORED) == list(CASES)


@pytest.mark.parametrize("name", CASES)
def test_the_stored_batch_is_kafka_s(name: str) -> None:
    sent, kafka_s = bytes.fromhex(STORED[name]["sent"]), read_batch(bytes.fromhex(STORED[name]["stored"]))
    policy = TOPICS[CASES[name].topic].policy
    is_append_time = policy.timestamp_type is TimestampType.LOG_APPEND_TIME
    ours = convert(sent, policy, kafka_s.max_timestamp if is_append_time else NOW)
    ours.set_place(kafka_s.base_offset, kafka_s.partition_leader_epoch)
    ours.check_crc()
    assert list(ours.records()) == list(kafka_s.records())
    assert bytes(ours.payload()) == bytes(kafka_s.payload())
    if needs_new_batch(read_batch(sent), policy) and ours.compression is not Compression.NONE:
        for start, end in ((0, 8), (12, 17), (21, 61)):  # compressors differ
            assert ours.data[start:end] == kafka_s.data[start:end]
    else:
        assert ours.data == kafka_s.data


def test_the_producer_s_bytes_are_stored_where_possible() -> None:
    buffer = build_batch([(THEN, b"k", b"v", ())], compression=Compression.LZ4)
    for compression in (None, Compression.LZ4):
        policy = ProducePolicy("t-0", compression=compression)
        checked = check_produced(read_produced(buffer), policy, now_ms=NOW)
        converted = convert_produced(checked, policy, now_ms=NOW)
        assert converted.buffer is buffer
        assert converted is checked.batch


@pytest.mark.parametrize("target", CODECS)
@pytest.mark.parametrize("source", CODECS)
def test_every_codec_to_every_codec(source: Compression, target: Compression) -> None:
    records = [(THEN + n, b"k%d" % n, b"v" * n, [(b"h", None)]) for n in range(30)]
    sent = build_batch(
        records, compression=source, producer_id=5, producer_epoch=1, base_sequence=9, is_transactional=True
    )
    stored = convert(sent, ProducePolicy("t-0", compression=target))
    stored.check_crc()
    assert stored.compression is target
    assert list(stored.records()) == list(read_batch(sent).records())
    assert (stored.producer_id, stored.producer_epoch, stored.base_sequence) == (5, 1, 9)
    assert stored.is_transactional
    assert stored.max_timestamp == THEN + 29


def test_the_topic_s_level_is_used() -> None:
    text = b"".join(b"%d squared is %d. " % (n, n * n) for n in range(3000))
    sent = build_batch([(THEN, None, text, ())])
    for level in (1, 9):
        policy = ProducePolicy("t-0", compression=Compression.GZIP, compression_level=level)
        stored = convert(sent, policy)
        assert stored.data[61:] == compress(Compression.GZIP, read_batch(sent).payload(), level)


def test_recompression_may_make_a_batch_too_large() -> None:
    sent = build_batch([(THEN, None, bytes(5000), ())], compression=Compression.ZSTD)
    policy = ProducePolicy("t-0", compression=Compression.NONE)
    size = convert(sent, policy).size_bytes
    assert size > 5000
    assert convert(sent, policy._replace(max_message_bytes=size)).size_bytes == size
    policy = policy._replace(max_message_bytes=size - 1)
    with pytest.raises(RefusedBatch) as caught:
        convert(sent, policy)
    assert caught.value.code is ErrorCode.MESSAGE_TOO_LARGE


def test_negative_times_cannot_be_recompressed() -> None:
    """As in Kafka, which stores them, but cannot write them into a batch of its own."""
    sent = batch_of(section_of([(b"k", b"v")], None, [-5 - THEN]), 1)
    assert next(convert(sent, ProducePolicy("t-0")).records()).timestamp == -5
    with pytest.raises(RefusedBatch) as caught:
        convert(sent, ProducePolicy("t-0", compression=Compression.ZSTD))
    assert caught.value.code is ErrorCode.UNKNOWN_SERVER_ERROR


def test_times_beyond_64_bits_are_stored_as_they_wrap() -> None:
    sent = batch_of(section_of([(b"k", b"v"), (b"k", b"w")], None, [2**63 - 1, 2**62]), 2)
    policy = ProducePolicy("t-0", timestamp_type=TimestampType.LOG_APPEND_TIME, compression=Compression.NONE)
    convert(sent, policy).check_crc()
    with pytest.raises(RefusedBatch):
        convert(sent, policy._replace(compression=Compression.ZSTD))
