"""Record data as no well-behaved producer sends it, with the topics that it is sent to.

``record_produce_answers`` asks Apache Kafka about each case; ``test_validation`` asks our own checks
and compares.  Nothing here depends on the time or on a compressor's choices.
"""

import struct
import zlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from crc32c import crc32c

from protocol.records.batch import TimestampType
from protocol.records.builder import append_record, assemble_batch
from protocol.records.compression import Compression, compress
from protocol.records.record import Header
from protocol.records.validation import ProducePolicy
from protocol.records.varint import append_varint

THEN = 1_700_000_000_000
"""The time of most records: long ago, which no default setting minds."""

NOW = THEN + 3_600_000


class Topic(NamedTuple):
    """A topic's settings as Kafka takes them, and as the checks do."""

    configs: dict[str, str]
    policy: ProducePolicy


TOPICS = {
    "plain": Topic({}, ProducePolicy("plain-0")),
    "compacted": Topic({"cleanup.policy": "compact"}, ProducePolicy("compacted-0", is_compacted=True)),
    "append-time": Topic(
        {"message.timestamp.type": "LogAppendTime"},
        ProducePolicy("append-time-0", timestamp_type=TimestampType.LOG_APPEND_TIME),
    ),
    "compacted-append-time": Topic(
        {"cleanup.policy": "compact", "message.timestamp.type": "LogAppendTime"},
        ProducePolicy(
            "compacted-append-time-0", is_compacted=True, timestamp_type=TimestampType.LOG_APPEND_TIME
        ),
    ),
    "zstd": Topic({"compression.type": "zstd"}, ProducePolicy("zstd-0", compression=Compression.ZSTD)),
    "zstd-append-time": Topic(
        {"compression.type": "zstd", "message.timestamp.type": "LogAppendTime"},
        ProducePolicy(
            "zstd-append-time-0",
            timestamp_type=TimestampType.LOG_APPEND_TIME,
            compression=Compression.ZSTD,
        ),
    ),
    "uncompressed": Topic(
        {"compression.type": "uncompressed"}, ProducePolicy("uncompressed-0", compression=Compression.NONE)
    ),
    "small": Topic({"max.message.bytes": "200"}, ProducePolicy("small-0", max_message_bytes=200)),
    "small-uncompressed": Topic(
        {"max.message.bytes": "150", "compression.type": "uncompressed"},
        ProducePolicy("small-uncompressed-0", max_message_bytes=150, compression=Compression.NONE),
    ),
}

FLIPPED_BIT = 0x40


class ProduceCase(NamedTuple):
    """What is sent to which topic."""

    name: str
    topic: str
    records: bytes | None


Simple = tuple[bytes | None, bytes | None]
FIFTY: Sequence[Simple] = [(b"k", b"value-%d" % index) for index in range(50)]
THREE: Sequence[Simple] = [(b"k", b"value-0"), (b"k", b"value-1"), (b"k", b"value-2")]


def section_of(
    records: Sequence[Simple],
    offset_deltas: Sequence[int] | None = None,
    timestamp_deltas: Sequence[int] | None = None,
    headers: Sequence[Header] = (),
) -> bytes:
    """An uncompressed records section."""
    section = bytearray()
    for index, (key, value) in enumerate(records):
        append_record(
            section,
            index if offset_deltas is None else offset_deltas[index],
            index if timestamp_deltas is None else timestamp_deltas[index],
            key,
            value,
            headers,
        )
    return bytes(section)


def batch_of(
    section: bytes,
    record_count: int,
    compression: Compression = Compression.NONE,
    attributes: int = 0,
    max_timestamp: int = THEN + 2,
    producer: tuple[int, int, int] = (-1, -1, -1),
) -> bytearray:
    """A batch whose header fits; ``attributes`` come on top of the codec."""
    return assemble_batch(
        section,
        base_offset=0,
        partition_leader_epoch=-1,
        attributes=attributes | compression,
        level=None,
        last_offset_delta=record_count - 1,
        base_timestamp=THEN,
        max_timestamp=max_timestamp,
        producer_id=producer[0],
        producer_epoch=producer[1],
        base_sequence=producer[2],
        record_count=record_count,
    )


def sealed(batch: bytes | bytearray) -> bytes:
    """``batch`` with the length and the CRC that its bytes have."""
    changed = bytearray(batch)
    struct.pack_into(">i", changed, 8, len(changed) - 12)
    struct.pack_into(">I", changed, 17, crc32c(bytes(changed[21:])))
    return bytes(changed)


def patched(batch: bytes | bytearray, position: int, layout: str, value: int) -> bytes:
    """``batch`` with one header field changed, and nothing else put right."""
    changed = bytearray(batch)
    struct.pack_into(">" + layout, changed, position, value)
    return bytes(changed)


def with_payload(payload: bytes, record_count: int, compression: Compression, attributes: int = 0) -> bytes:
    """A batch that claims ``payload`` to be made by ``compression``."""
    batch = batch_of(b"", record_count) + payload
    return sealed(patched(batch, 21, "H", compression | attributes))


BASE_OFFSET, LENGTH, LEADER_EPOCH, MAGIC, CRC, ATTRIBUTES = 0, 8, 12, 16, 17, 21
LAST_OFFSET_DELTA, BASE_TIMESTAMP, MAX_TIMESTAMP, PRODUCER_ID = 23, 27, 35, 43
PRODUCER_EPOCH, BASE_SEQUENCE, RECORD_COUNT = 51, 53, 57


def _framing() -> Iterator[tuple[str, str, bytes | bytearray]]:
    good = batch_of(section_of(THREE), 3)
    yield "good", "plain", good
    yield "empty", "plain", b""
    for size in (10, 17, 20, 60, 61, 70, len(good) - 1):
        yield f"first {size} bytes", "plain", good[:size]
    yield "two batches", "plain", good + good
    for size in (10, 17, 30, 61, len(good) - 1):
        yield f"and {size} bytes of a second batch", "plain", good + good[:size]
    yield "and a second batch of size -1", "plain", good + b"\xff" * 20
    yield "and a second batch of magic 9", "plain", good + patched(good, MAGIC, "b", 9)
    yield "and an old message", "plain", good + _old_message(1)
    yield "old message of format 0", "plain", _old_message(0)
    yield "old message of format 1", "plain", _old_message(1)
    for magic in (0, 1, 3, 127, -1):
        yield f"magic {magic}", "plain", patched(good, MAGIC, "b", magic)
    for length in (-(2**31), -1, 0, 13, 14, 40, 48, 49, len(good) - 13, 2**31 - 13, 2**31 - 12, 2**31 - 1):
        yield f"length {length}", "plain", patched(good, LENGTH, "i", length)
    yield "length without a whole header", "plain", sealed(good[:60])
    yield "only a header", "plain", sealed(good[:61])
    yield "wrong CRC", "plain", patched(good, CRC, "I", 1)
    yield "flipped value", "plain", patched(good, len(good) - 3, "b", 1)


def _old_message(magic: int) -> bytes:
    body = bytes((magic, 0)) + bytes(8 if magic else 0) + struct.pack(">i1si1s", 1, b"k", 1, b"v")
    body = struct.pack(">I", zlib.crc32(body)) + body
    return struct.pack(">qi", 0, len(body)) + body


def _headers() -> Iterator[tuple[str, str, bytes | bytearray]]:
    good = batch_of(section_of(THREE), 3)
    for field, position, layout, values in (
        ("base offset", BASE_OFFSET, "q", (5, -1)),
        ("leader epoch", LEADER_EPOCH, "i", (99,)),
        ("record count", RECORD_COUNT, "i", (-1, 0, 2, 4, 1_000_000)),
        ("last offset delta", LAST_OFFSET_DELTA, "i", (-1, 0, 1, 3, 1_000_000)),
        ("max timestamp", MAX_TIMESTAMP, "q", (5,)),
        ("attributes", ATTRIBUTES, "H", (0x80, 0x40, 0x20, 0x08, 0x48, 0x100, 0x8000, 5, 6, 7)),
    ):
        for value in values:
            yield f"{field} {value}", "plain", sealed(patched(good, position, layout, value))
    for count in (-1, 0, 2, 4, 1_000_000):
        changed = patched(patched(good, RECORD_COUNT, "i", count), LAST_OFFSET_DELTA, "i", count - 1)
        yield f"record count {count} and the delta that fits", "plain", sealed(changed)
    for producer in (
        (0, 0, -1),
        (7001, 0, -1),
        (7002, 0, -2),
        (7003, 0, 0),
        (-1, 0, 5),
        (-2, 3, 5),
        (-2, 3, -3),
    ):
        yield f"producer {producer}", "plain", batch_of(section_of(THREE), 3, producer=producer)
    # Which error wins.
    yield "base offset 5 and wrong CRC", "plain", patched(patched(good, BASE_OFFSET, "q", 5), CRC, "I", 1)
    large = batch_of(section_of([(b"k", b"v" * 200)]), 1)
    yield "too large", "small", large
    yield "too large and wrong CRC", "small", patched(large, CRC, "I", 1)
    yield "too large and base offset 5", "small", patched(large, BASE_OFFSET, "q", 5)
    yield "codec 5 and wrong CRC", "plain", patched(patched(good, ATTRIBUTES, "H", 5), CRC, "I", 1)
    yield "codec 5 and record count 9", "plain", _both(good, (ATTRIBUTES, "H", 5), (RECORD_COUNT, "i", 9))
    yield "control and record count 9", "plain", _both(good, (ATTRIBUTES, "H", 32), (RECORD_COUNT, "i", 9))
    yield "just small enough", "small", batch_of(section_of([(b"k", b"v" * 129)]), 1)
    yield "one byte too large", "small", batch_of(section_of([(b"k", b"v" * 130)]), 1)
    packed = batch_of(section_of([(b"k", b"v" * 300)]), 1, Compression.GZIP)
    yield "too large when stored", "small-uncompressed", packed
    yield "large, but small enough as it is", "small", packed


def _both(batch: bytes | bytearray, *fields: tuple[int, str, int]) -> bytes:
    for position, layout, value in fields:
        batch = patched(batch, position, layout, value)
    return sealed(batch)


def _varint(value: int) -> bytes:
    data = bytearray()
    append_varint(data, value)
    return bytes(data)


def _record(
    size: bytes | None = None,
    attributes: int = 0,
    timestamp: bytes = b"\0",
    offset: bytes = b"\0",
    key: bytes = b"\x02k",
    value: bytes = b"\x04vv",
    headers: bytes = b"\0",
    extra: bytes = b"",
) -> bytes:
    body = bytes((attributes,)) + timestamp + offset + key + value + headers + extra
    return (_varint(len(body)) if size is None else size) + body


def _malformed_records() -> Iterator[tuple[str, bytes]]:
    yield "as it should be", _record()
    yield "attributes 255", _record(attributes=255)
    for name, size in {
        "1 too large": _varint(10),
        "1 too small": _varint(8),
        "2 too small": _varint(7),
        "-5": _varint(-5),
        "0": _varint(0),
        "2**31-1": _varint(2**31 - 1),
        "in 2 bytes": b"\x92\x00",
        "in 5 bytes": b"\x92\x80\x80\x80\x00",
        "in 5 bytes with bits above 32": b"\x92\x80\x80\x80\x70",
        "in 6 bytes": b"\x92\x80\x80\x80\x80\x00",
    }.items():
        yield f"size {name}", _record(size=size)
    yield "nothing but size 0", b"\0"
    yield "nothing but size -1", b"\1"
    for name, timestamp in {
        "in 10 bytes": b"\x80" * 9 + b"\0",
        "in 10 bytes with bits above 64": b"\x80" * 9 + b"\x7e",
        "in 11 bytes": b"\x80" * 10 + b"\0",
    }.items():
        yield f"timestamp {name}", _record(timestamp=timestamp)
    yield "offset in 5 bytes", _record(offset=b"\x80\x80\x80\x80\0")
    yield "offset in 6 bytes", _record(offset=b"\x80\x80\x80\x80\x80\0")
    for name, key in {
        "null": _varint(-1),
        "of size -2": _varint(-2),
        "of size -2**31": _varint(-(2**31)),
        "of size 2**31-1": _varint(2**31 - 1) + b"k",
        "past the end": _varint(100) + b"k",
        "that takes the value's size": _varint(3) + b"k",
        "with a size in 6 bytes": b"\x82\x80\x80\x80\x80\0k",
    }.items():
        yield f"key {name}", _record(key=key)
    yield "value null", _record(value=_varint(-1))
    yield "value of size -7", _record(value=_varint(-7))
    yield "value past the end", _record(value=_varint(100) + b"vv")
    for name, headers in {
        "-1": _varint(-1),
        "2**31-1": _varint(2**31 - 1),
        "1, but none there": _varint(1),
        "0 in 2 bytes": b"\x80\0",
        "1": _varint(1) + b"\x02h\x02x",
        "1, null value": _varint(1) + b"\x02h\x01",
        "1, value of size -2": _varint(1) + b"\x02h" + _varint(-2),
        "1, null key": _varint(1) + b"\x01\x02x",
        "1, empty": _varint(1) + b"\0\0",
        "1, key is no UTF-8": _varint(1) + b"\x02\xff\0",
        "1, key past the end": _varint(1) + _varint(50) + b"h\0",
        "1, value past the end": _varint(1) + b"\x02h" + _varint(50) + b"x",
        "3": _varint(3) + b"\0\0" * 3,
        "3, but one there": _varint(3) + b"\0\0",
    }.items():
        yield f"headers {name}", _record(headers=headers)
    yield "extra byte outside the size", _record(size=_varint(9), extra=b"x")
    yield "extra byte inside the size", _record(extra=b"x")
    for missing in range(1, 10):
        yield f"{missing} bytes missing", _record()[:-missing]


def _records() -> Iterator[tuple[str, str, bytes | bytearray]]:
    good = _record(offset=b"\x02")
    for name, record in _malformed_records():
        for kind, section, count in (
            ("record", record, 1),
            ("first record", record + good, 2),
            ("second record", _record() + record, 2),
        ):
            packed = compress(Compression.GZIP, section)
            yield f"{kind}: {name}", "plain", with_payload(section, count, Compression.NONE)
            yield f"{kind}: {name} (gzip)", "plain", with_payload(packed, count, Compression.GZIP)
            yield f"{kind}: {name} (gzip to zstd)", "zstd", with_payload(packed, count, Compression.GZIP)


def _offsets() -> Iterator[tuple[str, str, bytes | bytearray]]:
    for deltas in ((0, 2, 1), (2, 1, 0), (0, 0, 0), (5, 5, 5), (0, 1, 7), (0, 1, -1), (1, 2, 3)):
        section = section_of(THREE, deltas)
        for compression in (Compression.NONE, Compression.GZIP, Compression.ZSTD):
            for topic in ("plain", "zstd"):
                batch = batch_of(section, 3, compression)
                yield f"offset deltas {deltas} ({compression.name} to {topic})", topic, batch


def _keys() -> Iterator[tuple[str, str, bytes | bytearray]]:
    some_null: list[Simple] = [(None, b"v"), (b"k", b"v"), (None, None), (b"", b"v")]
    cases: list[tuple[str, list[Simple]]] = [
        ("some keys null", some_null),
        ("five keys null", [(None, b"v")] * 5),
        ("last keys null", [(b"k", b"v")] * 2 + [(None, b"v")] * 2),
        ("empty key", [(b"", b"v")]),
        ("null value", [(b"k", None)]),
    ]
    for name, records in cases:
        for compression in (Compression.NONE, Compression.GZIP):
            for topic in ("compacted", "compacted-append-time"):
                batch = batch_of(section_of(records), len(records), compression)
                yield f"{name} ({compression.name} to {topic})", topic, batch
    wrong = batch_of(section_of(some_null), 4, attributes=0x08)
    yield "some keys null and LogAppendTime", "compacted-append-time", wrong
    yield (
        "some keys null and a malformed record",
        "compacted",
        _both(batch_of(section_of(some_null) + b"\0", 5), (RECORD_COUNT, "i", 5)),
    )


def _timestamps() -> Iterator[tuple[str, str, bytes | bytearray]]:
    nulls: list[Simple] = [(None, None), (b"", b""), (b"key", b"value")]
    section = section_of(nulls)
    for compression in (Compression.NONE, Compression.GZIP):
        for topic in ("plain", "append-time", "zstd", "zstd-append-time"):
            for max_timestamp in (THEN + 9, -1):
                yield (
                    f"LogAppendTime, {max_timestamp} ({compression.name} to {topic})",
                    topic,
                    batch_of(section, 3, compression, 0x08, max_timestamp),
                )
    for timestamp in (-1, 0, -5):
        batch = batch_of(section_of(THREE, None, (0, timestamp - THEN, 1)), 3)
        for topic in ("plain", "append-time", "zstd", "zstd-append-time"):
            yield f"timestamp {timestamp} to {topic}", topic, batch


def _payloads() -> Iterator[tuple[str, str, bytes | bytearray]]:
    section = section_of(FIFTY)
    half = len(section) // 2
    for compression in (Compression.GZIP, Compression.SNAPPY, Compression.LZ4, Compression.ZSTD):
        packed = compress(compression, section)
        for name, payload, count in (
            ("good", packed, 50),
            ("empty", b"", 50),
            ("garbage", b"\x55" * 40, 50),
            ("1 byte missing", packed[:-1], 50),
            ("4 bytes missing", packed[:-4], 50),
            ("5 bytes missing", packed[:-5], 50),
            ("8 bytes missing", packed[:-8], 50),
            ("20 bytes missing", packed[:-20], 50),
            ("half missing", packed[: len(packed) // 2], 50),
            ("1 zero byte behind", packed + b"\0", 50),
            ("2 bytes behind", packed + b"\x1f\0", 50),
            ("10 bytes behind", packed + b"\x99" * 10, 50),
            ("twice", packed + packed, 50),
            (
                "in two parts",
                compress(compression, section[:half]) + compress(compression, section[half:]),
                50,
            ),
            ("too few records", packed, 51),
            ("too many records", packed, 49),
            ("a million records", packed, 1_000_000),
        ):
            yield f"{compression.name} payload: {name}", "plain", with_payload(payload, count, compression)
    yield from _gzip_payloads(section)
    yield from _snappy_payloads(section)
    yield from _lz4_payloads(section)
    yield from _zstd_payloads(section)


def _gzip_payloads(section: bytes) -> Iterator[tuple[str, str, bytes | bytearray]]:
    packer = zlib.compressobj(wbits=-15)
    deflated = packer.compress(section) + packer.flush()
    trailer = struct.pack("<II", zlib.crc32(section), len(section))

    def header(flags: int) -> bytes:
        return b"\x1f\x8b\x08" + bytes((flags,)) + bytes(6)

    good = header(0) + deflated + trailer
    header_crc = struct.pack("<H", zlib.crc32(header(2)) & 0xFFFF)
    for name, payload in {
        "with a name": header(8) + b"name\0" + deflated + trailer,
        "with a header CRC": header(2) + header_crc + deflated + trailer,
        "with a wrong header CRC": header(2) + b"\1\2" + deflated + trailer,
        "with extra": header(4) + b"\3\0abc" + deflated + trailer,
        "wrong CRC": header(0) + deflated + bytes(4) + trailer[4:],
        "wrong size": header(0) + deflated + trailer[:4] + bytes(4),
        "zlib": zlib.compress(section),
        "and a bad second member": good + header(0) + b"\xff" * 20,
        "and a second magic": good + b"\x1f\x8b",
        "and a second header": good + header(0),
        "and a second header and 8 bytes": good + header(0) + b"\xff" * 8,
        "and 30 bytes of another method": good + b"\x1f\x8b\x09" + bytes(27),
        "behind an empty member": compress(Compression.GZIP, b"") + good,
    }.items():
        yield f"GZIP payload: {name}", "plain", with_payload(payload, 50, Compression.GZIP)


def _snappy_payloads(section: bytes) -> Iterator[tuple[str, str, bytes | bytearray]]:
    import cramjam

    framed = compress(Compression.SNAPPY, section)
    raw = bytes(cramjam.snappy.compress_raw(section))
    for name, payload in {
        "raw": raw,
        "raw with a byte behind": raw + b"\0",
        "the other framing": bytes(cramjam.snappy.compress(section)),
        "no blocks": framed[:16],
        "a block of 0 bytes": framed[:16] + bytes(4) + framed[16:],
        "an empty block": framed[:16] + b"\0\0\0\1\0" + framed[16:],
        "version 0": framed[:8] + bytes(4) + framed[12:],
        "version -1": framed[:8] + b"\xff" * 4 + framed[12:],
        "compatible with 9": framed[:12] + b"\0\0\0\x09" + framed[16:],
        "block size -1": framed[:16] + b"\xff" * 4 + framed[20:],
        "and a second header": framed + framed[:16],
        "and half a second header": framed + framed[:10],
        "and a wrong second header": framed + b"\x82SNAPPX\0" + framed[8:16],
    }.items():
        yield f"SNAPPY payload: {name}", "plain", with_payload(payload, 50, Compression.SNAPPY)
    tiny = section_of([(None, None)])
    raw_tiny = bytes(cramjam.snappy.compress_raw(tiny))
    yield "SNAPPY payload: raw and tiny", "plain", with_payload(raw_tiny, 1, Compression.SNAPPY)


def _lz4_payloads(section: bytes) -> Iterator[tuple[str, str, bytes | bytearray]]:
    import lz4.frame

    def pack(**options: object) -> bytes:
        packed: bytes = lz4.frame.compress(section, block_linked=False, **options)
        return packed

    empty: bytes = lz4.frame.compress(b"", block_linked=False, store_size=False)
    summed = pack(content_checksum=True)
    wrong_block_sum = bytearray(pack(block_checksum=True, store_size=False))
    wrong_block_sum[-5] ^= 1
    wrong_header_sum = bytearray(pack(store_size=False))
    wrong_header_sum[6] ^= 1
    stored = empty[:7] + struct.pack("<I", len(section) | 1 << 31) + section + bytes(4)
    for name, payload in {
        "with its size": pack(store_size=True),
        "with content checksum": summed,
        "with wrong content checksum": summed[:-1] + bytes((summed[-1] ^ 1,)),
        "with content checksum cut off": summed[:-4],
        "with block checksum": pack(block_checksum=True),
        "with wrong block checksum": bytes(wrong_block_sum),
        "with wrong header checksum": bytes(wrong_header_sum),
        "behind a skippable frame": b"\x50\x2a\x4d\x18\x04\0\0\0abcd" + pack(),
        "block that is not compressed": stored,
        "no blocks": empty,
    }.items():
        yield f"LZ4 payload: {name}", "plain", with_payload(payload, 50, Compression.LZ4)
    large = b"".join(section_of([(b"k", bytes(range(256)) * 100)], [index], [0]) for index in range(8))
    for size in range(4, 8):
        packed = lz4.frame.compress(large, block_linked=False, block_size=size)
        yield f"LZ4 payload: block size {size}", "plain", with_payload(packed, 8, Compression.LZ4)
    linked = lz4.frame.compress(large, block_linked=True, block_size=4)
    yield "LZ4 payload: linked blocks", "plain", with_payload(linked, 8, Compression.LZ4)


def _zstd_payloads(section: bytes) -> Iterator[tuple[str, str, bytes | bytearray]]:
    import zstandard

    def pack(
        data: bytes = section, *, write_checksum: bool = False, write_content_size: bool = True
    ) -> bytes:
        packer = zstandard.ZstdCompressor(
            write_checksum=write_checksum, write_content_size=write_content_size
        )
        return packer.compress(data)

    def pack_with_window(window_log: int) -> bytes:
        parameters = zstandard.ZstdCompressionParameters(window_log=window_log, write_content_size=False)
        packer = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
        return packer.compress(section) + packer.flush()

    skippable = b"\x50\x2a\x4d\x18\x04\0\0\0abcd"
    summed = pack(write_checksum=True)
    for name, payload in {
        "with its size": pack(write_content_size=True),
        "without its size": pack(write_content_size=False),
        "with checksum": summed,
        "with wrong checksum": summed[:-1] + bytes((summed[-1] ^ 1,)),
        "behind a skippable frame": skippable + pack(),
        "before a skippable frame": pack() + skippable,
        "only a skippable frame": skippable,
        "behind an empty frame": pack(b"") + pack(),
        "before an empty frame": pack() + pack(b""),
        "and half a skippable frame": pack() + skippable[:-1],
        "and 5 bytes of a frame": pack() + pack()[:5],
        "and 3 bytes of a frame": pack() + pack()[:3],
        "window of 8 MiB": pack_with_window(23),
        "window of 128 MiB": pack_with_window(27),
        "window of 256 MiB": pack_with_window(28),
    }.items():
        yield f"ZSTD payload: {name}", "plain", with_payload(payload, 50, Compression.ZSTD)


def produce_cases() -> list[ProduceCase]:
    """Every case, in the order of the recording."""
    groups = (_framing, _headers, _records, _offsets, _keys, _timestamps, _payloads)
    return [ProduceCase(name, topic, bytes(records)) for group in groups for name, topic, records in group()]


def stored_cases() -> list[ProduceCase]:
    """Batches that are accepted, of which it matters what is stored."""
    records: Sequence[Simple] = [(b"k", b"a"), (b"k", b"b"), (None, None), (b"k", b"b")]
    headers: Sequence[Header] = [(b"h", b"x"), (b"h", None)]

    def section(
        timestamps: Sequence[int] = (5, 9, 2, 9), offset_deltas: Sequence[int] = (0, 1, 2, 3)
    ) -> bytes:
        return section_of(records, offset_deltas, timestamps, headers)

    none, gzip, zstd = Compression.NONE, Compression.GZIP, Compression.ZSTD
    usual, from_base = section(), section((0, 9, 2, 9))
    without_times = section((-1 - THEN,) * 4)
    latest = THEN + 9
    cases = [
        ("as it is", "plain", batch_of(usual, 4, none, 0, latest)),
        ("max timestamp", "plain", batch_of(usual, 4)),
        ("max timestamp, gzip", "plain", batch_of(usual, 4, gzip)),
        ("unknown bits", "plain", batch_of(usual, 4, none, 0x8080, latest)),
        ("unknown bits and max timestamp", "plain", batch_of(usual, 4, none, 0x8080)),
        ("delete horizon and max timestamp", "plain", batch_of(usual, 4, none, 0x40)),
        ("delete horizon and LogAppendTime", "plain", batch_of(usual, 4, none, 0x48, latest)),
        ("no timestamps", "plain", batch_of(without_times, 4)),
        ("negative timestamps", "plain", batch_of(section((-5 - THEN,) * 4), 4, gzip)),
        ("append time", "append-time", batch_of(usual, 4)),
        ("append time, gzip", "append-time", batch_of(usual, 4, gzip)),
        ("append time, no timestamps", "append-time", batch_of(without_times, 4)),
        ("gzip to zstd", "zstd", batch_of(usual, 4, gzip)),
        ("gzip to zstd from the base timestamp on", "zstd", batch_of(from_base, 4, gzip)),
        ("none to zstd with a producer", "zstd", batch_of(usual, 4, producer=(7003, 2, 3))),
        ("offsets to zstd", "zstd", batch_of(section((0, 9, 2, 9), (7, 7, 0, -3)), 4)),
        ("no timestamps to zstd", "zstd", batch_of(without_times, 4)),
        ("delete horizon and LogAppendTime to zstd", "zstd", batch_of(usual, 4, none, 0x48, latest)),
        ("zstd stays", "zstd", batch_of(usual, 4, zstd)),
        ("append time, gzip to zstd", "zstd-append-time", batch_of(usual, 4, gzip)),
        ("append time, zstd stays", "zstd-append-time", batch_of(usual, 4, zstd)),
        ("zstd to none", "uncompressed", batch_of(usual, 4, zstd)),
        ("none stays", "uncompressed", batch_of(usual, 4)),
    ]
    return [ProduceCase(name, topic, bytes(batch)) for name, topic, batch in cases]
