"""The five codecs of record batches, in the framing that Kafka's clients read and write.

Each library is imported when its codec is first met.  Whatever the bytes are, decompression gives at
most ``limit`` bytes or raises; it accepts what Kafka's readers accept.
"""

import zlib
from collections.abc import Callable
from enum import IntEnum

from protocol.records.errors import BadCompression, RecordsTooLarge

Bytes = bytes | bytearray | memoryview

RECORDS_SIZE_MAX = 256 << 20
"""Bytes that one batch's records may take when decompressed; a larger batch is refused unread."""


class Compression(IntEnum):
    """How a batch's records section is compressed: the lowest three bits of its attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


def compress(compression: Compression, data: Bytes, level: int | None = None) -> bytes:
    """``data`` as a batch's payload; ``level`` is ``compression.<codec>.level``, None Kafka's default."""
    if compression is Compression.NONE:
        return bytes(data)
    return _COMPRESS[compression](data, level)


def decompress(compression: Compression, data: Bytes, limit: int = RECORDS_SIZE_MAX) -> bytes:
    """The records in ``data``.

    Raises BadCompression when ``data`` is not what the codec made, RecordsTooLarge when the result
    would take more than ``limit`` bytes.
    """
    if compression is Compression.NONE:
        if len(data) > limit:
            raise RecordsTooLarge(limit)
        return bytes(data)
    return _DECOMPRESS[compression](data, limit)


def _gzip(data: Bytes, level: int | None) -> bytes:
    packer = zlib.compressobj(zlib.Z_DEFAULT_COMPRESSION if level is None else level, wbits=_GZIP_WINDOW)
    return packer.compress(data) + packer.flush()


def _gunzip(data: Bytes, limit: int) -> bytes:
    parts: list[bytes] = []
    remaining = limit
    rest: Bytes = data
    while True:
        member = zlib.decompressobj(wbits=_GZIP_WINDOW)
        try:
            part = member.decompress(rest, remaining + 1)  # 0 would mean no limit
        except zlib.error as error:
            raise BadCompression(f"gzip: {error}") from None
        remaining -= len(part)
        if remaining < 0:
            raise RecordsTooLarge(limit)
        if not member.eof:
            raise BadCompression("gzip: cut off")
        parts.append(part)
        rest = member.unused_data
        # Members may follow each other; anything else behind one is ignored, as Java does.
        if rest[:2] != _GZIP_MAGIC:
            return b"".join(parts)


_GZIP_WINDOW = 31  # 32 KiB, with gzip's header and trailer
_GZIP_MAGIC = b"\x1f\x8b"


def _snappy(data: Bytes, level: int | None) -> bytes:
    import cramjam

    view = memoryview(data)
    parts = [_XERIAL_HEADER]
    for start in range(0, len(view), _XERIAL_BLOCK_SIZE):
        block = bytes(cramjam.snappy.compress_raw(view[start : start + _XERIAL_BLOCK_SIZE]))
        parts += (len(block).to_bytes(4, "big"), block)
    return b"".join(parts)


def _unsnappy(data: Bytes, limit: int) -> bytes:
    view = memoryview(data)
    if len(view) < len(_XERIAL_HEADER) or bytes(view[:8]) != _XERIAL_MAGIC:
        return _unsnappy_block(view, limit, limit)
    parts: list[bytes] = []
    remaining = limit
    position = len(_XERIAL_HEADER)
    end = len(view)
    while position < end:
        size = int.from_bytes(view[position : position + 4], "big")
        position += 4
        if size > end - position:
            raise BadCompression("snappy: cut off")
        part = _unsnappy_block(view[position : position + size], remaining, limit)
        parts.append(part)
        remaining -= len(part)
        position += size
    return b"".join(parts)


def _unsnappy_block(block: memoryview, remaining: int, limit: int) -> bytes:
    import cramjam

    try:
        # The size stands in front of a block: it is looked at before anything is allocated for it.
        if cramjam.snappy.decompress_raw_len(block) > remaining:
            raise RecordsTooLarge(limit)
        return bytes(cramjam.snappy.decompress_raw(block))
    except cramjam.DecompressionError as error:
        raise BadCompression(f"snappy: {error}") from None


# snappy-java's stream format ("xerial"): a magic, version 1, readable since version 1; then blocks
# with their compressed size in front.
_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + bytes.fromhex("0000000100000001")
_XERIAL_BLOCK_SIZE = 32 << 10


def _lz4(data: Bytes, level: int | None) -> bytes:
    import lz4.frame

    # Kafka's reader knows no blocks that depend on earlier ones.
    packed: bytes = lz4.frame.compress(
        data,
        compression_level=level or 0,
        block_size=lz4.frame.BLOCKSIZE_MAX64KB,
        block_linked=False,
        store_size=False,
    )
    return packed


def _unlz4(data: Bytes, limit: int) -> bytes:
    import lz4.frame

    frame = lz4.frame.LZ4FrameDecompressor()
    try:
        unpacked: bytes = frame.decompress(data, max_length=limit + 1)
    except RuntimeError as error:
        raise BadCompression(f"lz4: {error}") from None
    if len(unpacked) > limit:
        raise RecordsTooLarge(limit)
    if not frame.eof:
        raise BadCompression("lz4: cut off")
    return unpacked


def _zstd(data: Bytes, level: int | None) -> bytes:
    import zstandard

    packer = zstandard.ZstdCompressor(level=3 if level is None else level, write_content_size=False)
    return packer.compress(data)


def _unzstd(data: Bytes, limit: int) -> bytes:
    import zstandard

    reader = zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True)
    parts: list[bytes] = []
    remaining = limit
    try:
        while part := reader.read(min(remaining + 1, 1 << 20)):
            parts.append(part)
            remaining -= len(part)
            if remaining < 0:
                raise RecordsTooLarge(limit)
    except zstandard.ZstdError as error:
        raise BadCompression(f"zstd: {error}") from None
    return b"".join(parts)


_COMPRESS: dict[Compression, Callable[[Bytes, int | None], bytes]] = {
    Compression.GZIP: _gzip,
    Compression.SNAPPY: _snappy,
    Compression.LZ4: _lz4,
    Compression.ZSTD: _zstd,
}
_DECOMPRESS: dict[Compression, Callable[[Bytes, int], bytes]] = {
    Compression.GZIP: _gunzip,
    Compression.SNAPPY: _unsnappy,
    Compression.LZ4: _unlz4,
    Compression.ZSTD: _unzstd,
}
