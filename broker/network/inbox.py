"""What a connection has received and not handled yet, cut into frames."""

import struct
from collections.abc import Iterator

from broker import limits
from broker.errors import CloseConnection
from broker.network.memory import LentBuffer

_LENGTH = struct.Struct(">i")

_LOOKS_LIKE = {
    b"GET ": "HTTP",
    b"POST": "HTTP",
    b"HEAD": "HTTP",
    b"PUT ": "HTTP",
    b"OPTI": "HTTP",
    b"PRI ": "HTTP/2",
    b"SSH-": "SSH",
}


class Inbox:
    """The receive buffer of one connection.

    Ask for ``space``, fill its beginning, say how much with ``received``, then walk ``frames``.  A frame is a
    writable view of a request without its length, valid until the walk goes on.

    Requests up to ``INBOX_BYTES_MAX`` share a buffer that begins small and grows when bytes fill it.  A
    longer one is filled in place in a buffer of its own, which its owner borrows: whenever ``wanted`` is
    not 0, a buffer of so many bytes must be handed to ``grow`` before there is space.  What is wanted
    follows what has arrived, not what was announced.
    """

    def __init__(self, frame_bytes_max: int) -> None:
        self._frame_bytes_max = frame_bytes_max
        self._buffer = bytearray(limits.INBOX_BYTES_START)
        self._view = memoryview(self._buffer)
        self._start = 0
        self._end = 0
        self._was_full = False
        self._large: _LargeFrame | None = None
        self._trusted = limits.LARGE_FRAME_BYTES_START
        self.lent: LentBuffer | None = None
        """The buffer handed to ``grow`` that is free again: the owner takes it back and sets this to None."""

    @property
    def is_empty(self) -> bool:
        """Whether no request has begun to arrive."""
        return self._start == self._end and self._large is None

    @property
    def is_large(self) -> bool:
        """Whether a request that needs a buffer of its own has begun to arrive."""
        return self._large is not None

    @property
    def capacity(self) -> int:
        """Bytes of the buffer for small requests."""
        return len(self._buffer)

    def __str__(self) -> str:
        if self._large is not None:
            return f"{self._large.filled} of {self._large.size} bytes of a request"
        return f"{self._end - self._start} bytes of a request"

    @property
    def wanted(self) -> int:
        """How large a buffer the unfinished large request needs before it can take more; 0 if none."""
        large = self._large
        if large is None or large.filled < len(large.buffer) or large.filled == large.size:
            return 0
        present = large.filled if large.buffer else self._end - self._start
        factor = 4 if present < 1024 * 1024 else 2
        wanted = max(factor * present, self._trusted)
        return min(_rounded(wanted), _rounded(large.size))

    def grow(self, buffer: LentBuffer) -> LentBuffer | None:
        """Go on in ``buffer`` with the unfinished large request.  Gives the one that it leaves."""
        large = self._large
        assert large is not None
        left = large.buffer
        if left:
            buffer[: large.filled] = left
        else:
            count = self._end - self._start
            buffer[:count] = self._view[self._start : self._end]
            large.filled = count
            self._start = self._end = 0
        large.buffer = buffer
        large.view = memoryview(buffer)[: large.size]
        return left or None

    def abandon(self) -> LentBuffer | None:
        """Forget what has arrived.  Gives the borrowed buffer, if there is one."""
        self._start = self._end = 0
        large, self._large = self._large, None
        return (large.buffer or None) if large is not None else None

    def space(self) -> memoryview:
        """Where the next bytes belong; never empty."""
        large = self._large
        if large is not None:
            return large.view[large.filled : large.filled + limits.RECEIVE_BYTES_MAX]
        if self._was_full and len(self._buffer) < limits.INBOX_BYTES_MAX:
            self._was_full = False
            self._replace(4 * len(self._buffer))
        elif self._start == self._end:
            self._start = self._end = 0
        elif self._end == len(self._buffer):
            self._move_to_front()
        return self._view[self._end :]

    def received(self, count: int) -> bool:
        """``count`` bytes have arrived in the last space.  Whether they filled it: more may be there."""
        large = self._large
        if large is not None:
            large.filled += count
            return count >= limits.INBOX_BYTES_MAX
        self._end += count
        self._was_full = self._end == len(self._buffer)
        return self._was_full

    def frames(self) -> Iterator[memoryview]:
        """The requests that are complete, in order; ``CloseConnection`` for a length that cannot be."""
        while True:
            if self._large is not None:
                if self._large.filled < self._large.size:
                    return
                yield from self._finish_large(self._large)
            available = self._end - self._start
            if available < 4:
                return
            (size,) = _LENGTH.unpack_from(self._buffer, self._start)
            if size < 0 or size > self._frame_bytes_max:
                raise self._refuse(size)
            begin = self._start + 4
            end = begin + size
            if end > self._end:
                if 4 + size > limits.INBOX_BYTES_MAX:
                    self._start = begin
                    self._was_full = False  # large requests do not need a large inbox
                    self._large = _LargeFrame(size)
                return
            self._start = end
            yield self._view[begin:end]

    def shrink(self) -> None:
        """The connection has been quiet: if nothing has begun to arrive, give back what it grew to."""
        if self.is_empty and len(self._buffer) > limits.INBOX_BYTES_START:
            self._start = self._end = 0
            self._was_full = False
            self._replace(limits.INBOX_BYTES_START)

    def _finish_large(self, large: "_LargeFrame") -> Iterator[memoryview]:
        yield large.view
        self._trusted = max(self._trusted, min(len(large.buffer), limits.TRUSTED_FRAME_BYTES_MAX))
        self._large = None
        self.lent = large.buffer

    def _replace(self, capacity: int) -> None:
        buffer = bytearray(capacity)
        count = self._end - self._start
        buffer[:count] = self._view[self._start : self._end]
        self._buffer = buffer
        self._view = memoryview(buffer)
        self._start, self._end = 0, count

    def _move_to_front(self) -> None:
        count = self._end - self._start
        self._view[:count] = bytes(self._view[self._start : self._end])
        self._start, self._end = 0, count

    def _refuse(self, size: int) -> CloseConnection:
        first = bytes(self._view[self._start : self._start + 4])
        if first in _LOOKS_LIKE:
            return CloseConnection(f"it does not speak Kafka's protocol but {_LOOKS_LIKE[first]}")
        if first[:2] == b"\x16\x03":
            return CloseConnection("it does not speak Kafka's protocol but TLS, which this listener does not")
        if size < 0:
            return CloseConnection(f"it announced a request of {size} bytes")
        return CloseConnection(
            f"it announced a request of {size} bytes, and socket.request.max.bytes is {self._frame_bytes_max}"
        )


class _LargeFrame:
    """A request that is filled in a buffer of its own; the buffer is empty until one was borrowed."""

    __slots__ = ("buffer", "filled", "size", "view")

    def __init__(self, size: int) -> None:
        self.size = size
        self.filled = 0
        self.buffer: LentBuffer = bytearray()
        self.view = memoryview(self.buffer)


def _rounded(size: int) -> int:
    """``size`` in steps, so that finished buffers fit the next requests."""
    step = 16 * 1024 if size <= 64 * 1024 else 64 * 1024
    return -(-size // step) * step
