"""Kafka's arithmetic of quotas: what has been used lately, and how long to wait until that is little enough.

Times are milliseconds of any clock that does not go back.
"""

import math
from typing import Final, NamedTuple

NO_LIMIT: Final = 2.0**63
"""What Kafka takes for the limit of those that have none."""

THROTTLE_MS_MAX: Final = 2**31 - 1
"""The longest time that an answer can name."""


class Windows(NamedTuple):
    """The time that a rate is taken over: ``samples`` pieces of ``size_ms`` each, the last not over yet."""

    samples: int
    size_ms: int

    @property
    def burst_seconds(self) -> float:
        """For how long a bucket of tokens may have been left alone and still gain by it."""
        return self.samples * (self.size_ms / 1000)


class _Sample:
    """What was used in one window."""

    __slots__ = ("began_ms", "last_ms", "value")

    def __init__(self, now_ms: int) -> None:
        self.reset(now_ms)

    def reset(self, now_ms: int) -> None:
        self.began_ms = now_ms
        self.last_ms = now_ms
        self.value = 0.0


class Rate:
    """What is used a second, over the last windows.

    Windows begin with use, not with the clock.  As long as few have passed, the rate is that over all but one
    of them and what has passed of the last: a client that has just come is not a fast one yet.
    """

    __slots__ = ("_current", "_samples", "windows")

    def __init__(self, windows: Windows) -> None:
        self.windows = windows
        self._samples: list[_Sample] = []
        self._current = 0

    def record(self, value: float, now_ms: int) -> None:
        """Count what is used now; a negative value takes back what was counted."""
        if not self._samples:
            self._samples.append(_Sample(now_ms))
        sample = self._samples[self._current]
        if now_ms - sample.began_ms >= self.windows.size_ms:
            sample = self._advance(now_ms)
        sample.value += value
        sample.last_ms = now_ms

    def per_second(self, now_ms: int) -> float:
        window_ms = self.window_ms(now_ms)  # forgets what is too old
        return sum(sample.value for sample in self._samples) / (window_ms / 1000)

    def throttle_ms(self, limit: float, now_ms: int) -> int:
        """How long nothing more may be used for the rate to come down to ``limit``; 0 if it is not above."""
        rate = self.per_second(now_ms)
        if rate <= limit:
            return 0
        if not limit:  # what is left of a tiny limit that has to be a whole number
            return THROTTLE_MS_MAX
        return _whole_ms((rate - limit) / limit * self.window_ms(now_ms))

    def window_ms(self, now_ms: int) -> int:
        """The time that the rate is taken over."""
        self._forget(now_ms)
        if not self._samples:
            self._samples.append(_Sample(now_ms))
        samples, size_ms = self.windows
        elapsed_ms = now_ms - min(sample.began_ms for sample in self._samples)
        missing = samples - 1 - elapsed_ms // size_ms
        if missing > 0:
            elapsed_ms += missing * size_ms
        return max(elapsed_ms, 1)

    def _advance(self, now_ms: int) -> _Sample:
        # One more than there are windows: the oldest may reach into the time that counts.
        self._current = (self._current + 1) % (self.windows.samples + 1)
        if self._current == len(self._samples):
            self._samples.append(_Sample(now_ms))
        else:
            self._samples[self._current].reset(now_ms)
        return self._samples[self._current]

    def _forget(self, now_ms: int) -> None:
        age_ms = self.windows.samples * self.windows.size_ms
        for sample in self._samples:
            if now_ms - sample.last_ms >= age_ms:
                sample.reset(now_ms)


class TokenBucket:
    """Tokens that come in at the rate of the limit and are taken at once (KIP-599).

    There may be fewer than none, and never more than come in during all windows.  A new bucket is full.
    """

    __slots__ = ("_tokens", "_updated_ms", "windows")

    def __init__(self, windows: Windows) -> None:
        self.windows = windows
        self._tokens = math.inf
        self._updated_ms = 0

    def take(self, count: float, limit: float, now_ms: int) -> None:
        self._refill(limit, now_ms)
        self._tokens = min(self.windows.burst_seconds * limit, self._tokens - count)

    def debt_ms(self, limit: float, now_ms: int) -> int | None:
        """How long nothing more may be taken for there to be as many as none; None if there are.

        It may be less than half a millisecond, which is 0.
        """
        self._refill(limit, now_ms)
        return None if self._tokens >= 0 else _whole_ms(-self._tokens / limit * 1000)

    def _refill(self, limit: float, now_ms: int) -> None:
        gained = limit * ((now_ms - self._updated_ms) / 1000)
        self._tokens = min(self.windows.burst_seconds * limit, self._tokens + gained)
        self._updated_ms = now_ms


def _whole_ms(time_ms: float) -> int:
    """Rounded as Java does, which is up at the half.  Under a tiny limit time has no end."""
    return math.floor(min(time_ms, THROTTLE_MS_MAX) + 0.5)
