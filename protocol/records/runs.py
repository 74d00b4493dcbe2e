"""Runs of records that have one size, which are looked at all at once, as columns of bytes.

Byte ``n`` of every record of a run is a slice of the section with the record's size as its step; a look at
that slice, made in C, is a look at all these records.
"""

from functools import cache

from protocol.records.varint import read_varint

RUN_MIN = 16
"""Fewer records of one shape than this are not worth looking at as columns."""

PAUSE_MAX = 1024
"""So many records at most go by, where there are many shapes, before a run is looked for again."""


class Run:
    """Records of one size in a row, seen as columns of bytes; ``count`` shrinks to those alike."""

    __slots__ = ("count", "section", "size_width", "start", "step")

    def __init__(
        self, section: bytes | memoryview, start: int, size_width: int, step: int, count: int
    ) -> None:
        self.section = section
        self.start = start
        self.size_width = size_width
        """Bytes that each record's size takes."""
        self.step = step
        self.count = count

    def column(self, at: int) -> bytes:
        """Byte ``at`` of each record."""
        start = self.start + at
        return bytes(self.section[start : start + self.count * self.step : self.step])

    def keep_while_in(self, at: int, allowed: bytes) -> None:
        """Keep the records up to the first whose byte ``at`` is none of ``allowed``."""
        column = self.column(at)
        self.count = len(column) - len(column.lstrip(allowed))

    def keep_while_same(self, at: int, end: int) -> None:
        """Keep the records up to the first whose bytes ``at`` to ``end`` are not those of the first."""
        for n in range(at, end):
            column = self.column(n)
            first = column[:1]
            if column.count(first) != len(column):  # mostly equal, and counting is faster
                self.count = len(column) - len(column.lstrip(first))

    def pass_offsets(self, at: int, first: int) -> int | None:
        """Keep records whose offset deltas, at byte ``at``, take as many bytes, and count from ``first`` on.

        The answer is the byte behind; None if they do not count like that.
        """
        expected = offset_columns(first)
        if not expected:
            return None
        self.count = min(self.count, len(expected[0]))
        for column in expected:
            if self.column(at) != column[: self.count]:
                return None
            at += 1
        return at


def find_run(section: bytes | memoryview, position: int, end: int, record_count: int) -> Run | None:
    """The records from ``position`` on that have one size; None if they are too few.

    As each is exactly so long as the one before, every one of them begins where the run says.
    """
    size, body = read_varint(section, position)
    if size <= 0:
        return None
    width = body - position
    step = width + size
    run = Run(section, position, width, step, min(record_count, (end - position) // step))
    run.keep_while_same(0, width)
    return run if run.count >= RUN_MIN else None


@cache
def _offset_bytes() -> tuple[bytes, bytes, bytes]:
    """The bytes of 8192 offset deltas as columns: first one, last of two, second of three."""
    deltas = range(_OFFSET_BLOCK)
    return (
        bytes(delta << 1 & 0x7F | 0x80 for delta in deltas),
        bytes(delta >> 6 for delta in deltas),
        bytes(delta >> 6 | 0x80 for delta in deltas),
    )


def offset_columns(first: int) -> tuple[bytes, ...]:
    """What the bytes of the offset deltas from ``first`` on must be, for some way.

    Empty past a million records: walking those one by one is good enough.
    """
    if first < 64:
        return (_ONE_BYTE_OFFSETS[first:],)
    block, start = divmod(first, _OFFSET_BLOCK)
    low, last, middle = _offset_bytes()
    if block == 0:
        return low[start:], last[start:]
    if block < 128:
        return low[start:], middle[start:], bytes((block,)) * (_OFFSET_BLOCK - start)
    return ()


_OFFSET_BLOCK = 8192
_ONE_BYTE_OFFSETS = bytes(range(0, 128, 2))

LAST_BYTES = bytes(range(128))
"""Bytes that end a varint."""

FIRST_BYTES = bytes(range(128, 256))
"""Bytes that others of a varint follow."""
