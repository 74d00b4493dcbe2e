import pytest

from broker.coordination.decision import StoredRecord
from broker.coordination.record_codec import RecordCodec
from protocol.errors import DecodeError
from protocol.stored.group_records import KEY_TYPES, VALUE_TYPES, GroupMetadataKey, GroupMetadataValue

CODEC = RecordCodec(KEY_TYPES, VALUE_TYPES)


def test_a_record_is_read_as_it_was_written() -> None:
    value = GroupMetadataValue(protocol_type="consumer", generation=7, protocol=None, leader=None)
    record = StoredRecord(GroupMetadataKey(group="g"), value, 3)
    key_bytes, value_bytes = CODEC.encode(record)
    assert key_bytes == bytes.fromhex("0002 0001 67")
    assert value_bytes is not None
    assert value_bytes[:2] == bytes.fromhex("0003")
    assert CODEC.decode(key_bytes, value_bytes) == record


def test_a_tombstone_has_no_value() -> None:
    record = StoredRecord(GroupMetadataKey(group="g"), None)
    key_bytes, value_bytes = CODEC.encode(record)
    assert value_bytes is None
    assert CODEC.decode(key_bytes, None) == record


def test_every_type_of_key_stands_in_front_of_the_key() -> None:
    for record_type, key_class in KEY_TYPES.items():
        key_bytes, _ = CODEC.encode(StoredRecord(key_class(), None))
        assert CODEC.record_type(key_bytes) == record_type


def test_an_unknown_type_is_none_of_our_business() -> None:
    assert CODEC.decode(bytes.fromhex("03e7 1234"), b"whatever") is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b"\0\0"),
        (b"", b"\0\0"),
        (b"\0", b"\0\0"),
        (bytes.fromhex("0002 0001 67"), b""),
        (bytes.fromhex("0002 0001 67"), b"\0"),
        (bytes.fromhex("0002 0001 67"), bytes.fromhex("0063")),  # version 99
        (bytes.fromhex("0002 0001 67"), bytes.fromhex("ffff")),
        (bytes.fromhex("0002 0005 67"), None),
    ],
)
def test_damage_and_unknown_versions_are_errors(key: bytes | None, value: bytes | None) -> None:
    with pytest.raises(DecodeError):
        CODEC.decode(key, value)
