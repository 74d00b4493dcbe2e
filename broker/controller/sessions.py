"""What the active controller knows of brokers that no record says: who was heard when, who has come how far.

All of it is forgotten with the controller: the next one begins with a whole session for everybody.  Times
are milliseconds of a clock that never goes back.
"""

from typing import Final, NamedTuple

from broker.metadata.image import BrokerImage, MetadataImage

UNKNOWN_OFFSET: Final = -1


class Incarnation(NamedTuple):
    """One life of a broker."""

    broker_id: int
    broker_epoch: int


class BrokerSessions:
    """The sessions of all brokers but the controller's own, which needs none: it lives as long as this does.

    A session begins with the first heartbeat of an incarnation, not with its registration, and belongs to
    that incarnation.
    """

    def __init__(self, timeout_ms: int, own_broker_id: int | None) -> None:
        """``timeout_ms`` is ``broker.session.timeout.ms``; ``own_broker_id`` is None where there is none."""
        self._timeout_ms = timeout_ms
        self._own_broker_id = own_broker_id
        self._heard: dict[Incarnation, float] = {}
        """When each was heard last, the longest silence first."""
        self._let_go: set[Incarnation] = set()
        """Those that were told to end since they were heard last."""
        self._metadata_offsets: dict[int, int] = {}
        self._registration_offsets: dict[int, int] = {}
        self._shutdown_offsets: dict[int, int] = {}

    def begin(self, image: MetadataImage, now_ms: float) -> None:
        """This node has just become the active controller: whoever is not fenced has a whole session."""
        self._heard.clear()
        self._let_go.clear()
        self._metadata_offsets.clear()
        self._registration_offsets.clear()
        self._shutdown_offsets.clear()
        for broker in image.alive_brokers():
            self.heard(broker.id, broker.epoch, now_ms)

    def heard(self, broker_id: int, broker_epoch: int, now_ms: float) -> None:
        """This incarnation is alive."""
        if broker_id != self._own_broker_id:
            incarnation = Incarnation(broker_id, broker_epoch)
            self._heard.pop(incarnation, None)
            self._heard[incarnation] = now_ms
            self._let_go.discard(incarnation)

    def is_alive(self, broker: BrokerImage, now_ms: float) -> bool:
        """Whether the session of this incarnation lasts."""
        if broker.id == self._own_broker_id:
            return True
        incarnation = Incarnation(broker.id, broker.epoch)
        heard_ms = self._heard.get(incarnation)
        if heard_ms is None or (broker.fenced and incarnation in self._let_go):
            return False
        return not self._is_over(heard_ms, now_ms)

    def let_go(self, broker_id: int, broker_epoch: int) -> None:
        """This incarnation may end, and the next one need not wait until it can be taken for dead.

        Unless it is fenced it is missed when it is silent: the record that fences it may not be written.
        """
        incarnation = Incarnation(broker_id, broker_epoch)
        if incarnation in self._heard:
            self._let_go.add(incarnation)

    def end(self, broker_id: int, broker_epoch: int) -> None:
        """This incarnation is gone."""
        incarnation = Incarnation(broker_id, broker_epoch)
        self._heard.pop(incarnation, None)
        self._let_go.discard(incarnation)

    def excuse(self, pause_ms: float, now_ms: float) -> None:
        """For so long this node itself has not listened: nobody's silence of that time counts."""
        for incarnation, heard_ms in self._heard.items():
            self._heard[incarnation] = min(heard_ms + pause_ms, now_ms)

    def end_ms(self) -> float | None:
        """After which time ``find_stale`` finds somebody, if nobody is heard until then."""
        for heard_ms in self._heard.values():
            return heard_ms + self._timeout_ms
        return None

    def find_stale(self, now_ms: float) -> Incarnation | None:
        """The one that was silent longest, if for too long: it is to be fenced, and its session to be ended.

        One at a time, so that the next decision sees what this one has changed.
        """
        for incarnation, heard_ms in self._heard.items():
            return incarnation if self._is_over(heard_ms, now_ms) else None
        return None

    def _is_over(self, heard_ms: float, now_ms: float) -> bool:
        return now_ms - heard_ms > self._timeout_ms

    # How far each has come

    def registered(self, broker_id: int, offset: int) -> None:
        """A registration will be committed, whose record has this offset: what was known of it is no more."""
        self._registration_offsets[broker_id] = offset
        self._metadata_offsets.pop(broker_id, None)
        self._shutdown_offsets.pop(broker_id, None)

    def registration_offset(self, broker: BrokerImage) -> int:
        """What a broker must have read to know that it is registered."""
        return self._registration_offsets.get(broker.id, broker.epoch)

    def reached(self, broker_id: int, metadata_offset: int) -> None:
        """The broker has applied the metadata log up to this offset, inclusive."""
        self._metadata_offsets[broker_id] = metadata_offset

    def lowest_active_offset(self, image: MetadataImage) -> int | None:
        """What all brokers that may lead have applied; None if there is none but the controller's own.

        That one sees everything before anybody is answered.
        """
        return min(
            (
                self._metadata_offsets.get(broker.id, UNKNOWN_OFFSET)
                for broker in image.brokers.values()
                if broker.is_active and broker.id != self._own_broker_id
            ),
            default=None,
        )

    def begin_shutdown(self, broker_id: int, offset: int) -> None:
        """The broker may go once all others have applied this offset; it counts from the first time on."""
        self._shutdown_offsets.setdefault(broker_id, offset)

    def shutdown_offset(self, broker_id: int) -> int | None:
        """That offset; None unless the broker is in a controlled shutdown that began with this controller."""
        return self._shutdown_offsets.get(broker_id)

    def end_shutdown(self, broker_id: int) -> None:
        """The broker is fenced."""
        self._shutdown_offsets.pop(broker_id, None)
