"""Bytes and messages as what JSON has."""

import base64
from functools import cache
from math import isfinite
from typing import Any

from protocol.errors import DecodeError
from protocol.primitives import BYTES, UUID, Array, WireType
from protocol.schema import Field, Message, Struct
from protocol.stored.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from protocol.stored.group_records import GroupMetadataValue
from protocol.stored.transaction_records import TransactionLogValue
from protocol.uuids import uuid_to_text

Item = dict[str, Any]
"""One thing out of a file, under the names that Kafka's tools use."""


def of_bytes(data: bytes | memoryview | None) -> str | dict[str, str] | None:
    """Text as it is, anything else in base64, and marked as such."""
    if data is None:
        return None
    try:
        return bytes(data).decode("utf-8")
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode("ascii")}


TRANSACTION_STATES = (
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "Dead",
    "PrepareEpochFence",
)


def of_message(message: Message, version: int) -> Item:
    """The fields that a message has in a version."""
    item = _of_struct(message, version)
    if isinstance(message, TransactionLogValue):
        status = message.transaction_status
        is_known = 0 <= status < len(TRANSACTION_STATES)
        item["transactionStatus"] = TRANSACTION_STATES[status] if is_known else str(status)
    elif isinstance(message, GroupMetadataValue) and message.protocol_type == "consumer":
        for shown, member in zip(item["members"], message.members, strict=True):
            shown["subscription"] = _of_consumer(ConsumerProtocolSubscription, member.subscription)
            shown["assignment"] = _of_consumer(ConsumerProtocolAssignment, member.assignment)
    return item


def _of_consumer(kind: type[Message], data: bytes) -> Item | str:
    """What a consumer of a classic group has written for others; anything else in base64."""
    version = int.from_bytes(data[:2], signed=True)
    try:
        if len(data) < 2 or version not in kind.versions:
            raise DecodeError(f"{kind.__name__} has no version {version}")
        return _of_struct(kind.decode_from(data, 2, version)[0], version)
    except DecodeError:
        return base64.b64encode(data).decode("ascii")


def _of_struct(struct: Struct, version: int) -> Item:
    return {
        _camel_case(field.name): _of_field(field.type, getattr(struct, field.name), version)
        for field in struct.declared_fields
        if version in field.versions and not _is_left_out(struct, field, version)
    }


def _is_left_out(struct: Struct, field: Field, version: int) -> bool:
    """Whether the field is one that is not written unless it has another value than the usual one."""
    usual = field.default if field.factory is None else field.factory()
    return version in field.tagged and getattr(struct, field.name) == usual


def _of_field(kind: WireType, value: Any, version: int) -> Any:
    if value is None:
        return None
    if isinstance(kind, Array):
        return [_of_field(kind.of, each, version) for each in value]
    if kind == UUID:
        return uuid_to_text(value)
    if kind == BYTES:
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, float) and not isfinite(value):
        return str(value).replace("inf", "Infinity").replace("nan", "NaN")  # JSON has no such numbers
    return _of_struct(value, version) if isinstance(value, Struct) else value


@cache
def _camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
