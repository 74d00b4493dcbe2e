"""The broker's one clock.  Trio's deadlines and Kafka's timestamps move together, tests move both."""

import time

import trio


def monotonic_ms() -> float:
    """Trio's time in milliseconds, for sessions that need not be told to anybody else."""
    return trio.current_time() * 1000


class BrokerClock(trio.abc.Clock):
    """Real time plus an offset that only grows.

    Given to ``trio.run``, it decides when every deadline of the broker passes; ``now_ms`` is the wall time
    that records and sessions carry.  ``advance`` moves both at once: from inside the running broker a
    thirty-second sleep ends at the next turn of the loop.
    """

    def __init__(self) -> None:
        self._offset_seconds = 0.0
        self._offset_ms = 0

    def start_clock(self) -> None:
        """Nothing to prepare: real time runs by itself."""

    def current_time(self) -> float:
        """Seconds since an arbitrary moment; never goes back, whatever happens to the wall clock."""
        return time.monotonic() + self._offset_seconds

    def deadline_to_sleep_time(self, deadline: float) -> float:
        return deadline - self.current_time()

    def now_ms(self) -> int:
        """Wall time in milliseconds since 1970, as Kafka's timestamps count it."""
        return time.time_ns() // 1_000_000 + self._offset_ms

    def work_ns(self) -> int:
        """Nanoseconds from an arbitrary beginning, to measure work with: ``advance`` does not count."""
        return time.perf_counter_ns()

    def advance(self, milliseconds: int) -> None:
        """Let this much time pass at once.  Call it in the Trio thread, which then looks at its deadlines
        again."""
        if milliseconds < 0:
            raise ValueError("the broker's clock cannot go back")
        self._offset_ms += milliseconds
        self._offset_seconds = self._offset_ms / 1000

    @property
    def advanced_ms(self) -> int:
        """How far ``advance`` has moved this clock ahead of real time."""
        return self._offset_ms
