"""Brokers and controllers come, change and go: their registrations, and what follows for partitions."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from broker.controller.decision import Decision, LongDecision
from broker.controller.elections import (
    TopicRules,
    broker_changes,
    concerns,
    partitions_in_sync_with,
    partitions_with,
    partitions_without_leader,
)
from broker.metadata.features import (
    CONTROLLER_UNREGISTRATION_LEVEL,
    CORDONED_CHANGE_VERSION,
    KRAFT_VERSION,
    PARTITION_RECORD_VERSION,
    register_broker_version,
    writes_cordoned_directories,
)
from broker.metadata.image import (
    DIRECTORIES_WITHOUT_PLACE,
    METADATA_VERSION,
    BrokerImage,
    Endpoint,
    LeaderRecoveryState,
    MetadataImage,
    PartitionImage,
)
from broker.metadata.records import VersionedRecord
from broker.metadata.registrations import (
    broker_endpoints,
    broker_features,
    controller_endpoints,
    controller_features,
)
from broker.metadata.replay import apply
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.stored.metadata_records import (
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    UnregisterBrokerRecord,
    UnregisterControllerRecord,
)
from protocol.uuids import is_reserved, uuid_to_text

NO_EPOCH = -1

FENCE = 1
UNFENCE = -1
"""In a BrokerRegistrationChangeRecord; 0 leaves the broker as it is."""

IN_CONTROLLED_SHUTDOWN = 1
SHUTDOWN_CHANGE_VERSION = 1
"""Of a BrokerRegistrationChangeRecord that says so."""

NOT_SUPPORTED = (0, 0)
"""The levels of a feature that a node knows which does not name it."""


class Registration(NamedTuple):
    """How a broker introduces itself.

    ``previous_epoch`` is the epoch that its log directories remember from a clean stop, else -1: another
    one than the cluster knows means that unflushed records may be gone.
    """

    broker_id: int
    cluster_id: str
    incarnation_id: bytes
    endpoints: Sequence[Endpoint]
    features: Mapping[str, tuple[int, int]]
    rack: str | None
    directories: Sequence[bytes]
    previous_epoch: int = NO_EPOCH
    cordoned: Sequence[bytes] = ()
    """Of the directories, those that take no new replicas."""
    is_migrating_zk_broker: bool = False


def register_broker(
    image: MetadataImage,
    registration: Registration,
    topic_rules: TopicRules,
    *,
    kraft_version: int = 0,
    session_lasts: bool = False,
) -> Decision[int]:
    """Make ``registration`` the broker's present one, fenced; the reply is its broker epoch.

    A new incarnation first leaves all partitions that the one before it was in; it is refused while
    the session of that one lasts.  Raises what BrokerRegistration answers.
    """
    _check(image, registration, kraft_version, session_lasts)
    broker_id = registration.broker_id
    known = image.brokers.get(broker_id)
    records: list[VersionedRecord] = []
    if known is not None and known.incarnation_id == registration.incarnation_id:
        epoch, fenced, in_shutdown = known.epoch, known.fenced, known.in_controlled_shutdown
    else:
        epoch, fenced, in_shutdown = image.offset + 1, True, False
        is_clean = known is not None and registration.previous_epoch == known.epoch
        records += _leave(image, broker_id, is_clean, topic_rules)
    record = _registration_record(registration, epoch, fenced=fenced, in_shutdown=in_shutdown)
    records.append((record, register_broker_version(image.metadata_version)))
    return LongDecision(records, epoch)


def restart_broker(
    image: MetadataImage, registration: Registration, topic_rules: TopicRules
) -> Decision[int]:
    """Register and unfence a broker whose last incarnation is known to be dead; the reply is its epoch.

    That is the controller's own broker at its start.  It leads what it has the only replica of, whatever
    state another controller left that in: there is nobody to wait for, and nobody who has more.  After
    an unclean stop a new leader epoch begins, since the same offsets may get other records.  All other
    partitions change as in ``register_broker``.
    """
    _check(image, registration, kraft_version=0, session_lasts=False)
    broker_id = registration.broker_id
    known = image.brokers.get(broker_id)
    records: list[VersionedRecord] = []
    if known is not None:
        is_clean = registration.previous_epoch == known.epoch
        online = DIRECTORIES_WITHOUT_PLACE.union(registration.directories)
        shared = []
        for topic in image.topics.values():
            for index, partition in enumerate(topic.partitions):
                if partition.replicas != (broker_id,) or partition.directories[0] not in online:
                    shared.append((topic, index))
                    continue
                again = _lead_alone(topic.id, index, partition, is_clean)
                if again is not None:
                    records.append((again, PARTITION_RECORD_VERSION))
        gone = {"leaving": broker_id} if is_clean else {"unclean": broker_id}
        concerned = [
            (topic, index) for topic, index in shared if concerns(topic.partitions[index], broker_id)
        ]
        records += broker_changes(image, concerned, topic_rules, **gone)
    epoch = image.offset + 1
    record = _registration_record(registration, epoch, fenced=True, in_shutdown=False)
    records.append((record, register_broker_version(image.metadata_version)))
    after = image_after(image, records)
    records += unfence_broker(after, broker_id, epoch, topic_rules).records
    if writes_cordoned_directories(image.metadata_version):
        cordoned = BrokerRegistrationChangeRecord(
            broker_id=broker_id, broker_epoch=epoch, cordoned_log_dirs=list(registration.cordoned)
        )
        records.append((cordoned, CORDONED_CHANGE_VERSION))
    return Decision(records, epoch)


def _lead_alone(
    topic_id: bytes, index: int, partition: PartitionImage, is_clean: bool
) -> PartitionChangeRecord | None:
    """What makes the only replica the leader; None if it is, and need not begin anew."""
    (only,) = partition.replicas
    record = PartitionChangeRecord(partition_id=index, topic_id=topic_id)
    if partition.leader != only or not is_clean:
        record.leader = only
    if partition.isr != partition.replicas:
        record.isr = [only]
    if partition.eligible_leader_replicas:
        record.eligible_leader_replicas = []
    if partition.last_known_elr:
        record.last_known_elr = []
    if partition.leader_recovery_state is not LeaderRecoveryState.RECOVERED:
        record.leader_recovery_state = int(LeaderRecoveryState.RECOVERED)
    return None if record == PartitionChangeRecord(partition_id=index, topic_id=topic_id) else record


def unfence_broker(
    image: MetadataImage, broker_id: int, broker_epoch: int, topic_rules: TopicRules
) -> Decision[None]:
    """Let a caught-up broker serve, and lead what nobody leads."""
    registered(image, broker_id, broker_epoch)
    change = BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=broker_epoch, fenced=UNFENCE)
    waiting = partitions_without_leader(image)
    elections = broker_changes(image, waiting, topic_rules, arriving=broker_id)
    return LongDecision([(change, 0), *elections], None)


def fence_broker(
    image: MetadataImage, broker_id: int, broker_epoch: int, topic_rules: TopicRules
) -> Decision[None]:
    """Take a broker that is not heard of any more out of every in-sync set."""
    registered(image, broker_id, broker_epoch)
    changes = broker_changes(image, partitions_in_sync_with(image, broker_id), topic_rules, leaving=broker_id)
    change = BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=broker_epoch, fenced=FENCE)
    return LongDecision([*changes, (change, 0)], None)


def begin_shutdown(
    image: MetadataImage, broker_id: int, broker_epoch: int, topic_rules: TopicRules
) -> Decision[None]:
    """Let others lead what a broker leads that is about to stop; it serves on until they do (KIP-631)."""
    broker = registered(image, broker_id, broker_epoch)
    records: list[VersionedRecord] = []
    if not broker.in_controlled_shutdown:
        change = BrokerRegistrationChangeRecord(
            broker_id=broker_id, broker_epoch=broker_epoch, in_controlled_shutdown=IN_CONTROLLED_SHUTDOWN
        )
        records.append((change, SHUTDOWN_CHANGE_VERSION))
    in_sync = partitions_in_sync_with(image, broker_id)
    records += broker_changes(image, in_sync, topic_rules, leaving=broker_id)
    return LongDecision(records, None)


def unregister_broker(image: MetadataImage, broker_id: int, topic_rules: TopicRules) -> Decision[None]:
    """Forget a broker, and take it out of every in-sync set (KIP-185).

    Replicas that it has stay where they are.  It may be the controller's own: it serves nobody any more then,
    and registers anew when it starts the next time.
    """
    known = known_broker(image, broker_id)
    changes = broker_changes(image, partitions_with(image, broker_id), topic_rules, leaving=broker_id)
    record = UnregisterBrokerRecord(broker_id=broker_id, broker_epoch=known.epoch)
    return LongDecision([*changes, (record, 0)], None)


def stop_only_broker(image: MetadataImage, broker_id: int, broker_epoch: int) -> Decision[None]:
    """The controller's own broker stops, and the cluster with it.

    It is fenced, so that whoever opens the directory next need not wait for its session to end.  Its
    partitions are left as they are: nobody could take them over before the next start, which finds out
    whether this stop was clean.
    """
    registered(image, broker_id, broker_epoch)
    change = BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=broker_epoch, fenced=FENCE)
    return Decision([(change, 0)], None)


def register_controller(
    image: MetadataImage,
    controller_id: int,
    incarnation_id: bytes,
    endpoints: Sequence[Endpoint],
    features: Mapping[str, tuple[int, int]],
) -> Decision[None]:
    """Note an incarnation of a controller, where it listens and what it supports (KIP-919)."""
    record = RegisterControllerRecord(
        controller_id=controller_id,
        incarnation_id=incarnation_id,
        end_points=controller_endpoints(endpoints),
        features=controller_features(features),
    )
    return Decision([(record, 0)], None)


def unregister_controller(image: MetadataImage, controller_id: int, *, active_id: int) -> Decision[None]:
    """Forget a controller that is gone; ``active_id`` is the one that decides."""
    if controller_id == active_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Controller cannot unregister itself while it is active.")
    if image.metadata_version < CONTROLLER_UNREGISTRATION_LEVEL:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            "The current MetadataVersion is too old to support controller unregistration.",
        )
    if controller_id not in image.controllers:
        raise KafkaError(
            ErrorCode.CONTROLLER_ID_NOT_REGISTERED,
            f"Controller ID {controller_id} is not currently registered.",
        )
    return Decision([(UnregisterControllerRecord(controller_id=controller_id), 0)], None)


def _check(image: MetadataImage, registration: Registration, kraft_version: int, session_lasts: bool) -> None:
    if registration.cluster_id != image.cluster_id:
        raise KafkaError(
            ErrorCode.INCONSISTENT_CLUSTER_ID,
            f"Expected cluster ID {image.cluster_id}, but got cluster ID {registration.cluster_id}",
        )
    known = image.brokers.get(registration.broker_id)
    if session_lasts and known is not None and known.incarnation_id != registration.incarnation_id:
        raise KafkaError(
            ErrorCode.DUPLICATE_BROKER_REGISTRATION,
            "Another broker is registered with that broker id. If the broker was recently restarted this "
            "should self-resolve once the heartbeat manager expires the broker's session.",
        )
    if registration.is_migrating_zk_broker:
        raise KafkaError(
            ErrorCode.BROKER_ID_NOT_REGISTERED, "Controller does not support registering ZK brokers."
        )
    directories = registration.directories
    if not directories:
        raise _invalid("No directories specified in request")
    if any(is_reserved(directory) for directory in directories):
        raise _invalid("Reserved directory ID in request")
    if len(set(directories)) != len(directories):
        raise _invalid("Duplicate directory ID in request")
    for other in image.brokers.values():
        shared = set(directories) & set(other.directories) if other.id != registration.broker_id else None
        if shared:
            raise _invalid(
                f"Broker {other.id} is already registered with directory {uuid_to_text(min(shared))}"
            )
    _check_features({**image.features, KRAFT_VERSION: kraft_version}, registration.features)


def _check_features(finalized: Mapping[str, int], supported: Mapping[str, tuple[int, int]]) -> None:
    """A level of 0 counts as well where the broker names the feature."""
    for feature, (low, high) in supported.items():
        _check_level(feature, finalized.get(feature, 0), low, high)
    if METADATA_VERSION not in supported:
        raise _invalid(f"Request features do not contain '{METADATA_VERSION}'")
    for feature, level in finalized.items():
        if level and feature not in supported:
            _check_level(feature, level, *NOT_SUPPORTED)


def _check_level(feature: str, level: int, low: int, high: int) -> None:
    if not low <= level <= high:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            f"Unable to register because the broker does not support finalized version {level} of "
            f"{feature}. The broker wants a version between {low} and {high}, inclusive.",
        )


def _registration_record(
    registration: Registration, epoch: int, *, fenced: bool, in_shutdown: bool
) -> RegisterBrokerRecord:
    return RegisterBrokerRecord(
        broker_id=registration.broker_id,
        incarnation_id=registration.incarnation_id,
        broker_epoch=epoch,
        end_points=broker_endpoints(registration.endpoints),
        features=broker_features(registration.features),
        rack=registration.rack,
        fenced=fenced,
        in_controlled_shutdown=in_shutdown,
        log_dirs=list(registration.directories),
    )


def _leave(
    image: MetadataImage, broker_id: int, is_clean: bool, topic_rules: TopicRules
) -> Sequence[VersionedRecord]:
    """What the end of an incarnation changes, cleanly stopped or not.  One that was unregistered counts."""
    if is_clean or not image.eligible_leader_replicas_enabled:
        in_sync = partitions_in_sync_with(image, broker_id)
        return list(broker_changes(image, in_sync, topic_rules, leaving=broker_id))
    return list(broker_changes(image, partitions_with(image, broker_id), topic_rules, unclean=broker_id))


def registered(image: MetadataImage, broker_id: int, broker_epoch: int) -> BrokerImage:
    """The broker, which must have this epoch; raises STALE_BROKER_EPOCH, also where there is none."""
    known = image.brokers.get(broker_id)
    if known is None:
        raise KafkaError(
            ErrorCode.STALE_BROKER_EPOCH, f"No broker registration found for broker id {broker_id}"
        )
    if known.epoch != broker_epoch:
        raise KafkaError(
            ErrorCode.STALE_BROKER_EPOCH,
            f"Expected broker epoch {known.epoch}, but got broker epoch {broker_epoch}",
        )
    return known


def known_broker(image: MetadataImage, broker_id: int) -> BrokerImage:
    """The broker as it is registered; raises BROKER_ID_NOT_REGISTERED."""
    known = image.brokers.get(broker_id)
    if known is None:
        raise KafkaError(
            ErrorCode.BROKER_ID_NOT_REGISTERED, f"Broker ID {broker_id} is not currently registered"
        )
    return known


def image_after(image: MetadataImage, records: Sequence[VersionedRecord]) -> MetadataImage:
    """The image that ``records`` would make."""
    messages = [record for record, _ in records]
    after, _ = apply(image, messages, offset=image.offset + len(messages), epoch=image.epoch)
    return after


def _invalid(text: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REGISTRATION, text)
