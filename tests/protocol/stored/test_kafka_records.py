"""Stored records as Apache Kafka 4.4.0 wrote them: we read them, and write the same bytes again.

``kafka_records.tsv`` was taken from the internal topics of a running node: one record of each type and
version that ordinary use leaves there, without the frame or the version before it.
"""

from pathlib import Path

import pytest

from protocol.schema import Message
from protocol.stored.group_records import ConsumerGroupMemberMetadataValue, OffsetCommitValue
from protocol.stored.metadata_records import PartitionRecord
from tests.protocol.every_message import STORED_MESSAGES

BY_NAME = {message.__name__: message for message in STORED_MESSAGES}


def kafka_records() -> list[tuple[str, int, bytes]]:
    table = Path(__file__).with_name("kafka_records.tsv").read_text()
    rows = [line.split("\t") for line in table.splitlines()[1:]]
    return [(name, int(version), bytes.fromhex(data)) for name, version, data in rows]


@pytest.mark.parametrize(
    ("name", "version", "data"), [pytest.param(*row, id=f"{row[0]} v{row[1]}") for row in kafka_records()]
)
def test_a_record_of_kafka_s_round_trips(name: str, version: int, data: bytes) -> None:
    record, end = BY_NAME[name].decode_from(data, 0, version)
    assert end == len(data)
    assert record.encode(version) == data


def record_of(kind: type[Message]) -> Message:
    (found,) = [(version, data) for name, version, data in kafka_records() if name == kind.__name__][-1:]
    version, data = found
    return kind.decode(data, version)


def test_a_member_of_the_new_protocol_has_no_classic_metadata() -> None:
    """Kafka's default for the field is not null, so a null is written: as the one byte 0, in its tag."""
    assert record_of(ConsumerGroupMemberMetadataValue) == ConsumerGroupMemberMetadataValue(
        client_id="console-consumer",
        client_host="/127.0.0.1",
        subscribed_topic_names=["group-topi"],
        subscribed_topic_regex="",
        rebalance_timeout_ms=300_000,
        rack_id=None,
        instance_id=None,
        server_assignor=None,
        classic_member_metadata=None,
    )


def test_an_offset_carries_the_id_of_its_topic() -> None:
    record = record_of(OffsetCommitValue)
    assert isinstance(record, OffsetCommitValue)
    assert (record.offset, record.leader_epoch, record.metadata) == (-5, -1, "m")
    assert record.topic_id.hex() == "34c59017656a46eaae32619b00b14f08"


def test_a_partition_names_replicas_and_directories() -> None:
    record = record_of(PartitionRecord)
    assert isinstance(record, PartitionRecord)
    assert (record.replicas, record.isr, record.leader, record.leader_epoch) == ([1], [1], 1, 0)
    assert [directory.hex() for directory in record.directories] == ["35a4a4d8825f42788fe202bbfe5e16af"]
