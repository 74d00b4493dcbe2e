"""A fetch that waits until there is enough to read."""

from collections.abc import Callable

from broker.partitions.fetch_sessions import WantedPartition
from broker.partitions.leader import Leader
from broker.partitions.read import Reader, Round, end_for
from broker.partitions.replica import Replica
from storage.errors import StorageError


class LongPoll:
    """Watches the partitions of a fetch and calls ``wake``, once, when it should be answered.

    That is when ``min_bytes`` can be read, or when a partition cannot be read any longer.  Only the
    partition that changed is looked at, and its records stay where they are.
    """

    __slots__ = ("_min_bytes", "_reader", "_size_bytes", "_wake", "_watched", "_watcher")

    def __init__(self, result: Round, reader: Reader, min_bytes: int, wake: Callable[[], None]) -> None:
        """``result`` is the round of reading that found too little, just now."""
        self._reader = reader
        self._min_bytes = min_bytes
        self._wake = wake
        self._size_bytes = 0
        self._watcher = self._changed
        self._watched: dict[Replica, _Watched] = {}
        for replica, reading in zip(result.replicas, result.readings, strict=True):
            if replica is not None:
                size_bytes = min(reading.records_size_bytes, reading.wanted.max_bytes)
                self._size_bytes += size_bytes
                self._watched[replica] = _Watched(
                    reading.wanted, size_bytes, end_for(replica, reader.isolation)
                )
                replica.watch(self._watcher)

    def stop(self) -> None:
        """Watch no longer."""
        watched, self._watched = self._watched, {}
        for replica in watched:
            replica.unwatch(self._watcher)

    def _changed(self, replica: Replica) -> None:
        watched = self._watched.get(replica)
        if watched is not None and (replica.ended is not None or self._has_enough(replica, watched)):
            self.stop()
            self._wake()

    def _has_enough(self, replica: Replica, watched: "_Watched") -> bool:
        end = end_for(replica, self._reader.isolation)
        if end <= max(watched.end, watched.wanted.fetch_offset):
            return False
        holds_back = self._reader.holds_back
        if holds_back is not None and isinstance(replica, Leader) and holds_back(replica):
            return False  # it would get nothing, and come again at once
        watched.end = end
        if self._min_bytes <= 1 <= watched.wanted.max_bytes:
            return True
        try:
            records = replica.log.read(watched.wanted.fetch_offset, watched.wanted.max_bytes, upper=end)
        except StorageError:
            return True  # reading again is what tells the consumer
        # The first batch is given whole, but counts for no more than was asked for.
        size_bytes = 0 if records is None else min(records.size_bytes, watched.wanted.max_bytes)
        if size_bytes <= watched.size_bytes < watched.wanted.max_bytes:
            return True  # the log goes on in its next segment, which no single answer reaches into
        self._size_bytes += size_bytes - watched.size_bytes
        watched.size_bytes = size_bytes
        return self._size_bytes >= self._min_bytes


class _Watched:
    """One partition, and what was known of it when last looked at."""

    __slots__ = ("end", "size_bytes", "wanted")

    def __init__(self, wanted: WantedPartition, size_bytes: int, end: int) -> None:
        self.wanted = wanted
        self.size_bytes = size_bytes
        self.end = end
