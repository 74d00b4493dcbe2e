"""Files and folders that are marked as deleted and go a while later (``file.delete.delay.ms``).

Until then a fetch that was answered with a range of them can still be sent, and an operator can
still rename them back.
"""

import os
from collections.abc import Callable
from threading import Lock

from storage import paths
from storage.filesystem import FileSystem


class Removals:
    """What is to be removed when.  Marking renames at once, so that no restart takes it for live."""

    def __init__(self, file_system: FileSystem) -> None:
        self._file_system = file_system
        self._waiting: list[tuple[int, str]] = []
        self._lock = Lock()  # logs are also opened, and so recovered, in threads

    def __len__(self) -> int:
        return len(self._waiting)

    def mark_file(self, path: str, due_ms: int) -> None:
        """Rename a file so that it counts as gone.  Nothing happens if it does not exist."""
        try:
            self._file_system.rename(path, path + paths.DELETED)
        except FileNotFoundError:
            return
        self.add(path + paths.DELETED, due_ms)

    def add(self, path: str, due_ms: int) -> None:
        """Remove a file or folder that has its mark already."""
        with self._lock:
            self._waiting.append((due_ms, path))

    def note_renamed(self, folder: str, new: str) -> None:
        """What waits in ``folder`` is found in ``new`` now."""
        with self._lock:
            self._waiting = [
                (due_ms, new + path.removeprefix(folder) if os.path.dirname(path) == folder else path)
                for due_ms, path in self._waiting
            ]

    @property
    def next_due_ms(self) -> int | None:
        """When ``begin`` will have something to do."""
        return min((due_ms for due_ms, _ in self._waiting), default=None)

    def begin(self, now_ms: int) -> Callable[[], None] | None:
        """Take what is due; calling the answer removes it, and may take long: do that in a thread."""
        with self._lock:
            due = [path for due_ms, path in self._waiting if due_ms <= now_ms]
            self._waiting = [entry for entry in self._waiting if entry[0] > now_ms]
        if not due:
            return None
        return lambda: _remove(self._file_system, due)


def _remove(file_system: FileSystem, due: list[str]) -> None:
    """Remove all of these that can be; raises the first OSError in the end."""
    failure: OSError | None = None
    for path in due:
        try:
            if os.path.basename(path).endswith(paths.DELETED):
                try:
                    file_system.remove(path)
                except FileNotFoundError:
                    pass  # its folder was deleted meanwhile
            else:
                file_system.remove_tree(path)
        except OSError as error:
            failure = failure or error
    if failure is not None:
        raise failure
