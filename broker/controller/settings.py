"""Settings are changed: what an alteration of a resource comes to, or why it is refused."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Final, NamedTuple

from broker.config.broker_config import BrokerConfig
from broker.config.definitions import Scope, find
from broker.config.resources import check_client_metrics, check_group, check_topic
from broker.config.value_types import read_integer
from broker.controller.decision import Decision, check_count
from broker.metadata import topic_names
from broker.metadata.features import (
    CORDONED_DIRECTORIES_LEVEL,
    METADATA_VERSION_NAMES,
    writes_cordoned_directories,
)
from broker.metadata.image import MetadataImage, ResourceType
from broker.metadata.records import VersionedRecord
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.stored.metadata_records import ClearElrRecord, ConfigRecord

MIN_INSYNC_REPLICAS: Final = "min.insync.replicas"
CORDONED_LOG_DIRS: Final = "cordoned.log.dirs"

VALUE_LENGTH_MAX: Final = 32_767
"""Characters of one value; a longer one cannot be stored as Kafka stores it, and gets INVALID_CONFIG."""


class Operation(IntEnum):
    """What IncrementalAlterConfigs does to one setting; the numbers are those of the wire."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class Change(NamedTuple):
    """One setting and what shall happen to it.  ``operation`` may be a number that means nothing."""

    name: str
    operation: int
    value: str | None


class Alteration(NamedTuple):
    """The changes to one resource.  ``is_complete``: whatever is not set here loses its value."""

    resource_type: int
    resource_name: str
    changes: Sequence[Change]
    is_complete: bool = False


Outcome = KafkaError | None
"""Why an alteration was refused; None if it was not."""


def alter_settings(
    image: MetadataImage,
    alterations: Iterable[Alteration],
    config: BrokerConfig,
    *,
    validate_only: bool,
    seen_by_broker: bool = True,
) -> Decision[Sequence[Outcome]]:
    """Each alteration is done as a whole or not at all, whatever becomes of the others.

    The caller has seen to it that no resource comes twice.  ``seen_by_broker``: those of a broker's settings
    were held by that broker against what it has, since they came through it.  Raises POLICY_VIOLATION when it
    is too much for one request.
    """
    records: list[VersionedRecord] = []
    outcomes: list[Outcome] = []
    for alteration in alterations:
        try:
            changed = _records_of(image, alteration, config, seen_by_broker=seen_by_broker)
        except KafkaError as error:
            outcomes.append(error)
        else:
            outcomes.append(None)
            records += changed
        check_count(records)
    return Decision([] if validate_only else records, outcomes)


def _records_of(
    image: MetadataImage, alteration: Alteration, config: BrokerConfig, *, seen_by_broker: bool
) -> list[VersionedRecord]:
    kind, name = alteration.resource_type, alteration.resource_name
    current = image.configs.get((kind, name), {})
    changed: dict[str, str | None] = {}
    for change in {change.name: change for change in alteration.changes}.values():
        value = _changed_value(kind, change, current.get(change.name))
        # A broker reloads what is set again: its files may have changed (KAFKA-14136).
        if value != current.get(change.name) or kind == ResourceType.BROKER:
            changed[change.name] = value
    if alteration.is_complete:
        kept = {change.name for change in alteration.changes}
        changed.update((setting, None) for setting in current if setting not in kept)
    _check_min_insync_replicas(image, kind, name, changed)
    if kind == ResourceType.BROKER and CORDONED_LOG_DIRS in changed:
        _check_cordoned(image, changed[CORDONED_LOG_DIRS], current.get(CORDONED_LOG_DIRS), seen_by_broker)
    _check_resource(image, config, alteration, changed, {**current, **changed})
    return list(_as_records(image, kind, name, changed))


def _changed_value(kind: int, change: Change, current: str | None) -> str | None:
    """What the setting is after the change; None if it is not set any more."""
    if change.operation == Operation.SET:
        return change.value
    if change.operation == Operation.DELETE:
        return None
    if change.operation not in (Operation.APPEND, Operation.SUBTRACT):
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    word = Operation(change.operation).name
    # Kafka knows the types of these settings alone here: lists of groups cannot be added to.
    scopes: Mapping[int, Scope] = {ResourceType.TOPIC: Scope.TOPIC, ResourceType.BROKER: Scope.BROKER}
    known = find(scopes[kind], change.name) if kind in scopes else None
    if known is None or not known.is_list:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG, f"Can't {word} to key {change.name} because its type is not LIST."
        )
    if current is None:
        current = known.show(known.default) or ""  # whatever brokers were started with, in Kafka either
    items = [item for item in current.split(",") if item]
    for item in _split_as_java_does(change.value or ""):
        if change.operation == Operation.APPEND:
            items += [item] if item not in items else []
        elif item in items:
            items.remove(item)
    return ",".join(items)


def _split_as_java_does(text: str) -> Sequence[str]:
    """At commas, without what is empty at the end; an empty text is one empty item."""
    items = text.split(",")
    while text and items and not items[-1]:
        items.pop()
    return items


def _check_min_insync_replicas(
    image: MetadataImage, kind: int, name: str, changed: Mapping[str, str | None]
) -> None:
    """With eligible leader replicas, one number holds for the cluster and is always set (KIP-966)."""
    if (
        kind != ResourceType.BROKER
        or MIN_INSYNC_REPLICAS not in changed
        or not image.eligible_leader_replicas_enabled
    ):
        return
    if name:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            f"Broker-level {MIN_INSYNC_REPLICAS} cannot be altered while ELR is enabled.",
        )
    if changed[MIN_INSYNC_REPLICAS] is None:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            f"Cluster-level {MIN_INSYNC_REPLICAS} cannot be removed while ELR is enabled.",
        )


def _check_cordoned(
    image: MetadataImage, value: str | None, current: str | None, seen_by_broker: bool
) -> None:
    """Which directories take no new replicas can only be told where the controller may note it (KIP-1066).

    It knows them by their ids, and cannot tell which a path may mean: that is for the broker to say.
    """
    if not writes_cordoned_directories(image.metadata_version):
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            f"The {CORDONED_LOG_DIRS} configuration value cannot be set because it requires "
            f"metadata.version >= {METADATA_VERSION_NAMES[CORDONED_DIRECTORIES_LEVEL]}",
        )
    if not seen_by_broker and not set(_paths(value)) <= set(_paths(current)):
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            f"When updating {CORDONED_LOG_DIRS} via controllers,  the new value must be a subset of "
            "the current configuration value.",
        )


def _paths(text: str | None) -> Sequence[str]:
    return [path.strip() for path in text.split(",")] if text and text.strip() else []


def _check_resource(
    image: MetadataImage,
    config: BrokerConfig,
    alteration: Alteration,
    changed: Mapping[str, str | None],
    settings: Mapping[str, str | None],
) -> None:
    if any(value is not None and len(value) > VALUE_LENGTH_MAX for value in changed.values()):
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            "The configuration value cannot be added because it exceeds the maximum value size of "
            f"{VALUE_LENGTH_MAX} bytes.",
        )
    remaining = {setting: value for setting, value in settings.items() if value is not None}
    checked = _CHECKS.get(alteration.resource_type)
    if checked is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {alteration.resource_type}")
    checked(image, config, alteration.resource_name, remaining)


def _check_topic(image: MetadataImage, config: BrokerConfig, name: str, settings: Mapping[str, str]) -> None:
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
    topic_names.check(name)
    check_topic(config, settings)
    if name not in image.topics:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")


def _check_broker(image: MetadataImage, config: BrokerConfig, name: str, settings: Mapping[str, str]) -> None:
    if not name:
        return
    node_id = read_integer(name)
    if node_id is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Unable to parse broker name as a base 10 number.")
    if node_id < 0:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Invalid negative broker ID.")
    if node_id not in image.brokers and node_id not in image.controllers:
        raise KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"No node with id {node_id} found.")


def _check_group(image: MetadataImage, config: BrokerConfig, name: str, settings: Mapping[str, str]) -> None:
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")
    check_group(config, settings)


def _check_client_metrics(
    image: MetadataImage, config: BrokerConfig, name: str, settings: Mapping[str, str]
) -> None:
    check_client_metrics(name, settings)


_CHECKS: Mapping[int, Callable[[MetadataImage, BrokerConfig, str, Mapping[str, str]], None]] = {
    ResourceType.TOPIC: _check_topic,
    ResourceType.BROKER: _check_broker,
    ResourceType.GROUP: _check_group,
    ResourceType.CLIENT_METRICS: _check_client_metrics,
}


def _as_records(
    image: MetadataImage, kind: int, name: str, changed: Mapping[str, str | None]
) -> Iterable[VersionedRecord]:
    for setting, value in changed.items():
        record = ConfigRecord(resource_type=kind, resource_name=name, name=setting, value=value)
        yield record, 0
    # Who was eligible under another minimum need not have everything (KIP-966); no topic's name means all.
    if MIN_INSYNC_REPLICAS in changed and image.eligible_leader_replicas_enabled:
        if kind == ResourceType.TOPIC:
            yield ClearElrRecord(topic_name=name), 0
        elif kind == ResourceType.BROKER and not name:
            yield ClearElrRecord(topic_name=""), 0
