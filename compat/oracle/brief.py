"""Answers as values of JSON that can be read, kept and compared.

A field is left out where it holds its default; so is one that the version lacks.  Error codes are called by
name.  Nothing random remains: see ``names`` and ``fields``.
"""

import json
import re
from collections.abc import Callable
from typing import Any, Final

from compat.oracle.fields import (
    ADDRESSES,
    DRAWN,
    LEFT_OUT,
    RECALLED,
    SHARED,
    TEXTS,
    TIMES,
    UNORDERED,
    UNORDERED_TEXTS,
    WITHOUT_INTERNAL_TOPICS,
)
from compat.oracle.names import Names, Unnamed
from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.primitives import BYTES, RECORDS
from protocol.records.batch import RecordBatch, TimestampType, read_batches
from protocol.records.compression import Compression
from protocol.records.record import Record
from protocol.schema import Field, Message, Struct

Json = Any
"""What ``json`` reads and writes."""

NOW: Final = "<now>"

A_WHILE: Final = "<a while>"

THROTTLE_TIME: Final = "throttle_time_ms"
"""How long a client has to wait depends on when it came, and how much later its last request."""

SOME_TEXT: Final = "<text>"

INTERNAL: Final = "__"
"""How the names of Kafka's own topics begin."""

NAMES_IN_TEXT: Final = re.compile(r"(?<=: )[\w.-]+(?:, [\w.-]+)+(?=;|$)")
"""A list of names that a text or a part of it ends in."""

CLOCK_TOLERANCE_MS: Final = 60_000


def _api_keys(rows: list[Any]) -> dict[str, str]:
    return {_api(row.api_key): f"{row.min_version}-{row.max_version}" for row in rows}


def _supported(rows: list[Any]) -> dict[str, str]:
    return {row.name: f"{row.min_version}-{row.max_version}" for row in sorted(rows, key=_name)}


def _finalized(rows: list[Any]) -> dict[str, str]:
    return {row.name: f"{row.min_version_level}-{row.max_version_level}" for row in sorted(rows, key=_name)}


def _name(row: Any) -> str:
    return str(row.name)


TABLES: Final[dict[str, Callable[[list[Any]], dict[str, str]]]] = {
    "ApiVersions.api_keys": _api_keys,
    "ApiVersions.supported_features": _supported,
    "ApiVersions.finalized_features": _finalized,
}
"""Lists of ranges, told by name."""


def brief_answer(answer: Message, names: Names) -> Json:
    """What ``answer`` says that is not a default."""
    path = type(answer).__name__.removesuffix("Response")
    return _named(_struct(answer, path, names), names, give=True)


def _struct(struct: Struct, path: str, names: Names) -> dict[str, Json]:
    """``struct`` with its random values still in it: 16 bytes, texts and ``Unnamed``."""
    said = {}
    for field in struct.declared_fields:
        inner = f"{path}.{field.name}"
        value = getattr(struct, field.name)
        if inner in SHARED and value is not None:
            # Whether others have made something must not be seen either.
            value = [row for row in value if not names.is_of_another(getattr(row, SHARED[inner]) or "")]
        if inner not in LEFT_OUT and value != (field.factory() if field.factory else field.default):
            said[field.name] = _value(field, value, inner, names)
    return said


def _value(field: Field, value: Any, path: str, names: Names) -> Json:
    if field.name.endswith("error_code"):
        return _error(value)
    if field.type is RECORDS:
        return brief_records(value, names)
    if field.type is BYTES and value is not None:
        return _text(value)
    if path in TEXTS and value:
        return SOME_TEXT
    if path in UNORDERED_TEXTS:
        return _with_names_in_order(value)
    if path in TABLES:
        return TABLES[path](value)
    if isinstance(value, list):
        return _list(value, path, names)
    if isinstance(value, Struct):
        return _struct(value, path, names)
    if path in DRAWN and value > 0:
        return Unnamed(DRAWN[path], value)
    if path in RECALLED:
        return names.recall(RECALLED[path], value)
    if field.name == THROTTLE_TIME:
        return A_WHILE
    if path in TIMES:
        return _time(value, names.origin.began_ms)
    return names.address(ADDRESSES[path], value) if path in ADDRESSES else value


def _with_names_in_order(text: str) -> str:
    return NAMES_IN_TEXT.sub(lambda found: ", ".join(sorted(found[0].split(", "))), text)


def _list(values: list[Any], path: str, names: Names) -> list[Json]:
    if path in WITHOUT_INTERNAL_TOPICS:
        values = [row for row in values if not row.name.startswith(INTERNAL)]
    rows = [_struct(row, path, names) if isinstance(row, Struct) else row for row in values]
    if path in UNORDERED:
        rows.sort(key=lambda row: json.dumps(_named(row, names, give=False), sort_keys=True))
    return rows


def _named(value: Json, names: Names, *, give: bool) -> Json:
    match value:
        case Unnamed():
            return names.number(value, give=give)
        case bytes():
            return names.id(value, give=give)
        case str():
            return names.text(value, give=give)
        case list():
            return [_named(each, names, give=give) for each in value]
        case dict():
            return {key: _named(each, names, give=give) for key, each in value.items()}
    return value


def _api(key: int) -> str:
    try:
        return ApiKey(key).name.lower()
    except ValueError:
        return f"api {key}"


def _error(code: int) -> str:
    return ErrorCode(code).name if code in ErrorCode.__members__.values() else f"error {code}"


def _text(value: bytes | None) -> str:
    """Bytes as Python writes them: letters as themselves, the rest as ``\\x00``."""
    return "null" if value is None else repr(bytes(value))[2:-1]


def _time(value: int, began_ms: int) -> int | str:
    return NOW if value > began_ms - CLOCK_TOLERANCE_MS else value


def brief_records(data: Any, names: Names) -> Json:
    """A line for each batch, with its records, and one for what is left of a batch that was cut off."""
    if data is None:
        return None
    lines, end = [], 0
    for batch in read_batches(data):
        batch.check_crc()
        lines.append(_batch(batch, names))
        end = batch.position + batch.size_bytes
    if end < len(data):
        lines.append(f"{len(data) - end} bytes of a batch")
    return lines


def _batch(batch: RecordBatch, names: Names) -> str:
    """Sizes and checksums are told where the broker has no choice of them, nor of anything in the batch."""
    began_ms = names.origin.began_ms
    producer = names.recall("producer", batch.producer_id)
    is_repeatable = (
        not isinstance(producer, str) and not batch.is_control and _time(batch.max_timestamp, began_ms) != NOW
    )
    words = [f"{batch.base_offset}-{batch.last_offset}", f"epoch {batch.partition_leader_epoch}"]
    if batch.compression != Compression.NONE:
        words.append(batch.compression.name.lower())
    elif batch.timestamp_type is TimestampType.CREATE_TIME and is_repeatable:
        words.append(f"{batch.size_bytes} bytes, crc {batch.crc:08x}")
    if batch.timestamp_type is TimestampType.LOG_APPEND_TIME:
        words.append(f"appended {_time(batch.max_timestamp, began_ms)}")
    else:
        words.append(f"until {_time(batch.max_timestamp, began_ms)}")
    if batch.producer_id >= 0:
        words.append(f"producer {producer}/{batch.producer_epoch}/{batch.base_sequence}")
    if batch.is_transactional:
        words.append("transactional")
    if batch.is_control:
        words.append("control")
    return f"{', '.join(words)}: {' '.join(_record(record, began_ms) for record in batch.records())}"


def _record(record: Record, began_ms: int) -> str:
    """Offset, time, key and value, and headers."""
    headers = "".join(f" {_text(name)}:{_text(value)}" for name, value in record.headers)
    place = f"{record.offset} at {_time(record.timestamp, began_ms)}"
    return f"[{place} {_text(record.key)}={_text(record.value)}{headers}]"
