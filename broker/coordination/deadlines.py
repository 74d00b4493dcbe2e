"""Deadlines that move: what a machine waits for, by key, in one heap."""

from collections.abc import Hashable
from typing import Generic, TypeVar

from broker.coordination.timers import Timers

Key = TypeVar("Key", bound=Hashable)


class Deadlines(Generic[Key]):
    """At most one moment (steady, in ms) for each key.

    To move a deadline later, which is what every heartbeat does, costs one entry of a dictionary.
    """

    def __init__(self) -> None:
        self._due_ms: dict[Key, int] = {}
        self._timers: Timers[Key] = Timers()

    def __contains__(self, key: Key) -> bool:
        return key in self._due_ms

    def __len__(self) -> int:
        return len(self._due_ms)

    def set(self, key: Key, due_ms: int) -> None:
        """``key`` is due at ``due_ms``, and at no other time."""
        self._due_ms[key] = due_ms
        self._timers.wake_by(key, due_ms)

    def set_if_absent(self, key: Key, due_ms: int) -> None:
        if key not in self._due_ms:
            self.set(key, due_ms)

    def cancel(self, key: Key) -> None:
        if self._due_ms.pop(key, None) is not None:
            self._timers.forget(key)

    def earliest_ms(self) -> int | None:
        """No deadline is earlier; this may itself be too early."""
        return self._timers.earliest_ms()

    def take_due(self, now_ms: int) -> Key | None:
        """Take out a key that is due at or before ``now_ms``, the oldest first."""
        while (key := self._timers.take_due(now_ms)) is not None:
            due_ms = self._due_ms[key]
            if due_ms <= now_ms:
                del self._due_ms[key]
                return key
            self._timers.wake_by(key, due_ms)
        return None
