"""A shard's view of the partition that this broker leads for it."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from protocol.errors import KafkaError
from protocol.primitives import Buffer
from protocol.records.batch import RecordBatch
from storage.transaction_verification import VOUCHED, Verification

if TYPE_CHECKING:
    from broker.partitions.leader import Leader
    from broker.services import Services


class LeaderLog:
    """``ShardLog`` on top of the partition's ``Leader``."""

    def __init__(self, leader: "Leader", services: "Services", *, load_bytes_max: int) -> None:
        """``load_bytes_max`` is what one read takes while loading."""
        self.leader_epoch = leader.leader_epoch
        self._load_bytes_max = load_bytes_max
        self._leader = leader
        self._services = services

    @property
    def is_over(self) -> bool:
        """This leadership has ended.  Another may have begun, and somebody else may have written between."""
        return self._leader.ended is not None or self._leader.leader_epoch != self.leader_epoch

    @property
    def log_start(self) -> int:
        return self._leader.log.log_start

    @property
    def log_end(self) -> int:
        return self._leader.log.log_end

    @property
    def high_watermark(self) -> int:
        return self._leader.log.high_watermark

    @property
    def batch_bytes_max(self) -> int:
        return self._leader.settings.max_message_bytes

    def append(self, batch: bytearray, verification: Verification | None = VOUCHED) -> int:
        now_ms = self._services.clock.now_ms()
        return self._leader.append_own(RecordBatch(batch), now_ms, verification).base_offset

    async def read(self, offset: int) -> Buffer:
        found = self._leader.log.read(offset, self._load_bytes_max)
        if found is None:
            return b""
        return await self._services.run_blocking(found.read)

    def when_covered(self, offset: int, notify: Callable[[], None]) -> None:
        def committed(error: KafkaError | None) -> None:
            if error is None:  # otherwise the service ends the shard, which tells everybody who waits
                notify()

        self._leader.when_committed(offset, committed)
