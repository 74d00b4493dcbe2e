"""What happens to a client's batch before it is written."""

from broker.config.topic_settings import TopicSettings
from protocol.error_codes import ErrorCode
from protocol.limits import RECORDS_SIZE_MAX
from protocol.records.batch import RecordBatch, TimestampType
from protocol.records.compression import Compression
from protocol.records.conversion import convert_produced
from protocol.records.validation import CheckedBatch, ProducePolicy, RefusedBatch, check_produced
from protocol.records.varint import read_varint

ASIDE_FROM_US = 500
"""A batch whose check is likely to take this long (microseconds) is checked in a thread.  Handing it over
and back costs a fifth of that, and keeps its connection waiting."""

UNPACKING_US_PER_KIB: dict[int, float] = {
    Compression.GZIP: 8.0,
    Compression.SNAPPY: 1.3,
    Compression.LZ4: 1.3,
    Compression.ZSTD: 3.0,
}
PACKING_US_PER_KIB = 20.0
WALKING_US_PER_RECORD = 0.5
"""What these cost, measured with records of 100 and 1000 bytes of text: good for an estimate, no more."""

UNPACKED_BYTES_MAX = 512 * 1024
"""Records that take more than this, however small they were packed, are unpacked in a thread: finding out
costs at most as much as ``ASIDE_FROM_US`` allows."""

REPACKED_BYTES_MAX = int(ASIDE_FROM_US / PACKING_US_PER_KIB * 1024)
"""The same for records that have to be packed again."""

NO_RECORD_LIMIT = 2**31 - 9
"""The default of ``max.decompressed.message.bytes``: no record can be larger."""

CODECS: dict[str, Compression | None] = {
    "producer": None,
    "uncompressed": Compression.NONE,
    "gzip": Compression.GZIP,
    "snappy": Compression.SNAPPY,
    "lz4": Compression.LZ4,
    "zstd": Compression.ZSTD,
}
"""What a topic's ``compression.type`` asks for; None leaves the choice to the producer."""


def policy_for(settings: TopicSettings, topic: str, partition: int) -> ProducePolicy:
    """A topic's settings as the checks want them."""
    is_append_time = settings.message_timestamp_type == "LogAppendTime"
    compression = CODECS[settings.compression_type]
    level: int | None = None
    if compression in (Compression.GZIP, Compression.LZ4, Compression.ZSTD):
        level = settings[f"compression.{settings.compression_type}.level"]
    return ProducePolicy(
        partition_name=f"{topic}-{partition}",
        is_compacted=settings.compact,
        timestamp_type=TimestampType.LOG_APPEND_TIME if is_append_time else TimestampType.CREATE_TIME,
        timestamp_before_max_ms=settings.message_timestamp_before_max_ms,
        timestamp_after_max_ms=settings.message_timestamp_after_max_ms,
        max_message_bytes=settings.max_message_bytes,
        compression=compression,
        compression_level=level,
    )


def belongs_aside(batch: RecordBatch, policy: ProducePolicy) -> bool:
    """Whether preparing ``batch`` would keep the loop waiting for so long that it is better done in a thread.

    It goes by the size that the batch has: ``prepare_quickly`` finds out about those that hold far more.
    Codecs release the interpreter's lock.  What is not compressed is walked through where it is: no part
    of that would run beside the loop.
    """
    codec = batch.codec_number
    packs = policy.compression is not None and policy.compression != codec
    if not codec and not packs:
        return False
    per_kib = UNPACKING_US_PER_KIB.get(codec, 0.0) + (PACKING_US_PER_KIB if packs else 0.0)
    estimate_us = batch.size_bytes / 1024 * per_kib + batch.record_count * WALKING_US_PER_RECORD
    return estimate_us >= ASIDE_FROM_US


def prepare_quickly(
    batch: RecordBatch, policy: ProducePolicy, settings: TopicSettings, now_ms: int
) -> RecordBatch:
    """The same as ``prepare``, for the loop.

    Raises RecordsTooLarge, and nothing is done, if the batch has to be prepared in a thread, because it
    holds more than its size lets one think.
    """
    packs = policy.compression is not None and policy.compression != batch.codec_number
    return prepare(batch, policy, settings, now_ms, REPACKED_BYTES_MAX if packs else UNPACKED_BYTES_MAX)


def prepare(
    batch: RecordBatch,
    policy: ProducePolicy,
    settings: TopicSettings,
    now_ms: int,
    unpacked_max: int = RECORDS_SIZE_MAX,
) -> RecordBatch:
    """``batch`` as it is to be written, but for its place in the log.  Raises ``RefusedBatch``.

    It is the same one, patched in its buffer, unless the topic wants another compression.  ``policy`` is
    what ``policy_for`` makes of ``settings``.  ``unpacked_max`` is as in ``check_produced``.
    """
    checked = check_produced(batch, policy, now_ms=now_ms, unpacked_max=unpacked_max)
    if settings.max_decompressed_message_bytes < NO_RECORD_LIMIT and batch.codec_number:
        check_record_sizes(checked, settings.max_decompressed_message_bytes)
    return convert_produced(checked, policy, now_ms=now_ms)


def check_record_sizes(checked: CheckedBatch, size_max: int) -> None:
    """Refuse records that were compressed and take more than ``size_max`` bytes without that."""
    section = bytes(checked.section)
    position = 0
    while position < len(section):
        size, position = read_varint(section, position)
        if size > size_max:
            raise RefusedBatch(
                ErrorCode.INVALID_RECORD,
                f"a record of {size} bytes is larger than max.decompressed.message.bytes, {size_max}",
            )
        position += size
