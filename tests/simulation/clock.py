"""One virtual clock for all nodes and clients: it jumps to the next deadline when nobody has work to do."""

from typing import Final

from trio.testing import MockClock

from broker.clock import BrokerClock

START_MS: Final = 1_800_000_000_000
"""The wall time at which every simulation begins."""


class SimulatedClock(BrokerClock):
    """What a node takes for its clock.  Trio runs on ``trio_clock``, which alone moves."""

    def __init__(self, trio_clock: MockClock) -> None:
        super().__init__()
        self._trio_clock = trio_clock

    def current_time(self) -> float:
        return self._trio_clock.current_time()

    def now_ms(self) -> int:
        return START_MS + int(self._trio_clock.current_time() * 1000)

    def work_ns(self) -> int:
        return int(self._trio_clock.current_time() * 1_000_000_000)

    def advance(self, milliseconds: int) -> None:
        raise AssertionError("the clock of a simulation belongs to all of its nodes")
