"""A file system in memory that can crash, tear writes, refuse operations and fill up.

It keeps apart what a program sees (the page cache) and what the device holds.  A process that dies
loses nothing of the first; when the power fails only the second is left, plus whatever part of the
rest chance had written already.
"""

import errno
import os
import sys
from collections.abc import Callable, Iterable
from enum import Enum
from random import Random
from typing import NamedTuple

from storage.filesystem import Buffer, File, FileSystem, Lock


class PowerCut(BaseException):
    """The machine stopped in the middle of an operation: nothing may catch this but a test."""


class Names(Enum):
    """Which changes to names a power cut may keep of those that no fsync of their directory has covered."""

    IN_ORDER = "in order"
    """A first part of them, directory by directory: a journal writes them in the order they were made."""
    ANY = "any"
    """Any of them, but for those that build on one that is lost; no more is promised by POSIX."""


class _Inode:
    """A file's content, as seen and as on the device."""

    __slots__ = ("durable", "has_failed", "modified_ms", "seen", "waiting")

    def __init__(self) -> None:
        self.seen = bytearray()
        self.durable = b""
        self.waiting: list[tuple[int, bytes | None]] = []
        """(position, bytes) of writes and (size, None) of truncations since the last fsync."""
        self.has_failed = False
        """An fsync failed: what it should have written is lost, whatever later ones say."""
        self.modified_ms = 0

    def apply(self, position: int, data: bytes | None) -> None:
        if data is None:
            _resize(self.seen, position)
        else:
            _overwrite(self.seen, position, data)
        self.waiting.append((position, data))

    def sync(self) -> None:
        if self.has_failed:
            content = bytearray(self.durable)
            for position, data in self.waiting:
                if data is None:
                    _resize(content, position)
                else:
                    _overwrite(content, position, data)
            self.durable = bytes(content)
        else:
            self.durable = bytes(self.seen)
        self.waiting.clear()

    def fail_sync(self) -> None:
        self.has_failed = True
        self.waiting.clear()

    def lose_power(self, chance: Random | None, sector_bytes: int, names: Names) -> None:
        self.has_failed = False
        if chance is not None and sector_bytes:
            self._lose_sectors(chance, sector_bytes)
            return
        content = bytearray(self.durable)
        for position, data in self.waiting if chance is not None else ():
            assert chance is not None
            fate = chance.randrange(3)
            if fate == 0:
                continue  # later operations may still have made it: the device reorders
            if data is None:
                _resize(content, position)
            else:
                kept = len(data) if fate == 1 else chance.randrange(len(data) + 1)
                _overwrite(content, position, data[:kept])
        self.seen = content
        self.durable = bytes(content)
        self.waiting.clear()

    def _lose_sectors(self, chance: Random, sector_bytes: int) -> None:
        """Each sector, and the size, is what it was after some of the changes, each at a time of its own."""
        versions = [self.durable]
        content = bytearray(self.durable)
        for position, data in self.waiting:
            if data is None:
                _resize(content, position)
            else:
                _overwrite(content, position, data)
            versions.append(bytes(content))
        content = bytearray(len(chance.choice(versions)))
        for start in range(0, len(content), sector_bytes):
            sector = chance.choice(versions)[start : start + sector_bytes][: len(content) - start]
            content[start : start + len(sector)] = sector
        self.seen = content
        self.durable = bytes(content)
        self.waiting.clear()


class _Directory:
    """Names, as seen and as on the device."""

    __slots__ = ("durable", "seen", "waiting")

    def __init__(self) -> None:
        self.seen: dict[str, _Inode | _Directory] = {}
        self.durable: dict[str, _Inode | _Directory] = {}
        self.waiting: list[_NameChange] = []

    def apply(self, name: str, new_name: str | None, node: "_Inode | _Directory | None") -> None:
        _change(self.seen, name, new_name, node)
        self.waiting.append(_NameChange(name, new_name, node))

    def sync(self) -> None:
        self.durable = dict(self.seen)
        self.waiting.clear()

    def lose_power(self, chance: Random | None, sector_bytes: int, names: Names) -> None:
        entries = dict(self.durable)
        for change in self._kept(chance, names) if chance is not None else ():
            _change(entries, *change)
        self.seen = entries
        self.sync()
        for node in entries.values():
            node.lose_power(chance, sector_bytes, names)

    def _kept(self, chance: Random, names: Names) -> "list[_NameChange]":
        if names is Names.IN_ORDER:
            return self.waiting[: chance.randrange(len(self.waiting) + 1)]
        kept = []
        lost: set[str | None] = set()
        for change in self.waiting:
            touched = {change.name, change.new_name} - {None}
            if touched & lost or chance.random() < 0.5:
                lost |= touched
            else:
                kept.append(change)
        return kept


class _NameChange(NamedTuple):
    """``name`` was created as ``node``, or became ``new_name``, or, if there is neither, was removed."""

    name: str
    new_name: str | None
    node: _Inode | _Directory | None


def _change(
    names: dict[str, _Inode | _Directory], name: str, new_name: str | None, node: _Inode | _Directory | None
) -> None:
    if new_name is not None:
        names[new_name] = names.pop(name)
    elif node is not None:
        names[name] = node
    else:
        del names[name]


def _resize(content: bytearray, size: int) -> None:
    if size <= len(content):
        del content[size:]
    else:
        content.extend(bytes(size - len(content)))


def _overwrite(content: bytearray, position: int, data: bytes) -> None:
    if position > len(content):
        content.extend(bytes(position - len(content)))
    content[position : position + len(data)] = data


class MemoryFile(File):
    __slots__ = ("_file_system", "_inode")

    def __init__(self, path: str, file_system: "MemoryFileSystem", inode: _Inode) -> None:
        self.path = path
        self._file_system = file_system
        self._inode = inode
        file_system.open_files += 1

    def __del__(self) -> None:
        self._file_system.open_files -= 1

    def fileno(self) -> None:
        return None

    def pread(self, size: int, position: int) -> bytes:
        self._file_system._check("read", self.path)
        self._file_system.reads += 1
        return bytes(self._inode.seen[position : position + size])

    def pwrite(self, data: Buffer, position: int) -> None:
        file_system = self._file_system
        content = bytes(data)
        room = file_system._room(position + len(content) - len(self._inode.seen))
        if (error := file_system._refusal("write", self.path)) is not None:
            if kept := int(len(content) * file_system.refused_keeps):
                self._inode.apply(position, content[:kept])
            raise error
        if file_system._mutates():
            self._inode.apply(position, content[: int(len(content) * file_system.cut_keeps)])
            raise PowerCut
        if room < 0:
            self._inode.apply(position, content[: max(len(content) + room, 0)])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self.path)
        self._inode.apply(position, content)
        self._inode.modified_ms = file_system.now_ms()

    def size(self) -> int:
        return len(self._inode.seen)

    def truncate(self, size: int) -> None:
        self._file_system._check("truncate", self.path, mutates=True)
        if size != len(self._inode.seen):
            self._inode.apply(size, None)
            self._inode.modified_ms = self._file_system.now_ms()

    def sync(self) -> None:
        try:
            self._file_system._check("sync", self.path, mutates=True)
        except OSError:
            self._file_system.failed_syncs += 1
            self._inode.fail_sync()
            raise
        self._file_system.syncs += 1
        self._inode.sync()

    def is_cached(self, position: int, size: int) -> bool:
        return True


class MemoryLock(Lock):
    def __init__(self, held: set[str], path: str) -> None:
        self._held = held
        self._path = path

    def release(self) -> None:
        self._held.discard(self._path)


class _Refusal:
    __slots__ = ("after", "error_number", "operation", "path_suffix")

    def __init__(self, operation: str, path_suffix: str, error_number: int, after: int) -> None:
        self.operation = operation
        self.path_suffix = path_suffix
        self.error_number = error_number
        self.after = after


class MemoryFileSystem(FileSystem):
    """Deterministic: what happens at a crash comes from the ``Random`` that ``lose_power`` is given."""

    def __init__(self, *, now_ms: Callable[[], int] = lambda: 0) -> None:
        self.now_ms = now_ms
        self.capacity: int | None = None
        """Bytes that all files together may hold; above, a write is cut and ENOSPC."""
        self.stop_after: int | None = None
        """So many changes from now the power is cut (``PowerCut``), in the middle of the last one."""
        self.cut_keeps = 1.0
        """If that is a write, this share of it reaches the cache."""
        self.refused_keeps = 0.0
        """The same for a write that is refused."""
        self.can_sync_all = True
        self.open_files = 0
        self.reads = 0
        self.syncs = 0
        self.failed_syncs = 0
        """Fsyncs of files that were refused: what they should have written is lost at the next power cut."""
        self._root = _Directory()
        self._locks: set[str] = set()
        self._refusals: list[_Refusal] = []

    # Faults

    def refuse(self, operation: str, error_number: int, *, path_suffix: str = "", after: int = 0) -> None:
        """Let the next operation of this name on such a path fail, or the one ``after`` so many.

        The names are ``open``, ``read``, ``write``, ``truncate``, ``sync``, ``rename`` and ``remove``.
        """
        self._refusals.append(_Refusal(operation, path_suffix, error_number, after))

    @property
    def refuses(self) -> bool:
        """Something that ``refuse`` asked for has not been met yet."""
        return bool(self._refusals)

    def refuse_nothing(self) -> None:
        """Forget what ``refuse`` asked for and nobody has met."""
        self._refusals.clear()

    def fill(self, usable_bytes: int = 0) -> None:
        """Leave room for so much more."""
        self.capacity = _tree_size(self._root) + usable_bytes

    def kill(self) -> None:
        """The process died: locks are gone, and nothing else."""
        self._locks.clear()
        self.stop_after = None

    def lose_power(
        self, chance: Random | None = None, *, sector_bytes: int = 0, names: Names = Names.IN_ORDER
    ) -> None:
        """Forget what was not fsynced, or, with ``chance``, a random part of it, torn and reordered.

        With ``sector_bytes`` a file is torn between sectors only, as real devices do it; else anywhere,
        which finds more where nothing depends on that.
        """
        self.kill()
        self._root.lose_power(chance, sector_bytes, names)

    def sync_everything(self) -> None:
        """As if all of it had reached the device by itself."""
        _sync_tree(self._root)

    def _refusal(self, operation: str, path: str) -> OSError | None:
        for refusal in self._refusals:
            if refusal.operation == operation and path.endswith(refusal.path_suffix):
                if not refusal.after:
                    self._refusals.remove(refusal)
                    return OSError(refusal.error_number, os.strerror(refusal.error_number), path)
                refusal.after -= 1
        return None

    def _mutates(self) -> bool:
        """Count a change; True if the power is cut during it."""
        if self.stop_after is None:
            return False
        self.stop_after -= 1
        return self.stop_after <= 0

    def _check(self, operation: str, path: str, *, mutates: bool = False) -> None:
        if self._refusals and (error := self._refusal(operation, path)) is not None:
            raise error
        if mutates and self._mutates():
            raise PowerCut

    def _room(self, growth: int) -> int:
        if self.capacity is None or growth <= 0:
            return 0
        return min(self.capacity - _tree_size(self._root) - growth, 0)

    # Names

    def _parent(self, path: str) -> tuple[_Directory, str]:
        directory, _, name = path.rpartition("/")
        return self._directory(directory), name

    def _directory(self, path: str) -> _Directory:
        node: _Inode | _Directory = self._root
        for part in path.split("/"):
            if part and part != ".":
                if not isinstance(node, _Directory):
                    raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
                if part not in node.seen:
                    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
                node = node.seen[part]
        if not isinstance(node, _Directory):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
        return node

    def _inode(self, path: str) -> _Inode:
        parent, name = self._parent(path)
        return self._file(parent.seen.get(name), path)

    def _file(self, node: _Inode | _Directory | None, path: str) -> _Inode:
        if node is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        if isinstance(node, _Directory):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        return node

    def open(self, path: str, *, create: bool = False) -> MemoryFile:
        self._check("open", path)
        parent, name = self._parent(path)
        node = parent.seen.get(name)
        if node is None and create:
            self._check("write", path, mutates=True)
            node = _Inode()
            node.modified_ms = self.now_ms()
            parent.apply(name, None, node)
        return MemoryFile(path, self, self._file(node, path))

    def read_file(self, path: str) -> bytes:
        self._check("read", path)
        return bytes(self._inode(path).seen)

    def exists(self, path: str) -> bool:
        try:
            parent, name = self._parent(path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return not name or name in parent.seen

    def file_size(self, path: str) -> int:
        return len(self._inode(path).seen)

    def modified_ms(self, path: str) -> int:
        return self._inode(path).modified_ms

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        self._inode(path).modified_ms = modified_ms

    def list_names(self, path: str) -> list[str]:
        return list(self._directory(path).seen)

    def list_directories(self, path: str) -> list[str]:
        return [name for name, node in self._directory(path).seen.items() if isinstance(node, _Directory)]

    def make_directory(self, path: str) -> None:
        node = self._root
        for part in path.split("/"):
            if part and part != ".":
                child = node.seen.get(part)
                if child is None:
                    self._check("write", path, mutates=True)
                    child = _Directory()
                    node.apply(part, None, child)
                if not isinstance(child, _Directory):
                    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
                node = child

    def rename(self, source: str, target: str) -> None:
        self._check("rename", source, mutates=True)
        directory, name = self._parent(source)
        new_directory, new_name = self._parent(target)
        assert directory is new_directory, "storage renames within one directory only"
        node = directory.seen.get(name)
        if node is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), source)
        replaced = directory.seen.get(new_name)
        if isinstance(replaced, _Directory) and replaced.seen:
            raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), target)
        directory.apply(name, new_name, None)

    def remove(self, path: str) -> None:
        self._check("remove", path, mutates=True)
        parent, name = self._parent(path)
        self._inode(path)
        parent.apply(name, None, None)

    def remove_tree(self, path: str) -> None:
        if not self.exists(path):
            return
        for name, node in list(self._directory(path).seen.items()):
            inner = f"{path}/{name}"
            if isinstance(node, _Directory):
                self.remove_tree(inner)
            else:
                self.remove(inner)
        self._check("remove", path, mutates=True)
        parent, name = self._parent(path)
        parent.apply(name, None, None)

    def usable_bytes(self, path: str) -> int:
        self._directory(path)
        return sys.maxsize if self.capacity is None else max(0, self.capacity - _tree_size(self._root))

    def sync_directory(self, path: str) -> None:
        self._check("sync", path, mutates=True)
        self.syncs += 1
        self._directory(path).sync()

    def sync_all(self, directories: Iterable[str]) -> bool:
        for directory in directories:
            self._directory(directory)
        self._check("sync", "everything", mutates=True)
        if not self.can_sync_all:
            return False
        self.syncs += 1
        self.sync_everything()
        return True

    def lock(self, path: str) -> MemoryLock | None:
        self.open(path, create=True)
        if path in self._locks:
            return None
        self._locks.add(path)
        return MemoryLock(self._locks, path)


def _sync_tree(directory: _Directory) -> None:
    directory.sync()
    for node in directory.seen.values():
        if isinstance(node, _Directory):
            _sync_tree(node)
        else:
            node.sync()


def _tree_size(directory: _Directory) -> int:
    return sum(
        _tree_size(node) if isinstance(node, _Directory) else len(node.seen)
        for node in directory.seen.values()
    )
