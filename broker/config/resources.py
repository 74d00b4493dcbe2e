"""Which settings a topic, a group or a client metrics subscription may have: Kafka's rules and texts."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from broker.config.client_patterns import client_pattern
from broker.config.definitions import ConfigError, Scope, definition, find
from broker.config.value_types import Value
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError

if TYPE_CHECKING:
    from broker.config.broker_config import BrokerConfig


def check_topic(config: "BrokerConfig", settings: Mapping[str, str]) -> None:
    """Raise INVALID_CONFIG unless a topic may have these settings of its own."""
    for name in settings:
        if find(Scope.TOPIC, name) is None:
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"Unknown topic config name: {name}")
    values: dict[str, Any] = {**config.topic_defaults(), **_parsed(Scope.TOPIC, settings)}
    least, most = values["min.compaction.lag.ms"], values["max.compaction.lag.ms"]
    if least > most:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            f"conflict topic config setting min.compaction.lag.ms ({least}) > max.compaction.lag.ms ({most})",
        )
    if values["remote.storage.enable"]:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            "Tiered Storage functionality is disabled in the broker. "
            "Topic cannot be configured with remote log storage.",
        )


class Bound(NamedTuple):
    """The broker settings between which a group's own setting must lie."""

    name: str
    low: str | None
    high: str | None


def _bounds() -> Iterable[Bound]:
    for kind in ("consumer", "share", "streams"):
        for what in ("heartbeat.interval.ms", "session.timeout.ms", "assignment.interval.ms"):
            yield Bound(f"{kind}.{what}", f"group.{kind}.min.{what}", f"group.{kind}.max.{what}")
    for what in ("record.lock.duration.ms", "delivery.count.limit", "partition.max.record.locks"):
        yield Bound(f"share.{what}", f"group.share.min.{what}", f"group.share.max.{what}")
    yield Bound("streams.num.standby.replicas", None, "group.streams.max.standby.replicas")
    yield Bound("streams.num.warmup.replicas", None, "group.streams.max.warmup.replicas")
    yield Bound("streams.task.offset.interval.ms", "group.streams.min.task.offset.interval.ms", None)


GROUP_BOUNDS = tuple(_bounds())


def check_group(config: "BrokerConfig", settings: Mapping[str, str]) -> None:
    """Raise INVALID_CONFIG unless a group may have these settings of its own."""
    for name in settings:
        if find(Scope.GROUP, name) is None:
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"Unknown group config name: {name}")
    given: dict[str, Any] = _parsed(Scope.GROUP, settings)
    fault = _fault_in_group(config, settings, given)
    if fault is not None:
        raise KafkaError(ErrorCode.INVALID_CONFIG, fault)


def _fault_in_group(
    config: "BrokerConfig", settings: Mapping[str, str], given: Mapping[str, Any]
) -> str | None:
    tags = "streams.rack.aware.assignment.tags"
    said = [tag.strip() for tag in settings.get(tags, "").split(",")]
    if len(set(said)) != len(said):
        return f"{tags} must not contain duplicate tag keys."
    for bound in GROUP_BOUNDS:
        if bound.name in given:
            fault = _fault_in_bound(config, bound, given[bound.name])
            if fault is not None:
                return fault
    for kind in ("consumer", "share", "streams"):
        session, heartbeat = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
        session_ms = given.get(session, config.get(f"group.{session}"))
        heartbeat_ms = given.get(heartbeat, config.get(f"group.{heartbeat}"))
        if (session in given or heartbeat in given) and session_ms <= heartbeat_ms:
            return f"{session} must be greater than {heartbeat}"
    assignors = config.get("group.streams.assignors")
    assignor = given.get("streams.assignor.name")
    if assignor is not None and assignor not in assignors:
        return (
            f"streams.assignor.name '{assignor}' is not a registered task assignor. "
            f"Registered assignors are: [{', '.join(assignors)}]."
        )
    dead_letters = "errors.deadletterqueue.topic.name"
    if given.get(dead_letters, "").startswith("__"):
        return f"{dead_letters}: DLQ topic name must not start with '__'"
    return None


def _fault_in_bound(config: "BrokerConfig", bound: Bound, value: int) -> str | None:
    low = None if bound.low is None else config.get(bound.low)
    high = None if bound.high is None else config.get(bound.high)
    if low is not None and high is not None:
        if not low <= value <= high:
            return f"{bound.name} must be in the range {low} to {high} inclusive."
    elif low is not None and value < low:
        return f"{bound.name} must be greater than or equal to {low}"
    elif high is not None and value > high:
        return f"{bound.name} must be less than or equal to {high}"
    return None


_INTERVAL_MS_MIN, _INTERVAL_MS_MAX = 100, 3_600_000

_MATCHABLE = frozenset(
    (
        "client_id",
        "client_instance_id",
        "client_software_name",
        "client_software_version",
        "client_source_address",
        "client_source_port",
    )
)
"""What a client metrics subscription can tell clients apart by (KIP-714)."""


def check_client_metrics(name: str, settings: Mapping[str, str]) -> None:
    """Raise INVALID_REQUEST or INVALID_CONFIG unless the subscription may have these settings."""
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Subscription name can't be empty")
    for setting in settings:
        if find(Scope.CLIENT_METRICS, setting) is None:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown client metrics configuration: {setting}")
    given: dict[str, Any] = _parsed(Scope.CLIENT_METRICS, settings)
    interval_ms = given.get("interval.ms", _INTERVAL_MS_MIN)
    if not _INTERVAL_MS_MIN <= interval_ms <= _INTERVAL_MS_MAX:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"Invalid value {interval_ms} for interval.ms, "
            f"interval must be between {_INTERVAL_MS_MIN} and {_INTERVAL_MS_MAX} (1 hour)",
        )
    for pattern in given.get("match", ()):
        if not _is_pattern(pattern):
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"Illegal client matching pattern: {pattern}")


def _is_pattern(text: str) -> bool:
    """Whether ``text`` is ``parameter=regular expression``."""
    parameter, equals, expression = (part.strip() for part in text.partition("="))
    if not equals or parameter not in _MATCHABLE or not expression or "=" in expression:
        return False
    return client_pattern(expression) is not None


def _parsed(scope: Scope, settings: Mapping[str, str]) -> dict[str, Value]:
    try:
        return {name: definition(scope, name).parse(text) for name, text in settings.items()}
    except ConfigError as error:
        raise KafkaError(ErrorCode.INVALID_CONFIG, error.wire_message) from error
