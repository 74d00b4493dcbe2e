"""The memory of large requests, for all connections together."""

from collections.abc import Hashable
from typing import TYPE_CHECKING, TypeAlias, Union

import trio

from broker import limits

if TYPE_CHECKING:
    from mmap import mmap

LentBuffer: TypeAlias = Union[bytearray, "mmap"]
"""What holds a large request."""


class FrameMemory:
    """Lends buffers for requests that do not fit a connection's inbox, ``limit`` bytes altogether.

    A request borrows more as its bytes arrive.  When memory is short its connection waits, unread.
    If everybody waited for everybody nobody would ever finish; so one request at a time, the first
    that met the shortage, may exceed the limit until it is complete.

    A few buffers of finished requests are kept: reusing one is cheaper than clearing a new one.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.held = 0
        """Bytes lent out."""
        self._exempt: Hashable | None = None
        self._line: dict[Hashable, tuple[int, trio.Event]] = {}
        self._spare: list[LentBuffer] = []
        self._shortage = trio.Event()

    async def borrow(self, owner: Hashable, size: int) -> LentBuffer:
        """A buffer of ``size`` bytes or a little more, with anything in it."""
        if not self._admit(owner, size, queued=False):
            admitted = trio.Event()
            self._line[owner] = size, admitted
            self._shortage.set()
            try:
                await admitted.wait()
            except trio.Cancelled:
                del self._line[owner]
                self._serve_line()
                raise
        buffer = self._take_spare(size)
        self.held += len(buffer) - size
        return buffer

    def give_back(
        self, owner: Hashable, buffer: LentBuffer, *, finished: bool = True, reusable: bool = True
    ) -> None:
        """The end of a loan.

        Not ``finished``: the same request has moved to a larger buffer.  Not ``reusable``: somebody may
        still look at the bytes.
        """
        self.held -= len(buffer)
        if reusable and len(buffer) <= limits.TRUSTED_FRAME_BYTES_MAX:
            self._spare.append(buffer)
            if len(self._spare) > limits.SPARE_FRAME_BUFFERS:
                self._spare.sort(key=len)
                del self._spare[0]
        if finished and self._exempt == owner:
            self._exempt = None
        self._serve_line()

    async def wait_short(self) -> None:
        """Wait until some request waits for memory."""
        await self._shortage.wait()

    @property
    def is_short(self) -> bool:
        return bool(self._line)

    def is_waiting(self, owner: Hashable) -> bool:
        """Whether ``owner`` stands still because memory is short, rather than by its own doing."""
        return owner in self._line

    def _admit(self, owner: Hashable, size: int, *, queued: bool) -> bool:
        """Count ``size`` as lent if that is possible now; nobody overtakes the line but the exempt one."""
        if self._exempt != owner:
            if self._line and not queued:
                return False
            if self.held + size > self.limit:
                if self._exempt is not None:
                    return False
                self._exempt = owner
        self.held += size
        return True

    def _serve_line(self) -> None:
        while self._line:
            owner, (size, admitted) = next(iter(self._line.items()))
            if not self._admit(owner, size, queued=True):
                return
            del self._line[owner]
            admitted.set()
        if self._shortage.is_set():
            self._shortage = trio.Event()

    def _take_spare(self, size: int) -> LentBuffer:
        for index, buffer in enumerate(self._spare):
            if size <= len(buffer) <= 2 * size:
                del self._spare[index]
                return buffer
        return _new_buffer(size)


def _new_buffer(size: int) -> LentBuffer:
    """A buffer whose memory goes back to the system when nobody refers to it any more.

    Were it a piece of the heap, the heap would stay as large as it ever was.
    """
    if size < limits.MAPPED_FRAME_BYTES_MIN:
        return bytearray(size)
    import mmap

    # Present at once, where the system can: cheaper than page by page, and the bytes are coming.
    present = getattr(mmap, "MAP_POPULATE", 0)
    return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | present)
