"""The operations that storage needs of a file system, and the one of the operating system.

``memory_filesystem`` is the other one: it can crash, tear writes and refuse them.  Everything raises
``OSError`` as the operating system would.
"""

import errno
import fcntl
import os
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable

Buffer = bytes | bytearray | memoryview


class File(ABC):
    """An open file.  There is no close: it closes when nobody refers to it any more.

    That is how a descriptor stays usable for a ``sendfile`` or an fsync in a thread while the
    cache of open files, or a deletion, lets go of it.
    """

    __slots__ = ("path",)

    def __init__(self, path: str) -> None:
        self.path = path
        """Where the file was when it was opened; it may have been renamed since."""

    @abstractmethod
    def fileno(self) -> int | None:
        """The descriptor, or None for a file that has none."""

    @abstractmethod
    def pread(self, size: int, position: int) -> bytes:
        """``size`` bytes from ``position``, fewer only where the file ends."""

    @abstractmethod
    def pwrite(self, data: Buffer, position: int) -> None:
        """Write all of ``data``, or raise OSError after none or some of it."""

    @abstractmethod
    def size(self) -> int: ...

    @abstractmethod
    def truncate(self, size: int) -> None: ...

    @abstractmethod
    def sync(self) -> None:
        """Return when the content is on the device."""

    @abstractmethod
    def is_cached(self, position: int, size: int) -> bool:
        """Whether these bytes can be read without waiting; True where nobody can tell."""

    def read_cached(self, size: int, position: int) -> bytes | bytearray | None:
        """The bytes if they can be had without waiting for the disk; None where ``pread`` has to tell."""
        return self.pread(size, position) if self.is_cached(position, size) else None


class Lock(ABC):
    """A lock that is held until ``release``, or until the process ends."""

    @abstractmethod
    def release(self) -> None: ...


class FileSystem(ABC):
    """Paths are absolute or relative to the working directory, as text."""

    @abstractmethod
    def open(self, path: str, *, create: bool = False) -> File:
        """For reading and writing.  Without ``create``, FileNotFoundError if it does not exist."""

    @abstractmethod
    def read_file(self, path: str) -> bytes: ...

    @abstractmethod
    def exists(self, path: str) -> bool: ...

    @abstractmethod
    def file_size(self, path: str) -> int: ...

    @abstractmethod
    def modified_ms(self, path: str) -> int:
        """When the file was last written, in ms since the epoch."""

    @abstractmethod
    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        """Let a file look as if it had been written then."""

    @abstractmethod
    def list_names(self, path: str) -> list[str]:
        """Names of everything in a directory, in no order."""

    @abstractmethod
    def list_directories(self, path: str) -> list[str]:
        """Names of the directories in a directory, in no order."""

    @abstractmethod
    def make_directory(self, path: str) -> None:
        """With its parents; nothing happens if it exists."""

    @abstractmethod
    def rename(self, source: str, target: str) -> None:
        """Atomically; a file at ``target`` is replaced."""

    @abstractmethod
    def remove(self, path: str) -> None:
        """A file.  FileNotFoundError if there is none."""

    @abstractmethod
    def remove_tree(self, path: str) -> None:
        """A directory with everything in it; nothing happens if it does not exist."""

    @abstractmethod
    def usable_bytes(self, path: str) -> int:
        """How much more the device of this directory takes."""

    @abstractmethod
    def sync_directory(self, path: str) -> None:
        """Return when names created, renamed and removed in this directory are on the device."""

    @abstractmethod
    def sync_all(self, directories: Iterable[str]) -> bool:
        """Return True when all that was written so far to the devices of these directories has reached them.

        That is one wait in the place of thousands.  False, and nothing is certain, where the system cannot
        do that, or would not tell of writes that failed.
        """

    @abstractmethod
    def lock(self, path: str) -> Lock | None:
        """Lock the file at ``path``, created if need be; None if another process holds it."""

    def replace_file(self, path: str, data: bytes, *, sync: bool) -> None:
        """Put a small file, by renaming, in place of the old one: whoever reads sees one of them, whole.

        With ``sync`` that is so even after a power cut; which one it is then is not said.
        """
        file = self.write_temporary(path, data)
        if sync:
            file.sync()
        self.rename(file.path, path)

    def write_temporary(self, path: str, data: bytes) -> File:
        """Write what a rename is to put in place of the file at ``path``, under a name beside it."""
        file = self.open(path + ".tmp", create=True)
        file.truncate(0)
        file.pwrite(data, 0)
        return file

    def write_durably(self, path: str, data: bytes) -> None:
        """The same, and on return the new file is on the device."""
        self.replace_file(path, data, sync=True)
        self.sync_directory(os.path.dirname(path))


_sync_data = getattr(os, "fdatasync", os.fsync)
_NOWAIT = getattr(os, "RWF_NOWAIT", 0)


class RealFile(File):
    """A descriptor that closes with the object."""

    __slots__ = ("_descriptor",)

    def __init__(self, path: str, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor

    def __del__(self) -> None:
        os.close(self._descriptor)

    def fileno(self) -> int:
        return self._descriptor

    def pread(self, size: int, position: int) -> bytes:
        data = os.pread(self._descriptor, size, position)
        if len(data) == size:
            return data
        # Linux reads at most 2 GiB at once, and a signal may cut it short: go on to the end.
        parts = [data]
        missing = size - len(data)
        while data and missing:
            position += len(data)
            data = os.pread(self._descriptor, missing, position)
            missing -= len(data)
            parts.append(data)
        return b"".join(parts)

    def pwrite(self, data: Buffer, position: int) -> None:
        written = os.pwrite(self._descriptor, data, position)
        if written == len(data):
            return
        view = memoryview(data)
        while written < len(view):
            count = os.pwrite(self._descriptor, view[written:], position + written)
            if count == 0:
                raise OSError(errno.EIO, "nothing was written")
            written += count

    def size(self) -> int:
        return os.fstat(self._descriptor).st_size

    def truncate(self, size: int) -> None:
        os.ftruncate(self._descriptor, size)

    def sync(self) -> None:
        _sync_data(self._descriptor)

    def is_cached(self, position: int, size: int) -> bool:
        if not _NOWAIT:
            return True
        try:
            return os.preadv(self._descriptor, [bytearray(size)], position, _NOWAIT) == size
        except BlockingIOError:
            return False
        except OSError:
            return True  # this file system does not know the flag

    def read_cached(self, size: int, position: int) -> bytes | bytearray | None:
        if not _NOWAIT:
            return self.pread(size, position)
        content = bytearray(size)
        try:
            count = os.preadv(self._descriptor, [content], position, _NOWAIT)
        except BlockingIOError:
            return None
        except OSError:
            return self.pread(size, position)  # this file system does not know the flag
        return content if count == size else None


class RealLock(Lock):
    """A POSIX record lock, which is the kind that a JVM takes, so that each keeps the other out."""

    def __init__(self, descriptor: int, identity: tuple[int, int]) -> None:
        self._descriptor = descriptor
        self._identity = identity

    def release(self) -> None:
        if self._descriptor >= 0:
            _locked_here.discard(self._identity)
            os.close(self._descriptor)
            self._descriptor = -1


_locked_here: set[tuple[int, int]] = set()
"""Device and inode of the locks of this process, between which the operating system sees no conflict."""


class RealFileSystem(FileSystem):
    """The operating system's."""

    def open(self, path: str, *, create: bool = False) -> RealFile:
        flags = os.O_RDWR | os.O_CLOEXEC
        if create:
            flags |= os.O_CREAT
        return RealFile(path, os.open(path, flags, 0o644))

    def read_file(self, path: str) -> bytes:
        with open(path, "rb", buffering=0) as file:
            return file.read()

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def file_size(self, path: str) -> int:
        return os.stat(path).st_size

    def modified_ms(self, path: str) -> int:
        return os.stat(path).st_mtime_ns // 1_000_000

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        os.utime(path, ns=(modified_ms * 1_000_000, modified_ms * 1_000_000))

    def list_names(self, path: str) -> list[str]:
        return os.listdir(path)

    def list_directories(self, path: str) -> list[str]:
        with os.scandir(path) as entries:
            return [entry.name for entry in entries if entry.is_dir()]

    def make_directory(self, path: str) -> None:
        os.makedirs(path, exist_ok=True)

    def rename(self, source: str, target: str) -> None:
        os.replace(source, target)

    def remove(self, path: str) -> None:
        os.unlink(path)

    def remove_tree(self, path: str) -> None:
        import shutil  # rarely needed, and slow to import

        try:
            shutil.rmtree(path)
        except FileNotFoundError:
            if os.path.exists(path):
                raise

    def usable_bytes(self, path: str) -> int:
        disk = os.statvfs(path)
        return disk.f_bavail * disk.f_frsize

    def sync_directory(self, path: str) -> None:
        descriptor = os.open(path or ".", os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def sync_all(self, directories: Iterable[str]) -> bool:
        if not _tells_of_failed_writes():
            return False
        import ctypes  # slow to import, and needed by a stop with many logs only

        system = ctypes.CDLL(None, use_errno=True)
        devices = {os.stat(directory).st_dev: directory for directory in directories}
        for directory in devices.values():
            descriptor = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
            try:
                if system.syncfs(descriptor) != 0:
                    number = ctypes.get_errno()
                    raise OSError(number, os.strerror(number), directory)
            finally:
                os.close(descriptor)
        return True

    def lock(self, path: str) -> RealLock | None:
        if os.path.exists(path) and _identity(os.stat(path)) in _locked_here:
            return None  # and to open and close the file would give up the lock there is
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(descriptor)
            if error.errno in (errno.EACCES, errno.EAGAIN):
                return None
            raise
        identity = _identity(os.fstat(descriptor))
        _locked_here.add(identity)
        return RealLock(descriptor, identity)


def _tells_of_failed_writes() -> bool:
    """Whether syncfs answers with an error if one of the writes failed: since Linux 5.8."""
    if sys.platform != "linux":
        return False
    release = re.match(r"(\d+)\.(\d+)", os.uname().release)
    return release is not None and (int(release[1]), int(release[2])) >= (5, 8)


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino
