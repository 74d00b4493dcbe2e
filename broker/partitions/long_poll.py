"""A fetch that waits until there is enough to read."""

from collections.abc import Callable

from broker.partitions.fetch_sessions import Reading
from broker.partitions.leader import Leader
from broker.partitions.read import Reader, Round, end_for
from broker.partitions.replica import Replica
from storage.errors import StorageError


class LongPoll:
    """Watches the partitions of a fetch and calls ``wake``, once, when it should be answered.

    That is when ``min_bytes`` can be read, or when a partition cannot be read any longer.  Only the
    partition that changed is looked at, and its records stay where they are.
    """

    __slots__ = ("_min_bytes", "_reader", "_seen", "_size_bytes", "_wake", "_watched", "_watcher")

    def __init__(self, result: Round, reader: Reader, min_bytes: int, wake: Callable[[], None]) -> None:
        """``result`` is the round of reading that found too little, just now."""
        self._reader = reader
        self._min_bytes = min_bytes
        self._wake = wake
        self._size_bytes = 0
        self._watcher = self._changed
        self._watched: dict[Replica, Reading] = {}
        """What came of it when the partition was read."""
        self._seen: dict[Replica, tuple[int, int]] = {}
        """Where the log ended when last looked at, and how many bytes there were; of few."""
        watched, watcher = self._watched, self._watcher
        for replica, reading in zip(result.replicas, result.readings, strict=True):
            if replica is not None:
                watched[replica] = reading
                replica.watch(watcher)
                if reading.records_size_bytes:
                    size_bytes = min(reading.records_size_bytes, reading.wanted.max_bytes)
                    self._size_bytes += size_bytes
                    self._seen[replica] = end_for(replica, reader.isolation), size_bytes

    def stop(self) -> None:
        """Watch no longer."""
        watched, self._watched = self._watched, {}
        for replica in watched:
            replica.unwatch(self._watcher)

    def _changed(self, replica: Replica) -> None:
        reading = self._watched.get(replica)
        if reading is not None and (replica.ended is not None or self._has_enough(replica, reading)):
            self.stop()
            self._wake()

    def _has_enough(self, replica: Replica, reading: Reading) -> bool:
        wanted = reading.wanted
        seen_end, seen_bytes = self._seen.get(replica) or (wanted.fetch_offset, 0)
        end = end_for(replica, self._reader.isolation)
        if end <= seen_end:
            return False
        holds_back = self._reader.holds_back
        if holds_back is not None and isinstance(replica, Leader) and holds_back(replica):
            return False  # it would get nothing, and come again at once
        if self._min_bytes <= 1 <= wanted.max_bytes:
            return True
        try:
            records = replica.log.read(wanted.fetch_offset, wanted.max_bytes, upper=end)
        except StorageError:
            return True  # reading again is what tells the consumer
        # The first batch is given whole, but counts for no more than was asked for.
        size_bytes = 0 if records is None else min(records.size_bytes, wanted.max_bytes)
        if size_bytes <= seen_bytes < wanted.max_bytes:
            return True  # the log goes on in its next segment, which no single answer reaches into
        self._seen[replica] = end, size_bytes
        self._size_bytes += size_bytes - seen_bytes
        return self._size_bytes >= self._min_bytes
