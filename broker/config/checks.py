"""How settings must fit together: Kafka's rules, what this broker cannot do yet, and what it says at start.

The texts of the rules are Kafka's: a client that alters a broker's settings is told them, too.
"""

import re
from collections.abc import Callable, Mapping

from broker.config.broker_config import BrokerConfig
from broker.config.definitions import Scope, definitions, find
from broker.config.listeners import ListenerAddress, normalised, read_pairs
from broker.config.value_types import ConfigError, read_integer


def check(config: BrokerConfig) -> None:
    """Raise ``ConfigError`` if the settings contradict each other."""
    _check_roles(config)
    _check_log(config)
    _check_replication(config)
    _check_listeners(config)
    _check_connections(config)
    _check_quorum(config)
    _check_groups(config)


def _require(condition: bool, message: str) -> None:
    """A rule whose breach Kafka reports as ``requirement failed``."""
    if not condition:
        raise ConfigError(message, wire_message=f"requirement failed: {message}")


def _check_roles(config: BrokerConfig) -> None:
    if config.is_set("broker.id") and config.get("broker.id") != config.node_id:
        raise ConfigError(
            "`node.id` and `broker.id` must be set to the same value. "
            "`broker.id` is deprecated, please use `node.id` instead."
        )


def _check_log(config: BrokerConfig) -> None:
    topics = config.topic_defaults()
    _at_least(topics["segment.ms"], 1, "log.roll.ms must be greater than or equal to 1")
    _at_least(topics["segment.jitter.ms"], 0, "log.roll.jitter.ms must be greater than or equal to 0")
    retention_ms = config.log_retention_ms
    _require(
        retention_ms >= 1 or retention_ms == -1,
        "log.retention.ms must be unlimited (-1) or, greater than or equal to 1",
    )
    cordoned = config.get("cordoned.log.dirs") or ()
    if "broker" not in config.get("process.roles"):
        pass  # a mere controller has no directory that could be cordoned
    elif "*" in cordoned:
        _require(len(cordoned) == 1, "When cordoned.log.dirs is set to *, it must not contain other values")
    else:
        missing = [directory for directory in cordoned if directory not in config.log_directories]
        _require(
            not missing,
            "All entries in cordoned.log.dirs must be present in log.dirs or log.dir. "
            f"Missing entries : {', '.join(missing)}",
        )
    threads = config.get("log.cleaner.threads")
    _require(threads > 0, "log.cleaner.threads must be at least 1")
    _require(
        config.get("log.cleaner.dedupe.buffer.size") // threads > 1024 * 1024,
        "log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread.",
    )


def _at_least(value: object, limit: int, message: str) -> None:
    _require(isinstance(value, int) and value >= limit, message)


def _check_replication(config: BrokerConfig) -> None:
    wait_ms = config.get("replica.fetch.wait.max.ms")
    _require(
        config.get("replica.socket.timeout.ms") >= wait_ms,
        "replica.socket.timeout.ms should always be at least replica.fetch.wait.max.ms "
        "to prevent unnecessary socket timeouts",
    )
    _require(
        wait_ms <= config.get("replica.lag.time.max.ms"),
        "replica.fetch.wait.max.ms should always be less than or equal to replica.lag.time.max.ms "
        "to prevent frequent changes in ISR",
    )


def _check_listeners(config: BrokerConfig) -> None:
    protocols = config.listener_protocols
    controller_names = config.controller_listener_names
    inter_broker = config.get("inter.broker.listener.name")
    if inter_broker is not None:
        if config.is_set("security.inter.broker.protocol"):
            raise ConfigError(
                "Only one of inter.broker.listener.name and security.inter.broker.protocol should be set."
            )
        if normalised(inter_broker) not in protocols:
            raise ConfigError(
                f"Listener with name {inter_broker.upper()} defined in inter.broker.listener.name "
                "not found in listener.security.protocol.map."
            )
    roles = config.get("process.roles")
    listening = config.listeners
    advertised = _advertised_brokers(config, listening)
    if "controller" not in roles:
        _require(
            not any(address.name in controller_names for address in listening),
            "controller.listener.names must not contain a value appearing in the 'listeners' configuration "
            "when running KRaft with just the broker role",
        )
        # Whoever leaves the names to us has not mapped them either.
        for name in controller_names if config.is_set("controller.listener.names") else ():
            if normalised(name) not in protocols:
                raise ConfigError(
                    f"Controller listener with name {name.upper()} defined in controller.listener.names not "
                    "found in listener.security.protocol.map  (an explicit security mapping for each "
                    "controller listener is required if listener.security.protocol.map is non-empty, or if "
                    "there are security protocols other than PLAINTEXT in use)"
                )
    elif "broker" not in roles:
        _require(
            all(address.name in controller_names for address in listening),
            "The listeners config must only contain KRaft controller listeners from "
            "controller.listener.names when process.roles=controller",
        )
        _require(
            inter_broker is None or inter_broker.upper() not in controller_names,
            "controller.listener.names must not contain an explicitly set inter.broker.listener.name "
            "configuration value when process.roles=controller'",
        )
    if "controller" in roles:
        listening_names = [address.name for address in listening]
        _require(
            any(name in listening_names for name in controller_names),
            "controller.listener.names must contain at least one value appearing in the 'listeners' "
            "configuration when running the KRaft controller role",
        )
        _require(
            all(name in listening_names for name in controller_names),
            "controller.listener.names must only contain values appearing in the 'listeners' "
            "configuration when running the KRaft controller role",
        )
    if "broker" in roles:
        _require(
            bool(advertised),
            "There must be at least one broker advertised listener. "
            "Perhaps all listeners appear in controller.listener.names?",
        )
        names = {address.name for address in advertised}
        options = ",".join(address.name for address in advertised)
        _require(
            config.inter_broker_listener_name in names,
            "inter.broker.listener.name must be a listener name defined in advertised.listeners. "
            f"The valid options based on currently configured listeners are {options}",
        )
        listening_names = [address.name for address in listening]
        _require(
            names.issubset(listening_names),
            "advertised.listeners listener names must be equal to or a subset of the ones defined in "
            f"listeners. Found {options}. The valid options based on the current configuration are "
            f"{','.join(listening_names)}",
        )
    early = config.get("early.start.listeners") or ()
    for name in early:
        if name not in (*(address.name for address in listening), *controller_names):
            raise ConfigError(
                f"early.start.listeners contains listener {name}, but this is not contained "
                "in listeners or controller.listener.names"
            )


def _advertised_brokers(config: BrokerConfig, listening: list[ListenerAddress]) -> list[ListenerAddress]:
    """What brokers and clients are told, or would be told if it was not said."""
    advertised = config.advertised_listeners
    if advertised is not None:
        _require(
            all(address.host != "0.0.0.0" for address in advertised),
            "advertised.listeners cannot use the nonroutable meta-address 0.0.0.0. "
            "Use a routable IP address.",
        )
    controller_names = config.controller_listener_names
    said = listening if advertised is None else advertised
    return [address for address in said if address.name not in controller_names]


def _check_connections(config: BrokerConfig) -> None:
    overrides = dict(
        read_pairs("max.connections.per.ip.overrides", config.get("max.connections.per.ip.overrides"))
    )
    for host, count in overrides.items():
        if read_integer(count) is None:
            raise ConfigError(
                f"Error parsing configuration property 'max.connections.per.ip.overrides': "
                f"'{count}' for {host} is not a number"
            )
    wrong = [host for host in overrides if not re.fullmatch(r"[0-9a-zA-Z\-%._:]*", host)]
    if wrong:
        raise ConfigError(f"max.connections.per.ip.overrides contains invalid addresses : {', '.join(wrong)}")
    _require(
        config.get("max.connections.per.ip") > 0 or bool(overrides),
        "max.connections.per.ip can be set to zero only if max.connections.per.ip.overrides property is set.",
    )
    delay_ms, idle_ms = (
        config.get("connection.failed.authentication.delay.ms"),
        config.get("connections.max.idle.ms"),
    )
    _require(
        idle_ms < 0 or delay_ms < idle_ms,
        f"connection.failed.authentication.delay.ms={delay_ms} should always be less than "
        f"connections.max.idle.ms={idle_ms} to prevent failed authentication responses from timing out",
    )
    queued = config.get("queued.max.request.bytes")
    _require(
        queued <= 0 or queued >= config.get("socket.request.max.bytes"),
        "queued.max.request.bytes must be larger or equal to socket.request.max.bytes",
    )
    if config.inter_broker_listener_name in ("SASL_PLAINTEXT", "SASL_SSL"):
        _require(
            config.get("sasl.mechanism.inter.broker.protocol") in config.get("sasl.enabled.mechanisms"),
            "sasl.mechanism.inter.broker.protocol must be included in sasl.enabled.mechanisms "
            "when SASL is used for inter-broker communication",
        )


def _check_quorum(config: BrokerConfig) -> None:
    roles = config.get("process.roles")
    voters = [int(voter.partition("@")[0]) for voter in config.get("controller.quorum.voters")]
    shown = f"controller.quorum.voters=Set({', '.join(map(str, voters))})"
    if voters and "controller" in roles:
        _require(
            config.node_id in voters,
            f"If process.roles contains the 'controller' role, the node id {config.node_id} must be included "
            f"in the set of voters {shown}",
        )
    elif voters:
        _require(
            config.node_id not in voters,
            f"If process.roles contains just the 'broker' role, the node id {config.node_id} must not be "
            f"included in the set of voters {shown}",
        )
    if "controller" not in roles and not voters and not config.get("controller.quorum.bootstrap.servers"):
        raise ConfigError(
            "If using process.roles, either controller.quorum.bootstrap.servers must contain the set of "
            "bootstrap controllers or controller.quorum.voters must contain a parseable set of controllers."
        )
    _require(
        "controller" in roles or not config.get("controller.quorum.auto.join.enable"),
        "controller.quorum.auto.join.enable is only supported when process.roles contains the "
        "'controller' role.",
    )


_ASSIGNORS: Mapping[str, tuple[str, ...]] = {
    "group.consumer.assignors": ("uniform", "range"),
    "group.share.assignors": ("simple",),
    "group.streams.assignors": ("sticky",),
}
"""The assignors that are built in; there is no class to load for any other."""

_ASSIGNOR_PACKAGE = "org.apache.kafka.coordinator.group.assignor."


def _check_groups(config: BrokerConfig) -> None:
    for kind in ("consumer", "share", "streams"):
        group = f"group.{kind}."
        for what in ("heartbeat.interval.ms", "session.timeout.ms", "assignment.interval.ms"):
            _ordered(config, f"{group}max.{what}", ">=", f"{group}min.{what}")
            _ordered(config, f"{group}{what}", ">=", f"{group}min.{what}")
            _ordered(config, f"{group}{what}", "<=", f"{group}max.{what}")
        _ordered(config, f"{group}heartbeat.interval.ms", "<", f"{group}session.timeout.ms")
    for what in ("num.standby.replicas", "num.warmup.replicas"):
        _ordered(config, f"group.streams.{what}", "<=", f"group.streams.max.{what[4:]}")
    _ordered(
        config, "group.streams.task.offset.interval.ms", ">=", "group.streams.min.task.offset.interval.ms"
    )
    for what in ("delivery.count.limit", "partition.max.record.locks", "record.lock.duration.ms"):
        _ordered(config, f"group.share.max.{what}", ">=", f"group.share.{what}")
        _ordered(config, f"group.share.{what}", ">=", f"group.share.min.{what}")
    _ordered(config, "group.share.max.share.sessions", ">=", "group.share.max.size")
    for name, known in _ASSIGNORS.items():
        for assignor in config.get(name):
            classes = [f"{_ASSIGNOR_PACKAGE}{word.title()}Assignor" for word in known]
            if assignor not in known and assignor not in classes:
                raise ConfigError(f"Invalid value {assignor} for configuration {name}: Class cannot be found")
    tags = config.static.get("group.streams.rack.aware.assignment.tags", "").replace(" ", "").split(",")
    if len(set(tags)) != len(tags):
        raise ConfigError("group.streams.rack.aware.assignment.tags must not contain duplicate tag keys.")
    if "classic" not in config.get("group.coordinator.rebalance.protocols"):
        raise ConfigError("Disabling the 'classic' protocol is not supported.")
    for name in ("offsets.topic.compression.codec", "share.coordinator.state.topic.compression.codec"):
        codec = config.get(name)
        if not 0 <= codec <= 4:
            raise ConfigError(
                f"Invalid value {codec} for configuration {name}: Unknown compression type id: {codec}"
            )


_RELATIONS: Mapping[str, tuple[Callable[[int, int], bool], str]] = {
    ">=": (lambda left, right: left >= right, "greater than or equal to"),
    "<=": (lambda left, right: left <= right, "less than or equal to"),
    "<": (lambda left, right: left < right, "less than"),
}


def _ordered(config: BrokerConfig, left: str, relation: str, right: str) -> None:
    holds, words = _RELATIONS[relation]
    if not holds(config.get(left), config.get(right)):
        raise ConfigError(f"{left} must be {words} {right}")


def check_is_served(config: BrokerConfig) -> None:
    """Raise ``ConfigError`` if the settings ask for what this broker does not do yet.

    Only where going on would be wrong, as with a listener without the protection that was asked for.
    Everything else is said by ``remarks``.
    """
    roles = config.get("process.roles")
    if "controller" in roles and len(config.get("controller.quorum.voters")) > 1:
        raise ConfigError(
            "controller.quorum.voters names several controllers, but one of Ottla's votes alone: "
            "use Apache Kafka's, and let this node be a broker, process.roles=broker"
        )
    if "controller" not in roles and not (
        config.is_set("listeners") or config.is_set("advertised.listeners")
    ):
        raise ConfigError(
            "a broker among others has to say where it is reached: set listeners, or advertised.listeners"
        )
    for setting, directories in (
        ("log.dirs", config.log_directories),
        ("metadata.log.dir", [config.metadata_directory]),
    ):
        for directory in directories:
            if not directory or "\0" in directory:
                raise ConfigError(f"{setting}: {directory!r} can be no directory")
    for setting, addresses in (
        ("listeners", config.listeners),
        ("advertised.listeners", config.advertised_listeners or []),
    ):
        for address in addresses:
            if address.security_protocol != "PLAINTEXT":
                raise ConfigError(
                    f"{setting}: {address} asks for {address.security_protocol}, which is not available yet; "
                    "only PLAINTEXT is"
                )
            if not 0 <= address.port <= 65535:
                raise ConfigError(f"{setting}: {address} has a port outside 0 to 65535")


def remarks(config: BrokerConfig) -> list[str]:
    """What the reader of the log should know about the settings, one line each."""
    lines: list[str] = []
    unknown: list[str] = []
    ignored: dict[str, list[str]] = {}
    for name in sorted(config.static):
        known = find(Scope.BROKER, base_name(name))
        if name.startswith("config.providers."):
            continue  # what a provider is told
        if known is None or known.is_dynamic_only:
            unknown.append(name)
        elif name == "authorizer.class.name":
            if config.get(name):
                lines.append(f"{name} is set, but there is no authorizer yet: every client may do everything")
        elif known.name != name:
            ignored.setdefault(known.reason or "kafka", []).append(name)
        elif known.reason is not None and config.get(name) != known.default:
            ignored.setdefault(known.reason, []).append(name)
    if unknown:
        lines.append(f"unknown settings, ignored: {', '.join(map(_with_likely_name, unknown))}")
    if ignored:
        from broker.config.reasons import REASONS

        said = [f"{', '.join(names)} ({REASONS[reason]})" for reason, names in ignored.items()]
        lines.append(f"settings without effect in this broker: {'; '.join(said)}")
    return lines


def _with_likely_name(name: str) -> str:
    """A misspelt name with what was probably meant."""
    from difflib import get_close_matches

    known = [definition.name for definition in definitions(Scope.BROKER) if not definition.is_dynamic_only]
    close = get_close_matches(name, known, n=1, cutoff=0.85)
    return f"{name} (did you mean {close[0]}?)" if close else name


def base_name(name: str) -> str:
    """The setting's own name, without the ``listener.name.<listener>.`` or the mechanism before it."""
    if not name.startswith("listener.name."):
        return name
    base = name.split(".", 3)[-1]
    mechanism, _, rest = base.partition(".")
    return rest if rest in _PER_MECHANISM and mechanism else base


_PER_MECHANISM = frozenset(
    (
        "connections.max.reauth.ms",
        "sasl.jaas.config",
        "sasl.login.callback.handler.class",
        "sasl.login.class",
        "sasl.server.callback.handler.class",
    )
)
