"""A peer without a socket, for tests on a virtual clock."""

import trio

from broker.network.peer import PeerGone


class MemoryPeer:
    """The test plays the client: it ``feed``s bytes and looks at what was ``sent``, one entry a send.

    The client takes everything at once until ``stop_reading``; then sends wait until ``take``.
    """

    def __init__(self, *, sends_files: bool = True) -> None:
        self.transfers = 0
        self.sends_files = sends_files
        self.sent: list[bytes] = []
        self.files_sent: list[tuple[int, int]] = []
        self.receives = 0
        self.is_closed = False
        self.receive_at_most = 1 << 30
        self._incoming = bytearray()
        self._has_ended = False
        self._gone: str | None = None
        self._changed = trio.Event()
        self._room: int | None = None

    # The client's side.

    def feed(self, data: bytes) -> None:
        self._incoming += data
        self._change()

    def end(self) -> None:
        """Send no more, but go on reading."""
        self._has_ended = True
        self._change()

    def vanish(self) -> None:
        self._gone = "connection reset"
        self._change()

    def stop_reading(self, room: int = 0) -> None:
        """Let only ``room`` more bytes through."""
        self._room = room

    def take(self) -> None:
        """Read on."""
        self._room = None
        self._change()

    @property
    def received(self) -> bytes:
        """Everything that the client has got."""
        return b"".join(self.sent)

    @property
    def unread(self) -> int:
        """Bytes that the broker has not received yet."""
        return len(self._incoming)

    def _change(self) -> None:
        self._changed.set()
        self._changed = trio.Event()

    # The broker's side.

    def receive_nowait(self, space: memoryview) -> int | None:
        assert len(space) > 0
        self._check()
        if not self._incoming:
            if not self._has_ended:
                return None
            self.transfers += 1
            return 0
        count = min(len(space), len(self._incoming), self.receive_at_most)
        space[:count] = self._incoming[:count]
        del self._incoming[:count]
        self.transfers += 1
        self.receives += 1
        return count

    async def wait_readable(self) -> None:
        await trio.lowlevel.checkpoint()
        while not (self._incoming or self._has_ended or self._gone):
            await self._changed.wait()

    async def send(self, data: bytes | bytearray, *, more: bool = False) -> None:
        self._check()
        if self._room is not None:
            if self._room:
                self.sent.append(bytes(data[: self._room]))
                data = data[self._room :]
                self._room = 0
            while self._room is not None:
                await self._changed.wait()
                self._check()
        self.transfers += 1
        self.sent.append(bytes(data))

    async def send_file(self, descriptor: int, position: int, size: int) -> None:
        assert self.sends_files
        self.files_sent.append((position, size))
        import os

        data = os.pread(descriptor, size, position)
        if len(data) != size:
            raise EOFError("the file is too short")
        await self.send(data)

    def close(self) -> None:
        self.is_closed = True

    def _check(self) -> None:
        assert not self.is_closed
        if self._gone is not None:
            raise PeerGone(self._gone)
