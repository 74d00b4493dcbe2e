"""What DescribeConfigs shows: each setting with its value, where that comes from, and what lies beneath."""

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple, TypeAlias

from broker.config.broker_config import BrokerConfig
from broker.config.checks import base_name
from broker.config.definitions import Definition, Scope, Update, definitions, find
from broker.config.value_types import UNKNOWN_TYPE_NUMBER, show_value


class ConfigSource(IntEnum):
    """Where a value comes from; the numbers are those of the wire."""

    DYNAMIC_TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    DYNAMIC_BROKER_LOGGER = 6
    DYNAMIC_CLIENT_METRICS = 7
    DYNAMIC_GROUP = 8


class Layer(NamedTuple):
    """One value that a setting has somewhere, under the name it has there."""

    name: str
    value: str | None
    source: ConfigSource


class Entry(NamedTuple):
    """One setting as it is shown.

    ``synonyms`` begin with the layer that counts. ``value`` is None for what is not set and for what must not
    be shown.
    """

    name: str
    value: str | None
    read_only: bool
    source: ConfigSource
    is_sensitive: bool
    synonyms: Sequence[Layer]
    type_number: int


Wanted: TypeAlias = frozenset[str] | None
"""The names asked for; ``None`` for all of them."""

_UNITS: Sequence[Sequence[str]] = (
    ("log.roll.ms", "log.roll.hours"),
    ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
)


def synonyms_of(name: str) -> Sequence[str]:
    """The names under which a broker setting may have been set, the one that counts first."""
    for family in _UNITS:
        if name in family:
            return family
    if name == "log.flush.interval.ms":
        return (name, "log.flush.scheduler.interval.ms")
    base = base_name(name)
    return (name,) if base == name else (name, base)


def layers_of(config: BrokerConfig, name: str, *, hidden: bool) -> list[Layer]:
    """Every layer in which a broker setting, or a synonym of it, has a value; the one that counts first.

    A synonym that counts for more than the setting's own name is left out, as Kafka does.
    """
    names = synonyms_of(name)
    found: list[Layer] = []
    for texts, source in (
        (config.dynamic_broker, ConfigSource.DYNAMIC_BROKER),
        (config.dynamic_default, ConfigSource.DYNAMIC_DEFAULT_BROKER),
        (config.static, ConfigSource.STATIC_BROKER),
    ):
        found += [Layer(synonym, texts[synonym], source) for synonym in names if synonym in texts]
    for synonym in names:
        known = find(Scope.BROKER, synonym)
        if known is not None and known.default is not None and not known.is_dynamic_only:
            found.append(Layer(synonym, show_value(known.default), ConfigSource.DEFAULT))
    while found and found[0].name != name:
        del found[0]
    return [layer._replace(value=None) for layer in found] if hidden else found


def describe_broker(config: BrokerConfig, wanted: Wanted = None) -> list[Entry]:
    """All settings of this broker."""
    names = {
        known.name for known in definitions(Scope.BROKER) if not (known.is_internal or known.is_dynamic_only)
    }
    names.update(config.static, config.dynamic_default, config.dynamic_broker)
    return [_broker_entry(config, name) for name in _chosen(names, wanted)]


def describe_cluster_default(config: BrokerConfig, wanted: Wanted = None) -> list[Entry]:
    """What was set for all brokers of the cluster at once."""
    entries: list[Entry] = []
    for name in _chosen(config.dynamic_default, wanted):
        entry = _broker_entry(config, name)
        layers = [layer for layer in entry.synonyms if layer.source is ConfigSource.DYNAMIC_DEFAULT_BROKER]
        value = None if entry.is_sensitive else config.dynamic_default[name]
        source = layers[0].source if layers else ConfigSource.DEFAULT
        entries.append(entry._replace(value=value, source=source, synonyms=layers))
    return entries


def _broker_entry(config: BrokerConfig, name: str) -> Entry:
    known = find(Scope.BROKER, name)
    typed = known or find(Scope.BROKER, base_name(name))
    # What a setting of unknown meaning holds may be a secret.
    hidden = typed is None or typed.is_sensitive
    layers = layers_of(config, name, hidden=hidden)
    if hidden:
        value = None
    elif known is not None and not known.is_dynamic_only:
        value = known.show(config.get(name))
    else:
        value = layers[0].value if layers else None
    return Entry(
        name=name,
        value=value,
        read_only=known is None or known.update is Update.READ_ONLY,
        source=layers[0].source if layers else ConfigSource.DEFAULT,
        is_sensitive=hidden,
        synonyms=layers,
        type_number=UNKNOWN_TYPE_NUMBER if typed is None else typed.type_number,
    )


def describe_topic(config: BrokerConfig, overrides: Mapping[str, str], wanted: Wanted = None) -> list[Entry]:
    """All settings of a topic that has ``overrides`` of its own."""
    values = config.topic(overrides)

    def entry(known: Definition) -> Entry:
        value = known.show(values[known.name])
        layers = layers_of(config, known.synonyms[0][0], hidden=False) if known.synonyms else []
        if known.name in overrides:
            layers.insert(0, Layer(known.name, value, ConfigSource.DYNAMIC_TOPIC))
        return _entry(known, value, layers)

    return _described(Scope.TOPIC, overrides, wanted, entry)


def describe_group(config: BrokerConfig, overrides: Mapping[str, str], wanted: Wanted = None) -> list[Entry]:
    """All settings of a group that has ``overrides`` of its own."""
    values = config.group_as_set(overrides)

    def entry(known: Definition) -> Entry:
        value = known.show(values[known.name])
        if known.synonyms:
            layers = layers_of(config, known.synonyms[0][0], hidden=False)
        else:
            layers = [Layer(known.name, known.show(known.default), ConfigSource.DEFAULT)]
        if known.name in overrides:
            layers.insert(0, Layer(known.name, value, ConfigSource.DYNAMIC_GROUP))
        return _entry(known, value, layers)

    given = {*config.static, *config.dynamic_default, *config.dynamic_broker}
    # Internal ones are shown of who has them, and of all while the broker is told a default.
    told = [known.name for known in definitions(Scope.GROUP) if given.intersection(dict(known.synonyms))]
    return _described(Scope.GROUP, {*overrides, *told}, wanted, entry)


def describe_client_metrics(overrides: Mapping[str, str], wanted: Wanted = None) -> list[Entry]:
    """All settings of a client metrics subscription."""

    def entry(known: Definition) -> Entry:
        text = overrides.get(known.name)
        if text is None:
            return _entry(known, known.show(known.default), [])
        value = known.show(known.parse(text))
        return _entry(known, value, [Layer(known.name, value, ConfigSource.DYNAMIC_CLIENT_METRICS)])

    return _described(Scope.CLIENT_METRICS, overrides, wanted, entry)


def _described(
    scope: Scope, told: Container[str], wanted: Wanted, entry: Callable[[Definition], Entry]
) -> list[Entry]:
    """``told`` are names of settings that are shown even if they are internal."""
    return [
        entry(known)
        for known in definitions(scope)
        if (not known.is_internal or known.name in told) and (wanted is None or known.name in wanted)
    ]


def _entry(known: Definition, value: str | None, layers: Sequence[Layer]) -> Entry:
    source = layers[0].source if layers else ConfigSource.DEFAULT
    return Entry(known.name, value, False, source, known.is_sensitive, layers, known.type_number)


def _chosen(names: Iterable[str], wanted: Wanted) -> list[str]:
    return sorted(name for name in names if wanted is None or name in wanted)


def created_topic_entries(config: BrokerConfig, overrides: Mapping[str, str]) -> list[Entry]:
    """The settings of a topic as the answer to CreateTopics tells them: texts as they were given.

    Unlike DescribeConfigs it looks in each layer for the setting's synonyms in turn, and turns units.
    """
    entries: list[Entry] = []
    for known in definitions(Scope.TOPIC):
        if known.name in overrides:
            value: str | None = overrides[known.name]
            source = ConfigSource.DYNAMIC_TOPIC
        elif known.is_internal:
            continue
        else:
            value, source = _inherited(config, known)
        entries.append(Entry(known.name, value, False, source, known.is_sensitive, (), known.type_number))
    return entries


def _inherited(config: BrokerConfig, known: Definition) -> tuple[str | None, ConfigSource]:
    for texts, source in (
        (config.dynamic_broker, ConfigSource.DYNAMIC_BROKER),
        (config.dynamic_default, ConfigSource.DYNAMIC_DEFAULT_BROKER),
        (config.static, ConfigSource.STATIC_BROKER),
    ):
        for synonym, factor in known.synonyms:
            text = texts.get(synonym)
            if text is not None:
                return text if factor == 1 else str(int(text) * factor), source
    return known.show(known.default), ConfigSource.DEFAULT
