"""Topics are made, grown and removed."""

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from broker.controller.decision import RECORDS_MAX, Decision, check_count
from broker.controller.elections import MIN_INSYNC_REPLICAS
from broker.controller.placement import UsableBroker, place
from broker.groups.java_order import counted_in_timeline_order
from broker.metadata import topic_names
from broker.metadata.features import PARTITION_RECORD_VERSION
from broker.metadata.image import (
    BrokerImage,
    MetadataImage,
    ResourceType,
    TopicImage,
    collision_key,
    has_collision_characters,
)
from broker.metadata.records import VersionedRecord
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.stored.metadata_records import (
    ClearElrRecord,
    ConfigRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from protocol.uuids import MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY

BY_DEFAULT: Final = -1
"""A count that the broker's settings decide."""

REPLICATION_FACTOR_MAX: Final = 32_767

CheckSettings = Callable[[str, Mapping[str, str]], None]
"""Raises INVALID_CONFIG unless the topic of this name may have these settings."""


class NewTopic(NamedTuple):
    """A topic somebody wants.  ``assignments`` (number, broker ids) excludes the two counts."""

    name: str
    partition_count: int = BY_DEFAULT
    replication_factor: int = BY_DEFAULT
    assignments: Sequence[tuple[int, Sequence[int]]] = ()
    settings: Mapping[str, str | None] = {}


class MadeTopic(NamedTuple):
    """What a new topic has become, or would."""

    id: bytes
    partition_count: int
    replication_factor: int


class TopicDefaults(NamedTuple):
    """What the broker's settings and its sources of chance contribute to a new topic."""

    partition_count: int
    replication_factor: int
    check_settings: CheckSettings
    new_id: Callable[[], bytes]
    chance: random.Random


TopicResult = MadeTopic | KafkaError

TakePermits = Callable[[int], None]
"""Asks for permission to make or remove so many partitions (KIP-599); raises THROTTLING_QUOTA_EXCEEDED."""


def everything(_: int) -> None:
    """Permission for whatever it is."""


def create_topics(
    image: MetadataImage,
    wanted: Sequence[NewTopic],
    defaults: TopicDefaults,
    take_permits: TakePermits = everything,
) -> Decision[dict[str, TopicResult]]:
    """Make each topic that can be made; the reply says for every name what became of it.

    Names are distinct.  Raises POLICY_VIOLATION when it is too much for one request.
    """
    if sum(_asked_partitions(topic, defaults) for topic in wanted) > RECORDS_MAX:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request.")
    records: list[VersionedRecord] = []
    results: dict[str, TopicResult] = {}
    for topic in wanted:
        try:
            _check_name(image, topic.name)
            settings = _settings(topic, defaults)
            replicas = _replicas(image, topic, defaults)
            take_permits(len(replicas))
        except KafkaError as error:
            results[topic.name] = error
            continue
        topic_id = defaults.new_id()
        records.append((TopicRecord(name=topic.name, topic_id=topic_id), 0))
        for name, value in settings.items():
            setting = ConfigRecord(
                resource_type=ResourceType.TOPIC, resource_name=topic.name, name=name, value=value
            )
            records.append((setting, 0))
        if MIN_INSYNC_REPLICAS in settings and image.eligible_leader_replicas_enabled:
            records.append((ClearElrRecord(topic_name=topic.name), 0))
        records += _partition_records(image, topic_id, 0, replicas)
        results[topic.name] = MadeTopic(topic_id, len(replicas), len(replicas[0]))
    check_count(records)
    return Decision(records, results)


class Growth(NamedTuple):
    """More partitions for a topic; ``assignments`` are the broker ids of each additional one."""

    name: str
    partition_count: int
    assignments: Sequence[Sequence[int]] | None = None


def create_partitions(
    image: MetadataImage,
    wanted: Sequence[Growth],
    chance: random.Random,
    take_permits: TakePermits = everything,
) -> Decision[dict[str, KafkaError | None]]:
    """Give each topic as many partitions as it is to have; the reply has None for what is done.

    Names are distinct.  Raises POLICY_VIOLATION when it is too much for one request.
    """
    additional = 0
    for growth in wanted:
        topic = image.topics.get(growth.name)
        if topic is not None:
            additional += max(growth.partition_count - len(topic.partitions), 0)
    if additional > RECORDS_MAX:
        raise KafkaError(
            ErrorCode.POLICY_VIOLATION, "Excessively large number of additional partitions per request."
        )
    records: list[VersionedRecord] = []
    results: dict[str, KafkaError | None] = {}
    for growth in wanted:
        try:
            records += _grow(image, growth, chance, take_permits)
        except KafkaError as error:
            results[growth.name] = error
        else:
            results[growth.name] = None
    return Decision(records, results)


def delete_topics(
    image: MetadataImage, topic_ids: Iterable[bytes], take_permits: TakePermits = everything
) -> Decision[dict[bytes, KafkaError | None]]:
    """Remove topics with all their partitions and settings; the reply has None for what is gone."""
    records: list[VersionedRecord] = []
    results: dict[bytes, KafkaError | None] = {}
    for topic_id in topic_ids:
        topic = image.topics_by_id.get(topic_id)
        if topic is not None:
            try:
                take_permits(len(topic.partitions))
            except KafkaError as error:
                results[topic_id] = error
                continue
            records.append((RemoveTopicRecord(topic_id=topic_id), 0))
            results[topic_id] = None
        else:
            results[topic_id] = KafkaError(
                ErrorCode.UNKNOWN_TOPIC_ID, "This server does not host this topic ID."
            )
    return Decision(records, results)


def usable_brokers(image: MetadataImage) -> list[UsableBroker]:
    """Brokers that may take new replicas: those with a directory that is not cordoned (KIP-1066).

    One that is about to stop takes none; one that has stopped will be back.
    """
    return [
        UsableBroker(broker.id, broker.rack, not broker.is_active)
        for broker in image.brokers.values()
        if _takes_replicas(broker) and (broker.fenced or not broker.in_controlled_shutdown)
    ]


def default_directory(image: MetadataImage, broker_id: int) -> bytes:
    """Where a new replica goes as far as the controller can tell; among several the broker chooses."""
    broker = image.brokers.get(broker_id)
    if broker is None:
        return UNASSIGNED_DIRECTORY
    if not broker.directories:
        return MIGRATING_DIRECTORY
    return broker.directories[0] if len(broker.directories) == 1 else UNASSIGNED_DIRECTORY


def _takes_replicas(broker: BrokerImage) -> bool:
    cordoned = broker.cordoned_directories or ()
    return not broker.directories or not set(broker.directories) <= set(cordoned)


def _asked_partitions(topic: NewTopic, defaults: TopicDefaults) -> int:
    if topic.assignments:
        return len(topic.assignments)
    if topic.partition_count == BY_DEFAULT:
        return defaults.partition_count
    return max(topic.partition_count, 0)


def _check_name(image: MetadataImage, name: str) -> None:
    # An existing topic is named before a collision, and a bad name before everything.
    fault: KafkaError | None = None
    try:
        topic_names.check(name)
    except KafkaError as error:
        fault = error
    if has_collision_characters(name):
        colliding = image.topic_names_by_collision_key.get(collision_key(name))
        if colliding:
            fault = KafkaError(
                ErrorCode.INVALID_TOPIC_EXCEPTION,
                f"Topic '{name}' collides with existing topic: {colliding[0]}",
            )
    if name in image.topics:
        fault = KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    if fault is not None:
        raise fault


def _settings(topic: NewTopic, defaults: TopicDefaults) -> dict[str, str]:
    missing = [name for name, value in topic.settings.items() if value is None]
    if missing:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            "Null value not supported for topic configs: " + ",".join(missing),
        )
    settings = {name: value for name, value in topic.settings.items() if value is not None}
    if settings:
        defaults.check_settings(topic.name, settings)
    return settings


def _replicas(image: MetadataImage, topic: NewTopic, defaults: TopicDefaults) -> list[tuple[int, ...]]:
    """The replicas of every partition of a new topic."""
    if topic.assignments:
        return _assigned_replicas(image, topic)
    if topic.replication_factor < BY_DEFAULT or topic.replication_factor == 0:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        )
    if topic.partition_count < BY_DEFAULT or topic.partition_count == 0:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS,
            "Number of partitions was set to an invalid non-positive value.",
        )
    partition_count = topic.partition_count
    if partition_count == BY_DEFAULT:
        partition_count = defaults.partition_count
    replication_factor = topic.replication_factor
    if replication_factor == BY_DEFAULT:
        replication_factor = defaults.replication_factor
    try:
        return place(
            usable_brokers(image),
            partition_count=partition_count,
            replication_factor=replication_factor,
            chance=defaults.chance,
        )
    except KafkaError as error:
        raise KafkaError(
            error.code, f"Unable to replicate the partition {replication_factor} time(s): {error.message}"
        ) from None


def _assigned_replicas(image: MetadataImage, topic: NewTopic) -> list[tuple[int, ...]]:
    if topic.replication_factor != BY_DEFAULT:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            "A manual partition assignment was specified, but replication factor was not set to -1.",
        )
    if topic.partition_count != BY_DEFAULT:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            "A manual partition assignment was specified, but numPartitions was not set to -1.",
        )
    replicas: dict[int, tuple[int, ...]] = {}
    replication_factor: int | None = None
    for index, broker_ids in topic.assignments:
        if index in replicas:
            raise _bad_assignment(f"Found multiple manual partition assignments for partition {index}")
        check_assignment(image, broker_ids, replication_factor)
        _check_somebody_active(image, index, broker_ids)
        replication_factor = len(broker_ids)
        replicas[index] = tuple(broker_ids)
    if set(replicas) != set(range(len(replicas))):
        raise _bad_assignment("partitions should be a consecutive 0-based integer sequence")
    return [replicas[index] for index in range(len(replicas))]


def _grow(
    image: MetadataImage, growth: Growth, chance: random.Random, take_permits: TakePermits
) -> list[VersionedRecord]:
    topic = image.topics.get(growth.name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    present = len(topic.partitions)
    if growth.partition_count == present:
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, f"Topic already has {present} partition(s).")
    if growth.partition_count < present:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS,
            f"The topic {growth.name} currently has {present} partition(s); "
            f"{growth.partition_count} would not be an increase.",
        )
    additional = growth.partition_count - present
    if growth.assignments is not None and len(growth.assignments) != additional:
        raise _bad_assignment(
            f"Attempted to add {additional} additional partition(s), but only "
            f"{len(growth.assignments)} assignment(s) were specified."
        )
    take_permits(additional)
    replicas = _additional_replicas(image, topic, growth, chance)
    return _partition_records(image, topic.id, present, replicas)


def _additional_replicas(
    image: MetadataImage, topic: TopicImage, growth: Growth, chance: random.Random
) -> list[tuple[int, ...]]:
    present = len(topic.partitions)
    additional = growth.partition_count - present
    # Where partitions differ, as they do while they are reassigned, Kafka asks the one that it finds first.
    model = topic.partitions[counted_in_timeline_order(present)[0]]
    replication_factor = len(model.replicas)
    if growth.assignments is None:
        return place(
            usable_brokers(image),
            partition_count=additional,
            replication_factor=replication_factor,
            chance=chance,
        )
    replicas = []
    for index, broker_ids in enumerate(growth.assignments, start=present):
        check_assignment(image, broker_ids, replication_factor)
        _check_somebody_active(image, index, broker_ids)
        replicas.append(tuple(broker_ids))
    return replicas


def check_assignment(image: MetadataImage, broker_ids: Sequence[int], replication_factor: int | None) -> None:
    """Raises INVALID_REPLICA_ASSIGNMENT unless these brokers can have the replicas of a partition.

    ``replication_factor`` is how many there must be, or None where that is free.
    """
    if not broker_ids:
        raise _bad_assignment("The manual partition assignment includes an empty replica list.")
    previous: int | None = None
    for broker_id in sorted(broker_ids):
        if broker_id not in image.brokers:
            raise _bad_assignment(
                f"The manual partition assignment includes broker {broker_id}, "
                "but no such broker is registered."
            )
        if not _takes_replicas(image.brokers[broker_id]):
            raise _bad_assignment(
                f"The manual partition assignment includes broker {broker_id}, "
                "but all its log directories are cordoned."
            )
        if broker_id == previous:
            raise _bad_assignment(
                f"The manual partition assignment includes the broker {broker_id} more than once."
            )
        previous = broker_id
    if replication_factor is not None and len(broker_ids) != replication_factor:
        raise _bad_assignment(
            f"The manual partition assignment includes a partition with {len(broker_ids)} replica(s), but "
            f"this is not consistent with previous partitions, which have {replication_factor} replica(s)."
        )


def _check_somebody_active(image: MetadataImage, index: int, broker_ids: Sequence[int]) -> None:
    if not any(image.brokers[broker_id].is_active for broker_id in broker_ids):
        raise _bad_assignment(
            f"All brokers specified in the manual partition assignment for partition {index} "
            "are fenced or in controlled shutdown."
        )


def _partition_records(
    image: MetadataImage, topic_id: bytes, first_index: int, replicas: Iterable[tuple[int, ...]]
) -> list[VersionedRecord]:
    records: list[VersionedRecord] = []
    for index, broker_ids in enumerate(replicas, start=first_index):
        isr = [broker_id for broker_id in broker_ids if image.brokers[broker_id].is_active]
        record = PartitionRecord(
            partition_id=index,
            topic_id=topic_id,
            replicas=list(broker_ids),
            isr=isr,
            leader=isr[0],
            leader_epoch=0,
            partition_epoch=0,
            directories=[default_directory(image, broker_id) for broker_id in broker_ids],
        )
        records.append((record, PARTITION_RECORD_VERSION))
    return records


def _bad_assignment(text: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)
