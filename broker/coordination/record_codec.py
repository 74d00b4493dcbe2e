"""Records of coordinators' topics as bytes: a type in front of the key, a version in front of the value."""

from collections.abc import Mapping
from struct import Struct

from broker.coordination.decision import StoredRecord
from protocol.errors import DecodeError
from protocol.primitives import Buffer
from protocol.schema import Message

_INT16 = Struct(">h")
KEY_VERSION = 0
"""Keys have one version only: two spellings of a key would be two keys for compaction."""


class RecordCodec:
    """Reads and writes one topic's records; the classes of keys and values by record type."""

    def __init__(self, keys: Mapping[int, type[Message]], values: Mapping[int, type[Message]]) -> None:
        self._keys = keys
        self._values = values

    def encode(self, record: StoredRecord) -> tuple[bytes, bytes | None]:
        """Key and value as they stand in the log."""
        key = record.key.encode_parts(KEY_VERSION, _INT16.pack(record.key.api_key))[0]
        if record.value is None:
            return bytes(key), None
        return bytes(key), bytes(record.value.encode_parts(record.version, _INT16.pack(record.version))[0])

    def record_type(self, key: Buffer | None) -> int:
        """The type of the record with this key."""
        if key is None or len(key) < _INT16.size:
            raise DecodeError(f"a coordinator's record has the key {key!r}")
        (record_type,) = _INT16.unpack_from(key)
        return int(record_type)

    def decode(self, key: Buffer | None, value: Buffer | None) -> StoredRecord | None:
        """The record, or None if its type is unknown: a newer Kafka may have added one.

        ``DecodeError`` if it is damaged, or if a known type has a version that this Kafka lacks:
        skipping that could lose what was promised to somebody.
        """
        record_type = self.record_type(key)
        key_class = self._keys.get(record_type)
        if key_class is None:
            return None
        assert key is not None
        decoded_key = key_class.decode_from(key, _INT16.size, KEY_VERSION)[0]
        if value is None:
            return StoredRecord(decoded_key, None)
        if len(value) < _INT16.size:
            raise DecodeError(f"the value of {decoded_key!r} has no version")
        (version,) = _INT16.unpack_from(value)
        decoded_value = self._values[record_type].decode_from(value, _INT16.size, version)[0]
        return StoredRecord(decoded_key, decoded_value, version)
