"""A partition's log in memory, whose high watermark and whose moods a test controls."""

from collections.abc import Callable

import trio

from protocol.primitives import Buffer
from protocol.records.batch import RecordBatch, read_batches
from protocol.records.record import Record
from storage.transaction_verification import VOUCHED, Verification


class FakeLog:
    """``ShardLog`` without a partition.  ``follows`` is whether the high watermark keeps up by itself."""

    def __init__(self) -> None:
        self.batches: list[bytearray] = []
        self.log_start = 0
        self.log_end = 0
        self.high_watermark = 0
        self.batch_bytes_max = 1024 * 1024
        self.follows = True
        self.refusal: Exception | None = None
        self.read_bytes_max = 4096
        self.reads = 0
        self._watchers: list[tuple[int, Callable[[], None]]] = []

    def append(self, batch: bytearray, verification: Verification | None = VOUCHED) -> int:
        if self.refusal is not None:
            raise self.refusal
        view = RecordBatch(batch)
        view.set_place(self.log_end, 0)
        base_offset = self.log_end
        self.batches.append(batch)
        self.log_end = view.next_offset
        if self.follows:
            self.cover(self.log_end)
        return base_offset

    def cover(self, offset: int) -> None:
        """Move the high watermark."""
        self.high_watermark = offset
        covered = [notify for end, notify in self._watchers if end <= offset]
        self._watchers = [watcher for watcher in self._watchers if watcher[0] > offset]
        for notify in covered:
            notify()

    def when_covered(self, offset: int, notify: Callable[[], None]) -> None:
        assert offset > self.high_watermark, "nobody waits for what is there"
        self._watchers.append((offset, notify))

    async def read(self, offset: int) -> Buffer:
        self.reads += 1
        await trio.lowlevel.checkpoint()
        found = bytearray()
        for batch in self.batches:
            if RecordBatch(batch).last_offset >= offset and len(found) < self.read_bytes_max:
                found += batch
        return bytes(found)

    def records(self) -> list[Record]:
        """Everything in the log."""
        return [
            record for batch in self.batches for found in read_batches(batch) for record in found.records()
        ]

    def copy(self) -> "FakeLog":
        """The same records on another disk, all of them covered."""
        log = FakeLog()
        log.batches = [bytearray(batch) for batch in self.batches]
        log.log_end = log.high_watermark = self.log_end
        return log
