"""Kafka's checkpoint files: a version, a count, and one entry a line.

Reading raises CorruptFile unless every line is as it must be, and DiskFailure if the file cannot be read;
a missing or empty file has no entries.
"""

from collections.abc import Iterable, Mapping

from storage import paths
from storage.errors import CorruptFile
from storage.filesystem import FileSystem
from storage.small_files import read_small_file

VERSION = "0"

Replica = tuple[str, int]
"""Topic and partition."""


def read_offsets(file_system: FileSystem, path: str) -> dict[Replica, int]:
    """Lines of ``topic partition offset``: recovery points, log starts, high watermarks."""
    offsets: dict[Replica, int] = {}
    for line in _read_lines(file_system, path):
        try:
            topic, partition, offset = line.split()
            offsets[topic, int(partition)] = _bounded(offset, paths.OFFSET_MAX)
        except ValueError:
            raise CorruptFile(path, f"malformed line {line!r}") from None
    return offsets


def format_offsets(offsets: Mapping[Replica, int]) -> bytes:
    return _format_lines([f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items()])


def read_epochs(file_system: FileSystem, path: str) -> list[tuple[int, int]]:
    """Lines of ``epoch start_offset``: which leader epoch began where."""
    epochs: list[tuple[int, int]] = []
    for line in _read_lines(file_system, path):
        try:
            epoch, start = line.split()
            epochs.append((_bounded(epoch, paths.EPOCH_MAX), _bounded(start, paths.OFFSET_MAX)))
        except ValueError:
            raise CorruptFile(path, f"malformed line {line!r}") from None
    return epochs


def format_epochs(epochs: Iterable[tuple[int, int]]) -> bytes:
    return _format_lines([f"{epoch} {start}" for epoch, start in epochs])


def _read_lines(file_system: FileSystem, path: str) -> list[str]:
    content = read_small_file(file_system, path)
    if content is None:
        return []
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        raise CorruptFile(path, "not a text file") from None
    lines = text.splitlines()
    if not lines:
        return []
    if lines[0].strip() != VERSION:
        raise CorruptFile(path, f"unknown version {lines[0]!r}")
    if len(lines) == 1:
        return []
    entries = lines[2:]
    try:
        count = int(lines[1])
    except ValueError:
        raise CorruptFile(path, f"malformed count {lines[1]!r}") from None
    if count != len(entries):
        raise CorruptFile(path, f"{count} entries were written, {len(entries)} are there")
    return entries


def _bounded(digits: str, highest: int) -> int:
    """Raises ValueError for what no log can contain."""
    number = int(digits)
    if not 0 <= number <= highest:
        raise ValueError(digits)
    return number


def _format_lines(lines: list[str]) -> bytes:
    return "\n".join([VERSION, str(len(lines)), *lines, ""]).encode("utf-8")
