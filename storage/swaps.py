"""The renames by which cleaned segments take the place of others, and their completion after a crash.

The cleaner writes ``.cleaned`` files.  When they are complete they become ``.swap`` files: from the last
of these renames on the cleaned segment is the valid one.  Then the old files are marked as deleted, and
the new ones get their plain names.

File systems may write names in any order, so the folder is fsynced between: what is replaced goes when the
swap files have their names, these get plain ones when that has gone, and the log's comes first.
"""

import os
from collections.abc import Iterable
from typing import NamedTuple

from storage import paths
from storage.descriptors import CachedFile
from storage.filesystem import FileSystem
from storage.log_services import LogServices
from storage.stored_batches import read_headers

_TRANSIENT = (paths.DELETED, paths.CLEANED, paths.SWAP)


class Plan(NamedTuple):
    """What completes or undoes the work of a cleaner."""

    removed: dict[str, str]
    """Name -> why it goes; empty where that goes without saying."""
    renamed: dict[str, str]
    """Name -> the name that it gets."""


def plan_swaps(file_system: FileSystem, directory: str, names: Iterable[str]) -> Plan:
    """What a start has to do about ``names``, which are those of all files in a replica's folder."""
    left = {name for name in names if name.endswith(_TRANSIENT) or _is_numbered(name)}
    removed: dict[str, str] = {}

    def remove(name: str, why: str = "") -> None:
        removed[name] = why
        left.discard(name)

    for name in [n for n in left if n.endswith(paths.DELETED)]:
        if not name.endswith(paths.SNAPSHOT + paths.DELETED):  # the metadata log's own affair
            remove(name)
    # Whatever else ends like that is not a cleaner's.
    cleaned = [name for name in left if name.endswith(paths.CLEANED) and _is_numbered(name)]
    swaps = [name for name in left if name.endswith(paths.SWAP) and _is_numbered(name)]
    # A swap file at or above an unfinished cleaned one is part of a split that was not completed:
    # the segment that it came from is still there.
    first_cleaned = min([_base(name) for name in cleaned], default=None)
    if first_cleaned is not None:
        for name in swaps:
            if _base(name) >= first_cleaned:
                remove(name, "is left of an unfinished split")
    for name in cleaned:
        remove(name)
    swaps = [name for name in swaps if name in left]
    # The others are complete, and replace every segment in the range that they cover.
    ranges = [_swapped_range(file_system, directory, n) for n in swaps if n.endswith(paths.LOG + paths.SWAP)]
    if ranges:
        first = min(start for start, _ in ranges)
        end = max(end for _, end in ranges)
        # What producers had done before the first record still holds.
        kept = {paths.offset_name(start) + paths.PRODUCER_SNAPSHOT for start, _ in ranges}
        for name in [n for n in left - kept if not n.endswith(paths.SWAP) and _is_numbered(n)]:
            if first <= _base(name) < end:
                remove(name, "has been compacted")
    return Plan(removed, {name: name.removesuffix(paths.SWAP) for name in swaps})


def finish_swaps(services: LogServices, directory: str) -> list[str]:
    """Complete or undo what a cleaner was doing, remove what is marked deleted; return the names left."""
    file_system = services.file_system
    names = set(file_system.list_names(directory))
    if not any(name.endswith(_TRANSIENT) for name in names):
        return sorted(names)
    plan = plan_swaps(file_system, directory, names)
    has_swaps = any(name.endswith(paths.SWAP) for name in names)
    if has_swaps:
        # A process that died may have left these names in the cache only, and what they replace goes now.
        file_system.sync_directory(directory)
    unfinished = {name: why for name, why in plan.removed.items() if name.endswith(paths.SWAP)}
    # The cleaned files later, which tell that these are unfinished.
    for removed in (unfinished, {name: why for name, why in plan.removed.items() if name not in unfinished}):
        for name, why in sorted(removed.items()):
            if why:
                services.report(f"{os.path.join(directory, name)} {why}; it is removed")
            file_system.remove(os.path.join(directory, name))
            names.discard(name)
        if has_swaps and removed:
            # With the swap file goes what tells that the others have been replaced.
            file_system.sync_directory(directory)
    logs = {name: plain for name, plain in plan.renamed.items() if plain.endswith(paths.LOG)}
    # Indexes later: as long as the log is a swap file, what has their plain names counts as replaced.
    for renamed in (logs, {name: plain for name, plain in plan.renamed.items() if name not in logs}):
        for name, plain in sorted(renamed.items()):
            file_system.rename(os.path.join(directory, name), os.path.join(directory, plain))
            names.discard(name)
            names.add(plain)
        file_system.sync_directory(directory)
    return sorted(names)


def mark_cleaned(services: LogServices, directory: str, base_offset: int) -> None:
    """The cleaned segment's files, which are on the device, become ``.swap`` files."""
    _rename(services, directory, base_offset, paths.CLEANED, paths.SWAP)


def unmark_cleaned(services: LogServices, directory: str, base_offset: int) -> None:
    """The other way round: from the first of these renames on the old segments are the valid ones."""
    _rename(services, directory, base_offset, paths.SWAP, paths.CLEANED)


def discard_all_cleaned(services: LogServices, directory: str) -> None:
    """Remove what earlier cleanings have left: a start takes a later swap for unfinished beside it."""
    file_system = services.file_system
    left = [n for n in file_system.list_names(directory) if n.endswith(paths.CLEANED) and _is_numbered(n)]
    if left:
        file_system.sync_directory(directory)  # some may have been swap files
    for name in sorted(left):
        file_system.remove(os.path.join(directory, name))


def is_marked_swap(path: str) -> bool:
    """Whether a segment's file is a swap file: a start takes it for what replaces others."""
    return path.endswith(paths.SWAP)


def unmark_swapped(services: LogServices, files: Iterable[CachedFile]) -> None:
    """The files that were in the way are gone: those of a segment that are swap files get their names."""
    for file in files:
        if is_marked_swap(file.path):
            plain = file.path.removesuffix(paths.SWAP)
            _rename_file(services, file.path, plain)
            file.close()  # what is open knows its old name
            file.path = plain


def discard_cleaned(services: LogServices, directory: str, base_offset: int) -> None:
    """Remove a cleaned segment that nobody wants, or what there is of it."""
    prefix = os.path.join(directory, paths.offset_name(base_offset))
    for suffix in paths.SEGMENT_FILES:
        try:
            services.file_system.remove(prefix + suffix + paths.CLEANED)
        except FileNotFoundError:
            pass


def _rename(services: LogServices, directory: str, base_offset: int, old: str, new: str) -> None:
    prefix = os.path.join(directory, paths.offset_name(base_offset))
    for suffix in paths.SEGMENT_FILES:
        _rename_file(services, prefix + suffix + old, prefix + suffix + new)


def _rename_file(services: LogServices, path: str, new_path: str) -> None:
    try:
        services.file_system.rename(path, new_path)
    except FileNotFoundError:
        if paths.TRANSACTION_INDEX not in path:  # which few segments have
            raise


def _is_numbered(name: str) -> bool:
    return name[:20].isdecimal() and name[:20].isascii() and len(name) > 20


def _base(name: str) -> int:
    return int(name[:20])


def _swapped_range(file_system: FileSystem, directory: str, name: str) -> tuple[int, int]:
    file = file_system.open(os.path.join(directory, name))
    next_offset = _base(name)
    for _, batch in read_headers(file, 0, file.size()):
        next_offset = batch.next_offset
    return _base(name), next_offset
