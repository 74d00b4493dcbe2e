"""What happens to a client's batch before it is written."""

from broker.config.topic_settings import TopicSettings
from protocol.records.batch import RecordBatch, TimestampType
from protocol.records.compression import Compression
from protocol.records.conversion import convert_produced, needs_new_batch
from protocol.records.validation import ProducePolicy, check_produced

CHECK_ASIDE_BYTES_MIN = 16 * 1024
"""From this size on a batch with compression is checked in a thread."""

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
    """Whether preparing ``batch`` would keep the loop waiting: then it is done in a thread.

    Unpacking and packing release the interpreter's lock.  A batch without compression is walked through
    where it is: that takes less time, and none of it would run beside the loop.
    """
    return batch.size_bytes >= CHECK_ASIDE_BYTES_MIN and (
        batch.codec_number != Compression.NONE or needs_new_batch(batch, policy)
    )


def prepare(batch: RecordBatch, policy: ProducePolicy, now_ms: int) -> RecordBatch:
    """``batch`` as it is to be written, but for its place in the log.  Raises ``RefusedBatch``.

    It is the same one, patched in its buffer, unless the topic wants another compression.
    """
    return convert_produced(check_produced(batch, policy, now_ms=now_ms), policy, now_ms=now_ms)
