"""What records of internal topics say: for whoever shows or checks a log, whatever its topic is for."""

from collections.abc import Mapping
from typing import NamedTuple

from protocol.errors import DecodeError
from protocol.records.control import read_control_message, read_control_type, read_end_transaction_marker
from protocol.records.errors import CorruptRecords
from protocol.records.record import Record
from protocol.schema import Message
from protocol.stored import group_records, metadata_records, share_records, transaction_records
from protocol.stored.control_records import EndTxnMarker
from protocol.stored.coordinator_records import decode_key, decode_value, read_record_type


class Decoded(NamedTuple):
    """Key and value of one record as messages."""

    key: Message | None
    value: Message | None
    value_version: int | None


Classes = Mapping[int, type[Message]]

_COORDINATORS: Mapping[str, tuple[Classes, Classes]] = {
    "__consumer_offsets": (group_records.KEY_TYPES, group_records.VALUE_TYPES),
    "__transaction_state": (
        {0: transaction_records.TransactionLogKey},
        {0: transaction_records.TransactionLogValue},
    ),
    "__share_group_state": (share_records.KEY_TYPES, share_records.VALUE_TYPES),
}

METADATA_TOPIC = "__cluster_metadata"

TOPICS = (*_COORDINATORS, METADATA_TOPIC)
"""The topics whose records can be decoded."""


def decode_record(topic: str, record: Record) -> Decoded | None:
    """A data record of one of ``TOPICS``; None if it is of a type that Kafka 4.4 does not know, and skips.

    Raises DecodeError.
    """
    if topic == METADATA_TOPIC:
        if record.value is None:
            raise DecodeError("a metadata record without a value")
        return Decoded(None, *metadata_records.decode_metadata_record(record.value))
    keys, values = _COORDINATORS[topic]
    if record.key is None:
        raise DecodeError("a coordinator's record without a key")
    record_type = read_record_type(record.key)
    if record_type not in keys:
        return None
    key = decode_key(record.key, keys[record_type])
    if record.value is None:
        return Decoded(key, None, None)
    return Decoded(key, *decode_value(record.value, values[record_type]))


def decode_control_record(record: Record) -> Decoded | None:
    """A record of a control batch; None if it is of a type that Kafka 4.4 does not know.

    Raises DecodeError.
    """
    if read_control_type(record) is None:
        return None
    marker = read_end_transaction_marker(record)
    if marker is not None:
        return Decoded(None, EndTxnMarker(coordinator_epoch=marker.coordinator_epoch), 0)
    message = read_control_message(record)
    if message is None:
        raise CorruptRecords("a control record without a value")
    return Decoded(None, message, 0)
