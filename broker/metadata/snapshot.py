"""The records that make an image from nothing: what a snapshot of the metadata log holds."""

from collections.abc import Iterator

from broker.metadata.features import (
    PARTITION_RECORD_VERSION,
    register_broker_version,
    writes_cordoned_directories,
)
from broker.metadata.image import METADATA_VERSION, BrokerImage, MetadataImage, PartitionImage, TopicImage
from broker.metadata.records import VersionedRecord
from broker.metadata.registrations import (
    broker_endpoints,
    broker_features,
    controller_endpoints,
    controller_features,
)
from protocol.stored.metadata_records import (
    ClientQuotaRecord,
    ConfigRecord,
    EntityData,
    FeatureLevelRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    TopicRecord,
)


def image_records(image: MetadataImage) -> Iterator[VersionedRecord]:
    """Every record with its version, in Kafka's order: what later ones build on comes first.

    Applied to an empty image they give ``image``, but for its offset, epoch and timestamp.
    """
    yield from _features(image)
    for _, broker in sorted(image.brokers.items()):
        yield _broker(broker, image.metadata_version)
    for _, controller in sorted(image.controllers.items()):
        yield (
            RegisterControllerRecord(
                controller_id=controller.id,
                incarnation_id=controller.incarnation_id,
                zk_migration_ready=controller.zk_migration_ready,
                end_points=controller_endpoints(controller.endpoints),
                features=controller_features(controller.features),
            ),
            0,
        )
    for topic in image.topics.values():
        yield from topic_records(topic)
    for (resource_type, resource_name), settings in image.configs.items():
        for name, value in settings.items():
            yield (
                ConfigRecord(
                    resource_type=resource_type, resource_name=resource_name, name=name, value=value
                ),
                0,
            )
    for entity, quotas in image.quotas.items():
        for key, quota in quotas.items():
            parts = [EntityData(entity_type=kind, entity_name=name) for kind, name in entity]
            yield ClientQuotaRecord(entity=parts, key=key, value=quota, remove=False), 0
    if image.next_producer_id > 0:
        yield ProducerIdsRecord(broker_id=-1, next_producer_id=image.next_producer_id), 0
    for entry in image.acls.values():
        yield entry, 0
    for credential in image.scram_credentials.values():
        yield credential, 0
    for token in image.delegation_tokens.values():
        yield token, 0


def topic_records(topic: TopicImage) -> Iterator[VersionedRecord]:
    """The records of one topic, without its settings."""
    yield TopicRecord(name=topic.name, topic_id=topic.id), 0
    for index, partition in enumerate(topic.partitions):
        yield _partition(topic.id, index, partition), PARTITION_RECORD_VERSION


def _features(image: MetadataImage) -> Iterator[VersionedRecord]:
    """metadata.version first: it says how the rest is to be read."""
    names = sorted(image.features, key=lambda name: (name != METADATA_VERSION, name))
    for name in names:
        yield FeatureLevelRecord(name=name, feature_level=image.features[name]), 0


def _broker(broker: BrokerImage, metadata_version: int) -> VersionedRecord:
    record = RegisterBrokerRecord(
        broker_id=broker.id,
        is_migrating_zk_broker=broker.is_migrating_zk_broker,
        incarnation_id=broker.incarnation_id,
        broker_epoch=broker.epoch,
        end_points=broker_endpoints(broker.endpoints),
        features=broker_features(broker.features),
        rack=broker.rack,
        fenced=broker.fenced,
        in_controlled_shutdown=broker.in_controlled_shutdown,
        log_dirs=list(broker.directories),
    )
    if writes_cordoned_directories(metadata_version) and broker.cordoned_directories is not None:
        record.cordoned_log_dirs = list(broker.cordoned_directories)
    return record, register_broker_version(metadata_version)


def _partition(topic_id: bytes, index: int, partition: PartitionImage) -> PartitionRecord:
    record = PartitionRecord(
        partition_id=index,
        topic_id=topic_id,
        replicas=list(partition.replicas),
        isr=list(partition.isr),
        removing_replicas=list(partition.removing_replicas),
        adding_replicas=list(partition.adding_replicas),
        leader=partition.leader,
        leader_recovery_state=partition.leader_recovery_state,
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
        directories=list(partition.directories),
    )
    # Empty lists are left out, as Kafka leaves them out.
    if partition.eligible_leader_replicas:
        record.eligible_leader_replicas = list(partition.eligible_leader_replicas)
    if partition.last_known_elr:
        record.last_known_elr = list(partition.last_known_elr)
    return record
