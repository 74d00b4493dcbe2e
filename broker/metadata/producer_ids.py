"""Producer ids to hand out, from blocks that the controller gives this broker."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from broker.controller.producer_ids import BLOCK_SIZE, ProducerIdBlock
from broker.life.own_epoch import own_broker_epoch
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError

if TYPE_CHECKING:
    from broker.services import Services
    from protocol.messages.allocate_producer_ids import AllocateProducerIdsResponse

PREFETCH_BELOW: Final = BLOCK_SIZE // 10
"""With fewer ids than this left, the next block is fetched."""

PATIENCE_SECONDS: Final = 5.0
"""How long a controller may be away before whoever waits for an id is told to come again."""

Give = Callable[[int | KafkaError], None]
Ready = Callable[[KafkaError | None], None]


class ProducerIds:
    """Hands out ids that no producer of the cluster ever had.

    A block lost by a restart is not used again: there are enough of them.
    """

    def __init__(self, services: "Services") -> None:
        self._services = services
        self._next = 0
        self._end = 0
        self._fetched: ProducerIdBlock | None = None
        self._is_fetching = False
        self._waiting: list[Ready] = []

    def take(self) -> int | None:
        """A new id, or None while there is none at hand: then ``request`` waits for one."""
        if self._next == self._end:
            if self._fetched is None:
                return None
            self._use(self._fetched)
        taken = self._next
        self._next += 1
        if self._end - self._next < PREFETCH_BELOW and self._fetched is None:
            self._fetch()
        return taken

    def request(self, give: Give) -> None:
        """Call ``give`` with a new id, at once or when the controller has allocated a block.

        It gets a ``KafkaError`` instead when the controller refuses.
        """

        def ready(refusal: KafkaError | None) -> None:
            taken = self.take() if refusal is None else refusal
            assert taken is not None, "there is one at hand"
            give(taken)

        self.when_at_hand(ready)

    def when_at_hand(self, ready: Ready) -> None:
        """Call ``ready`` in a moment when ``take`` has an id to give; this one, if that is so now.

        It gets a ``KafkaError`` if the controller refuses to allocate a block, and None if all is well.
        """
        if not self._waiting and (self._next < self._end or self._fetched is not None):
            ready(None)
        else:
            self._waiting.append(ready)
            self._fetch()

    def _fetch(self) -> None:
        if self._is_fetching:
            return
        services = self._services
        broker = services.image.brokers.get(services.node_id)
        if broker is None:
            self._refuse(
                KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "The broker is not registered yet.")
            )
            return
        from protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest

        self._is_fetching = True
        services.channel.submit(
            AllocateProducerIdsRequest(broker_id=broker.id, broker_epoch=own_broker_epoch(services)),
            self._fetched_block,
            timeout_seconds=PATIENCE_SECONDS,
        )

    def _fetched_block(self, answer: "AllocateProducerIdsResponse | KafkaError") -> None:
        self._is_fetching = False
        if isinstance(answer, KafkaError):  # clients know this one, and try again
            self._refuse(KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, answer.message))
            return
        if answer.error_code:
            self._refuse(KafkaError(ErrorCode(answer.error_code)))
            return
        block = ProducerIdBlock(answer.producer_id_start, answer.producer_id_len)
        if self._next == self._end:
            self._use(block)
        else:
            self._fetched = block
        waiting, self._waiting = self._waiting, []
        for ready in waiting:
            self.when_at_hand(ready)

    def _use(self, block: ProducerIdBlock) -> None:
        self._fetched = None
        self._next = block.first
        self._end = block.first + block.size

    def _refuse(self, error: KafkaError) -> None:
        waiting, self._waiting = self._waiting, []
        for ready in waiting:
            ready(error)
