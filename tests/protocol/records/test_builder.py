"""Batches built here, read back by ourselves and by two other libraries."""

from collections.abc import Sequence

import hypothesis.strategies as st
import pytest
from aiokafka.record.default_records import DefaultRecordBatch as AiokafkaBatch
from aiokafka.record.default_records import DefaultRecordBatchBuilder as AiokafkaBuilder
from hypothesis import given, settings
from kafka.record.default_records import DefaultRecordBatch as KafkaPythonBatch
from kafka.record.default_records import DefaultRecordBatchBuilder as KafkaPythonBuilder

from protocol.records.batch import TimestampType, read_batch
from protocol.records.builder import NewRecord, build_batch
from protocol.records.compression import Compression
from protocol.records.walk import walk_records

KAFKA_PYTHON_CODECS = [codec for codec in Compression if codec is not Compression.SNAPPY]
"""It wants another snappy library."""

binary = st.none() | st.binary(max_size=200)
header_names = st.text(max_size=20).map(str.encode)
records = st.lists(
    st.tuples(
        st.integers(-1, 1 << 45),
        binary,
        binary,
        st.lists(st.tuples(header_names, binary), max_size=4),
    ),
    min_size=1,
    max_size=80,
)
optional = {
    "producer_id": st.integers(-1, (1 << 63) - 1),
    "producer_epoch": st.integers(-1, (1 << 15) - 1),
    "base_sequence": st.integers(-1, (1 << 31) - 1),
    "is_transactional": st.booleans(),
    "is_control": st.booleans(),
}
options = st.fixed_dictionaries({"base_offset": st.integers(0, 1 << 60)}, optional=optional)


@given(records, options, st.sampled_from(Compression))
def test_what_was_built_is_read_back(
    sent: list[NewRecord], chosen: dict[str, int], compression: Compression
) -> None:
    batch = read_batch(build_batch(sent, compression=compression, **chosen))  # type: ignore[arg-type]
    batch.check_crc()
    for name, value in chosen.items():
        assert getattr(batch, name) == value
    read = list(batch.records())
    assert [record.offset for record in read] == [chosen["base_offset"] + n for n in range(len(sent))]
    assert [(record.timestamp, record.key, record.value, list(record.headers)) for record in read] == sent
    walk = walk_records(batch.payload(), batch.record_count)
    assert batch.base_timestamp + walk.max_timestamp_delta == batch.max_timestamp


def as_text(headers: Sequence[tuple[bytes, bytes | None]]) -> list[tuple[str, bytes | None]]:
    return [(name.decode(), value) for name, value in headers]


@settings(max_examples=50)
@given(records, st.sampled_from(Compression))
def test_aiokafka_reads_what_was_built(sent: list[NewRecord], compression: Compression) -> None:
    built = bytes(build_batch(sent, base_offset=17, compression=compression))
    batch = AiokafkaBatch(built)
    assert batch.validate_crc()
    read = [(r.offset, r.timestamp, r.key, r.value, list(r.headers)) for r in batch]
    assert read == [
        (17 + n, timestamp, key, value, as_text(headers))
        for n, (timestamp, key, value, headers) in enumerate(sent)
    ]


@settings(max_examples=50)
@given(records, st.sampled_from(KAFKA_PYTHON_CODECS))
def test_kafka_python_reads_what_was_built(sent: list[NewRecord], compression: Compression) -> None:
    built = bytes(build_batch(sent, base_offset=17, compression=compression))
    batch = KafkaPythonBatch(built)
    assert batch.validate_crc()
    read = [(r.offset, r.timestamp, r.key, r.value, list(r.headers)) for r in batch]
    assert read == [
        (17 + n, timestamp, key, value, as_text(headers))
        for n, (timestamp, key, value, headers) in enumerate(sent)
    ]


@settings(max_examples=50)
@given(
    # aiokafka takes a first timestamp of -1 for none.
    records.filter(lambda sent: sent[0][0] >= 0),
    st.sampled_from(Compression),
    st.booleans(),
)
def test_what_aiokafka_builds_is_read_and_built_alike(
    sent: list[NewRecord], compression: Compression, is_transactional: bool
) -> None:
    builder = AiokafkaBuilder(2, compression, is_transactional, 9, 3, 5, 1 << 30)
    for n, (timestamp, key, value, headers) in enumerate(sent):
        builder.append(n, timestamp, key, value, as_text(headers))
    theirs = read_batch(bytes(builder.build()))
    theirs.check_crc()
    ours = read_batch(
        build_batch(
            sent,
            partition_leader_epoch=theirs.partition_leader_epoch,
            compression=theirs.compression,  # it does not compress when that does not pay
            producer_id=9,
            producer_epoch=3,
            base_sequence=5,
            is_transactional=is_transactional,
        )
    )
    assert list(theirs.records()) == list(ours.records())
    assert bytes(theirs.payload()) == bytes(ours.payload())
    if theirs.compression is Compression.NONE:
        assert theirs.data == ours.data


@settings(max_examples=50)
@given(records, st.sampled_from(KAFKA_PYTHON_CODECS))
def test_what_kafka_python_builds_is_read_and_built_alike(
    sent: list[NewRecord], compression: Compression
) -> None:
    builder = KafkaPythonBuilder(2, compression, 0, 9, 3, 5, 1 << 30)
    for n, (timestamp, key, value, headers) in enumerate(sent):
        builder.append(n, timestamp, key, value, as_text(headers))
    theirs = read_batch(bytes(builder.build()))
    theirs.check_crc()
    ours = read_batch(
        build_batch(
            sent,
            partition_leader_epoch=theirs.partition_leader_epoch,
            compression=theirs.compression,
            producer_id=9,
            producer_epoch=3,
            base_sequence=5,
        )
    )
    assert list(theirs.records()) == list(ours.records())
    assert bytes(theirs.payload()) == bytes(ours.payload())


def test_timestamps_may_go_back() -> None:
    batch = read_batch(build_batch([(50, None, None, ()), (10, None, None, ()), (60, None, None, ())]))
    assert (batch.base_timestamp, batch.max_timestamp) == (50, 60)
    assert [record.timestamp for record in batch.records()] == [50, 10, 60]


def test_append_time_without_a_time_is_that_of_the_records() -> None:
    batch = read_batch(build_batch([(50, None, None, ())], timestamp_type=TimestampType.LOG_APPEND_TIME))
    assert batch.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert batch.max_timestamp == 50


def test_a_batch_without_records_is_a_mistake() -> None:
    with pytest.raises(AssertionError):
        build_batch([])
