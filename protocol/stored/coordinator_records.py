"""How keys and values of the coordinators' internal topics are framed.

A key is an int16 record type and a message that is never flexible; a value an int16 version and a
message.  A null value says that the record's subject is gone.
"""

import struct
from typing import TypeVar

from protocol.errors import DecodeError
from protocol.primitives import Buffer
from protocol.schema import Message

KeyType = TypeVar("KeyType", bound=Message)
ValueType = TypeVar("ValueType", bound=Message)

_INT16 = struct.Struct(">h")


def encode_key(key: Message) -> bytes:
    """The bytes of a record's key."""
    return bytes(key.encode_parts(0, _INT16.pack(key.api_key))[0])


def encode_value(value: Message, version: int) -> bytes:
    """The bytes of a record's value in ``version``."""
    return bytes(value.encode_parts(version, _INT16.pack(version))[0])


def read_record_type(key: Buffer) -> int:
    """The record type that a key begins with."""
    if len(key) < _INT16.size:
        raise DecodeError(f"a key of {len(key)} bytes has no record type")
    (record_type,) = _INT16.unpack_from(key)
    return int(record_type)


def decode_key(key: Buffer, key_class: type[KeyType]) -> KeyType:
    """The message behind a key's record type."""
    return key_class.decode_from(key, _INT16.size, 0)[0]


def decode_value(value: Buffer, value_class: type[ValueType]) -> tuple[ValueType, int]:
    """The message of a value and its version; a version that Kafka 4.4 lacks is a ``DecodeError``."""
    if len(value) < _INT16.size:
        raise DecodeError(f"a value of {len(value)} bytes has no version")
    (version,) = _INT16.unpack_from(value)
    if version not in value_class.versions:
        raise DecodeError(f"{value_class.__name__} has no version {version}")
    return value_class.decode_from(value, _INT16.size, version)[0], version
