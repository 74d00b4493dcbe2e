"""How records change the image.  This is the only place where it changes, live and on loading alike.

A record that cannot be applied raises ``ReplayError``: to skip it would leave every node that skips
it with another cluster than the rest.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from broker.config.definitions import Scope, find
from broker.metadata.features import KRAFT_VERSION
from broker.metadata.image import (
    BrokerImage,
    ControllerImage,
    Endpoint,
    LeaderRecoveryState,
    MetadataImage,
    PartitionImage,
    QuotaEntity,
    ResourceType,
    SecurityProtocol,
    TopicImage,
    collision_key,
    has_collision_characters,
)
from protocol.schema import Message
from protocol.stored import metadata_records as stored

Key = TypeVar("Key")
Value = TypeVar("Value")

KEEP_LEADER = -2
"""In a PartitionChangeRecord: the leader stays, and with it the leader epoch."""


class ReplayError(Exception):
    """A committed record contradicts the records before it: the log, or this code, is wrong."""


class MetadataChanges:
    """What a newly published image says differently from the one before.

    Topics are named by id: one that was deleted and made again under its name is in both mappings.
    A topic made and deleted since the last image is in neither.
    """

    __slots__ = ("brokers", "configs", "controllers", "deleted_topics", "features", "quotas", "topics")

    def __init__(self) -> None:
        self.topics: dict[bytes, TopicImage] = {}
        """New topics and those with changed partitions, as they are now."""
        self.deleted_topics: dict[bytes, TopicImage] = {}
        """As they were."""
        self.configs: set[tuple[int, str]] = set()
        """Resources (type, name) with settings made, changed or removed."""
        self.brokers: set[int] = set()
        self.controllers: set[int] = set()
        self.features: set[str] = set()
        self.quotas: set[QuotaEntity] = set()

    def __bool__(self) -> bool:
        return any(getattr(self, name) for name in self.__slots__)


def apply(
    image: MetadataImage, records: Sequence[Message], *, offset: int, epoch: int, timestamp_ms: int = -1
) -> tuple[MetadataImage, MetadataChanges]:
    """The image after the records of one batch, whose last has ``offset``, and what they changed.

    They must not end inside a metadata transaction: ``Replay`` is what carries one over.
    """
    replay = Replay(image)
    replay.apply(records, offset=offset, epoch=epoch, timestamp_ms=timestamp_ms)
    if replay.in_transaction:
        raise ReplayError("the records end inside a metadata transaction")
    changes = replay.publish()
    return replay.image, changes


class Replay:
    """Applies batch after batch; ``publish`` makes the image of what has been applied.

    Between a BeginTransactionRecord and its end (KIP-868) published images stand still; an aborted
    transaction leaves no trace.
    """

    def __init__(self, image: MetadataImage) -> None:
        self.image = image
        """What was published last."""
        self._builder = ImageBuilder(image)
        self._before_transaction: ImageBuilder | None = None

    @property
    def in_transaction(self) -> bool:
        """Whether a metadata transaction is open: its records are not in the next image."""
        return self._before_transaction is not None

    def apply(self, records: Sequence[Message], *, offset: int, epoch: int, timestamp_ms: int = -1) -> None:
        """Apply the records of one batch, whose last has ``offset``."""
        record_offset = offset - len(records)
        for record in records:
            record_offset += 1
            kind = type(record)
            if kind is stored.BeginTransactionRecord:
                if self._before_transaction is not None:
                    raise ReplayError("a metadata transaction begins inside another")
                self._before_transaction = self._builder
                self._builder = self._builder.branch()
            elif kind is stored.EndTransactionRecord:
                if self._before_transaction is None:
                    raise ReplayError("a metadata transaction ends that has not begun")
                self._builder.take_over(self._before_transaction)
                self._before_transaction = None
            elif kind is stored.AbortTransactionRecord:
                if self._before_transaction is None:
                    raise ReplayError("a metadata transaction is aborted that has not begun")
                self._builder, self._before_transaction = self._before_transaction, None
            else:
                self._builder.replay(record)
            self._builder.offset = record_offset
            self._builder.epoch = epoch
            self._builder.timestamp_ms = timestamp_ms

    def skip_to(self, offset: int, epoch: int, timestamp_ms: int) -> None:
        """Go past a batch, up to ``offset``, that says nothing about the cluster."""
        self._builder.offset = offset
        self._builder.epoch = epoch
        self._builder.timestamp_ms = timestamp_ms

    def publish(self) -> MetadataChanges:
        """Make ``image`` say all that was applied, and return what that changes in it."""
        builder = self._before_transaction or self._builder
        self.image, changes = builder.build()
        return changes


class ImageBuilder:
    """The next image under construction: what is not touched is shared with the image before."""

    def __init__(self, image: MetadataImage) -> None:
        self.changes = MetadataChanges()
        self.offset = image.offset
        self.epoch = image.epoch
        self.timestamp_ms = image.timestamp_ms
        self._published = image
        self._parts = image.parts()
        self._copied: set[str] = set()
        self._partitions: dict[bytes, dict[int, PartitionImage]] = {}
        self._configs: dict[tuple[int, str], dict[str, str]] = {}
        self._quotas: dict[QuotaEntity, dict[str, float]] = {}

    def replay(self, record: Message) -> None:
        """Apply one record that is not about transactions."""
        handler = HANDLERS.get(type(record))
        if handler is None:
            raise ReplayError(f"no rule for {type(record).__name__}")
        handler(self, record)

    def build(self) -> tuple[MetadataImage, MetadataChanges]:
        """Publish the image after all records so far; later ones go into the next one."""
        self._published = self._build()
        changes, self.changes = self.changes, MetadataChanges()
        return self._published, changes

    def branch(self) -> "ImageBuilder":
        """Another builder that goes on from here and leaves this one as it is."""
        return ImageBuilder(self._build())

    def take_over(self, before: "ImageBuilder") -> None:
        """Add to this branch's changes those that ``before`` has not published."""
        changes = before.changes
        for topic_id in self.changes.deleted_topics:
            changes.topics.pop(topic_id, None)
            known = before._published.topics_by_id.get(topic_id)
            if known is not None:
                changes.deleted_topics[topic_id] = known
        changes.topics.update(self.changes.topics)
        for name in ("brokers", "configs", "controllers", "features", "quotas"):
            getattr(changes, name).update(getattr(self.changes, name))
        self.changes = changes
        self._published = before._published

    def _build(self) -> MetadataImage:
        self._finish_topics()
        self._finish_configs()
        self._finish_quotas()
        self._copied.clear()
        self._parts["offset"] = self.offset
        self._parts["epoch"] = self.epoch
        self._parts["timestamp_ms"] = self.timestamp_ms
        return MetadataImage(**self._parts)

    def _own(self, name: str) -> dict[Any, Any]:
        """The mapping ``name``, copied from the image before the first change to it."""
        if name not in self._copied:
            self._copied.add(name)
            self._parts[name] = dict(self._parts[name])
        mapping: dict[Any, Any] = self._parts[name]
        return mapping

    # Features

    def feature_level(self, record: stored.FeatureLevelRecord) -> None:
        if record.name == KRAFT_VERSION:  # KRaft's own note says it; Kafka 4.0 wrote this one, too
            return
        features = self._own("features")
        if record.feature_level == 0:
            features.pop(record.name, None)
        else:
            features[record.name] = record.feature_level
        self.changes.features.add(record.name)

    # Brokers and controllers

    def register_broker(self, record: stored.RegisterBrokerRecord) -> None:
        self._put_broker(
            BrokerImage(
                id=record.broker_id,
                epoch=record.broker_epoch,
                incarnation_id=record.incarnation_id,
                endpoints=_endpoints(record.end_points),
                features=_feature_ranges(record.features),
                rack=record.rack,
                fenced=record.fenced,
                in_controlled_shutdown=record.in_controlled_shutdown,
                directories=tuple(record.log_dirs),
                cordoned_directories=_optional_tuple(record.cordoned_log_dirs),
                is_migrating_zk_broker=record.is_migrating_zk_broker,
            )
        )

    def unregister_broker(self, record: stored.UnregisterBrokerRecord) -> None:
        self._broker(record.broker_id, record.broker_epoch)
        del self._own("brokers")[record.broker_id]
        self.changes.brokers.add(record.broker_id)

    def fence_broker(self, record: stored.FenceBrokerRecord) -> None:
        self._put_broker(self._broker(record.id, record.epoch)._replace(fenced=True))

    def unfence_broker(self, record: stored.UnfenceBrokerRecord) -> None:
        self._put_broker(self._broker(record.id, record.epoch)._replace(fenced=False))

    def broker_registration_change(self, record: stored.BrokerRegistrationChangeRecord) -> None:
        broker = self._broker(record.broker_id, record.broker_epoch)
        if record.fenced not in (-1, 0, 1):
            raise ReplayError(f"a change of broker {broker.id} has fenced {record.fenced}")
        if record.in_controlled_shutdown not in (0, 1):
            raise ReplayError(
                f"a change of broker {broker.id} has in_controlled_shutdown {record.in_controlled_shutdown}"
            )
        if record.fenced:
            broker = broker._replace(fenced=record.fenced == 1)
        if record.in_controlled_shutdown:
            broker = broker._replace(in_controlled_shutdown=True)
        if record.log_dirs:
            broker = broker._replace(directories=tuple(record.log_dirs))
        if record.cordoned_log_dirs is not None:
            broker = broker._replace(cordoned_directories=tuple(record.cordoned_log_dirs))
        self._put_broker(broker)

    def _broker(self, broker_id: int, epoch: int) -> BrokerImage:
        broker: BrokerImage | None = self._parts["brokers"].get(broker_id)
        if broker is None:
            raise ReplayError(f"a record changes broker {broker_id}, which is not registered")
        if broker.epoch != epoch:
            raise ReplayError(
                f"a record changes broker {broker_id} at epoch {epoch}, but it has {broker.epoch}"
            )
        return broker

    def _put_broker(self, broker: BrokerImage) -> None:
        self._own("brokers")[broker.id] = broker
        self.changes.brokers.add(broker.id)

    def register_controller(self, record: stored.RegisterControllerRecord) -> None:
        self._own("controllers")[record.controller_id] = ControllerImage(
            id=record.controller_id,
            incarnation_id=record.incarnation_id,
            endpoints=_endpoints(record.end_points),
            features=_feature_ranges(record.features),
            zk_migration_ready=record.zk_migration_ready,
        )
        self.changes.controllers.add(record.controller_id)

    def unregister_controller(self, record: stored.UnregisterControllerRecord) -> None:
        if record.controller_id not in self._parts["controllers"]:
            raise ReplayError(f"controller {record.controller_id} is unregistered without a registration")
        del self._own("controllers")[record.controller_id]
        self.changes.controllers.add(record.controller_id)

    # Topics and partitions

    def topic(self, record: stored.TopicRecord) -> None:
        if record.name in self._parts["topics"]:
            raise ReplayError(f"topic {record.name!r} is made twice")
        if record.topic_id in self._parts["topics_by_id"]:
            raise ReplayError(f"topic id {record.topic_id.hex()} is given twice")
        topic = TopicImage(record.name, record.topic_id, ())
        self._own("topics")[record.name] = topic
        self._own("topics_by_id")[record.topic_id] = topic
        self._partitions[record.topic_id] = {}
        if has_collision_characters(record.name):
            names = self._own("topic_names_by_collision_key")
            key = collision_key(record.name)
            names[key] = (*names.get(key, ()), record.name)

    def partition(self, record: stored.PartitionRecord) -> None:
        partitions = self._partitions_of(record.topic_id)
        if len(record.directories) not in (0, len(record.replicas)):
            raise ReplayError(
                f"partition {record.partition_id} of topic id {record.topic_id.hex()} has "
                f"{len(record.replicas)} replicas in {len(record.directories)} directories"
            )
        partitions[record.partition_id] = PartitionImage(
            replicas=tuple(record.replicas),
            isr=tuple(record.isr),
            leader=record.leader,
            leader_epoch=record.leader_epoch,
            partition_epoch=record.partition_epoch,
            # Before level 17 nobody said which directory: the broker's only one.
            directories=tuple(record.directories) or (bytes(16),) * len(record.replicas),
            leader_recovery_state=_recovery_state(record.leader_recovery_state),
            removing_replicas=tuple(record.removing_replicas),
            adding_replicas=tuple(record.adding_replicas),
            eligible_leader_replicas=tuple(record.eligible_leader_replicas or ()),
            last_known_elr=tuple(record.last_known_elr or ()),
        )

    def partition_change(self, record: stored.PartitionChangeRecord) -> None:
        partitions = self._partitions_of(record.topic_id)
        before = partitions.get(record.partition_id)
        if before is None:
            raise ReplayError(
                f"a record changes partition {record.partition_id} of topic id {record.topic_id.hex()}, "
                "which has none of that number"
            )
        partitions[record.partition_id] = changed_partition(before, record)

    def remove_topic(self, record: stored.RemoveTopicRecord) -> None:
        topic: TopicImage | None = self._parts["topics_by_id"].get(record.topic_id)
        if topic is None:
            raise ReplayError(f"topic id {record.topic_id.hex()} is removed, but there is no such topic")
        del self._own("topics")[topic.name]
        del self._own("topics_by_id")[topic.id]
        self._partitions.pop(topic.id, None)
        self._forget_collisions(topic.name)
        resource = (int(ResourceType.TOPIC), topic.name)
        self._configs.pop(resource, None)
        if self._parts["configs"].get(resource) is not None:
            del self._own("configs")[resource]
            self.changes.configs.add(resource)
        self.changes.topics.pop(topic.id, None)
        known = self._published.topics_by_id.get(topic.id)
        if known is not None:
            self.changes.deleted_topics[topic.id] = known

    def clear_elr(self, record: stored.ClearElrRecord) -> None:
        if record.topic_name:
            topic = self._parts["topics"].get(record.topic_name)
            if topic is None:
                raise ReplayError(f"a record clears the ELR of topic {record.topic_name!r}: there is none")
            topics = [topic]
        else:
            topics = list(self._parts["topics"].values())
        for topic in topics:
            partitions = self._partitions.get(topic.id)
            current = partitions.items() if partitions is not None else enumerate(topic.partitions)
            stale = [
                (index, partition)
                for index, partition in current
                if partition.eligible_leader_replicas or partition.last_known_elr
            ]
            for index, partition in stale:
                self._partitions_of(topic.id)[index] = partition._replace(
                    eligible_leader_replicas=(),
                    last_known_elr=(),
                    partition_epoch=partition.partition_epoch + 1,
                )

    def _forget_collisions(self, name: str) -> None:
        if not has_collision_characters(name):
            return
        names = self._own("topic_names_by_collision_key")
        key = collision_key(name)
        left = tuple(other for other in names.get(key, ()) if other != name)
        if left:
            names[key] = left
        else:
            names.pop(key, None)

    def _partitions_of(self, topic_id: bytes) -> dict[int, PartitionImage]:
        partitions = self._partitions.get(topic_id)
        if partitions is None:
            topic: TopicImage | None = self._parts["topics_by_id"].get(topic_id)
            if topic is None:
                raise ReplayError(f"a record is about topic id {topic_id.hex()}, which does not exist")
            partitions = self._partitions[topic_id] = dict(enumerate(topic.partitions))
        return partitions

    def _finish_topics(self) -> None:
        if not self._partitions:
            return
        topics = self._own("topics")
        topics_by_id = self._own("topics_by_id")
        for topic_id, partitions in self._partitions.items():
            before: TopicImage = topics_by_id[topic_id]
            topic = before._replace(partitions=_in_order(before.name, partitions))
            topics[topic.name] = topics_by_id[topic_id] = self.changes.topics[topic_id] = topic
        self._partitions = {}

    # Settings

    def config(self, record: stored.ConfigRecord) -> None:
        if not _is_supported(record.resource_type, record.name):
            return
        resource = (record.resource_type, record.resource_name)
        values = self._configs.get(resource)
        if values is None:
            values = self._configs[resource] = dict(self._parts["configs"].get(resource, {}))
        if record.value is None:
            values.pop(record.name, None)
        else:
            values[record.name] = record.value
        self.changes.configs.add(resource)

    def _finish_configs(self) -> None:
        if self._configs:
            _replace_nonempty(self._own("configs"), self._configs)
            self._configs = {}

    # Quotas, ids, and what the security features keep

    def client_quota(self, record: stored.ClientQuotaRecord) -> None:
        pairs = [(part.entity_type, part.entity_name) for part in record.entity]
        entity = tuple(sorted(pairs, key=lambda pair: pair[0]))
        values = self._quotas.get(entity)
        if values is None:
            values = self._quotas[entity] = dict(self._parts["quotas"].get(entity, {}))
        if record.remove:
            values.pop(record.key, None)
        else:
            values[record.key] = record.value
        self.changes.quotas.add(entity)

    def _finish_quotas(self) -> None:
        if self._quotas:
            _replace_nonempty(self._own("quotas"), self._quotas)
            self._quotas = {}

    def producer_ids(self, record: stored.ProducerIdsRecord) -> None:
        self._parts["next_producer_id"] = record.next_producer_id

    def access_control_entry(self, record: stored.AccessControlEntryRecord) -> None:
        self._own("acls")[record.id] = record

    def remove_access_control_entry(self, record: stored.RemoveAccessControlEntryRecord) -> None:
        if self._own("acls").pop(record.id, None) is None:
            raise ReplayError(f"access control entry {record.id.hex()} is removed, but there is none")

    def user_scram_credential(self, record: stored.UserScramCredentialRecord) -> None:
        self._own("scram_credentials")[record.name, record.mechanism] = record

    def remove_user_scram_credential(self, record: stored.RemoveUserScramCredentialRecord) -> None:
        self._own("scram_credentials").pop((record.name, record.mechanism), None)

    def delegation_token(self, record: stored.DelegationTokenRecord) -> None:
        self._own("delegation_tokens")[record.token_id] = record

    def remove_delegation_token(self, record: stored.RemoveDelegationTokenRecord) -> None:
        self._own("delegation_tokens").pop(record.token_id, None)

    def no_op(self, record: stored.NoOpRecord) -> None:
        """Only the offset moves."""

    def zk_migration_state(self, record: stored.ZkMigrationStateRecord) -> None:
        """Old clusters wrote it: 0 is that there never was a migration, 3 that it is over."""
        if record.zk_migration_state not in (0, 3):
            raise ReplayError(
                f"the log is in ZooKeeper migration state {record.zk_migration_state}: finish the migration "
                "with Apache Kafka 3.9 first"
            )


def changed_partition(before: PartitionImage, record: stored.PartitionChangeRecord) -> PartitionImage:
    """The partition after one change.

    The partition epoch always grows; the leader epoch grows whenever the record names a leader, even
    the same one.
    """
    leader = before.leader
    leader_epoch = before.leader_epoch
    if record.leader != KEEP_LEADER:
        leader = record.leader
        leader_epoch += 1
    replicas = before.replicas if record.replicas is None else tuple(record.replicas)
    if record.directories is not None:
        directories = tuple(record.directories)
    elif replicas == before.replicas or any(map(any, before.directories)):
        directories = (
            before.directories
        )  # also of other replicas, where theirs have the same in the same order
    else:  # written before level 17, which says where replicas lie
        directories = (bytes(16),) * len(replicas)
    if len(directories) != len(replicas):
        raise ReplayError(f"a change has {len(replicas)} replicas in {len(directories)} directories")
    state = before.leader_recovery_state
    if record.leader_recovery_state != -1:
        state = _recovery_state(record.leader_recovery_state)
    return PartitionImage(
        replicas=replicas,
        isr=_changed(before.isr, record.isr),
        leader=leader,
        leader_epoch=leader_epoch,
        partition_epoch=before.partition_epoch + 1,
        directories=directories,
        leader_recovery_state=state,
        removing_replicas=_changed(before.removing_replicas, record.removing_replicas),
        adding_replicas=_changed(before.adding_replicas, record.adding_replicas),
        eligible_leader_replicas=_changed(before.eligible_leader_replicas, record.eligible_leader_replicas),
        last_known_elr=_changed(before.last_known_elr, record.last_known_elr),
    )


def _is_supported(resource_type: int, name: str) -> bool:
    """Whether there is such a setting; releases that had others wrote them down.

    Of a broker anything may be set: names of listeners and plugins are the operator's.
    """
    if resource_type == ResourceType.BROKER:
        return True
    scope = _SCOPES.get(resource_type)
    return scope is not None and find(scope, name) is not None


_SCOPES: Mapping[int, Scope] = {
    ResourceType.TOPIC: Scope.TOPIC,
    ResourceType.CLIENT_METRICS: Scope.CLIENT_METRICS,
    ResourceType.GROUP: Scope.GROUP,
}


def _changed(before: tuple[int, ...], after: list[int] | None) -> tuple[int, ...]:
    return before if after is None else tuple(after)


def _recovery_state(number: int) -> LeaderRecoveryState:
    try:
        return LeaderRecoveryState(number)
    except ValueError:
        raise ReplayError(f"unknown leader recovery state {number}") from None


def _in_order(topic: str, partitions: dict[int, PartitionImage]) -> tuple[PartitionImage, ...]:
    try:
        return tuple([partitions[index] for index in range(len(partitions))])
    except KeyError:
        raise ReplayError(f"the partitions of {topic!r} have gaps: {sorted(partitions)}") from None


def _replace_nonempty(target: dict[Key, Mapping[str, Value]], values: dict[Key, dict[str, Value]]) -> None:
    for key, value in values.items():
        if value:
            target[key] = value
        else:
            target.pop(key, None)


def _optional_tuple(values: list[bytes] | None) -> tuple[bytes, ...] | None:
    return None if values is None else tuple(values)


def _endpoints(
    endpoints: "Iterable[stored.BrokerEndpoint | stored.ControllerEndpoint]",
) -> tuple[Endpoint, ...]:
    try:
        return tuple(
            [
                Endpoint(
                    endpoint.name, endpoint.host, endpoint.port, SecurityProtocol(endpoint.security_protocol)
                )
                for endpoint in endpoints
            ]
        )
    except ValueError as error:
        raise ReplayError(f"a registration has an endpoint of an unknown kind: {error}") from None


def _feature_ranges(
    features: "Iterable[stored.BrokerFeature | stored.ControllerFeature]",
) -> dict[str, tuple[int, int]]:
    return {
        feature.name: (feature.min_supported_version, feature.max_supported_version) for feature in features
    }


HANDLERS: dict[type[Message], Callable[[ImageBuilder, Any], None]] = {
    stored.RegisterBrokerRecord: ImageBuilder.register_broker,
    stored.UnregisterBrokerRecord: ImageBuilder.unregister_broker,
    stored.TopicRecord: ImageBuilder.topic,
    stored.PartitionRecord: ImageBuilder.partition,
    stored.ConfigRecord: ImageBuilder.config,
    stored.PartitionChangeRecord: ImageBuilder.partition_change,
    stored.FenceBrokerRecord: ImageBuilder.fence_broker,
    stored.UnfenceBrokerRecord: ImageBuilder.unfence_broker,
    stored.RemoveTopicRecord: ImageBuilder.remove_topic,
    stored.DelegationTokenRecord: ImageBuilder.delegation_token,
    stored.UserScramCredentialRecord: ImageBuilder.user_scram_credential,
    stored.FeatureLevelRecord: ImageBuilder.feature_level,
    stored.ClientQuotaRecord: ImageBuilder.client_quota,
    stored.ProducerIdsRecord: ImageBuilder.producer_ids,
    stored.BrokerRegistrationChangeRecord: ImageBuilder.broker_registration_change,
    stored.AccessControlEntryRecord: ImageBuilder.access_control_entry,
    stored.RemoveAccessControlEntryRecord: ImageBuilder.remove_access_control_entry,
    stored.NoOpRecord: ImageBuilder.no_op,
    stored.ZkMigrationStateRecord: ImageBuilder.zk_migration_state,
    stored.RemoveUserScramCredentialRecord: ImageBuilder.remove_user_scram_credential,
    stored.RemoveDelegationTokenRecord: ImageBuilder.remove_delegation_token,
    stored.RegisterControllerRecord: ImageBuilder.register_controller,
    stored.ClearElrRecord: ImageBuilder.clear_elr,
    stored.UnregisterControllerRecord: ImageBuilder.unregister_controller,
}
"""The rule of each record type; transactions are ``Replay``'s."""
