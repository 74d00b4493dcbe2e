from collections.abc import Callable
from pathlib import Path

import pytest
import trio

from broker import limits
from broker.network.sending import Part, send_parts
from storage.file_range import FileRange
from storage.filesystem import RealFile, RealFileSystem
from storage.memory_filesystem import MemoryFileSystem
from tests.broker.network.memory_peer import MemoryPeer

CONTENT = bytes(range(256)) * (3 * 4096)
LONG = limits.SENDFILE_BYTES_MIN


class Threads:
    """Stands for the threads that may block."""

    def __init__(self) -> None:
        self.calls = 0

    async def run(self, function: Callable[[], object]) -> object:
        self.calls += 1
        await trio.lowlevel.checkpoint()
        return function()


class ColdFile(RealFile):
    """A file none of which is in the page cache until it has been read."""

    warm_until = 0

    def is_cached(self, position: int, size: int) -> bool:
        return position + size <= self.warm_until

    def read_cached(self, size: int, position: int) -> bytes | bytearray | None:
        return super().read_cached(size, position) if self.is_cached(position, size) else None

    def pread(self, size: int, position: int) -> bytes:
        self.warm_until = max(self.warm_until, position + size)
        return super().pread(size, position)


@pytest.fixture
def file(tmp_path: Path) -> RealFile:
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(CONTENT)
    return RealFileSystem().open(str(path))


@pytest.fixture
def cold_file(file: RealFile) -> ColdFile:
    import os

    return ColdFile(file.path, os.open(file.path, os.O_RDONLY))


async def send(peer: MemoryPeer, *parts: Part) -> int:
    threads = Threads()
    await send_parts(peer, parts, threads.run)
    return threads.calls


async def test_bytes_leave_together() -> None:
    peer = MemoryPeer()
    await send(peer, b"one ", bytearray(b"two "), memoryview(b"three"))
    assert peer.sent == [b"one two three"]


async def test_nothing_is_sent_for_nothing() -> None:
    peer = MemoryPeer()
    await send(peer)
    assert peer.sent == []


async def test_short_ranges_leave_together_with_what_surrounds_them(file: RealFile) -> None:
    peer = MemoryPeer()
    await send(peer, b"<", FileRange(file, 100, 50, 0), b"|", FileRange(file, 0, 0, 0), b">")
    assert peer.sent == [b"<" + CONTENT[100:150] + b"|>"]
    assert peer.files_sent == []


async def test_long_ranges_go_from_file_to_socket(file: RealFile) -> None:
    peer = MemoryPeer()
    await send(peer, b"<", FileRange(file, 7, LONG, 0), b"|", FileRange(file, 9, LONG, 0), b">")
    assert peer.received == b"<" + CONTENT[7 : 7 + LONG] + b"|" + CONTENT[9 : 9 + LONG] + b">"
    assert peer.files_sent == [(7, LONG), (9, LONG)]


async def test_very_long_ranges_go_in_pieces(file: RealFile) -> None:
    peer = MemoryPeer()
    size = 2 * limits.SENDFILE_BYTES_MAX + 5
    await send(peer, FileRange(file, 3, size, 0))
    assert peer.received == CONTENT[3 : 3 + size]
    assert [size for _, size in peer.files_sent] == [limits.SENDFILE_BYTES_MAX] * 2 + [5]


async def test_where_files_cannot_be_sent_they_are_read_in_pieces(file: RealFile) -> None:
    peer = MemoryPeer(sends_files=False)
    size = 2 * limits.SENDFILE_BYTES_MAX + 5
    await send(peer, b"<", FileRange(file, 3, size, 0), b">")
    assert peer.received == b"<" + CONTENT[3 : 3 + size] + b">"
    assert max(len(data) for data in peer.sent) == limits.SENDFILE_BYTES_MAX


async def test_files_in_memory_are_read() -> None:
    memory = MemoryFileSystem()
    file = memory.open("log", create=True)
    file.pwrite(CONTENT, 0)
    peer = MemoryPeer()
    await send(peer, FileRange(file, 3, 500_000, 0), FileRange(file, 1, 3, 0))
    assert peer.received == CONTENT[3:500_003] + CONTENT[1:4]


async def test_many_short_ranges_do_not_gather_beyond_a_limit(file: RealFile) -> None:
    peer = MemoryPeer()
    ranges = [FileRange(file, 1000 * number, 30_000, 0) for number in range(50)]
    await send(peer, *ranges)
    assert peer.received == b"".join(CONTENT[1000 * n : 1000 * n + 30_000] for n in range(50))
    assert max(len(data) for data in peer.sent) <= limits.READY_BYTES_MAX + 30_000


@pytest.mark.parametrize("size", [10, LONG - 1, LONG, LONG + 1])
async def test_a_thread_reads_what_is_not_in_the_page_cache(cold_file: ColdFile, size: int) -> None:
    peer = MemoryPeer()
    assert await send(peer, FileRange(cold_file, 5, size, 0)) == 1
    assert peer.received == CONTENT[5 : 5 + size]


async def test_every_piece_is_looked_up_in_the_page_cache(cold_file: ColdFile) -> None:
    peer = MemoryPeer()
    assert await send(peer, FileRange(cold_file, 0, 2 * limits.SENDFILE_BYTES_MAX + 1, 0)) == 3


async def test_what_is_in_the_page_cache_needs_no_thread(file: RealFile) -> None:
    peer = MemoryPeer()
    file.pread(len(CONTENT), 0)
    assert await send(peer, FileRange(file, 0, len(CONTENT), 0), FileRange(file, 0, 100, 0)) == 0


@pytest.mark.parametrize("size", [100, 10 * LONG])
@pytest.mark.parametrize("sends_files", [True, False])
async def test_a_file_that_has_become_shorter_is_an_error(
    file: RealFile, size: int, sends_files: bool
) -> None:
    peer = MemoryPeer(sends_files=sends_files)
    with pytest.raises(EOFError):
        await send(peer, b"<", FileRange(file, len(CONTENT) - 50, size, 0))
