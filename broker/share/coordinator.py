"""The share coordinator of this broker: the state of share partitions, kept in ``__share_group_state``.

Imported before the port is open, and therefore light: what decides about state is loaded with the first
of it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import cached_property
from typing import TYPE_CHECKING

import trio

from broker.coordination.hosting import CoordinatorService, open_coordinator
from broker.metadata.topic_names import SHARE_GROUP_STATE
from protocol.errors import KafkaError
from storage.errors import StorageError

if TYPE_CHECKING:
    from broker.coordination.decision import Decision, Moment
    from broker.coordination.leader_log import LeaderLog
    from broker.coordination.shard import Shard
    from broker.coordination.tickets import Ticket
    from broker.metadata.image import MetadataImage
    from broker.metadata.replay import MetadataChanges
    from broker.services import Services
    from broker.share.remote_state import RemoteState
    from broker.share.state import Outcome, SharePartitionKey, ShareStateMachine


class ShareCoordinator(CoordinatorService["ShareStateMachine"]):
    """One shard for each partition of ``__share_group_state`` that is led here.

    The topic is not compacted: what newer snapshots supersede is deleted from its start, from time to time.
    """

    topic = SHARE_GROUP_STATE
    partition_count_setting = "share.coordinator.state.topic.num.partitions"
    kept = "state of share groups"
    load_buffer = "share.coordinator.load.buffer.size"

    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self._deleted_meanwhile: dict[int, set[bytes]] = {}
        """Topics deleted while a shard could not drop their state."""

    def new_shard(
        self, name: str, partition: int, log: LeaderLog, now: Callable[[], Moment], reload: Callable[[], None]
    ) -> Shard[ShareStateMachine]:
        from broker.coordination.shard import Shard
        from broker.share.state import CODEC, ShareStateMachine, StateSettings
        from protocol.records.compression import Compression

        get = self.services.config.get
        settings = StateSettings(
            updates_per_snapshot=get("share.coordinator.snapshot.update.records.per.snapshot"),
            cold_snapshot_interval_ms=get("share.coordinator.cold.partition.snapshot.interval.ms"),
        )
        return Shard(
            name,
            CODEC,
            lambda: ShareStateMachine(settings),
            now=now,
            commit_timeout_ms=get("share.coordinator.write.timeout.ms"),
            compression=Compression(get("share.coordinator.state.topic.compression.codec")),
            is_compacted=False,
            log=self.services.log,
            reload=lambda _: reload(),
        )

    @cached_property
    def remote_state(self) -> RemoteState:
        """How whoever needs state on this broker asks the share coordinators that are other brokers."""
        from broker.share.remote_state import RemoteState

        return RemoteState(self.services, lambda: self.nursery)

    def shard_is_ready(self, partition: int, shard: Shard[ShareStateMachine]) -> None:
        self._drop_state_of_deleted_topics(partition)

    def shard_has_ended(self, partition: int) -> None:
        self._deleted_meanwhile.pop(partition, None)

    def published(self, image: MetadataImage, changes: MetadataChanges) -> None:
        super().published(image, changes)
        deleted = set(changes.deleted_topics)
        if deleted:
            for partition in self.partitions:
                self._deleted_meanwhile.setdefault(partition, set()).update(deleted)
                self._drop_state_of_deleted_topics(partition)

    def _drop_state_of_deleted_topics(self, partition: int) -> None:
        if self.is_unread(partition):
            return
        shard = self.shard(partition)
        if shard is None or not shard.is_active:
            return  # when it is loaded
        topic_ids = self._deleted_meanwhile.pop(partition, None)
        if topic_ids:
            from broker.coordination.tickets import Ticket

            ticket: Ticket[None] = Ticket(lambda code: None)
            self.ask_partition(
                partition, ticket, lambda machine, _: machine.topics_deleted(topic_ids, ticket)
            )

    def ask_about(
        self,
        key: SharePartitionKey,
        ticket: Ticket[Outcome],
        command: Callable[[ShareStateMachine, Moment], Decision],
    ) -> None:
        """Let the machine that keeps the share partition decide."""
        self.ask(key.text, ticket, command)

    def partition_count_of(self, topic_id: bytes) -> int | None:
        """How many partitions the topic has; None if there is no such topic."""
        topic = self.services.image.topics_by_id.get(topic_id)
        return None if topic is None else len(topic.partitions)

    # What is superseded

    async def keep_pruned(self) -> None:
        """Delete superseded records until cancelled."""
        interval_seconds = self.services.config.get("share.coordinator.state.topic.prune.interval.ms") / 1000
        while True:
            await trio.sleep(interval_seconds)
            for partition in self.partitions:
                self.prune(partition)
                await trio.lowlevel.checkpoint()

    def prune(self, partition: int) -> None:
        """Delete the superseded records of one partition, as far as their successors are safe."""
        if self.is_unread(partition):
            return
        shard = self.shard(partition)
        if shard is None or shard.machine is None:
            return
        try:
            log = self.services.partitions.leader(self.topic, partition).log
            log.delete_records_before(min(shard.machine.needed_from, log.high_watermark))
        except (KafkaError, StorageError) as error:
            self.services.log.error(f"{shard.name} cannot be pruned: {error}")


@asynccontextmanager
async def open_share_coordinator(services: Services) -> AsyncIterator[ShareCoordinator]:
    """A coordinator that serves inside the block.  The partitions must follow images before it does."""
    async with open_coordinator(ShareCoordinator(services)) as coordinator, trio.open_nursery() as nursery:
        nursery.start_soon(coordinator.keep_pruned)
        try:
            yield coordinator
        finally:
            nursery.cancel_scope.cancel()
