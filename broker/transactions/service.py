"""The transaction coordinator of this broker: the shards of ``__transaction_state``.

Imported before the port is open, and therefore light: what decides about transactions is loaded with the
first of them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import cached_property
from typing import TYPE_CHECKING

from broker.coordination.hosting import CoordinatorService, open_coordinator
from broker.metadata.features import TRANSACTION_VERSION
from broker.metadata.topic_names import TRANSACTION_STATE

if TYPE_CHECKING:
    from broker.coordination.decision import Moment
    from broker.coordination.leader_log import LeaderLog
    from broker.coordination.shard import Shard
    from broker.services import Services
    from broker.transactions.machine import TransactionMachine
    from broker.transactions.markers import MarkerWriter
    from broker.transactions.remote_verification import RemoteVerification
    from broker.transactions.settings import TransactionSettings


class TransactionService(CoordinatorService["TransactionMachine"]):
    """``commands`` is how requests come here."""

    topic = TRANSACTION_STATE
    partition_count_setting = "transaction.state.log.num.partitions"
    kept = "transactions"
    load_buffer = "transaction.state.log.load.buffer.size"

    @cached_property
    def settings(self) -> TransactionSettings:
        """What transactions go by; read once, as Kafka does."""
        from broker.transactions.settings import TransactionSettings

        return TransactionSettings.from_config(self.services.config)

    @cached_property
    def markers(self) -> MarkerWriter:
        from broker.transactions.markers import MarkerWriter

        return MarkerWriter(self)

    @cached_property
    def remote_verification(self) -> RemoteVerification:
        """How partitions led here ask coordinators that are other brokers."""
        from broker.transactions.remote_verification import RemoteVerification

        return RemoteVerification(self.services, self)

    def shard_has_ended(self, partition: int) -> None:
        """Whoever leads the partition now goes on with what was to be written for it."""
        if "markers" in self.__dict__:
            self.markers.forget(partition)

    @property
    def feature_level(self) -> int:
        """The cluster's transaction.version."""
        return self.services.image.features.get(TRANSACTION_VERSION, 0)

    def new_shard(
        self, name: str, partition: int, log: LeaderLog, now: Callable[[], Moment], reload: Callable[[], None]
    ) -> Shard[TransactionMachine]:
        from broker.coordination.shard import Shard
        from broker.transactions.machine import CODEC, TransactionMachine

        def new_machine() -> TransactionMachine:
            return TransactionMachine(
                self.settings,
                coordinator_epoch=log.leader_epoch,
                take_producer_id=self._take_producer_id,
                feature_level=lambda: self.feature_level,
            )

        return Shard(
            name,
            CODEC,
            new_machine,
            now=now,
            commit_timeout_ms=self.services.config.get("request.timeout.ms"),
            log=self.services.log,
            reload=lambda _: reload(),
            perform=lambda due: self.markers.write_soon(partition, due),
        )

    def _take_producer_id(self) -> int | None:
        producer_ids = self.services.producer_ids
        taken = producer_ids.take()
        if taken is None:
            producer_ids.when_at_hand(lambda _: None)  # so that there is one the next time
        return taken


@asynccontextmanager
async def open_transactions(services: Services) -> AsyncIterator[TransactionService]:
    """A service that serves inside the block.  Partitions and groups must follow images before it does."""
    async with open_coordinator(TransactionService(services)) as service:
        yield service
