"""Whether this broker can live with a change of its own settings while it runs: Kafka's rules and texts."""

import re
from collections.abc import Collection, Mapping
from typing import Any

from broker.config.broker_config import BrokerConfig
from broker.config.checks import base_name, check
from broker.config.definitions import ConfigError, Scope, Update, find

_ONLY_PER_LISTENER = frozenset(
    (
        "ssl.key.password",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.keystore.location",
        "ssl.keystore.password",
        "ssl.keystore.type",
        "ssl.truststore.certificates",
        "ssl.truststore.location",
        "ssl.truststore.password",
        "ssl.truststore.type",
    )
)
"""Security settings that Kafka lets nobody change for all listeners at once."""

_CLUSTER_WIDE_PER_LISTENER = frozenset(
    ("max.connection.creation.rate", "max.connections", "num.network.threads")
)
"""Settings that may carry a listener's name and still hold for every broker."""

_THREADS = (
    "background.threads",
    "num.io.threads",
    "num.network.threads",
    "num.recovery.threads.per.data.dir",
    "num.replica.fetchers",
)
"""Pools that Kafka lets nobody more than double or halve at once."""

FIXED = ("listener.security.protocol.map", "listeners")
"""What Kafka can change while it runs, and this broker cannot yet."""

_LISTENER_PREFIX = re.compile(r"listener\.name\.[^.]*\.(.*)")


def check_alteration(config: BrokerConfig, texts: Mapping[str, str], *, for_this_broker: bool) -> None:
    """Raise ``ConfigError`` unless these may be the dynamic settings, of this broker or of the cluster.

    ``texts`` are all of them, not only the changed ones.
    """
    fixed = [
        name for name in texts if (known := find(Scope.BROKER, name)) and known.update is Update.READ_ONLY
    ]
    _refuse(fixed, "Cannot update these configs dynamically")
    _refuse(
        _ONLY_PER_LISTENER.intersection(texts),
        "These security configs can be dynamically updated only per-listener using the listener prefix",
    )
    based = [(find(Scope.BROKER, base_name(name)), text) for name, text in texts.items()]
    for known, text in based:
        if known is not None and known.update is not Update.READ_ONLY:
            known.parse(text)
    if not for_this_broker:
        _refuse(
            [name for name in texts if _is_per_broker(name)],
            "Cannot update these configs at default cluster level, broker id must be specified",
        )
    try:
        for known, text in based:
            if known is not None and known.update is Update.READ_ONLY:
                known.parse(text)  # of a listener's name before it Kafka makes no fuss
        _check_reporters(texts.get("metric.reporters", ""))
    except ConfigError as error:
        raise _wrapped(error) from error
    lower, upper = (config.dynamic_default, texts) if for_this_broker else (texts, config.dynamic_broker)
    static = {name: text for name, text in config.static.items() if not _is_dynamic_only(name)}
    changed = BrokerConfig({**static, **_settable(lower), **_settable(upper)})
    check(changed)
    _check_steps(config, changed, texts)


def _refuse(names: Collection[str], why: str) -> None:
    if names:
        raise ConfigError(f"{why}: [{', '.join(sorted(names))}]")


def _is_per_broker(name: str) -> bool:
    known = find(Scope.BROKER, name)
    if known is not None:
        return known.update is Update.PER_BROKER
    prefixed = _LISTENER_PREFIX.fullmatch(name)
    return prefixed is not None and prefixed[1] not in _CLUSTER_WIDE_PER_LISTENER


def _is_dynamic_only(name: str) -> bool:
    known = find(Scope.BROKER, name)
    return known is not None and known.is_dynamic_only


def _settable(texts: Mapping[str, str]) -> dict[str, str]:
    return {name: text for name, text in texts.items() if not _is_dynamic_only(name)}


def _check_steps(current: BrokerConfig, changed: BrokerConfig, texts: Mapping[str, str]) -> None:
    """The rules about how far a value may move from what it is now."""
    for name in FIXED:
        if changed.get(name) != current.get(name):
            raise ConfigError(f"{name} cannot be changed while this broker runs")
    try:
        for name in _THREADS:
            _check_threads(name, current.get(name), changed.get(name))
        for name, text in texts.items():
            base = base_name(name)
            if base != name and base in _THREADS:
                _check_threads(base, current.get(base), int(text))
        _check_connections(changed)
        _check_cleaner_threads(current.get("log.cleaner.threads"), changed.get("log.cleaner.threads"))
        for unit in ("ms", "bytes"):
            _check_local_retention(changed, unit)
    except ConfigError as error:
        raise _wrapped(error) from error


def _wrapped(error: ConfigError) -> ConfigError:
    """As a client is told of what Kafka finds out late."""
    wrapped = f"org.apache.kafka.common.config.ConfigException: {error.message}"
    told = f"Invalid value {wrapped} for configuration Invalid dynamic configuration"
    return ConfigError(error.message, wire_message=told)


def _check_reporters(text: str) -> None:
    """Kafka brings one class that reports metrics, and nobody can have brought another."""
    for reporter in text.split(","):
        if reporter.strip() not in ("", "org.apache.kafka.common.metrics.JmxReporter"):
            raise ConfigError(
                "Validation of dynamic config update of Set(metric.reporters) failed with class "
                "class kafka.server.DynamicMetricsReporters"
            )


def _check_threads(name: str, current: int, wanted: int) -> None:
    failed = f"Dynamic thread count update validation failed for {name}={wanted}"
    if wanted < current // 2:
        raise ConfigError(f"{failed}, value should be at least half the current value {current}")
    if wanted > current * 2:
        raise ConfigError(f"{failed}, value should not be greater than double the current value {current}")


def _check_connections(config: BrokerConfig) -> None:
    """A broker can be started that lets nobody in; it cannot become one."""
    for listener in config.broker_listeners:
        for name in ("max.connections", "max.connection.creation.rate"):
            limit = config.of_listener(listener.name, name)
            if limit <= 0:
                raise ConfigError(f"Invalid {name} {limit}")


def _check_cleaner_threads(current: int, wanted: int) -> None:
    if wanted < current // 2:
        raise ConfigError(
            f"Log cleaner threads cannot be reduced to less than half the current value {current}"
        )
    if wanted > current * 2:
        raise ConfigError(
            f"Log cleaner threads cannot be increased to more than double the current value {current}"
        )


def _check_local_retention(config: BrokerConfig, unit: str) -> None:
    """Tiered storage keeps locally no more than there is at all."""
    name, whole_name = f"log.local.retention.{unit}", f"log.retention.{unit}"
    local: int = config.get(name)
    whole: Any = config.topic_defaults()[f"retention.{unit}"]
    if whole == -1 or local == -2:
        return
    if local == -1:
        reason = f"Value must not be -1 as {whole_name} value is set as {whole}."
    elif local > whole:
        reason = f"Value must not be more than {whole_name} property value: {whole}"
    else:
        return
    raise ConfigError(f"Invalid value {local} for configuration {name}: {reason}")
