"""Feature levels are raised and lowered (KIP-584, KIP-1022)."""

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import Final, NamedTuple

from broker.controller.decision import Decision
from broker.groups.java_order import in_java_order
from broker.metadata.features import (
    KRAFT_VERSION,
    LEVELS_WITH_OTHER_METADATA,
    SUPPORTED_FEATURES,
)
from broker.metadata.image import (
    ELIGIBLE_LEADER_REPLICAS_VERSION,
    METADATA_VERSION,
    MetadataImage,
    ResourceType,
)
from broker.metadata.records import VersionedRecord
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.stored.metadata_records import ConfigRecord, FeatureLevelRecord, NoOpRecord

MIN_INSYNC_REPLICAS: Final = "min.insync.replicas"

NOT_SUPPORTED: Final = (0, 0)

METADATA_FOR_ANY: Final = 7
"""The metadata.version without which no other feature can be on: what Kafka calls 3.3-IV3."""


class UpgradeType(IntEnum):
    """What a client allows to happen to a level; the numbers are those of the wire."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


_UPGRADE_TYPES: Final = frozenset(UpgradeType)


class FeatureUpdate(NamedTuple):
    """One level that is wished for."""

    level: int
    upgrade_type: int
    """A number of ``UpgradeType``, or one that nobody knows."""


class Quorum(NamedTuple):
    """What the metadata log itself is like: no record in it says that."""

    node_id: int
    """Of the controller that decides."""
    kraft_version: int


def update_features(
    image: MetadataImage,
    quorum: Quorum,
    updates: Mapping[str, FeatureUpdate],
    *,
    validate_only: bool,
    static_min_isr: int,
) -> Decision[None]:
    """Set all these levels, or raise INVALID_UPDATE_VERSION for the first that cannot be.

    ``static_min_isr``: ``min.insync.replicas`` of the controller's own settings, which becomes everybody's
    once replicas can be eligible leaders.
    """
    records: list[VersionedRecord] = []
    metadata = updates.get(METADATA_VERSION)
    metadata_version = image.metadata_version if metadata is None else metadata.level
    for name in in_java_order(updates):
        update = updates[name]
        _check(image, quorum, name, update, metadata_version)
        if name != KRAFT_VERSION:
            records.append((FeatureLevelRecord(name=name, feature_level=update.level), 0))
        elif update.upgrade_type == UpgradeType.UPGRADE:
            records.append((NoOpRecord(), 0))  # something to wait for: the quorum keeps the level itself
    if validate_only:
        return Decision([], None)
    elr = updates.get(ELIGIBLE_LEADER_REPLICAS_VERSION)
    if elr is not None and elr.level > 0:
        records = [*_common_min_isr(image, static_min_isr), *records]
    return Decision(records, None)


def _check(
    image: MetadataImage, quorum: Quorum, name: str, update: FeatureUpdate, metadata_version: int
) -> None:
    """``metadata_version`` is the wished one, which others depend on, whatever else is wrong with it.

    Some need a newer one than any feature does, but one that is old here, too.
    """
    level, upgrade_type = update
    if upgrade_type not in _UPGRADE_TYPES:
        raise _refusal(name, level, "The controller does not support the given upgrade type.")
    if level < 0:
        raise _refusal(name, level, "A feature version cannot be less than 0.")
    fault = _why_not_supported(image, quorum.node_id, name, level)
    if fault is not None:
        raise _refusal(name, level, fault)
    current = quorum.kraft_version if name == KRAFT_VERSION else image.features.get(name, 0)
    if level < current and upgrade_type == UpgradeType.UPGRADE:
        raise _refusal(
            name,
            level,
            "Can't downgrade the version of this feature without setting the upgrade type to either safe or "
            "unsafe downgrade.",
        )
    if level > current and upgrade_type != UpgradeType.UPGRADE:
        raise _refusal(name, level, "Can't downgrade to a newer version.")
    if name == METADATA_VERSION:
        _check_metadata_version(current, level, upgrade_type)
    elif name == KRAFT_VERSION:
        if level < current:
            raise _refusal(name, level, "Can't downgrade the version of this feature.")
    elif name not in SUPPORTED_FEATURES:
        raise _refusal(name, level, f"Feature {name} not found.")
    elif level > 0 and metadata_version < METADATA_FOR_ANY:
        raise _refusal(
            name,
            level,
            f"{name} could not be set to {level} because it depends on "
            f"{METADATA_VERSION}={METADATA_FOR_ANY} (3.3-IV3)",
        )


def _check_metadata_version(current: int, level: int, upgrade_type: int) -> None:
    if LEVELS_WITH_OTHER_METADATA.isdisjoint(range(level + 1, current + 1)):
        return
    if upgrade_type == UpgradeType.UNSAFE_DOWNGRADE:
        reason = "Unsafe metadata downgrade is not supported in this version."
    else:
        reason = "Refusing to perform the requested downgrade because it might delete metadata information."
    raise KafkaError(
        ErrorCode.INVALID_UPDATE_VERSION,
        f"Unsupported metadata.version downgrade from {current} to {level}. {reason}",
    )


def _why_not_supported(image: MetadataImage, node_id: int, name: str, level: int) -> str | None:
    """Which node cannot live with this level; 0 is what a node has of a feature that it does not know."""
    nodes = [(f"Local controller {node_id}", SUPPORTED_FEATURES)]
    nodes += [(f"Broker {broker.id}", broker.features) for _, broker in sorted(image.brokers.items())]
    nodes += [
        (f"Controller {controller.id}", controller.features)
        for _, controller in sorted(image.controllers.items())
        if controller.id != node_id
    ]
    for node, features in nodes:
        low, high = features.get(name, NOT_SUPPORTED)
        if not low <= level <= high:
            if high == 0:
                return f"{node} does not support this feature."
            return f"{node} only supports versions {low if low == high else f'{low}-{high}'}"
    return None


def _common_min_isr(image: MetadataImage, static_min_isr: int) -> Iterable[VersionedRecord]:
    """All brokers must agree on who is in sync: the setting becomes the cluster's, and no broker's own."""
    if MIN_INSYNC_REPLICAS not in image.config(ResourceType.BROKER, ""):
        yield _min_isr_record("", str(static_min_isr))
    brokers = [name for kind, name in image.configs if kind == ResourceType.BROKER and name]
    for name in sorted(brokers, key=int):
        if MIN_INSYNC_REPLICAS in image.config(ResourceType.BROKER, name):
            yield _min_isr_record(name, None)


def _min_isr_record(broker: str, value: str | None) -> VersionedRecord:
    record = ConfigRecord(
        resource_type=ResourceType.BROKER, resource_name=broker, name=MIN_INSYNC_REPLICAS, value=value
    )
    return record, 0


def _refusal(name: str, level: int, reason: str) -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_UPDATE_VERSION, f"Invalid update version {level} for feature {name}. {reason}"
    )
