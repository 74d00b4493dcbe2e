"""Disk faults for a process that was started with ``shim.c``: switched on and off from outside."""

import mmap
import struct
import subprocess
from pathlib import Path
from typing import Final

SOURCE: Final = Path(__file__).resolve().parent / "shim.c"

OPERATIONS: Final = {
    "open": 1,
    "write": 2,
    "sync": 4,
    "truncate": 8,
    "rename": 16,
    "remove": 32,
    "make directory": 64,
    "read": 128,
    "send": 256,
}

_LAYOUT: Final = struct.Struct("=IiI500s")


class Faults:
    """The faults of one process.  ``environment`` is what it must be started with."""

    def __init__(self, folder: Path) -> None:
        """Raises CalledProcessError or FileNotFoundError where there is no C compiler."""
        folder.mkdir(parents=True, exist_ok=True)
        library = folder / "shim.so"
        command = ["cc", "-shared", "-fPIC", "-O1", "-o", str(library), str(SOURCE), "-ldl"]
        subprocess.run(command, check=True, capture_output=True)
        control = folder / "faults"
        control.write_bytes(bytes(_LAYOUT.size))
        with control.open("r+b") as file:
            self._control = mmap.mmap(file.fileno(), _LAYOUT.size)
        self.environment = {"LD_PRELOAD": str(library), "OTTLA_FAULTS": str(control)}

    def begin(self, operation: str, error_number: int, path_part: str) -> None:
        """Let each such operation on a path that contains ``path_part`` fail from now on."""
        self.end()
        facts = _LAYOUT.pack(0, error_number, 0, path_part.encode())
        self._control[:] = facts
        self._control[:4] = struct.pack("=I", OPERATIONS[operation])

    def end(self) -> None:
        """Let everything work again."""
        self._control[:4] = bytes(4)

    @property
    def hits(self) -> int:
        """How many operations have failed since ``begin``."""
        _, _, hits, _ = _LAYOUT.unpack(self._control[:])
        return int(hits)
