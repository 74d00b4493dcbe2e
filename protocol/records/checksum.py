"""CRC-32C, the checksum of record batches and producer snapshots, at the speed of the processor.

The ``crc32c`` package imports a command line and its own metadata, which takes as long as all of the
protocol: only its compiled part is loaded here.
"""

import sys
from importlib.machinery import PathFinder
from typing import Any, Protocol, cast

from protocol.primitives import Buffer


class Checksum(Protocol):
    """Of some bytes; ``value`` is that of the bytes before them."""

    def __call__(self, data: Buffer, value: int = 0, /) -> int: ...


def _load() -> Checksum:
    package = PathFinder.find_spec("crc32c")
    locations = package.submodule_search_locations if package is not None else None
    spec = PathFinder.find_spec("_crc32c", locations) if locations else None
    if spec is None or spec.loader is None:
        from crc32c import crc32c  # another version of it, or no package at all: then this says so

        return crc32c
    module: Any = spec.loader.create_module(spec)
    spec.loader.exec_module(module)
    return cast(Checksum, module.crc32c)


_loaded = sys.modules.get("crc32c")
crc32c: Checksum = _load() if _loaded is None else _loaded.crc32c
"""The CRC-32C of some bytes.  Releases the interpreter's lock for large ones."""
