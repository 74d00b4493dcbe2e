"""The batches and records of a log, or of a snapshot of the metadata log."""

from collections.abc import Callable, Iterator

from protocol.errors import DecodeError
from protocol.records.batch import NO_SEQUENCE, RecordBatch, TimestampType
from protocol.records.compression import Compression
from protocol.records.control import read_control_type
from protocol.records.record import Record
from protocol.schema import Message
from protocol.stored.decoding import METADATA_TOPIC, decode_control_record, decode_record
from storage.dumping.values import Item, of_bytes, of_message
from storage.filesystem import File
from storage.verification.batch_reader import Unreadable, read_leniently

Moved = Callable[[int], None]
"""Told how many bytes were read."""

_SEQUENCES = 1 << 31
_TYPE_NAMES = {TimestampType.CREATE_TIME: "CreateTime", TimestampType.LOG_APPEND_TIME: "LogAppendTime"}


def dump_log(
    file: File, base_offset: int, *, shows_records: bool, topic: str | None, moved: Moved
) -> Iterator[Item]:
    """Every batch, with its records if they are wanted; what is damaged is an item of its own.

    ``topic`` is the internal topic whose records these are, and that they are decoded for.  Raises OSError.
    """
    size = file.size()
    done = 0
    for piece in read_leniently(file, size, base_offset):
        if isinstance(piece, Unreadable):
            if piece.header is not None:
                yield batch_item(piece.header, piece.position, is_valid=False)
            rest = f"; {piece.end - piece.position} bytes are passed over"
            yield damage_item(piece.reason + rest, piece.position)
            end = piece.end
        else:
            yield batch_item(piece.batch, piece.position)
            end = piece.position + piece.batch.size_bytes
            if shows_records and piece.is_whole:
                yield from _dump_records(piece.batch, piece.position, topic)
            elif shows_records:
                text = f"a batch of {piece.batch.size_bytes} bytes is more than can be looked into"
                yield damage_item(text, piece.position)
        moved(end - done)
        done = end


def batch_item(batch: RecordBatch, position: int, *, is_valid: bool = True) -> Item:
    """A batch's header."""
    try:
        compression = Compression(batch.codec_number).name.lower()
    except ValueError:
        compression = f"unknown ({batch.codec_number})"
    return {
        "kind": "batch",
        "position": position,
        "baseOffset": batch.base_offset,
        "lastOffset": batch.last_offset,
        "count": batch.record_count,
        "baseSequence": batch.base_sequence,
        "lastSequence": batch.last_sequence,
        "producerId": batch.producer_id,
        "producerEpoch": batch.producer_epoch,
        "partitionLeaderEpoch": batch.partition_leader_epoch,
        "isTransactional": batch.is_transactional,
        "isControl": batch.is_control,
        "deleteHorizonMs": batch.delete_horizon,
        "timestampType": _TYPE_NAMES[batch.timestamp_type],
        "baseTimestamp": batch.base_timestamp,
        "maxTimestamp": batch.max_timestamp,
        "size": batch.size_bytes,
        "magic": batch.magic,
        "compression": compression,
        "crc": batch.crc,
        "isValid": is_valid,
    }


def damage_item(text: str, position: int | None) -> Item:
    """What is wrong, and where."""
    return {"kind": "damage", "position": position, "text": text}


def _dump_records(batch: RecordBatch, position: int, topic: str | None) -> Iterator[Item]:
    try:
        for record in batch.records():
            item = _record_item(batch, record)
            try:
                item |= _decoded(batch, record, topic)
            except DecodeError as error:
                yield item
                yield damage_item(f"the record at offset {record.offset}: {error}", position)
            else:
                yield item
    except DecodeError as error:
        yield damage_item(f"the batch at offset {batch.base_offset}: {error}", position)


def _record_item(batch: RecordBatch, record: Record) -> Item:
    sequence = NO_SEQUENCE
    if batch.has_sequence:
        sequence = (batch.base_sequence + record.offset - batch.base_offset) % _SEQUENCES
    return {
        "kind": "record",
        "offset": record.offset,
        "timestamp": record.timestamp,
        "keySize": -1 if record.key is None else len(record.key),
        "valueSize": -1 if record.value is None else len(record.value),
        "sequence": sequence,
        "headers": [[of_bytes(key), of_bytes(value)] for key, value in record.headers],
        "key": of_bytes(record.key),
        "value": of_bytes(record.value),
    }


def _decoded(batch: RecordBatch, record: Record, topic: str | None) -> Item:
    """Key and value once more, by what they mean."""
    if batch.is_control:
        decoded = decode_control_record(record)
    elif topic is not None:
        decoded = decode_record(topic, record)
    else:
        return {}
    item: Item = {}
    if batch.is_control:
        kind = read_control_type(record)
        item["controlType"] = "UNKNOWN" if kind is None else kind.name
    if decoded is None:
        return item
    if decoded.key is not None:
        item["key"] = {
            "type": decoded.key.api_key,
            "name": _name(decoded.key),
            "data": of_message(decoded.key, 0),
        }
    if decoded.value is not None and decoded.value_version is not None:
        version = decoded.value_version
        item["value"] = {
            "name": _name(decoded.value),
            "version": version,
            "data": of_message(decoded.value, version),
        }
        if topic == METADATA_TOPIC and not batch.is_control:
            item["value"] = {"type": decoded.value.api_key, **item["value"]}
    return item


def _name(message: Message) -> str:
    return type(message).__name__
