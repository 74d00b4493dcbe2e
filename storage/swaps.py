"""What a cleaner left half done when the process ended: files marked cleaned, swapped or deleted."""

import os

from storage import paths
from storage.log_services import LogServices
from storage.stored_batches import read_headers

_TRANSIENT = (paths.DELETED, paths.CLEANED, paths.SWAP)


def finish_swaps(services: LogServices, directory: str) -> list[str]:
    """Complete or undo what a cleaner was doing, remove what is marked deleted; return the names left."""
    file_system = services.file_system
    names = set(file_system.list_names(directory))
    if not any(name.endswith(_TRANSIENT) for name in names):
        return list(names)

    def remove(name: str) -> None:
        file_system.remove(os.path.join(directory, name))
        names.discard(name)

    for name in [n for n in names if n.endswith(paths.DELETED)]:
        if not name.endswith(paths.SNAPSHOT + paths.DELETED):  # the metadata log's own affair
            remove(name)
    cleaned = [name for name in names if name.endswith(paths.CLEANED)]
    swaps = [name for name in names if name.endswith(paths.SWAP)]
    # A swap file at or above an unfinished cleaned one is part of a split that was not completed:
    # the segment that it came from is still there.
    first_cleaned = min([_base(name) for name in cleaned], default=None)
    if first_cleaned is not None:
        for name in swaps:
            if _base(name) >= first_cleaned:
                services.report(
                    f"{os.path.join(directory, name)} is left of an unfinished split; it is removed"
                )
                remove(name)
    for name in cleaned:
        remove(name)
    swaps = [name for name in swaps if name in names]
    # The others are complete, and replace every segment in the range that they cover.
    ranges = [_swapped_range(services, directory, n) for n in swaps if n.endswith(paths.LOG + paths.SWAP)]
    if ranges:
        first = min(start for start, _ in ranges)
        end = max(end for _, end in ranges)
        for name in [n for n in names if not n.endswith(paths.SWAP) and n[:20].isdigit()]:
            if first <= _base(name) < end:
                services.report(f"{os.path.join(directory, name)} has been compacted; it is removed")
                remove(name)
    for name in swaps:
        plain = name.removesuffix(paths.SWAP)
        file_system.rename(os.path.join(directory, name), os.path.join(directory, plain))
        names.discard(name)
        names.add(plain)
    file_system.sync_directory(directory)
    return list(names)


def _base(name: str) -> int:
    return int(name[:20])


def _swapped_range(services: LogServices, directory: str, name: str) -> tuple[int, int]:
    file = services.file_system.open(os.path.join(directory, name))
    next_offset = _base(name)
    for _, batch in read_headers(file, 0, file.size()):
        next_offset = batch.next_offset
    return _base(name), next_offset
