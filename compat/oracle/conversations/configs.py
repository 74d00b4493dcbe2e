"""DescribeConfigs, AlterConfigs, IncrementalAlterConfigs and ListConfigResources.

Every setting and many more kinds of requests, in one version each, stand in ``tests/golden/configs``.
"""

from collections.abc import Sequence

from compat.oracle.conversation import conversation
from compat.oracle.preparing import NOWHERE
from compat.oracle.talk import Talk
from protocol.api_keys import ApiKey
from protocol.messages.alter_configs import AlterableConfig as NewConfig
from protocol.messages.alter_configs import AlterConfigsRequest
from protocol.messages.alter_configs import AlterConfigsResource as NewResource
from protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from protocol.messages.list_config_resources import ListConfigResourcesRequest

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)

Change = tuple[str, int, str | None]


def describe(
    *resources: tuple[int, str, Sequence[str] | None], synonyms: bool = False, documentation: bool = False
) -> DescribeConfigsRequest:
    return DescribeConfigsRequest(
        include_synonyms=synonyms,
        include_documentation=documentation,
        resources=[
            DescribeConfigsResource(
                resource_type=kind,
                resource_name=name,
                configuration_keys=None if keys is None else list(keys),
            )
            for kind, name, keys in resources
        ],
    )


def change(
    *resources: tuple[int, str, Sequence[Change]], validate_only: bool = False
) -> IncrementalAlterConfigsRequest:
    return IncrementalAlterConfigsRequest(
        validate_only=validate_only,
        resources=[
            AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=[
                    AlterableConfig(name=key, config_operation=operation, value=value)
                    for key, operation, value in changes
                ],
            )
            for kind, name, changes in resources
        ],
    )


def replace(
    *resources: tuple[int, str, dict[str, str | None]], validate_only: bool = False
) -> AlterConfigsRequest:
    return AlterConfigsRequest(
        validate_only=validate_only,
        resources=[
            NewResource(
                resource_type=kind,
                resource_name=name,
                configs=[NewConfig(name=key, value=value) for key, value in values.items()],
            )
            for kind, name, values in resources
        ],
    )


@conversation(ApiKey.DESCRIBE_CONFIGS)
def describing(talk: Talk) -> None:
    t = talk.topic("t", retention_ms="100000", cleanup_policy="compact,delete").name
    keys = ("retention.ms", "cleanup.policy", "segment.bytes")
    talk.ask("a topic", describe((TOPIC, t, keys)))
    talk.ask("with synonyms", describe((TOPIC, t, keys), synonyms=True))
    talk.ask("with documentation", describe((TOPIC, t, keys), documentation=True))
    talk.ask("every setting of a topic", describe((TOPIC, t, None)))
    talk.ask("an unknown setting", describe((TOPIC, t, ["no.such.setting"])))
    talk.ask("an unknown topic", describe((TOPIC, NOWHERE.name, None)))
    talk.ask("a bad name of a topic", describe((TOPIC, "a b", None)))
    talk.ask("a broker", describe((BROKER, "1", ["log.segment.bytes", "num.io.threads"]), synonyms=True))
    talk.ask("every broker", describe((BROKER, "", ["log.segment.bytes"])))
    for name in ("2", "x"):
        talk.ask(f"broker {name}", describe((BROKER, name, None)))
        talk.ask(f"the loggers of broker {name}", describe((LOGGER, name, None)))
    talk.ask("a group", describe((GROUP, talk.name("g"), ["consumer.session.timeout.ms"]), synonyms=True))
    talk.ask("client metrics", describe((METRICS, talk.name("m"), None)))
    talk.ask("a group without name", describe((GROUP, "", None)))
    talk.ask("an unknown type", describe((77, "x", None)))
    talk.ask("an unknown type and a known one", describe((77, "x", None), (TOPIC, t, ["retention.ms"])))
    talk.ask("several", describe((TOPIC, NOWHERE.name, None), (TOPIC, t, ["retention.ms"])))
    talk.ask("the same twice", describe((TOPIC, t, ["retention.ms"]), (TOPIC, t, ["segment.bytes"])))
    talk.ask("nothing", describe())


@conversation(ApiKey.DESCRIBE_CONFIGS)
def where_values_come_from(talk: Talk) -> None:
    """Everything that a topic, a group and a subscription may have, with what lies beneath."""
    t = talk.topic("t", retention_ms="100000", cleanup_policy="compact,delete").name
    group, metrics = talk.name("g"), talk.name("m")
    talk.quietly(
        change(
            (GROUP, group, [("consumer.session.timeout.ms", SET, "50000"), ("nope", DELETE, None)]),
            (METRICS, metrics, [("interval.ms", SET, "5000"), ("match", SET, "client_id=a.*,client_id=b")]),
        )
    )
    talk.settle()
    for label, kind, name in (
        ("a topic", TOPIC, t),
        ("a group", GROUP, group),
        ("metrics", METRICS, metrics),
    ):
        talk.ask(label, describe((kind, name, None), synonyms=True))
        talk.ask(f"the documentation of {label}", describe((kind, name, None), documentation=True))
    keys = ("log.retention.ms", "log.roll.jitter.ms", "log.flush.interval.ms", "ssl.key.password", "nope")
    talk.ask("a broker", describe((BROKER, "1", keys), synonyms=True, documentation=True))
    talk.ask("an unknown logger", describe((LOGGER, "1", ["nope"]), synonyms=True, documentation=True))


@conversation(ApiKey.INCREMENTAL_ALTER_CONFIGS)
def changing_levels(talk: Talk) -> None:
    """Of loggers: nothing comes of these requests."""

    def one(label: str, *changes: Change, node: str = "1", validate_only: bool = True) -> None:
        talk.ask(label, change((LOGGER, node, changes), validate_only=validate_only))

    for level in ("TRACE", "FATAL", "OFF", "info", ""):
        one(f"root to {level}", ("root", SET, level))
    one("root to null", ("root", SET, None))
    one("root loses its level", ("root", DELETE, None), validate_only=False)
    one("an unknown logger", ("no.such.logger", SET, "INFO"))
    one("a good and an unknown one", ("root", SET, "INFO"), ("no.such.logger", SET, "INFO"))
    for operation, word in ((APPEND, "append"), (SUBTRACT, "subtract"), (9, "nothing known")):
        one(f"root, {word}", ("root", operation, "INFO"))
    one("root twice", ("root", SET, "INFO"), ("root", SET, "INFO"))
    one("nothing")
    for node in ("2", "x", ""):
        one(f"node {node}", ("root", SET, "INFO"), node=node)


@conversation(ApiKey.INCREMENTAL_ALTER_CONFIGS)
def changing_brokers(talk: Talk) -> None:
    """Nothing comes of these requests either: what holds for all is no single conversation's."""

    def one(label: str, *changes: Change, broker: str = "1") -> None:
        talk.ask(label, change((BROKER, broker, changes), validate_only=True))

    for broker in ("1", ""):
        of = "every broker" if not broker else "a broker"
        one(f"{of}: set", ("log.segment.bytes", SET, "3000000"), broker=broker)
        one(f"{of}: a bad value", ("log.segment.bytes", SET, "x"), broker=broker)
        one(f"{of}: too small", ("log.segment.bytes", SET, "1"), broker=broker)
        one(f"{of}: delete", ("log.segment.bytes", DELETE, None), broker=broker)
        one(f"{of}: append", ("log.cleanup.policy", APPEND, "compact"), broker=broker)
        one(f"{of}: subtract", ("log.cleanup.policy", SUBTRACT, "delete"), broker=broker)
        one(f"{of}: append what is no list", ("log.segment.bytes", APPEND, "1"), broker=broker)
        one(f"{of}: unknown", ("no.such.setting", SET, "1"), broker=broker)
        one(f"{of}: append to an unknown one", ("no.such.setting", APPEND, "1"), broker=broker)
        one(f"{of}: fixed", ("num.partitions", SET, "2"), broker=broker)
        one(f"{of}: a replica count of its own", ("min.insync.replicas", SET, "2"), broker=broker)
        one(f"{of}: no replica count", ("min.insync.replicas", DELETE, None), broker=broker)
        one(f"{of}: too many threads", ("background.threads", SET, "100"), broker=broker)
        one(f"{of}: for a listener", ("listener.name.x.max.connections", SET, "1"), broker=broker)
        one(f"{of}: a secret of all listeners", ("ssl.keystore.password", SET, "x"), broker=broker)
        one(f"{of}: one of a listener", ("listener.name.x.ssl.keystore.password", SET, "x"), broker=broker)
        one(f"{of}: a class", ("principal.builder.class", SET, "com.example.Builder"), broker=broker)
        one(f"{of}: reporters", ("metric.reporters", SET, "com.example.Reporter"), broker=broker)


@conversation(ApiKey.INCREMENTAL_ALTER_CONFIGS)
def changing(talk: Talk) -> None:
    t = talk.topic("t").name

    def one(label: str, *changes: Change) -> None:
        talk.ask(label, change((TOPIC, t, changes)))

    one("set", ("retention.ms", SET, "1000"), ("cleanup.policy", SET, "compact"))
    one("append", ("cleanup.policy", APPEND, "delete"))
    one("subtract", ("cleanup.policy", SUBTRACT, "compact"))
    one("delete", ("retention.ms", DELETE, None))
    one("nothing")
    one("a bad value", ("retention.ms", SET, "x"))
    one("null", ("retention.ms", SET, None))
    one("an unknown setting", ("no.such.setting", SET, "1"))
    one("append to what is no list", ("retention.ms", APPEND, "1"))
    one("an unknown operation", ("retention.ms", 9, "1"))
    one("the same setting twice", ("retention.ms", SET, "1"), ("retention.ms", SET, "2"))
    retention: list[Change] = [("retention.ms", SET, "5000")]
    talk.ask("only validated", change((TOPIC, t, retention), validate_only=True))
    talk.ask("an unknown topic", change((TOPIC, NOWHERE.name, retention)))
    talk.ask("a bad name of a topic", change((TOPIC, "a b", retention)))
    talk.ask("an unknown type", change((77, "x", retention)))
    talk.ask("another broker", change((BROKER, "2", [("log.segment.bytes", SET, "3000000")])))
    talk.ask("a setting that brokers keep", change((BROKER, "1", [("log.dirs", SET, "x")])))
    talk.ask("the same resource twice", change((TOPIC, t, retention), (TOPIC, t, retention)))
    talk.ask("good and bad", change((TOPIC, t, retention), (TOPIC, NOWHERE.name, retention)))
    group = GROUP, talk.name("g")
    talk.ask("a group", change((*group, [("consumer.session.timeout.ms", SET, "50000")])))
    talk.ask("a bad value of a group", change((*group, [("consumer.session.timeout.ms", SET, "1")])))
    talk.ask("client metrics", change((METRICS, talk.name("m"), [("interval.ms", SET, "5000")])))
    talk.ask("a logger", change((LOGGER, "1", [("no.such.logger", DELETE, None)])))
    talk.settle()
    talk.ask("what is set", describe((TOPIC, t, ["retention.ms", "cleanup.policy"])))


@conversation(ApiKey.ALTER_CONFIGS)
def replacing(talk: Talk) -> None:
    t = talk.topic("t", cleanup_policy="compact").name
    retention: dict[str, str | None] = {"retention.ms": "1000"}
    talk.ask("all of a topic", replace((TOPIC, t, retention)))
    talk.settle()
    talk.ask("what is set", describe((TOPIC, t, ["retention.ms", "cleanup.policy"])))
    talk.ask("nothing", replace())
    talk.ask("only validated", replace((TOPIC, t, {}), validate_only=True))
    talk.ask("a bad value", replace((TOPIC, t, {"retention.ms": "x"})))
    talk.ask("null", replace((TOPIC, t, {"retention.ms": None})))
    talk.ask("an unknown setting", replace((TOPIC, t, {"no.such.setting": "1"})))
    talk.ask("an unknown topic", replace((TOPIC, NOWHERE.name, retention)))
    talk.ask("a bad name of a topic", replace((TOPIC, "a b", retention)))
    talk.ask("an unknown type", replace((77, "x", retention)))
    talk.ask("another broker", replace((BROKER, "2", {"log.segment.bytes": "3000000"})))
    talk.ask("loggers", replace((LOGGER, "1", {"root": "INFO"})))
    talk.ask("good and bad", replace((TOPIC, t, {}), (TOPIC, NOWHERE.name, {})))
    talk.settle()
    talk.ask("what is set in the end", describe((TOPIC, t, ["retention.ms", "cleanup.policy"])))


@conversation(ApiKey.ALTER_CONFIGS)
def the_same_resource_twice(talk: Talk) -> None:
    t = talk.topic("t").name
    request = replace((TOPIC, t, {"retention.ms": "1"}), (TOPIC, t, {"retention.ms": "2"}))
    talk.ask("twice", request, patience_seconds=2)


@conversation(ApiKey.LIST_CONFIG_RESOURCES)
def listing(talk: Talk) -> None:
    talk.topic("t")
    group: list[Change] = [("consumer.session.timeout.ms", SET, "50000")]
    talk.quietly(change((GROUP, talk.name("g"), group), (METRICS, talk.name("m"), [("match", SET, "")])))
    talk.settle()
    talk.ask("everything", ListConfigResourcesRequest())
    for kind in (TOPIC, BROKER, LOGGER, METRICS, GROUP, 77):
        talk.ask(f"resources of type {kind}", ListConfigResourcesRequest(resource_types=[kind]))
    talk.ask("of two types", ListConfigResourcesRequest(resource_types=[METRICS, GROUP, METRICS]))
    talk.ask("of a good and a bad type", ListConfigResourcesRequest(resource_types=[METRICS, 77]))
