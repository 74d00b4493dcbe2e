"""What the controller does of itself once there are other brokers: it misses them, and elects leaders."""

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from broker.clock import monotonic_ms
from broker.controller.balance import balance_leaders, elect_uncleanly
from broker.controller.decision import Command, Decision, LongDecision
from broker.controller.heartbeats import fence_stale_broker
from broker.controller.sessions import BrokerSessions
from broker.controller.start import topic_rules
from broker.metadata.image import MetadataImage

if TYPE_CHECKING:
    from broker.services import Services

ELECTIONS_MAX: Final = 1000
"""Partitions that get other leaders in one go; the rest comes right after it."""

LOOKS_PER_SESSION: Final = 8
"""So often within a session's time this node looks at the clock."""


class Chores:
    """When the next one is due, and the commands that do it.  Times are Trio's, in milliseconds."""

    def __init__(self, services: "Services", sessions: BrokerSessions, now_ms: float) -> None:
        config = services.config
        self._services = services
        self._sessions = sessions
        self._look_interval_ms: float = config.get("broker.session.timeout.ms") / LOOKS_PER_SESSION
        self._looked_ms = now_ms
        self._is_watching = False
        self._not_before_ms = now_ms
        self._unclean_interval_ms: float = config.get("unclean.leader.election.interval.ms")
        self._unclean_due_ms = now_ms + self._unclean_interval_ms
        self._balance_interval_ms: float = math.inf
        if config.get("auto.leader.rebalance.enable"):
            self._balance_interval_ms = 1000 * config.get("leader.imbalance.check.interval.seconds")
        self._balance_due_ms = now_ms + self._balance_interval_ms

    def due_ms(self, now_ms: float) -> float:
        """When to ask for commands again."""
        self._look(now_ms)
        due_ms: float = min(self._unclean_due_ms, self._balance_due_ms)
        session_end_ms = self._sessions.end_ms()
        self._is_watching = session_end_ms is not None
        if session_end_ms is not None:
            due_ms = min(due_ms, session_end_ms + 1, now_ms + self._look_interval_ms)
        return max(due_ms, self._not_before_ms)

    def _look(self, now_ms: float) -> None:
        """At the clock: if that has not been done for long, this node was stopped, or kept from its work.

        Those whom it did not hear may have spoken all the time.
        """
        pause_ms = now_ms - self._looked_ms - self._look_interval_ms
        if self._is_watching and pause_ms > self._look_interval_ms:
            self._sessions.excuse(pause_ms, now_ms)
        self._looked_ms = now_ms

    def failed(self) -> None:
        """Something could not be written: nothing is tried again at once."""
        self._not_before_ms = monotonic_ms() + self._look_interval_ms

    def take_due(self, now_ms: float) -> Iterator[Command[None]]:
        """The commands for what is due now; each begins to wait for its next time."""
        self._look(now_ms)
        if now_ms < self._not_before_ms:
            return
        session_end_ms = self._sessions.end_ms()
        if session_end_ms is not None and now_ms > session_end_ms:
            yield self._fence
        if now_ms >= self._unclean_due_ms:
            self._unclean_due_ms = now_ms + self._unclean_interval_ms
            yield self._elect_uncleanly
        if now_ms >= self._balance_due_ms:
            self._balance_due_ms = now_ms + self._balance_interval_ms
            yield self._balance

    def _fence(self, image: MetadataImage) -> Decision[None]:
        rules = topic_rules(self._services, image)
        records, fenced = fence_stale_broker(image, self._sessions, rules, monotonic_ms())
        if fenced is not None:
            self._services.log.warn(f"broker {fenced} is fenced: nothing has been heard of it for too long")
        return LongDecision(records, None)

    def _elect_uncleanly(self, image: MetadataImage) -> Decision[None]:
        rules = topic_rules(self._services, image)
        records, is_more_to_do = elect_uncleanly(image, rules, elections_max=ELECTIONS_MAX)
        if is_more_to_do:
            self._unclean_due_ms = monotonic_ms()
        return Decision(records, None)

    def _balance(self, image: MetadataImage) -> Decision[None]:
        rules = topic_rules(self._services, image)
        records, is_more_to_do = balance_leaders(image, rules, elections_max=ELECTIONS_MAX)
        if is_more_to_do:
            self._balance_due_ms = monotonic_ms()
        return Decision(records, None)
