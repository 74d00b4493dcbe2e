"""A bounded number of open files for any number of segments."""

from collections import deque
from threading import Lock

from storage.errors import OUT_OF_DESCRIPTORS
from storage.filesystem import File, FileSystem


class Descriptors:
    """Opens files when they are used, and lets go of those that were not used lately.

    Second chance instead of strict order of use: a use sets a flag, which is all that the append
    path pays.  Letting go closes nothing that is still in use, see ``File``.
    """

    def __init__(self, file_system: FileSystem, open_max: int = 512) -> None:
        self.file_system = file_system
        self.open_max = open_max
        self._open: deque[CachedFile] = deque()
        self._lock = Lock()  # recovery threads open files, too

    @property
    def open_count(self) -> int:
        return len(self._open)

    def open(self, path: str, *, create: bool = False) -> File:
        """Open a file that is not kept open.  If descriptors are short, some of those kept are let go."""
        while True:
            try:
                return self.file_system.open(path, create=create)
            except OSError as error:
                if error.errno not in OUT_OF_DESCRIPTORS or not self.make_room():
                    raise

    def make_room(self) -> bool:
        """Let go of the older half of what is open; return whether that was anything."""
        with self._lock:
            queue = self._open
            count = (len(queue) + 1) // 2
            for _ in range(count):
                queue.popleft()._file = None
            return count > 0

    def _opened(self, file: "CachedFile") -> None:
        with self._lock:
            queue = self._open
            queue.append(file)
            # Each round clears a flag or closes a file, so this ends.
            while len(queue) > self.open_max:
                oldest = queue.popleft()
                if oldest._file is None:
                    continue
                if oldest.was_used:
                    oldest.was_used = False
                    queue.append(oldest)
                else:
                    oldest._file = None

    def _closed(self, file: "CachedFile") -> None:
        with self._lock:
            try:
                self._open.remove(file)
            except ValueError:
                pass


class CachedFile:
    """A file by its path; the descriptor behind it comes and goes."""

    __slots__ = ("_descriptors", "_file", "path", "was_used")

    def __init__(self, descriptors: Descriptors, path: str) -> None:
        self._descriptors = descriptors
        self._file: File | None = None
        self.path = path
        self.was_used = False

    def open(self, *, create: bool = False) -> File:
        """The open file.  Use it now; hold it only as long as it must stay readable."""
        file = self._file
        if file is None:
            file = self._descriptors.open(self.path, create=create)
            self._file = file
            self._descriptors._opened(self)
        self.was_used = True
        return file

    @property
    def opened(self) -> File | None:
        """The file if it is open just now."""
        return self._file

    def modified_ms(self) -> int:
        """When the file was last written, in ms."""
        return self._descriptors.file_system.modified_ms(self.path)

    def close(self) -> None:
        """Let go of the descriptor; the next use opens the path again."""
        if self._file is not None:
            self._file = None
            self._descriptors._closed(self)
