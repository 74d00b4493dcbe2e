"""The operating system's files, for looking only: nothing here can change a byte of them."""

import errno
import fcntl
import os
import stat
from collections.abc import Iterable
from typing import NoReturn

from storage.errors import CorruptFile, StorageError
from storage.filesystem import File, FileSystem, RealFile, RealFileSystem, RealLock

SMALL_FILE_MAX = 256 << 20
"""Bytes of a file that is read at once: the checkpoints of a million partitions take less."""


class ReadOnlyFileSystem(RealFileSystem):
    """Opens nothing but plain files, and those for reading; whatever would change one is refused."""

    def open(self, path: str, *, create: bool = False) -> RealFile:
        # Without O_NONBLOCK a pipe that lies in the way would be waited for.
        file = RealFile(path, os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK))
        mode = os.fstat(file.fileno()).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "not a plain file", path)
        return file

    def read_file(self, path: str) -> bytes:
        file = self.open(path)
        if file.size() > SMALL_FILE_MAX:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), path)
        return file.pread(file.size(), 0)

    def list_directories(self, path: str) -> list[str]:
        # What a link leads to in a circle is none.
        return [name for name in os.listdir(path) if os.path.isdir(os.path.join(path, name))]

    def lock(self, path: str) -> RealLock | None:
        """Keep brokers out, as far as they have been here; others who look are let in."""
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except FileNotFoundError:
            return _ReadLock()  # no broker has ever been here
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError as error:
            os.close(descriptor)
            if error.errno in (errno.EACCES, errno.EAGAIN):
                return None
            raise
        return _ReadLock(descriptor)

    def set_modified_ms(self, path: str, modified_ms: int) -> NoReturn:
        _refuse(path)

    def make_directory(self, path: str) -> NoReturn:
        _refuse(path)

    def rename(self, source: str, target: str) -> NoReturn:
        _refuse(source)

    def remove(self, path: str) -> NoReturn:
        _refuse(path)

    def remove_tree(self, path: str) -> NoReturn:
        _refuse(path)

    def sync_directory(self, path: str) -> NoReturn:
        _refuse(path)

    def sync_all(self, directories: Iterable[str]) -> NoReturn:
        _refuse(", ".join(directories))


def _refuse(path: str) -> NoReturn:
    raise OSError(errno.EROFS, os.strerror(errno.EROFS), path)


class _ReadLock(RealLock):
    """Several may hold it; it is none of those that this process must not open and close."""

    def __init__(self, descriptor: int = -1) -> None:
        self._descriptor = descriptor

    def release(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def open_to_read(file_system: FileSystem, path: str) -> File:
    """The file at ``path``.  Raises CorruptFile, in one line, whatever keeps it from being read."""
    try:
        return file_system.open(path)
    except OSError as error:
        raise CorruptFile(path, f"cannot be read: {error.strerror or error}") from error


def reason_of(error: StorageError | OSError) -> str:
    """Why a file cannot be used, for whoever names the file."""
    if isinstance(error, CorruptFile):
        return error.reason
    return str(error) if isinstance(error, StorageError) else f"cannot be read: {error.strerror or error}"
