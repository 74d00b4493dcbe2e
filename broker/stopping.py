"""The signals that stop a process gracefully."""

import signal
from collections.abc import Sequence
from typing import Final

STOPPING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""As they stop a JVM; the last one comes when a terminal is closed."""


def heeded_signals() -> Sequence[signal.Signals]:
    """All of them, but for SIGHUP where it is ignored already: that is what ``nohup`` asks for."""
    is_deaf = signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    return [number for number in STOPPING if not (is_deaf and number == signal.SIGHUP)]
