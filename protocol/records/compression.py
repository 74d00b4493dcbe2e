"""The five codecs of record batches, in the framing that Kafka's clients read and write.

Each library is imported when its codec is first met.  Whatever the bytes are, decompression gives at
most ``limit`` bytes or raises.  It accepts what Kafka's readers accept, with two exceptions in which
other clients could not read what was stored: a wrong content checksum (lz4), and a frame that is cut
off behind a complete one (zstd).
"""

import zlib
from collections.abc import Callable
from enum import IntEnum

from protocol.limits import RECORDS_SIZE_MAX
from protocol.records.errors import BadCompression, RecordsTooLarge

Bytes = bytes | bytearray | memoryview


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

    Raises BadCompression when ``data`` is not what the codec makes, RecordsTooLarge when the result
    would take more than ``limit`` bytes.
    """
    if compression is Compression.NONE:
        if len(data) > limit:
            raise RecordsTooLarge(limit)
        return bytes(data)
    return _DECOMPRESS[compression](data, limit)


_GZIP_WINDOW_BITS = 31  # 32 KiB, with gzip's header and trailer
_GZIP_MEMBER = b"\x1f\x8b\x08"
_GZIP_OVERHEAD = 18
_GZIP_READ_SIZE = 16 << 10


def _gzip(data: Bytes, level: int | None) -> bytes:
    packer = zlib.compressobj(zlib.Z_DEFAULT_COMPRESSION if level is None else level, wbits=_GZIP_WINDOW_BITS)
    return packer.compress(data) + packer.flush()


def _gunzip(data: Bytes, limit: int) -> bytes:
    view = memoryview(data)
    end = len(view)
    parts: list[bytes] = []
    remaining = limit
    position = 0
    while True:
        member = zlib.decompressobj(wbits=_GZIP_WINDOW_BITS)
        while not member.eof:
            if position == end:
                raise BadCompression("gzip: cut off")
            # In small pieces, as what is behind a member is copied: there may be many tiny ones.
            piece = view[position : position + _GZIP_READ_SIZE]
            try:
                part = member.decompress(piece, remaining + 1)  # 0 would mean no limit
            except zlib.error as error:
                raise BadCompression(f"gzip: {error}") from None
            remaining -= len(part)
            if remaining < 0:
                raise RecordsTooLarge(limit)
            parts.append(part)
            position += len(piece)
        position -= len(member.unused_data)
        # Members may follow each other; Java takes for one what is longer than an empty member and
        # begins like one, and ignores anything else.
        if end - position <= _GZIP_OVERHEAD or view[position : position + 3] != _GZIP_MEMBER:
            return b"".join(parts)


# snappy-java's stream format ("xerial"): a magic and two version numbers, which its reader ignores;
# then blocks with their compressed size in front.  Streams may follow each other: no block is as
# large as the magic's first bytes would say.
_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + bytes.fromhex("0000000100000001")
_XERIAL_BLOCK_SIZE = 32 << 10


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
    if len(view) < len(_XERIAL_HEADER) or view[:8] != _XERIAL_MAGIC:
        return _unsnappy_block(view, limit, limit)  # some clients send one block without the framing
    parts: list[bytes] = []
    remaining = limit
    position = len(_XERIAL_HEADER)
    end = len(view)
    while end - position >= 4:  # fewer bytes than a block's size are ignored
        if view[position : position + 4] == _XERIAL_MAGIC[:4]:
            position += len(_XERIAL_HEADER)
            if position > end:
                raise BadCompression("snappy: cut off")
            continue
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


_LZ4_MAGIC = b"\x04\x22\x4d\x18"
_LZ4_INDEPENDENT_BLOCKS = 0x20
_LZ4_DEFAULT_LEVEL = 9
_LZ4_READ_SIZE = 1 << 20


def _lz4(data: Bytes, level: int | None) -> bytes:
    import lz4.frame

    # Kafka's level 9 is its default and means the fast compressor; every other one means "high
    # compression", which the library starts at 3.
    is_fast = level is None or level == _LZ4_DEFAULT_LEVEL
    packed: bytes = lz4.frame.compress(
        data,
        compression_level=0 if is_fast or level is None else max(level, lz4.frame.COMPRESSIONLEVEL_MINHC),
        block_size=lz4.frame.BLOCKSIZE_MAX64KB,
        block_linked=False,
        store_size=False,
    )
    return packed


def _unlz4(data: Bytes, limit: int) -> bytes:
    import lz4.frame

    # Kafka's reader knows no skippable frames, and no blocks that depend on earlier ones.
    if data[:4] != _LZ4_MAGIC or len(data) < 7 or not data[4] & _LZ4_INDEPENDENT_BLOCKS:
        raise BadCompression("lz4: no frame of independent blocks")
    frame = lz4.frame.LZ4FrameDecompressor()
    parts: list[bytes] = []
    remaining = limit
    try:
        # In pieces, as the library holds the interpreter's lock while it copies what it has unpacked.  It
        # also copies what it has not unpacked yet: so they must not be too small either.
        size = max(_LZ4_READ_SIZE, len(data))
        part = frame.decompress(data, max_length=min(remaining + 1, size))
        while True:
            parts.append(part)
            remaining -= len(part)
            if remaining < 0:
                raise RecordsTooLarge(limit)
            if frame.eof:
                return b"".join(parts)  # what follows the frame is ignored
            if frame.needs_input or not part:
                raise BadCompression("lz4: cut off")
            part = frame.decompress(b"", max_length=min(remaining + 1, size))
    except RuntimeError as error:
        raise BadCompression(f"lz4: {error}") from None


_ZSTD_DEFAULT_LEVEL = 3
_ZSTD_MAGIC = 0xFD2FB528
_ZSTD_SKIPPABLE_MAGIC = 0x184D2A50
_ZSTD_CHECKSUM_FLAG = 0x04
_ZSTD_RUN_LENGTH_BLOCK = 1
_ZSTD_READ_SIZE = 1 << 20


def _zstd(data: Bytes, level: int | None) -> bytes:
    import zstandard

    packer = zstandard.ZstdCompressor(level=_ZSTD_DEFAULT_LEVEL if level is None else level)
    return packer.compress(data)


def _unzstd(data: Bytes, limit: int) -> bytes:
    import zstandard

    parts: list[bytes] = []
    remaining = limit
    try:
        # The library's reader takes an unfinished frame for the end of the data.
        position = 0
        while position < len(data):
            position = _end_of_zstd_frame(memoryview(data), position)
        reader = zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True)
        while part := reader.read(min(remaining + 1, _ZSTD_READ_SIZE)):
            parts.append(part)
            remaining -= len(part)
            if remaining < 0:
                raise RecordsTooLarge(limit)
    except (zstandard.ZstdError, IndexError) as error:
        raise BadCompression(f"zstd: {error}") from None
    return b"".join(parts)


def _end_of_zstd_frame(data: memoryview, position: int) -> int:
    """Where the frame at ``position`` ends, going by the sizes of its blocks."""
    import zstandard

    magic = int.from_bytes(data[position : position + 4], "little")
    if magic & ~0xF == _ZSTD_SKIPPABLE_MAGIC:
        end = position + 8 + int.from_bytes(data[position + 4 : position + 8], "little")
    elif magic == _ZSTD_MAGIC:
        has_checksum = data[position + 4] & _ZSTD_CHECKSUM_FLAG
        end = position + zstandard.frame_header_size(data[position:])
        is_last = False
        while not is_last:
            header = data[end] | data[end + 1] << 8 | data[end + 2] << 16
            is_last = bool(header & 1)
            is_run_length = header >> 1 & 3 == _ZSTD_RUN_LENGTH_BLOCK
            end += 3 + (1 if is_run_length else header >> 3)
        if has_checksum:
            end += 4
    else:
        raise BadCompression(f"zstd: no frame begins with {magic:#010x}")
    if end > len(data):
        raise BadCompression("zstd: cut off")
    return end


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
