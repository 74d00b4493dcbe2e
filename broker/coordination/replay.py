"""Loading a machine: the records of its partition, applied in the order of the log."""

from collections.abc import Iterator
from typing import NamedTuple

from broker.coordination.machine import Machine
from broker.coordination.record_codec import RecordCodec
from protocol.primitives import Buffer
from protocol.records.batch import NO_PRODUCER_ID, read_batches
from protocol.records.control import read_end_transaction_marker
from protocol.records.record import Record


class _Found(NamedTuple):
    """A record on its way into the machine."""

    record: Record
    producer_id: int
    """Of the transaction that it belongs to, or ends; -1 if there is none."""
    is_marker: bool = False


class Replay:
    """Applies a log piece by piece.

    In a topic that is compacted anyway, a record that a later one with the same key replaces within the
    same piece is not even decoded: that is most of them, and loading is bound by decoding.  A tombstone
    is applied all the same: it also takes away what a transaction, still open then, would leave behind.
    """

    def __init__(self, machine: Machine, codec: RecordCodec, position: int, *, is_compacted: bool) -> None:
        self.position = position
        """Everything below this offset has been read."""
        self.unknown: dict[int, int] = {}
        """How many records of each type were left alone because nobody here knows it."""
        self._machine = machine
        self._codec = codec
        self._is_compacted = is_compacted

    def apply(self, piece: Buffer) -> Iterator[None]:
        """Take over the whole batches in ``piece``, from ``position`` on.

        Yields again and again, so that the caller may let others have their turn.  ``DecodeError`` if
        the log is damaged or newer than this code.
        """
        found: list[_Found] = []
        latest: dict[bytes | None, int] = {}
        for batch in read_batches(piece):
            if batch.last_offset < self.position:
                continue
            batch.check_crc()
            producer_id = batch.producer_id if batch.is_transactional else NO_PRODUCER_ID
            for record in batch.records():
                found.append(_Found(record, producer_id, batch.is_control))
                if producer_id == NO_PRODUCER_ID:
                    latest[record.key] = record.offset
                yield
            self.position = batch.next_offset
        for record, producer_id, is_marker in found:
            if is_marker:
                self._end_transaction(record, producer_id)
            elif (
                not self._is_compacted
                or producer_id != NO_PRODUCER_ID
                or record.value is None
                or latest[record.key] == record.offset
            ):
                self._apply_one(record, producer_id)
            else:
                continue
            yield

    def _apply_one(self, record: Record, producer_id: int) -> None:
        stored = self._codec.decode(record.key, record.value)
        if stored is None:
            record_type = self._codec.record_type(record.key)
            self.unknown[record_type] = self.unknown.get(record_type, 0) + 1
        else:
            self._machine.apply(stored, record.offset, producer_id)

    def _end_transaction(self, record: Record, producer_id: int) -> None:
        marker = read_end_transaction_marker(record)
        if marker is not None:
            self._machine.end_transaction(producer_id, is_commit=marker.is_commit)
