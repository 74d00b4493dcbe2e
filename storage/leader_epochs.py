"""Which leader epoch began at which offset of one log (KIP-101)."""

from collections.abc import Iterable

UNDEFINED = -1


class LeaderEpochs:
    """A short ascending list of (epoch, start offset); both strictly increase.

    Pure: whoever changes it stores it, see ``changed``.
    """

    __slots__ = ("_entries", "changed", "latest")

    def __init__(self, entries: Iterable[tuple[int, int]] = ()) -> None:
        self._entries: list[tuple[int, int]] = []
        self.latest = UNDEFINED
        """The newest epoch, -1 if there is none: a plain attribute, since each append compares it."""
        for epoch, start in entries:
            self.assign(epoch, start)
        self.changed = False
        """Whether the entries differ from those last stored."""

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def entries(self) -> tuple[tuple[int, int], ...]:
        return tuple(self._entries)

    def assign(self, epoch: int, start: int) -> None:
        """Records from ``start`` on are of ``epoch``; what contradicts that is dropped.

        Nothing happens if the epoch is the latest and began at or before ``start``, or if it is
        negative, which is what a batch says that never had a leader.
        """
        entries = self._entries
        if epoch < 0 or (entries and entries[-1][0] == epoch and entries[-1][1] <= start):
            return
        while entries and (entries[-1][0] >= epoch or entries[-1][1] >= start):
            entries.pop()
        entries.append((epoch, start))
        self._note_change()

    def end_offset_for(self, epoch: int, log_end: int) -> tuple[int, int]:
        """The largest known epoch not above ``epoch``, and the offset at which it ends.

        (-1, -1) for an epoch that this log never had.  An epoch older than all known ones ends where
        the first known one starts.
        """
        if epoch == UNDEFINED or epoch > self.latest:
            return UNDEFINED, UNDEFINED
        if epoch == self.latest:
            return epoch, log_end
        floor = UNDEFINED
        for known, start in self._entries:
            if known > epoch:
                return (epoch if floor == UNDEFINED else floor), start
            floor = known
        raise AssertionError("the latest epoch is above the one asked for")

    def epoch_at(self, offset: int) -> int:
        """The epoch of the record at ``offset``, -1 if unknown."""
        for epoch, start in reversed(self._entries):
            if start <= offset:
                return epoch
        return UNDEFINED

    def truncate_from_end(self, offset: int) -> None:
        """Forget epochs that began at or after ``offset``."""
        before = len(self._entries)
        while self._entries and self._entries[-1][1] >= offset:
            self._entries.pop()
        if len(self._entries) != before:
            self._note_change()

    def truncate_from_start(self, offset: int) -> None:
        """Records before ``offset`` are gone: the epoch that it lies in starts there now."""
        entries = self._entries
        if not entries or entries[0][1] >= offset:
            return
        gone = 0
        while gone < len(entries) and entries[gone][1] <= offset:
            gone += 1
        entries[:gone] = [(entries[gone - 1][0], offset)]
        self._note_change()

    def clear(self) -> None:
        if self._entries:
            self._entries.clear()
            self._note_change()

    def _note_change(self) -> None:
        self.changed = True
        self.latest = self._entries[-1][0] if self._entries else UNDEFINED
