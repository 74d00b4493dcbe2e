"""The codecs: both ways, bounded, and the odd streams that real clients send."""

import gzip
import random
import tracemalloc
import zlib

import cramjam
import lz4.frame
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from protocol.records.compression import Compression, compress, decompress
from protocol.records.errors import BadCompression, RecordsTooLarge

CODECS = [codec for codec in Compression if codec is not Compression.NONE]
TEXT = b"the quick brown fox jumps over the lazy dog. " * 40


@given(st.sampled_from(Compression), st.binary(max_size=2000))
def test_round_trip(compression: Compression, data: bytes) -> None:
    packed = compress(compression, data)
    for given_as in (packed, bytearray(packed), memoryview(packed)):
        assert decompress(compression, given_as) == data


@pytest.mark.parametrize("compression", CODECS)
def test_round_trip_of_many_blocks(compression: Compression, chance: random.Random) -> None:
    data = chance.randbytes(150_000) + TEXT * 200 + chance.randbytes(70_000)
    assert decompress(compression, compress(compression, memoryview(data))) == data


@pytest.mark.parametrize(
    ("compression", "levels"),
    [
        (Compression.GZIP, [-1, 1, 9]),
        (Compression.LZ4, [1, 2, 3, 9, 12, 17]),
        (Compression.ZSTD, [-131_072, -5, 1, 22]),
    ],
)
def test_every_level_that_can_be_set(compression: Compression, levels: list[int]) -> None:
    for level in levels:
        assert decompress(compression, compress(compression, TEXT, level)) == TEXT


def test_levels_make_a_difference() -> None:
    assert len(compress(Compression.GZIP, TEXT * 9, 9)) < len(compress(Compression.GZIP, TEXT * 9, 1))
    assert len(compress(Compression.LZ4, TEXT, 12)) <= len(compress(Compression.LZ4, TEXT))
    assert compress(Compression.LZ4, TEXT, 9) == compress(Compression.LZ4, TEXT), "9 is Kafka's default"


@pytest.mark.parametrize("compression", Compression)
def test_the_limit_is_exact(compression: Compression) -> None:
    packed = compress(compression, bytes(100_000))
    assert decompress(compression, packed, 100_000) == bytes(100_000)
    for limit in (99_999, 50_000, 1, 0):
        with pytest.raises(RecordsTooLarge) as caught:
            decompress(compression, packed, limit)
        assert caught.value.limit == limit


def test_the_limit_holds_for_the_sum_of_parts() -> None:
    part = bytes(40_000)
    for compression in (Compression.GZIP, Compression.SNAPPY, Compression.ZSTD):
        packed = compress(compression, part) * 3
        assert decompress(compression, packed, 120_000) == bytes(120_000)
        with pytest.raises(RecordsTooLarge):
            decompress(compression, packed, 119_999)


@pytest.mark.parametrize("compression", CODECS)
def test_a_bomb_takes_no_more_memory_than_the_limit(compression: Compression) -> None:
    bomb = compress(compression, bytes(50 << 20))
    decompress(compression, compress(compression, b"warm"))  # imports
    tracemalloc.start()
    try:
        with pytest.raises(RecordsTooLarge):
            decompress(compression, bomb, 1 << 20)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 6 << 20


def test_a_snappy_block_that_claims_4_gb() -> None:
    with pytest.raises(RecordsTooLarge):
        decompress(Compression.SNAPPY, b"\xff\xff\xff\xff\x0f" + bytes(100))


@pytest.mark.parametrize("compression", CODECS)
def test_every_truncation_is_refused(compression: Compression) -> None:
    packed = compress(compression, TEXT)
    # An empty zstd stream is no frame and no data; a snappy stream may end behind any block.
    whole = {Compression.ZSTD: {0}, Compression.SNAPPY: {16, 17, 18, 19}}.get(compression, set())
    for size in range(len(packed)):
        if size in whole:
            assert decompress(compression, packed[:size]) == b""
        else:
            with pytest.raises(BadCompression):
                decompress(compression, packed[:size])


@pytest.mark.parametrize("compression", CODECS)
def test_flipped_bytes_give_data_or_one_error(compression: Compression) -> None:
    packed = compress(compression, TEXT)
    for position in range(len(packed)):
        for mask in (0x01, 0x10, 0x80, 0xFF):
            flipped = bytearray(packed)
            flipped[position] ^= mask
            try:
                decompress(compression, flipped, 100_000)
            except (BadCompression, RecordsTooLarge):
                pass


@given(st.sampled_from(CODECS), st.binary(max_size=300))
def test_garbage(compression: Compression, data: bytes) -> None:
    try:
        decompress(compression, data, 10_000)
    except (BadCompression, RecordsTooLarge):
        pass


@given(st.sampled_from(CODECS), st.binary(max_size=300))
def test_garbage_behind_a_good_start(compression: Compression, data: bytes) -> None:
    start = compress(compression, TEXT)
    try:
        decompress(compression, start[:30] + data, 10_000)
        decompress(compression, start + data, 10_000)
    except (BadCompression, RecordsTooLarge):
        pass


def test_gzip_members() -> None:
    one, two = gzip.compress(b"one"), gzip.compress(b"two")
    assert decompress(Compression.GZIP, one + two) == b"onetwo"
    assert decompress(Compression.GZIP, one + b"not a member, and quite long") == b"one"
    with pytest.raises(BadCompression):
        decompress(Compression.GZIP, zlib.compress(b"one"))


def test_snappy_with_and_without_framing() -> None:
    framed = compress(Compression.SNAPPY, TEXT)
    assert framed.startswith(b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01")
    assert decompress(Compression.SNAPPY, framed + framed) == TEXT * 2
    assert decompress(Compression.SNAPPY, bytes(cramjam.snappy.compress_raw(TEXT))) == TEXT
    with pytest.raises(BadCompression):
        decompress(Compression.SNAPPY, bytes(cramjam.snappy.compress(TEXT)))


def test_snappy_blocks_are_as_small_as_kafka_s(chance: random.Random) -> None:
    framed = compress(Compression.SNAPPY, chance.randbytes(100_000))
    position, sizes = 16, []
    while position < len(framed):
        size = int.from_bytes(framed[position : position + 4], "big")
        sizes.append(cramjam.snappy.decompress_raw_len(framed[position + 4 : position + 4 + size]))
        position += 4 + size
    assert sizes == [32_768, 32_768, 32_768, 1_696]


def test_lz4_frames_are_those_that_kafka_reads(chance: random.Random) -> None:
    data = chance.randbytes(200_000)
    frame = compress(Compression.LZ4, data)
    info = lz4.frame.get_frame_info(frame)
    assert (info["block_size"], info["block_linked"], info["content_checksum"]) == (65_536, False, False)
    assert info["content_size"] == 0, "Kafka's own frames do not hold it"
    assert decompress(Compression.LZ4, frame + b"ignored") == data
    for refused in (
        lz4.frame.compress(data, block_linked=True),
        b"\x50\x2a\x4d\x18\x04\0\0\0abcd" + frame,
        frame[:6],
        b"",
    ):
        with pytest.raises(BadCompression):
            decompress(Compression.LZ4, refused)


def test_zstd_frames() -> None:
    one, two = zstandard.compress(b"one"), zstandard.ZstdCompressor(write_checksum=True).compress(b"two")
    skippable = b"\x5f\x2a\x4d\x18\x02\0\0\0ab"
    assert decompress(Compression.ZSTD, one + skippable + two) == b"onetwo"
    assert decompress(Compression.ZSTD, skippable) == b""
    for refused in (one + b"\0", one + two[:-1], one[:-1], skippable[:-1], one + b"\x50\x2a"):
        with pytest.raises(BadCompression):
            decompress(Compression.ZSTD, refused)
