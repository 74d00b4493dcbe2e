"""One line on the terminal that says how far long work is."""

import sys
import time
from typing import TextIO

INTERVAL_SECONDS = 0.2
BAR_WIDTH = 30


class Progress:
    """Shows itself only if standard error is a terminal, and only once the work takes long."""

    def __init__(self, total: int, stream: TextIO | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream
        self.total = total
        self._done = 0
        self._started = time.monotonic()
        self._next = self._started + INTERVAL_SECONDS
        self._is_shown = False
        self._is_wanted = self._stream.isatty()

    def moved(self, count: int) -> None:
        """``count`` more of the total are done."""
        self._done += count
        if self._is_wanted and (now := time.monotonic()) >= self._next:
            self._next = now + INTERVAL_SECONDS
            self._show(now)

    def _show(self, now: float) -> None:
        share = min(self._done / self.total, 1.0) if self.total else 1.0
        bar = "█" * int(share * BAR_WIDTH)
        rate = self._done / max(now - self._started, 0.001)
        left = (self.total - self._done) / rate if rate else 0
        self._stream.write(
            f"\r\x1b[K{share:4.0%} |{bar:<{BAR_WIDTH}}| {size_text(self._done)} of {size_text(self.total)}, "
            f"{size_text(int(rate))}/s, {max(left, 0):.0f} s left"
        )
        self._stream.flush()
        self._is_shown = True

    def hide(self) -> None:
        """Make room for other lines; the next movement shows it again."""
        if self._is_shown:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
            self._is_shown = False


def size_text(count: int) -> str:
    """A number of bytes for people."""
    size = float(count)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"
