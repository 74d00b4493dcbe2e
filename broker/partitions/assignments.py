"""Telling the controller in which directories this broker's replicas lie (KIP-858)."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

import trio

from broker.controller.brokers import known_broker
from broker.controller.start import topic_rules
from broker.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker.controller.decision import Decision
    from broker.metadata.image import MetadataImage
    from broker.services import Services

AT_ONCE_MAX: Final = 2250
"""Assignments in one request, as in Kafka."""

RETRY_SECONDS: Final = 1.0
"""Before a controller is asked again that could not write."""

WhenAssigned = Callable[[KafkaError | None], None]
"""Told once: None when the assignment is committed, or why it cannot be."""


class _Pending(NamedTuple):
    directory: bytes
    done: WhenAssigned | None


class Assignments:
    """What is to be told, one request at a time.  A newer assignment of a replica replaces an older one."""

    def __init__(self, services: "Services") -> None:
        self._services = services
        self._pending: dict[tuple[bytes, int], _Pending] = {}
        self._is_under_way = False
        self._gathers = False
        self._is_urgent = False
        """Somebody waits to be told of one that is pending."""

    def gather(self) -> None:
        """Many assignments are coming: send them together, until ``send_gathered``.

        Each request makes another image, which everybody follows.
        """
        self._gathers = True

    def send_gathered(self) -> None:
        """Send what has been gathered, and from now on each at once."""
        self._gathers = False
        self._send()

    def assign(
        self, topic_id: bytes, partition: int, directory: bytes, done: WhenAssigned | None = None
    ) -> None:
        """Let the cluster know that the replica of this partition lies in ``directory``.

        Whoever waits to be told does not wait for others to be gathered.
        """
        replaced = self._pending.get((topic_id, partition))
        self._pending[topic_id, partition] = _Pending(directory, done)
        if replaced is not None and replaced.done is not None:
            replaced.done(KafkaError(ErrorCode.OPERATION_NOT_ATTEMPTED))
        self._is_urgent |= done is not None
        if self._is_time:
            self._send()

    @property
    def _is_time(self) -> bool:
        """Whether what is pending is to be sent, and not to wait for more."""
        return self._is_urgent or not self._gathers or len(self._pending) >= AT_ONCE_MAX

    def _send(self) -> None:
        if self._is_under_way or not self._pending:
            return
        from broker.controller.directories import Assignment, assign_replicas

        keys = list(self._pending)[:AT_ONCE_MAX]
        sent = {key: self._pending.pop(key) for key in keys}
        assignments = [Assignment(*key, pending.directory) for key, pending in sent.items()]
        node_id = self._services.node_id

        def command(image: "MetadataImage") -> "Decision[Sequence[ErrorCode]]":
            epoch = known_broker(image, node_id).epoch
            return assign_replicas(image, node_id, epoch, assignments, topic_rules(self._services, image))

        self._is_under_way = True
        self._is_urgent = any(pending.done is not None for pending in self._pending.values())
        self._services.controller.submit(command, lambda outcome: self._answered(sent, outcome))

    def _answered(
        self, sent: dict[tuple[bytes, int], _Pending], outcome: "Sequence[ErrorCode] | KafkaError"
    ) -> None:
        self._is_under_way = False
        if isinstance(outcome, KafkaError):
            self._services.log.warn_seldom(f"directories of replicas could not be noted yet: {outcome}")
            for key, pending in sent.items():
                if self._pending.setdefault(key, pending) is not pending and pending.done is not None:
                    pending.done(KafkaError(ErrorCode.OPERATION_NOT_ATTEMPTED))
            self._services.partitions.start_soon(self._retry)
            return
        for pending, code in zip(sent.values(), outcome, strict=True):
            if pending.done is not None:
                pending.done(None if code is ErrorCode.NONE else KafkaError(code))
        if self._is_time:
            self._send()

    async def _retry(self) -> None:
        await trio.sleep(RETRY_SECONDS)
        self._send()
