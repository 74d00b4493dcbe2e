"""The four checkpoint files of one log directory: an offset for each replica in it."""

import os
from collections.abc import Callable, Set
from threading import Lock

from storage import paths
from storage.checkpoints import Replica, format_offsets, read_offsets
from storage.errors import CorruptFile, DiskFailure
from storage.log_services import LogServices


class DirectoryCheckpoints:
    """What the files say, or will say when they are written next.

    ``begin`` is called on the loop, and what it returns in any thread: the files are written one after the
    other, and one that was begun earlier never replaces one that was begun later.
    """

    def __init__(self, services: LogServices, path: str, present: Set[Replica]) -> None:
        """``present`` are the replicas and copies that lie here: what is said of others is forgotten."""
        self._services = services
        self._path = path
        self._lock = Lock()
        self._begin_lock = Lock()
        self._prepare_lock = Lock()
        self._begun = 0
        self._written: dict[str, int] = {}
        """The number of the checkpoint that each file holds."""
        self._late: set[str] = set()
        """Files that could not be written; the next checkpoint writes them, too."""
        self.recovery_points = self._read(paths.RECOVERY_POINTS)
        self.log_starts = self._read(paths.LOG_STARTS)
        self.high_watermarks = self._read(paths.HIGH_WATERMARKS)
        self.cleaner_offsets = self._read(paths.CLEANER_OFFSETS)
        self._files = {
            paths.RECOVERY_POINTS: self.recovery_points,
            paths.LOG_STARTS: self.log_starts,
            paths.HIGH_WATERMARKS: self.high_watermarks,
            paths.CLEANER_OFFSETS: self.cleaner_offsets,
        }
        self._stale: set[Replica] = set()
        """Gone, but still in a file: a new log of the same name must not be taken for it."""
        self.absent: dict[Replica, int] = {}
        """Of others what was said, when the files were read, by those that are written often: the highest
        offset.  The cleaner's and that of log starts may be about topics of long ago."""
        for offsets in (self.recovery_points, self.high_watermarks):
            for replica in offsets.keys() - present:
                self.absent[replica] = max(self.absent.get(replica, 0), offsets[replica])
        for offsets in self._files.values():
            for replica in offsets.keys() - present:
                self.forget(replica)

    def _read(self, name: str) -> dict[Replica, int]:
        try:
            return read_offsets(self._services.file_system, os.path.join(self._path, name))
        except CorruptFile as damage:
            # All that a lost checkpoint costs is a longer recovery, or deleted records coming back.
            self._services.report(f"{damage}; it is ignored")
            return {}

    def forget(self, replica: Replica) -> None:
        """Nothing that is said of this replica is true any more."""
        for offsets in self._files.values():
            if offsets.pop(replica, None) is not None:
                self._stale.add(replica)

    def prepare_for_new(self, replica: Replica) -> None:
        """See to it that the files say nothing of a replica that is about to be made.  Raises DiskFailure.

        Safe in several threads: the first of them does it for all that are gone.
        """
        with self._prepare_lock:
            if replica in self._stale:
                stale = set(self._stale)
                self.begin(*self._files)()
                self._stale -= stale

    def note_cut(self, replica: Replica, log_end: int) -> None:
        """Recovery has cut a log: what is written there from now on is not what the files are about.

        Raises DiskFailure.
        """
        names = (paths.RECOVERY_POINTS, paths.HIGH_WATERMARKS, paths.CLEANER_OFFSETS)
        lowered = {name: offset for name in names if (offset := self._files[name].get(replica, 0)) > log_end}
        if not lowered:
            return
        for name in lowered:
            self._files[name][replica] = log_end
        try:
            self.begin(*lowered)()
        except DiskFailure:
            for name, offset in lowered.items():  # or the next attempt would find nothing to write
                self._files[name][replica] = offset
            raise

    def begin(self, *names: str) -> Callable[[], None]:
        """Take down what these files shall say; calling the answer writes them, and raises DiskFailure."""
        with self._begin_lock:  # a later number must not go with an earlier content
            # Of copies: threads may add to them.
            contents = {
                name: format_offsets(dict(self._files[name])) for name in dict.fromkeys((*names, *self._late))
            }
            self._late.clear()
            self._begun += 1
            number = self._begun

        def write() -> None:
            left = list(contents)
            try:
                for name, content in contents.items():
                    self._write(name, content, number)
                    left.remove(name)
            finally:
                with self._begin_lock:
                    self._late.update(left)

        return write

    def _write(self, name: str, content: bytes, number: int) -> None:
        path = os.path.join(self._path, name)
        with self._lock:
            if number < self._written.get(name, 0):
                return
            try:
                self._services.file_system.write_durably(path, content)
            except OSError as error:
                raise DiskFailure(path, "write", error) from error
            self._written[name] = number
