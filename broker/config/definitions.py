"""What each setting means: its type, its default, and the values it takes.

Lines of ``tables`` are read when their setting is first asked for: a start that sets ten settings reads ten.
Error texts are Kafka's, since clients show them and compare them.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import TypeAlias

from broker.config import tables
from broker.config.valid_values import Check, ConfigError, checker
from broker.config.value_types import TYPE_NUMBERS, Value, read_value, show_value

__all__ = ["ConfigError", "Definition", "Scope", "Update", "Value", "definition", "definitions", "find"]


class Scope(StrEnum):
    """What a setting is a setting of."""

    BROKER = "broker"
    TOPIC = "topic"
    GROUP = "group"
    CLIENT_METRICS = "client-metrics"
    QUOTA = "quota"


class Update(StrEnum):
    """How a broker setting can be changed while brokers run, in Kafka's words."""

    READ_ONLY = "read-only"
    PER_BROKER = "per-broker"
    CLUSTER_WIDE = "cluster-wide"


OTTLA_DEFAULTS: Mapping[str, str] = {
    # A broker that is started without a properties file is a cluster of one.
    "node.id": "1",
    "process.roles": "broker,controller",
    "controller.listener.names": "CONTROLLER",
    # Tests should not wait for members that do not come.
    "group.initial.rebalance.delay.ms": "0",
    # Data that is easy to find and to delete.
    "log.dir": "ottla-data",
}
"""Where a default differs from Kafka's, or where Kafka has none; the README lists them."""

_TABLES: Mapping[Scope, str] = {
    Scope.BROKER: tables.BROKER,
    Scope.TOPIC: tables.TOPIC,
    Scope.GROUP: tables.GROUP,
    Scope.CLIENT_METRICS: tables.CLIENT_METRICS,
    Scope.QUOTA: tables.QUOTA,
}

Synonym: TypeAlias = tuple[str, int]
"""A broker setting that gives a default, and the factor that turns its unit into this setting's."""


class Definition:
    """One setting.

    ``default_text`` is the default as a properties file would say it, ``None`` for "not set". ``synonyms``
    are the broker settings whose value is the default of a topic or group setting: the first that is set
    counts. ``is_heeded`` says whether the setting acts as in Kafka; if not, ``reason`` is the word that says
    why: see ``reasons``.
    """

    __slots__ = (
        "_check",
        "_default",
        "default_text",
        "importance",
        "is_dynamic_only",
        "is_heeded",
        "is_internal",
        "name",
        "reason",
        "scope",
        "synonyms",
        "type_name",
        "update",
        "valid",
    )

    def __init__(self, scope: Scope, line: str) -> None:
        self.name, self.type_name, default, self.valid, *more = line.split()
        self.scope = scope
        self.importance = "MEDIUM"
        self.update = Update.CLUSTER_WIDE
        self.synonyms: tuple[Synonym, ...] = ()
        if scope is Scope.BROKER:
            self.importance = more.pop(0)
            self.update = Update(more.pop(0))
            default = OTTLA_DEFAULTS.get(self.name, default)
        elif scope in (Scope.TOPIC, Scope.GROUP):
            self.synonyms = _synonyms(more.pop(0))
        self.is_heeded = "heeded" in more
        self.reason = None if self.is_heeded else more[0]
        self.is_internal = "internal" in more
        self.is_dynamic_only = "dynamic-only" in more
        self.default_text: str | None = None if default == "null" else "" if default == '""' else default
        self._check: Check | None = None
        self._default: Value = None
        if self.default_text is not None:
            self._default = read_value(self.name, self.type_name, self.default_text)

    def __repr__(self) -> str:
        return f"<Definition {self.scope.value} {self.name} {self.type_name} {self.default_text}>"

    @property
    def default(self) -> Value:
        """The default as a value of the setting's type; lists are tuples."""
        return self._default

    @property
    def type_number(self) -> int:
        """Kafka's number for the type, as DescribeConfigs shows it."""
        return TYPE_NUMBERS[self.type_name]

    @property
    def is_sensitive(self) -> bool:
        """Whether the value must never be shown."""
        return self.type_name == "PASSWORD"

    @property
    def is_list(self) -> bool:
        """Whether the value is a list, to which an alteration may append."""
        return self.type_name == "LIST"

    def parse(self, text: str | None) -> Value:
        """The value that ``text`` says, without the spaces around it; ``ConfigError`` if it is not valid."""
        value = None if text is None else read_value(self.name, self.type_name, text)
        if self._check is None:
            self._check = checker(self.valid)
        return self._check(self.name, value)

    def show(self, value: Value) -> str | None:
        """The text by which Kafka shows a value of this setting."""
        return show_value(value)


def _synonyms(column: str) -> tuple[Synonym, ...]:
    if column == "-":
        return ()
    found: list[Synonym] = []
    for item in column.split(","):
        name, _, factor = item.partition("*")
        found.append((name, int(factor or 1)))
    return tuple(found)


_lines: dict[Scope, dict[str, str]] = {}
_known: dict[tuple[Scope, str], Definition] = {}


def _lines_of(scope: Scope) -> dict[str, str]:
    lines = _lines.get(scope)
    if lines is None:
        lines = {line[: line.index(" ")]: line for line in _TABLES[scope].splitlines()}
        _lines[scope] = lines
    return lines


def names(scope: Scope) -> Iterable[str]:
    """The names of all settings of a scope, in alphabetical order."""
    return _lines_of(scope).keys()


def find(scope: Scope, name: str) -> Definition | None:
    """The setting of this name, or ``None``: the name may come from anybody."""
    known = _known.get((scope, name))
    if known is None:
        line = _lines_of(scope).get(name)
        if line is None:
            return None
        known = _known[scope, name] = Definition(scope, line)
    return known


def definition(scope: Scope, name: str) -> Definition:
    """The setting of a name that this code knows to exist."""
    known = find(scope, name)
    if known is None:
        raise KeyError(f"Kafka has no {scope.value} setting {name}")
    return known


def definitions(scope: Scope) -> list[Definition]:
    """All settings of a scope, in alphabetical order."""
    return [definition(scope, name) for name in names(scope)]
