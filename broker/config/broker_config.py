"""The settings of this broker: what it was started with, and what has been changed since."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from broker.config.definitions import ConfigError, Definition, Scope, Update, definition, definitions, find
from broker.config.listeners import ListenerAddress, protocols_by_listener, read_addresses
from broker.config.topic_settings import TopicSettings
from broker.config.value_types import Value

NOTHING: Mapping[str, str] = MappingProxyType({})

_TOPIC_SETTINGS_KEPT_MAX = 1000
"""Different sets of topic settings that are kept ready; topics with the same settings share one."""


class BrokerConfig:
    """Effective settings, by Kafka's names.

    ``static`` is what the broker was started with, as text. Above it lie the cluster's dynamic defaults and
    what was set for this broker alone. An object is changed by ``identify`` and ``apply_dynamic`` alone, so
    that whoever holds it sees what holds now. Every given value is checked when it arrives, by itself; how
    they fit together is for ``checks``.
    """

    def __init__(self, static: Mapping[str, str]) -> None:
        if "config.providers" in static:
            from broker.config.providers import resolve

            static = resolve(static)
        self.static: Mapping[str, str] = MappingProxyType(_with_both_ids(static))
        self.dynamic_default: Mapping[str, str] = NOTHING
        self.dynamic_broker: Mapping[str, str] = NOTHING
        self._given: dict[str, Value] = {}
        self._values: dict[str, Value] = {}
        self._topic_defaults: dict[str, Value] | None = None
        self._topics: dict[tuple[tuple[str, str], ...], TopicSettings] = {}
        for name, text in self.static.items():
            known = find(Scope.BROKER, name)
            if known is not None and not known.is_dynamic_only:
                self._given[name] = known.parse(text)

    # Values.

    def get(self, name: str) -> Any:
        """The effective value of a broker setting: bool, int, float, str, a tuple of str, or None.

        ``KeyError`` if Kafka has no such setting.
        """
        try:
            return self._values[name]
        except KeyError:
            known = definition(Scope.BROKER, name)
            value = self._values[name] = self._given.get(name, known.default)
            return value

    def started_with(self, name: str) -> Any:
        """The value that a broker setting has without anything dynamic."""
        known = definition(Scope.BROKER, name)
        text = self.static.get(name)
        return known.default if text is None else known.parse(text)

    def is_set(self, name: str) -> bool:
        """Whether the broker was started with a value for this setting."""
        return name in self.static

    def of_listener(self, listener: str, name: str) -> Any:
        """The effective value of a setting for one listener: first counts what carries its name."""
        prefixed = f"listener.name.{listener.lower()}.{name}"
        for texts in (self.dynamic_broker, self.dynamic_default, self.static):
            if prefixed in texts:
                return definition(Scope.BROKER, name).parse(texts[prefixed])
        return self.get(name)

    def topic(self, overrides: Mapping[str, str]) -> TopicSettings:
        """The effective settings of a topic, given those that were made for it alone.

        An override that is not valid (an older or newer broker wrote it) is left out.
        """
        key = tuple(sorted(overrides.items()))
        settings = self._topics.get(key)
        if settings is None:
            settings = TopicSettings({**self.topic_defaults(), **_valid(Scope.TOPIC, overrides)})
            if len(self._topics) >= _TOPIC_SETTINGS_KEPT_MAX:
                self._topics.clear()
            self._topics[key] = settings
        return settings

    def topic_defaults(self) -> Mapping[str, Value]:
        """What topics have without settings of their own: the broker's settings under the topics' names."""
        if self._topic_defaults is None:
            defaults = {known.name: self._inherited(known) for known in definitions(Scope.TOPIC)}
            retention_ms = defaults["retention.ms"]
            if isinstance(retention_ms, int) and retention_ms < 0:
                defaults["retention.ms"] = -1
            self._topic_defaults = defaults
        return self._topic_defaults

    def group(self, overrides: Mapping[str, str]) -> dict[str, Any]:
        """The effective settings of a group, by the groups' own names.

        One that the broker's bounds have overtaken since it was set counts as the bound.
        """
        from broker.config.resources import GROUP_BOUNDS

        values = self.group_as_set(overrides)
        for bound in GROUP_BOUNDS:
            if bound.low is not None:
                values[bound.name] = max(values[bound.name], self.get(bound.low))
            if bound.high is not None:
                values[bound.name] = min(values[bound.name], self.get(bound.high))
        return values

    def group_as_set(self, overrides: Mapping[str, str]) -> dict[str, Any]:
        """The settings of a group without regard to the broker's bounds, as they are shown."""
        values: dict[str, Any] = {known.name: self._inherited(known) for known in definitions(Scope.GROUP)}
        # The broker lists its assignors, a group has one of them.
        values["streams.assignor.name"] = self.get("group.streams.assignors")[0]
        values.update(_valid(Scope.GROUP, overrides))
        return values

    def _inherited(self, known: Definition) -> Value:
        for name, factor in known.synonyms:
            value = self.get(name)
            if value is not None:
                return value if factor == 1 else value * factor  # type: ignore[no-any-return]
        return known.default

    # What settings say together.

    @property
    def node_id(self) -> int:
        return int(self.get("node.id"))

    @property
    def log_directories(self) -> Sequence[str]:
        """Where partitions are kept: ``log.dirs``, or else ``log.dir``."""
        directories: Sequence[str] = self.get("log.dirs") or self.get("log.dir")
        return directories

    @property
    def metadata_directory(self) -> str:
        """Where the metadata log is kept: ``metadata.log.dir``, or else the first directory of all."""
        directory: str | None = self.get("metadata.log.dir")
        return self.log_directories[0] if directory is None else directory

    @property
    def log_retention_ms(self) -> int:
        """How long records are kept; -1 for ever.  Milliseconds go before minutes, and these before hours."""
        return int(self.topic_defaults()["retention.ms"])  # type: ignore[arg-type]

    @property
    def controller_listener_names(self) -> Sequence[str]:
        names: Sequence[str] = self.get("controller.listener.names")
        return names

    @property
    def listener_protocols(self) -> dict[str, str]:
        """Which security protocol each listener name speaks."""
        return protocols_by_listener(
            self.get("listener.security.protocol.map"),
            is_set="listener.security.protocol.map" in self._given,
            listeners=self.get("listeners"),
            controller_names=self.controller_listener_names,
        )

    @property
    def listeners(self) -> list[ListenerAddress]:
        """Every address to listen on, the controller's included.

        While ``controller.listener.names`` is not set and no listener has its name, a controller gets a free
        port of its own on the loopback interface.
        """
        entries: Sequence[str] = self.get("listeners")
        addresses = read_addresses(entries, self.listener_protocols, distinct_ports=True)
        controllers = self.controller_listener_names
        if (
            "controller" in self.get("process.roles")
            and not self.is_set("controller.listener.names")
            and not any(address.name in controllers for address in addresses)
        ):
            addresses.append(ListenerAddress(controllers[0], "PLAINTEXT", "127.0.0.1", 0))
        return addresses

    @property
    def broker_listeners(self) -> list[ListenerAddress]:
        """The addresses for clients and other brokers."""
        return [address for address in self.listeners if address.name not in self.controller_listener_names]

    @property
    def controller_listeners(self) -> list[ListenerAddress]:
        """The addresses on which the controller is asked."""
        return [address for address in self.listeners if address.name in self.controller_listener_names]

    @property
    def advertised_listeners(self) -> list[ListenerAddress] | None:
        """What clients are told, controller listeners included; None if nothing was said."""
        entries: Sequence[str] | None = self.get("advertised.listeners")
        if entries is None:
            return None
        return read_addresses(entries, self.listener_protocols, distinct_ports=False)

    @property
    def advertised_brokers(self) -> list[ListenerAddress]:
        """The addresses that this broker registers: as advertised, or else as it listens."""
        advertised = self.advertised_listeners
        if advertised is None:
            return self.broker_listeners
        return [address for address in advertised if address.name not in self.controller_listener_names]

    @property
    def advertised_controllers(self) -> list[ListenerAddress]:
        """The addresses that this controller registers: each as advertised, or else as it listens.

        One that listens everywhere is, if it is the first, where ``controller.quorum.voters`` says it is.
        """
        advertised = {address.name: address for address in self.advertised_listeners or ()}
        return [
            advertised.get(address.name) or self._as_voter(address) for address in self.controller_listeners
        ]

    def _as_voter(self, address: ListenerAddress) -> ListenerAddress:
        if address.name == self.controller_listener_names[0] and address.host in ("", "0.0.0.0"):
            for voter in self.get("controller.quorum.voters"):
                number, _, place = voter.partition("@")
                if int(number) == self.node_id:
                    host, _, port = place.rpartition("://")[2].rpartition(":")
                    return address._replace(host=host.strip("[]"), port=int(port))
        return address

    @property
    def inter_broker_listener_name(self) -> str:
        """The listener by which brokers talk to each other."""
        name: str | None = self.get("inter.broker.listener.name")
        return str(self.get("security.inter.broker.protocol")) if name is None else name.upper()

    # Changes.

    def identify(self, node_id: int) -> None:
        """Take over the id that the log directory has, as if the settings had named it."""
        self.static = MappingProxyType(_with_both_ids({**self.static, "node.id": str(node_id)}))
        for name in ("broker.id", "node.id"):
            self._given[name] = node_id
            self._values.pop(name, None)

    def apply_dynamic(self, default: Mapping[str, str], broker: Mapping[str, str]) -> list[str]:
        """Take over the dynamic settings of the cluster and of this broker; returns complaints, one a line.

        What may not be changed while the broker runs, and what is not valid, is left out.
        """
        complaints: list[str] = []
        given: dict[str, Value] = {
            name: known.parse(text)
            for name, text in self.static.items()
            if (known := find(Scope.BROKER, name)) is not None and not known.is_dynamic_only
        }
        self.dynamic_default = self._take(default, given, complaints, cluster_wide=True)
        self.dynamic_broker = self._take(broker, given, complaints, cluster_wide=False)
        self._given = given
        self._values = {}
        self._topic_defaults = None
        self._topics = {}
        return complaints

    def _take(
        self, texts: Mapping[str, str], given: dict[str, Value], complaints: list[str], *, cluster_wide: bool
    ) -> Mapping[str, str]:
        taken: dict[str, str] = {}
        for name, text in texts.items():
            known = find(Scope.BROKER, name)
            if known is None:
                taken[name] = text  # kept, to be shown
                continue
            if known.update is Update.READ_ONLY or (cluster_wide and known.update is Update.PER_BROKER):
                complaints.append(f"the dynamic setting {name} is ignored: it cannot be changed this way")
                continue
            try:
                given[name] = known.parse(text)
            except ConfigError as error:
                complaints.append(f"a dynamic setting is ignored: {error.message}")
            else:
                taken[name] = text
        return MappingProxyType(taken)


def _with_both_ids(static: Mapping[str, str]) -> dict[str, str]:
    """``node.id`` and its old name ``broker.id`` stand for each other."""
    settings = dict(static)
    if "node.id" in settings:
        settings.setdefault("broker.id", settings["node.id"])
    elif "broker.id" in settings:
        settings["node.id"] = settings["broker.id"]
    return settings


def _valid(scope: Scope, overrides: Mapping[str, str]) -> dict[str, Value]:
    values: dict[str, Value] = {}
    for name, text in overrides.items():
        known = find(scope, name)
        if known is not None:
            try:
                values[name] = known.parse(text)
            except ConfigError:
                continue
    return values
