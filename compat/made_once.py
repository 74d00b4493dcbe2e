"""What takes long to make is made on first use and kept: whole or not at all, and by one process."""

import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path


def made_once(path: Path, make: Callable[[Path], None]) -> Path:
    """``path``, which ``make`` makes if it is not there: a folder or a file.

    It is made beside its place, so that a half-made one is never taken for whole.  Whoever else wants it
    meanwhile waits.
    """
    if path.exists():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_name(f"{path.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if path.exists():
            return path
        partial = path.with_name(f"{path.name}.{os.getpid()}.part")
        try:
            make(partial)
            partial.rename(path)
        finally:
            if partial.is_dir():
                shutil.rmtree(partial)
            else:
                partial.unlink(missing_ok=True)
    return path
