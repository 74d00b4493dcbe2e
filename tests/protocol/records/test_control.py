"""Control records, held against batches that Apache Kafka 4.4.0 wrote."""

import pytest

from protocol.errors import DecodeError
from protocol.records.batch import read_batch, read_batches
from protocol.records.control import (
    ControlType,
    EndTransactionMarker,
    build_control_batch,
    build_end_transaction_marker,
    control_key,
    read_control_message,
    read_control_type,
    read_end_transaction_marker,
)
from protocol.records.errors import CorruptRecords
from protocol.records.record import Record
from protocol.schema import Message
from protocol.stored.control_records import (
    Endpoint,
    KRaftVersionFeature,
    KRaftVersionRecord,
    LeaderChangeMessage,
    LeaderChangeMessageVoter,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
    VotersVoter,
)
from tests.protocol.records.golden import golden_bytes

CONTROL_BATCHES = golden_bytes("control_batches.txt")

VOTERS = VotersRecord(
    voters=[
        VotersVoter(
            voter_id=1,
            voter_directory_id=bytes.fromhex("35a4a4d8825f42788fe202bbfe5e16af"),
            endpoints=[Endpoint(name="CONTROLLER", host="127.0.0.1", port=19093)],
            kraft_version_feature=KRaftVersionFeature(min_supported_version=0, max_supported_version=1),
        )
    ]
)
KRAFT_VERSION = KRaftVersionRecord(kraft_version=1)
SELF = LeaderChangeMessageVoter(voter_id=1)
KRAFT_BATCHES: dict[str, list[Message]] = {
    "snapshot header": [
        SnapshotHeaderRecord(last_contained_log_timestamp=1_795_975_080_407),
        KRAFT_VERSION,
        VOTERS,
    ],
    "snapshot footer": [SnapshotFooterRecord()],
    "leader change": [
        LeaderChangeMessage(leader_id=1, voters=[SELF], granting_voters=[SELF]),
        KRAFT_VERSION,
        VOTERS,
    ],
}


@pytest.mark.parametrize("name", KRAFT_BATCHES)
def test_kraft_s_control_batches(name: str) -> None:
    batch = read_batch(CONTROL_BATCHES[name])
    batch.check_crc()
    assert batch.is_control
    assert [read_control_message(record) for record in batch.records()] == KRAFT_BATCHES[name]
    built = build_control_batch(
        KRAFT_BATCHES[name],
        timestamp=batch.base_timestamp,
        base_offset=batch.base_offset,
        partition_leader_epoch=batch.partition_leader_epoch,
    )
    assert bytes(built) == CONTROL_BATCHES[name]


def test_their_records_are_no_markers() -> None:
    for name in KRAFT_BATCHES:
        for record in read_batch(CONTROL_BATCHES[name]).records():
            assert read_end_transaction_marker(record) is None


def test_the_commit_marker_that_was_derived_from_the_format() -> None:
    built = build_end_transaction_marker(
        EndTransactionMarker(is_commit=True, coordinator_epoch=5),
        producer_id=7,
        producer_epoch=3,
        timestamp=1_700_000_000_000,
        base_offset=10,
        partition_leader_epoch=2,
    )
    assert bytes(built) == CONTROL_BATCHES["commit marker"]


def test_markers_that_kafka_wrote() -> None:
    batches = list(read_batches(golden_bytes("client_batches.txt")["librdkafka transactions"]))
    assert [batch.is_control for batch in batches] == [False, True, False, True]
    assert all(batch.is_transactional for batch in batches)
    for batch, is_commit in ((batches[1], True), (batches[3], False)):
        (record,) = batch.records()
        marker = read_end_transaction_marker(record)
        assert marker == EndTransactionMarker(is_commit, coordinator_epoch=0)
        assert read_control_message(record) is None
        built = build_end_transaction_marker(
            marker,
            producer_id=batch.producer_id,
            producer_epoch=batch.producer_epoch,
            timestamp=batch.base_timestamp,
            base_offset=batch.base_offset,
            partition_leader_epoch=batch.partition_leader_epoch,
        )
        assert built == batch.data


def control_record(key: bytes | None, value: bytes | None) -> Record:
    return Record(0, 0, key, value)


def test_types_of_a_newer_kafka_are_left_alone() -> None:
    record = control_record(b"\0\0\0\7", b"whatever")
    assert read_control_type(record) is None
    assert read_control_message(record) is None
    assert read_end_transaction_marker(record) is None


def test_newer_versions_of_keys_and_markers_are_read_like_version_0() -> None:
    record = control_record(b"\0\5\0\1 and more", b"\0\4\0\0\0\x09 and more")
    assert read_control_type(record) is ControlType.COMMIT
    assert read_end_transaction_marker(record) == EndTransactionMarker(True, 9)


@pytest.mark.parametrize("key", [None, b"", b"\0\0\0", b"\xff\xff\0\1"])
def test_keys_that_cannot_be(key: bytes | None) -> None:
    with pytest.raises(CorruptRecords):
        read_control_type(control_record(key, b""))


@pytest.mark.parametrize("value", [None, b"", b"\0\0\0\0\0", b"\xff\xff\0\0\0\1"])
def test_markers_that_cannot_be(value: bytes | None) -> None:
    with pytest.raises(CorruptRecords):
        read_end_transaction_marker(control_record(control_key(ControlType.ABORT), value))


@pytest.mark.parametrize("value", [None, b"", b"\0\0\0\0"])
def test_messages_that_cannot_be(value: bytes | None) -> None:
    with pytest.raises(DecodeError):
        read_control_message(control_record(control_key(ControlType.LEADER_CHANGE), value))
