"""The group coordinator of this broker: the shards of ``__consumer_offsets``.

Imported before the port is open, and therefore light: what decides about groups is loaded with the
first of them.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from broker.coordination.hosting import CoordinatorService, open_coordinator
from broker.errors import ErrorCode, KafkaError, error_code_of
from broker.metadata.topic_names import GROUP_OFFSETS
from storage.errors import InvalidProducerEpoch, StorageError

if TYPE_CHECKING:
    from broker.coordination.decision import Moment
    from broker.coordination.leader_log import LeaderLog
    from broker.coordination.shard import Shard
    from broker.coordination.tickets import Ticket
    from broker.groups.cluster import Cluster
    from broker.groups.machine import GroupMachine
    from broker.groups.requests import CommittingInTransaction
    from broker.groups.settings import GroupSettings
    from broker.groups.streams.internal_topics import InternalTopics
    from broker.metadata.image import MetadataImage
    from broker.metadata.replay import MetadataChanges
    from broker.services import Services
    from broker.share.group import Initialize
    from protocol.records.control import EndTransactionMarker
    from storage.transaction_verification import Verification

NOT_READY: Final = (
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
)


class GroupService(CoordinatorService["GroupMachine"]):
    """``commands`` is how requests come here."""

    topic = GROUP_OFFSETS
    partition_count_setting = "offsets.topic.num.partitions"
    kept = "groups"
    load_buffer = "offsets.load.buffer.size"

    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self._deleted_meanwhile: dict[int, dict[bytes, str]] = {}
        """Names by id of topics deleted while a shard could not drop what it knows of them."""

    @cached_property
    def settings(self) -> GroupSettings:
        """What groups go by; read once, as Kafka does."""
        from broker.groups.settings import GroupSettings

        return GroupSettings.from_config(self.services.config)

    @cached_property
    def cluster(self) -> Cluster:
        """Topics and group settings as the machines see them; follows images from its first use on."""
        from broker.groups.cluster import Cluster

        return Cluster(self.services.image, self.services.config)

    @cached_property
    def streams_topics(self) -> InternalTopics:
        """What makes the topics that streams applications keep for themselves."""
        from broker.groups.streams.internal_topics import InternalTopics

        return InternalTopics(self.services)

    def new_shard(
        self, name: str, partition: int, log: LeaderLog, now: Callable[[], Moment], reload: Callable[[], None]
    ) -> Shard[GroupMachine]:
        from broker.coordination.shard import Shard
        from broker.groups.machine import CODEC, GroupMachine
        from protocol.records.compression import Compression

        config = self.services.config
        return Shard(
            name,
            CODEC,
            lambda: GroupMachine(self.settings, self.cluster),
            now=now,
            commit_timeout_ms=config.get("offsets.commit.timeout.ms"),
            compression=Compression(config.get("offsets.topic.compression.codec")),
            log=self.services.log,
            reload=lambda _: reload(),
            perform=self._initialize_share_partitions,
        )

    def _initialize_share_partitions(self, wanted: Initialize) -> None:
        from broker.share.initializing import initialize

        if self.nursery is not None:  # otherwise the service ends, and members ask for it again elsewhere
            self.nursery.start_soon(initialize, self.services, wanted)

    def published(self, image: MetadataImage, changes: MetadataChanges) -> None:
        if "cluster" in self.__dict__:
            self.cluster.follow(image, changes)
        super().published(image, changes)
        deleted = {topic_id: gone.name for topic_id, gone in changes.deleted_topics.items()}
        if deleted:
            for partition in self.partitions:
                self._deleted_meanwhile.setdefault(partition, {}).update(deleted)
                shard = self._shards.get(partition)
                if shard is not None:
                    self.shard_is_ready(partition, shard)

    def shard_is_ready(self, partition: int, shard: Shard[GroupMachine]) -> None:
        """Drop what groups know of topics that were deleted."""
        if not shard.is_active:
            return  # when it is loaded
        topics = self._deleted_meanwhile.pop(partition, None)
        if topics:
            from broker.coordination.tickets import Ticket

            ticket: Ticket[None] = Ticket(lambda code: None)
            self.ask_partition(partition, ticket, lambda machine, _: machine.topics_deleted(topics, ticket))

    def verify_transaction(
        self,
        partition: int,
        asked: CommittingInTransaction,
        ticket: Ticket[Any],
        write: Callable[[Verification | None], None],
    ) -> None:
        """Call ``write`` when offsets may be written in the transaction; otherwise ``ticket`` is refused."""
        from broker.coordination.clients import Client
        from broker.coordination.shard import COORDINATOR_CODES
        from broker.transactions.requests import Identity
        from broker.transactions.verification import ask_coordinator
        from protocol.records.batch import NO_SEQUENCE
        from storage.transaction_verification import VOUCHED

        shard = self.shard(partition)
        if shard is None or not shard.is_active:
            ticket.refuse(ErrorCode.NOT_COORDINATOR if shard is None else shard.refusal)
            return
        verifies = self.services.config.get("transaction.partition.verification.enable")
        # Nobody else adds the partition for those who leave that to the broker.
        if not verifies and asked.client is not Client.ADDS:
            write(VOUCHED)
            return
        try:
            leader = self.services.partitions.leader(self.topic, partition)
            verification = leader.log.producers.begin_verification(
                asked.producer_id,
                asked.producer_epoch,
                NO_SEQUENCE,
                starts_at_zero=asked.client is Client.ADDS,
                now_ms=self.services.clock.now_ms(),
            )
        except InvalidProducerEpoch:
            ticket.refuse(ErrorCode.INVALID_PRODUCER_EPOCH)
            return
        except (KafkaError, StorageError) as error:
            ticket.refuse(COORDINATOR_CODES.get(error_code_of(error), ErrorCode.NOT_COORDINATOR))
            return
        if verification is None:
            write(None)
            return
        place = self.topic, partition
        answer = ask_coordinator(
            self.services,
            asked.transactional_id,
            Identity(asked.producer_id, asked.producer_epoch),
            [place],
            asked.client,
        )

        def answered() -> None:
            refusal = answer.outcome.get(place)
            if refusal is None:
                write(verification)
            else:
                ticket.refuse(COORDINATOR_CODES.get(refusal, refusal))

        answer.then(answered)

    def end_transaction(
        self,
        partition: int,
        producer_id: int,
        producer_epoch: int,
        marker: EndTransactionMarker,
        ticket: Ticket[ErrorCode],
    ) -> None:
        """Offsets that were committed in a transaction count from now on, or never.

        ``ticket`` hears what the log says, and NOT_LEADER_OR_FOLLOWER while the groups are not served: a
        transaction's coordinator tries again after that.
        """
        from broker.coordination.tickets import Ticket

        shard = self.shard(partition)
        if shard is None or not shard.is_active:
            ticket.settle(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            return
        written: Ticket[ErrorCode] = Ticket(
            lambda code: ErrorCode.NOT_LEADER_OR_FOLLOWER if code in NOT_READY else code
        )
        written.when_settled(lambda: ticket.settle(written.outcome))
        try:
            shard.end_transaction(producer_id, producer_epoch, marker, written)
        finally:
            self.watch(partition)

    def shard_has_ended(self, partition: int) -> None:
        self._deleted_meanwhile.pop(partition, None)


def open_groups(services: Services) -> AbstractAsyncContextManager[GroupService]:
    """A service that serves inside the block.  The partitions must follow images before it does."""
    return open_coordinator(GroupService(services))
