"""Answers on their way out: bytes that are gathered, and record ranges that go from file to socket."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeAlias

from trio.lowlevel import checkpoint

from broker import limits
from broker.network.peer import Peer
from storage.file_range import FileRange

Part: TypeAlias = bytes | bytearray | memoryview | FileRange
"""A piece of an answer."""

RunBlocking: TypeAlias = Callable[[Callable[[], object]], Awaitable[object]]
"""Runs a function where it may block without keeping anybody waiting but its caller."""


async def send_parts(peer: Peer, parts: Iterable[Part], run_blocking: RunBlocking) -> None:
    """Send everything in order, with as few calls as it takes.

    Bytes and short ranges are gathered up to ``READY_BYTES_MAX``; a long range is sent by the operating
    system, if the peer can take that, else read piece by piece.  A range that is not in the page cache is
    read by a thread first, so that nobody else waits for the disk.  ``EOFError``, ``OSError`` or
    ``DiskFailure``: a file cannot be read, and the answer has been cut off.
    """
    gathered: list[bytes | bytearray | memoryview] = []
    gathered_bytes = 0
    for part in parts:
        if not isinstance(part, FileRange):
            gathered.append(part)
            gathered_bytes += len(part)
        elif part.size_bytes >= limits.SENDFILE_BYTES_MIN:
            if gathered:
                await peer.send(_joined(gathered), more=True)
                gathered, gathered_bytes = [], 0
            await _send_long(peer, part, run_blocking)
        elif part.size_bytes:
            records = part.read_cached()
            if records is None:
                await run_blocking(part.read)
                records = part.read()
            gathered.append(_whole(records, part.size_bytes))
            gathered_bytes += part.size_bytes
        if gathered_bytes >= limits.READY_BYTES_MAX:
            await peer.send(_joined(gathered))
            gathered, gathered_bytes = [], 0
            await checkpoint()  # a peer that takes everything at once must not starve the others
    if gathered:
        await peer.send(_joined(gathered))


async def _send_long(peer: Peer, records: FileRange, run_blocking: RunBlocking) -> None:
    file = records.file
    descriptor = file.fileno() if peer.sends_files else None
    end = records.position + records.size_bytes
    for position in range(records.position, end, limits.SENDFILE_BYTES_MAX):
        size = min(end - position, limits.SENDFILE_BYTES_MAX)
        if not (file.is_cached(position, 1) and file.is_cached(position + size - 1, 1)):
            await run_blocking(lambda size=size, position=position: file.pread(size, position))  # type: ignore[misc]
        if descriptor is not None:
            await peer.send_file(descriptor, position, size)
        else:
            data = _whole(file.pread(size, position), size)
            await peer.send(data, more=position + size < end)
            await checkpoint()


def _whole(data: bytes | bytearray, size: int) -> bytes | bytearray:
    if len(data) != size:
        raise EOFError(f"a file holds {len(data)} bytes where {size} were written")
    return data


def _joined(parts: Sequence[bytes | bytearray | memoryview]) -> bytes | bytearray:
    if len(parts) == 1:
        only = parts[0]
        return bytes(only) if isinstance(only, memoryview) else only
    return b"".join(parts)
