"""Record batches of format v2: a view over bytes that are never copied to look at them.

What a leader changes in a batch it received (base offset, leader epoch, timestamps) is patched in
place, so that a produced batch travels from the socket to the file as the same bytes.
"""

from collections.abc import Iterator
from enum import IntEnum
from struct import Struct

from protocol.limits import RECORDS_SIZE_MAX
from protocol.records.checksum import crc32c
from protocol.records.compression import Compression, decompress
from protocol.records.errors import CorruptRecords, UnsupportedMagic
from protocol.records.record import Record, read_records

Buffer = bytes | bytearray | memoryview

MAGIC = 2

LOG_OVERHEAD = 12
"""Base offset and length: what must be read to know how long a batch is."""

RECORD_BATCH_OVERHEAD = 61
"""The whole header; the records section follows."""

CRC_POSITION = 17
ATTRIBUTES_POSITION = 21
"""Also where the bytes that the CRC covers begin."""
MAX_TIMESTAMP_POSITION = 35

COMPRESSION_MASK = 0x07
TIMESTAMP_TYPE_BIT = 0x08
TRANSACTIONAL_BIT = 0x10
CONTROL_BIT = 0x20
DELETE_HORIZON_BIT = 0x40
KNOWN_BITS = 0x7F

NO_TIMESTAMP = -1
NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1
NO_PARTITION_LEADER_EPOCH = -1

_SEQUENCES = 1 << 31

_HEADER = Struct(">qiibIHiqqqhii")
_PLACE = Struct(">qii")
_INT64 = Struct(">q")
_INT32 = Struct(">i")
_UINT32 = Struct(">I")
_UINT16 = Struct(">H")


class TimestampType(IntEnum):
    """Whose clock a batch's timestamps come from (``message.timestamp.type``)."""

    CREATE_TIME = 0
    LOG_APPEND_TIME = 1


class RecordBatch:
    """One batch inside ``buffer``: the header's fields are read at once, records only when asked for.

    The fields reflect the buffer: whoever changes the header goes through the ``set_…`` methods,
    which need a writable buffer and keep both in step.
    """

    __slots__ = (
        "attributes",
        "base_offset",
        "base_sequence",
        "base_timestamp",
        "buffer",
        "crc",
        "last_offset_delta",
        "magic",
        "max_timestamp",
        "partition_leader_epoch",
        "position",
        "producer_epoch",
        "producer_id",
        "record_count",
        "size_bytes",
    )

    base_offset: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int
    size_bytes: int

    def __init__(self, buffer: Buffer, position: int = 0) -> None:
        """Trusts that a whole v2 header stands at ``position``; ``read_batch`` is what checks."""
        self.buffer = buffer
        self.position = position
        (
            self.base_offset,
            length,
            self.partition_leader_epoch,
            self.magic,
            self.crc,
            self.attributes,
            self.last_offset_delta,
            self.base_timestamp,
            self.max_timestamp,
            self.producer_id,
            self.producer_epoch,
            self.base_sequence,
            self.record_count,
        ) = _HEADER.unpack_from(buffer, position)
        self.size_bytes = length + LOG_OVERHEAD

    def __repr__(self) -> str:
        return (
            f"RecordBatch(offsets {self.base_offset}..{self.last_offset}, {self.record_count} records, "
            f"{self.size_bytes} bytes, attributes {self.attributes:#04x}, "
            f"producer {self.producer_id}/{self.producer_epoch}/{self.base_sequence})"
        )

    @property
    def last_offset(self) -> int:
        """Offset of the last record, also when compaction has removed that record."""
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        """The first offset behind this batch."""
        return self.base_offset + self.last_offset_delta + 1

    @property
    def has_sequence(self) -> bool:
        """Whether the batch takes part in idempotence; markers have a producer, but no sequence."""
        return self.base_sequence != NO_SEQUENCE

    @property
    def last_sequence(self) -> int:
        """Sequence of the last record; numbers wrap from 2**31-1 to 0.  -1 without a sequence."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return (self.base_sequence + self.last_offset_delta) % _SEQUENCES

    @property
    def codec_number(self) -> int:
        """What the attributes say of the codec; 5 to 7 name none."""
        return self.attributes & COMPRESSION_MASK

    @property
    def compression(self) -> Compression:
        """The codec.  Raises CorruptRecords if there is none of that number."""
        try:
            return Compression(self.attributes & COMPRESSION_MASK)
        except ValueError:
            raise CorruptRecords(f"unknown compression type {self.codec_number}") from None

    @property
    def timestamp_type(self) -> TimestampType:
        if self.attributes & TIMESTAMP_TYPE_BIT:
            return TimestampType.LOG_APPEND_TIME
        return TimestampType.CREATE_TIME

    @property
    def is_transactional(self) -> bool:
        return self.attributes & TRANSACTIONAL_BIT != 0

    @property
    def is_control(self) -> bool:
        return self.attributes & CONTROL_BIT != 0

    @property
    def has_delete_horizon(self) -> bool:
        return self.attributes & DELETE_HORIZON_BIT != 0

    @property
    def delete_horizon(self) -> int | None:
        """When tombstones and markers of this batch may go (KIP-534), in ms; stored as base timestamp."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON_BIT else None

    @property
    def data(self) -> memoryview:
        """The batch's bytes, header included."""
        buffer = self.buffer
        if isinstance(buffer, memoryview) and len(buffer) == self.size_bytes:
            return buffer
        return memoryview(self.buffer)[self.position : self.position + self.size_bytes]

    def check_crc(self) -> None:
        """Raise CorruptRecords unless the stored checksum is that of the bytes it covers."""
        position = self.position
        computed = crc32c(
            memoryview(self.buffer)[position + ATTRIBUTES_POSITION : position + self.size_bytes]
        )
        if computed != self.crc:
            raise CorruptRecords(f"record batch has CRC {self.crc}, its bytes have {computed}")

    def payload(self, limit: int = RECORDS_SIZE_MAX) -> bytes | memoryview:
        """The records section, decompressed if need be.

        Raises CorruptRecords if that fails or would give more than ``limit`` bytes.
        """
        start = self.position + RECORD_BATCH_OVERHEAD
        section = memoryview(self.buffer)[start : self.position + self.size_bytes]
        if not self.attributes & COMPRESSION_MASK:
            return section
        return decompress(self.compression, section, limit)

    def records(self) -> Iterator[Record]:
        """Every record with absolute offset and timestamp.

        Raises CorruptRecords, possibly after some records, if payload and header do not agree.
        """
        return read_records(
            bytes(self.payload()),
            self.record_count,
            self.base_offset,
            self.base_timestamp,
            self.max_timestamp if self.attributes & TIMESTAMP_TYPE_BIT else None,
        )

    # What a leader changes before it stores a batch.  Base offset and leader epoch stand outside
    # the CRC for just this reason.

    def set_base_offset(self, base_offset: int) -> None:
        _INT64.pack_into(self.buffer, self.position, base_offset)
        self.base_offset = base_offset

    def set_partition_leader_epoch(self, partition_leader_epoch: int) -> None:
        _INT32.pack_into(self.buffer, self.position + LOG_OVERHEAD, partition_leader_epoch)
        self.partition_leader_epoch = partition_leader_epoch

    def set_place(self, base_offset: int, partition_leader_epoch: int) -> None:
        """Both of the above in one write: the leader's append."""
        _PLACE.pack_into(
            self.buffer, self.position, base_offset, self.size_bytes - LOG_OVERHEAD, partition_leader_epoch
        )
        self.base_offset = base_offset
        self.partition_leader_epoch = partition_leader_epoch

    def set_max_timestamp(self, timestamp_type: TimestampType, max_timestamp: int) -> None:
        """Say whose time the batch carries and the latest of it; a new CRC only if something changes.

        Under LOG_APPEND_TIME ``max_timestamp`` is what readers take for every record.
        """
        timestamp_bit = TIMESTAMP_TYPE_BIT if timestamp_type is TimestampType.LOG_APPEND_TIME else 0
        if self.attributes & TIMESTAMP_TYPE_BIT == timestamp_bit and self.max_timestamp == max_timestamp:
            return
        # Bits without a meaning do not survive a change; Kafka writes the attributes anew as well.
        attributes = self.attributes & KNOWN_BITS & ~TIMESTAMP_TYPE_BIT | timestamp_bit
        self.attributes = attributes
        self.max_timestamp = max_timestamp
        _UINT16.pack_into(self.buffer, self.position + ATTRIBUTES_POSITION, attributes)
        _INT64.pack_into(self.buffer, self.position + MAX_TIMESTAMP_POSITION, max_timestamp)
        self.update_crc()

    def update_crc(self) -> None:
        """Make the stored checksum that of the bytes, after they were changed."""
        position = self.position
        self.crc = crc32c(
            memoryview(self.buffer)[position + ATTRIBUTES_POSITION : position + self.size_bytes]
        )
        _UINT32.pack_into(self.buffer, self.position + CRC_POSITION, self.crc)


def read_batch(buffer: Buffer, position: int = 0) -> RecordBatch:
    """The batch at ``position``, of which all bytes must be there.  Its CRC is not checked."""
    available = len(buffer) - position
    batch = _read_batch(buffer, position, available)
    if batch is None:
        raise CorruptRecords(f"{available} bytes hold no whole record batch")
    return batch


def read_batches(buffer: Buffer, position: int = 0, end: int | None = None) -> Iterator[RecordBatch]:
    """Every whole batch from ``position`` to ``end``; an incomplete last one is left out.

    Fetch answers and the tail of a log after a crash end like that.  Raises CorruptRecords where a
    size cannot be, UnsupportedMagic at an entry in an older format.  CRCs are not checked.
    """
    if end is None:
        end = len(buffer)
    while (batch := _read_batch(buffer, position, end - position)) is not None:
        yield batch
        position += batch.size_bytes


def _read_batch(buffer: Buffer, position: int, available: int) -> RecordBatch | None:
    if available < RECORD_BATCH_OVERHEAD:
        return None
    batch = RecordBatch(buffer, position)
    if batch.magic != MAGIC:
        raise UnsupportedMagic(batch.magic)
    if batch.size_bytes < RECORD_BATCH_OVERHEAD:
        raise CorruptRecords(f"a record batch of {batch.size_bytes} bytes has no room for its header")
    return batch if batch.size_bytes <= available else None
