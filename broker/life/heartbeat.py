"""The life of a broker as its controller sees it: what is asked for next, and when (KIP-631).

Nothing here waits or asks: answers and the time go in, states come out.
"""

from enum import Enum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from protocol.messages.broker_heartbeat import BrokerHeartbeatResponse

NO_EPOCH: Final = -1

STARTING_INTERVAL_MS: Final = 10
"""Between heartbeats until the broker knows the cluster: the next step of a start should not wait."""

SHUTDOWN_INTERVALS_MS: Final = (50, 250)
"""After the first answer to who wants to leave, and after each other one.

Kafka's brokers ask every two seconds then, and so stop later.
"""

REGISTRATION_RETRY_MS: Final = 500
"""After a refused registration.  Kafka's brokers wait as long as between heartbeats, and so begin later."""


class BrokerState(Enum):
    """Kafka's states of a broker; the value says what it is about."""

    STARTING = "registers, and catches up with the cluster's metadata"
    RECOVERY = "recovers its logs, and is fenced until it has"
    RUNNING = "serves"
    PENDING_CONTROLLED_SHUTDOWN = "wants to leave, and gives away what it leads"
    SHUTTING_DOWN = "tells the controller nothing any more"


NEXT: Final = {
    BrokerState.STARTING: {BrokerState.RECOVERY, BrokerState.SHUTTING_DOWN},
    BrokerState.RECOVERY: {BrokerState.RUNNING, BrokerState.SHUTTING_DOWN},
    BrokerState.RUNNING: {BrokerState.PENDING_CONTROLLED_SHUTDOWN, BrokerState.SHUTTING_DOWN},
    BrokerState.PENDING_CONTROLLED_SHUTDOWN: {BrokerState.SHUTTING_DOWN},
    BrokerState.SHUTTING_DOWN: set(),
}


class Lifecycle:
    """One broker's.  It asks for one thing at a time; ``due_ms`` is when, and the past means at once.

    What it asks for is its registration until it ``is_registered``, and heartbeats from then on.
    """

    def __init__(self, *, heartbeat_interval_ms: int) -> None:
        self.state = BrokerState.STARTING
        self.broker_epoch = NO_EPOCH
        self.is_registered = False
        self.is_fenced = True
        """As the controller has said last."""
        self.is_ready = False
        """Whether the broker could serve, and need not be fenced."""
        self.due_ms = 0.0
        self._interval_ms = heartbeat_interval_ms
        self._is_urgent = False
        """Something was asked for after the present question had been put."""
        self._has_asked_to_leave = False

    def adopt(self, broker_epoch: int) -> None:
        """The broker is registered and unfenced, because its own node's controller has seen to that."""
        self.broker_epoch = broker_epoch
        self.is_registered = self.is_ready = True
        self.is_fenced = False
        self.state = BrokerState.RUNNING

    # What the broker wants

    @property
    def wants_fence(self) -> bool:
        return not self.is_ready

    @property
    def wants_shut_down(self) -> bool:
        return self.state is BrokerState.PENDING_CONTROLLED_SHUTDOWN

    def ready(self) -> None:
        """The broker can serve: be unfenced as soon as possible."""
        self.is_ready = True
        self.hurry()

    def leave(self) -> None:
        """Ask for leave, or go at once if nobody has been let in yet."""
        if self.state is BrokerState.RUNNING:
            self._become(BrokerState.PENDING_CONTROLLED_SHUTDOWN)
            self.hurry()
        elif self.state is not BrokerState.PENDING_CONTROLLED_SHUTDOWN:
            self.end()

    def end(self) -> None:
        """Go without leave."""
        if self.state is not BrokerState.SHUTTING_DOWN:
            self._become(BrokerState.SHUTTING_DOWN)

    def register_again(self) -> None:
        """What the cluster knows of this broker is not so, or not any more."""
        self.is_registered = False
        self.hurry()

    def hurry(self) -> None:
        """Ask at once, or once more as soon as the present question is answered."""
        self.due_ms = 0.0
        self._is_urgent = True

    # What comes of it

    def asks(self) -> None:
        """The next question is being put."""
        self._is_urgent = False

    def registered(self, broker_epoch: int) -> None:
        self.broker_epoch = broker_epoch
        self.is_registered = True
        self._next(0)

    def failed(self, now_ms: float) -> None:
        """The controller has refused, or could not be asked in time; it is never asked again at once."""
        self._is_urgent = False
        self._next(now_ms + (self._interval_ms if self.is_registered else REGISTRATION_RETRY_MS))

    def answered(self, answer: "BrokerHeartbeatResponse", now_ms: float) -> None:
        """A heartbeat has been taken."""
        self.is_fenced = answer.is_fenced
        interval_ms = self._interval_ms
        match self.state:
            case BrokerState.STARTING:
                if answer.is_caught_up:
                    self._become(BrokerState.RECOVERY)
                interval_ms = STARTING_INTERVAL_MS
            case BrokerState.RECOVERY:
                if not answer.is_fenced:
                    self._become(BrokerState.RUNNING)
            case BrokerState.PENDING_CONTROLLED_SHUTDOWN:
                if answer.should_shut_down:
                    self._become(BrokerState.SHUTTING_DOWN)
                else:
                    interval_ms = SHUTDOWN_INTERVALS_MS[self._has_asked_to_leave]
                self._has_asked_to_leave = True
        self._next(now_ms + interval_ms)

    def _next(self, due_ms: float) -> None:
        self.due_ms = 0.0 if self._is_urgent else due_ms

    def _become(self, state: BrokerState) -> None:
        assert state in NEXT[self.state], f"{self.state} to {state}"
        self.state = state
