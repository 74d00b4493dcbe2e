"""Waiting for another process or thread to get somewhere, with an end to the patience."""

import time
from collections.abc import Callable

PATIENCE_SECONDS = 60
PAUSE_SECONDS = 0.01


def wait_until(holds: Callable[[], object], what: str, *, patience_seconds: float = PATIENCE_SECONDS) -> None:
    """Return when ``holds()`` is true; fail, naming ``what``, if that does not come."""
    deadline = time.monotonic() + patience_seconds
    while not holds():
        if time.monotonic() > deadline:
            raise AssertionError(f"in vain for {patience_seconds} s: {what}")
        time.sleep(PAUSE_SECONDS)
