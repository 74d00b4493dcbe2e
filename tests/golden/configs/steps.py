"""A conversation about settings: the requests, in order, whose answers ``record.py`` keeps.

Each step builds on what the ones before it have changed.
"""

from collections.abc import Sequence

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
from protocol.schema import Message

SET, DELETE, APPEND, SUBTRACT = range(4)
TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32

Change = tuple[str, int, str | None]
Resource = tuple[int, str, Sequence[Change]]


def change(*resources: Resource, validate_only: bool = False) -> IncrementalAlterConfigsRequest:
    return IncrementalAlterConfigsRequest(
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
        validate_only=validate_only,
    )


def replace(
    *resources: tuple[int, str, Sequence[tuple[str, str | None]]], validate_only: bool = False
) -> AlterConfigsRequest:
    return AlterConfigsRequest(
        resources=[
            NewResource(
                resource_type=kind,
                resource_name=name,
                configs=[NewConfig(name=key, value=value) for key, value in values],
            )
            for kind, name, values in resources
        ],
        validate_only=validate_only,
    )


def describe(
    *resources: tuple[int, str, Sequence[str] | None], synonyms: bool = True
) -> DescribeConfigsRequest:
    return DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(
                resource_type=kind,
                resource_name=name,
                configuration_keys=None if keys is None else list(keys),
            )
            for kind, name, keys in resources
        ],
        include_synonyms=synonyms,
    )


def list_resources(*kinds: int) -> ListConfigResourcesRequest:
    return ListConfigResourcesRequest(resource_types=list(kinds))


def topic(*changes: Change) -> IncrementalAlterConfigsRequest:
    return change((TOPIC, "t1", changes))


def cluster(*changes: Change) -> IncrementalAlterConfigsRequest:
    return change((BROKER, "", changes))


def broker(*changes: Change) -> IncrementalAlterConfigsRequest:
    return change((BROKER, "1", changes))


def logger(*changes: Change) -> IncrementalAlterConfigsRequest:
    return change((LOGGER, "1", changes))


def group(*changes: Change) -> IncrementalAlterConfigsRequest:
    return change((GROUP, "g", changes))


def metrics(*changes: Change) -> IncrementalAlterConfigsRequest:
    return change((METRICS, "m", changes))


def sets(make: object, *pairs: tuple[str, str | None]) -> list[Message]:
    """One request for each pair, setting that one."""
    assert callable(make)
    return [make((name, SET, value)) for name, value in pairs]


STEPS: list[Message] = [
    # Resources that are described, or are not there.
    describe((BROKER, "2", None)),
    describe((BROKER, "abc", None)),
    describe((BROKER, "-1", None)),
    describe((BROKER, " 1", None)),
    describe((BROKER, "01", ["log.segment.bytes"])),
    describe((BROKER, "+1", ["log.segment.bytes"])),
    describe((TOPIC, "", None)),
    describe((TOPIC, "bad name", None)),
    describe((TOPIC, "nope", None), (TOPIC, "t1", ["segment.ms"])),
    describe((TOPIC, "t1", ["nope"])),
    describe((TOPIC, "t1", ["retention.ms", "retention.ms", "nope", "segment.ms"])),
    describe((TOPIC, "t1", ["retention.ms"]), synonyms=False),
    describe((TOPIC, "t1", ["retention.ms"]), (TOPIC, "t1", ["segment.ms"])),
    describe((TOPIC, "t1", ["internal.segment.bytes"])),
    describe((GROUP, "", None)),
    describe((GROUP, "g", ["consumer.assignor.offload.enable", "streams.assignor.name"])),
    describe((METRICS, "", None)),
    describe((METRICS, "m", ["nope"])),
    describe((METRICS, "m", None)),
    describe((LOGGER, "", None)),
    describe((LOGGER, "2", None)),
    describe((LOGGER, "abc", None)),
    describe((LOGGER, "1", ["nope"])),
    *[describe((kind, "x", None)) for kind in (0, 1, 3, 5, 64, 99, -1)],
    describe((BROKER, "", None)),
    describe((BROKER, "", ["log.retention.ms", "min.insync.replicas"])),
    describe(),
    list_resources(),
    list_resources(TOPIC),
    list_resources(BROKER),
    list_resources(LOGGER),
    list_resources(METRICS),
    list_resources(GROUP),
    list_resources(3),
    list_resources(BROKER, 3),
    list_resources(TOPIC, TOPIC),
    # A topic, one setting at a time.
    *sets(
        topic,
        ("retention.ms", "1000"),
        ("retention.ms", "abc"),
        ("retention.ms", "-5"),
        ("retention.ms", None),
        ("retention.ms", ""),
        ("retention.ms", " 77 "),
        ("nope", "1"),
        ("", "x"),
        ("message.format.version", "3.0"),
        ("segment.bytes", "14"),
        ("compression.type", "none"),
        ("local.retention.ms", "100000000000"),
        ("remote.storage.enable", "true"),
        ("remote.log.copy.disable", "true"),
        ("segment.jitter.ms", "100000000000"),
        ("internal.segment.bytes", "1000000"),
        ("min.compaction.lag.ms", "10"),
        ("leader.replication.throttled.replicas", "x"),
        ("leader.replication.throttled.replicas", "0:1"),
    ),
    describe((TOPIC, "t1", None)),
    topic(("nope", DELETE, None)),
    topic(("retention.ms", 7, "1")),
    topic(("retention.ms", SET, "1"), ("retention.ms", DELETE, None)),
    topic(("retention.ms", APPEND, "1")),
    topic(("retention.ms", SUBTRACT, "1")),
    topic(("nope", APPEND, "x")),
    topic(("max.compaction.lag.ms", SET, "5")),
    topic(("min.compaction.lag.ms", SET, "100"), ("max.compaction.lag.ms", SET, "50")),
    topic(("cleanup.policy", APPEND, "compact")),
    describe((TOPIC, "t1", ["cleanup.policy"])),
    topic(("cleanup.policy", APPEND, "compact,delete")),
    topic(("cleanup.policy", SUBTRACT, "delete")),
    topic(("cleanup.policy", APPEND, "foo")),
    topic(("cleanup.policy", SUBTRACT, "compact")),
    describe((TOPIC, "t1", ["cleanup.policy"])),
    topic(("cleanup.policy", SUBTRACT, "compact,delete")),
    topic(("cleanup.policy", APPEND, None)),
    topic(("cleanup.policy", SUBTRACT, None)),
    topic(("cleanup.policy", SET, "compact,compact")),
    describe((TOPIC, "t1", ["cleanup.policy"])),
    topic(("cleanup.policy", DELETE, "xyz")),
    topic(("leader.replication.throttled.replicas", APPEND, "1:1")),
    topic(("leader.replication.throttled.replicas", SUBTRACT, "1:1,7:7")),
    describe((TOPIC, "t1", ["leader.replication.throttled.replicas", "cleanup.policy"])),
    topic(("internal.segment.bytes", DELETE, None), ("min.compaction.lag.ms", DELETE, None)),
    topic(),
    change((TOPIC, "nope", [])),
    change((TOPIC, "nope", [("retention.ms", SET, "5")])),
    change((TOPIC, "nope", [("retention.ms", SET, "x")])),
    change((TOPIC, "", [("retention.ms", SET, "5")])),
    change((TOPIC, "bad name", [("retention.ms", SET, "5")])),
    change((TOPIC, "t1", [("retention.ms", SET, "99")]), validate_only=True),
    change((TOPIC, "t1", [("retention.ms", SET, "x")]), validate_only=True),
    describe((TOPIC, "t1", ["retention.ms"])),
    *[change((kind, "x", [("a", SET, "b")])) for kind in (0, 1, 3, 99, -1)],
    change((TOPIC, "t1", [("retention.ms", SET, "5")]), (TOPIC, "t1", [("retention.bytes", SET, "5")])),
    change(
        (TOPIC, "t1", [("retention.ms", SET, "abc"), ("nope", SET, "1")]),
        (TOPIC, "nope", [("retention.ms", SET, "5")]),
        (BROKER, "", [("log.retention.ms", SET, "5000")]),
    ),
    describe((TOPIC, "t1", ["retention.ms"]), (BROKER, "", None), (BROKER, "1", ["log.retention.ms"])),
    cluster(("log.retention.ms", DELETE, None)),
    # All brokers, and this one.
    cluster(("max.connections", SET, "1000")),
    cluster(("log.retention.hours", SET, "3")),
    *sets(
        broker,
        ("log.retention.hours", "3"),
        ("log.dirs", "/x"),
        ("advertised.listeners", "PLAINTEXT://x:1"),
        ("log.segment.bytes", "abc"),
        ("log.segment.bytes", None),
        ("compression.type", "none"),
        ("log.message.timestamp.type", "x"),
        ("ssl.keystore.location", "/x"),
        ("log.cleaner.dedupe.buffer.size", "1000"),
        ("max.connections.per.ip", "0"),
        ("max.connections.per.ip.overrides", "not an ip:10"),
        ("max.connections.per.ip.overrides", "127.0.0.1:10"),
        ("principal.builder.class", "foo"),
        ("cordoned.log.dirs", "/nope"),
        ("cordoned.log.dirs", "*,x"),
        ("num.io.threads", "100"),
        ("num.io.threads", "3"),
        ("num.io.threads", "16"),
        ("log.cleaner.threads", "7"),
        ("log.local.retention.ms", "99999999999"),
        ("leader.replication.throttled.rate", "-5"),
        ("leader.replication.throttled.rate", "5"),
        ("listener.name.plaintext.num.network.threads", "77"),
        ("listener.name.plaintext.log.segment.bytes", "x"),
        ("listener.name.plaintext.max.connections", "100"),
        ("listener.name.plaintext.ssl.keystore.type", "PEM"),
        ("listener.name.foo.nope", "1"),
        ("sasl.jaas.config", "secret"),
        ("listener.name.plaintext.plain.sasl.jaas.config", "secret"),
        ("config.providers", "foo"),
        ("unknown.to.kafka", "3"),
        ("unclean.leader.election.enable", "maybe"),
        ("message.max.bytes", "-1"),
        ("group.consumer.assignment.interval.ms", "7"),
        ("group.consumer.assignment.interval.ms", "16000"),
    ),
    broker(
        ("log.segment.bytes", SET, "2000000"),
        ("also.unknown", SET, "1"),
        ("log.dirs", SET, "/x"),
        ("broker.id", SET, "3"),
    ),
    broker(("log.segment.bytes", APPEND, "5")),
    broker(("also.unknown", APPEND, "5")),
    broker(("log.cleanup.policy", APPEND, None)),
    broker(("log.segment.bytes", 5, "5")),
    broker(("log.segment.bytes", SET, "4000000"), ("log.segment.bytes", SET, "3000000")),
    broker(("log.dirs", DELETE, None)),
    broker(),
    describe(
        (
            BROKER,
            "1",
            [
                "leader.replication.throttled.rate",
                "listener.name.plaintext.max.connections",
                "listener.name.plaintext.ssl.keystore.type",
                "listener.name.foo.nope",
                "listener.name.plaintext.plain.sasl.jaas.config",
                "max.connections",
                "num.io.threads",
                "sasl.jaas.config",
                "unknown.to.kafka",
                "group.consumer.assignment.interval.ms",
            ],
        )
    ),
    describe((GROUP, "g", ["consumer.assignment.interval.ms"])),
    *sets(
        cluster,
        ("listener.security.protocol.map", "A:PLAINTEXT"),
        ("cordoned.log.dirs", "*"),
        ("ssl.keystore.location", "/x"),
        ("log.segment.bytes", " 2000000 "),
        ("listener.name.plaintext.max.connections", "200"),
        ("log.retention.ms", "-1"),
        ("log.retention.bytes", "-77"),
        ("log.roll.ms", "5"),
        ("log.roll.ms", "0"),
    ),
    describe((BROKER, "", None)),
    describe(
        (
            BROKER,
            "1",
            [
                "log.segment.bytes",
                "log.roll.ms",
                "log.roll.hours",
                "log.retention.ms",
                "log.retention.minutes",
                "log.retention.hours",
                "max.connections",
                "listener.name.plaintext.max.connections",
            ],
        ),
        (TOPIC, "t1", ["segment.bytes", "segment.ms", "retention.ms", "retention.bytes"]),
    ),
    broker(("log.segment.bytes", SET, "3000000")),
    topic(("segment.bytes", SET, "4000000")),
    describe((TOPIC, "t1", ["segment.bytes"]), (BROKER, "1", ["log.segment.bytes"])),
    change(
        (BROKER, "1", [("log.segment.bytes", DELETE, None)]),
        (BROKER, "", [("log.segment.bytes", DELETE, None), ("log.roll.ms", DELETE, None)]),
        (TOPIC, "t1", [("segment.bytes", DELETE, None)]),
    ),
    describe((TOPIC, "t1", ["segment.bytes"]), (BROKER, "1", ["log.segment.bytes"])),
    cluster(("log.cleanup.policy", APPEND, "compact")),
    cluster(("log.cleanup.policy", SUBTRACT, "delete")),
    describe((BROKER, "", ["log.cleanup.policy"]), (TOPIC, "t1", ["cleanup.policy"])),
    topic(("cleanup.policy", APPEND, "delete")),
    describe((TOPIC, "t1", ["cleanup.policy"])),
    topic(("cleanup.policy", DELETE, None)),
    cluster(("log.cleanup.policy", DELETE, "delete")),
    cluster(("min.insync.replicas", SET, "2")),
    cluster(("min.insync.replicas", DELETE, None)),
    broker(("min.insync.replicas", SET, "2")),
    broker(("min.insync.replicas", DELETE, None)),
    describe((BROKER, "", ["min.insync.replicas"]), (TOPIC, "t1", ["min.insync.replicas"])),
    change((BROKER, "2", [("log.segment.bytes", SET, "3000000")])),
    change((BROKER, "abc", [("log.segment.bytes", SET, "3000000")])),
    change((BROKER, "01", [("log.segment.bytes", SET, "3000000")])),
    describe((BROKER, "1", ["log.segment.bytes"])),
    change((BROKER, "1", [("log.segment.bytes", SET, "3000000")]), validate_only=True),
    # Loggers.
    logger(("root", SET, "DEBUG")),
    describe((LOGGER, "1", ["root"])),
    logger(("root", SET, "foo")),
    logger(("root", SET, "info")),
    logger(("root", SET, None)),
    logger(("root", DELETE, None)),
    logger(("root", APPEND, "INFO")),
    logger(("root", 7, "INFO")),
    logger(("nope", SET, "INFO")),
    logger(("nope", DELETE, None)),
    logger(("root", SET, "INFO"), ("root", SET, "WARN")),
    change((LOGGER, "1", [("root", SET, "ERROR")]), validate_only=True),
    logger(("root", SET, "INFO")),
    change((LOGGER, "", [("root", SET, "INFO")])),
    change((LOGGER, "2", [("root", SET, "INFO")])),
    change((LOGGER, "x", [("root", SET, "INFO")])),
    # Groups.
    *sets(
        group,
        ("consumer.session.timeout.ms", "50000"),
        ("consumer.session.timeout.ms", "5"),
        ("consumer.session.timeout.ms", "70000"),
        ("consumer.session.timeout.ms", None),
        ("consumer.heartbeat.interval.ms", "6000"),
        ("consumer.heartbeat.interval.ms", "abc"),
        ("consumer.assignment.interval.ms", "20000"),
        ("consumer.assignor.offload.enable", "false"),
        ("nope", "1"),
        ("share.auto.offset.reset", "foo"),
        ("share.auto.offset.reset", "by_duration:PT1H"),
        ("share.isolation.level", "X"),
        ("share.record.lock.duration.ms", "1000"),
        ("share.delivery.count.limit", "20"),
        ("share.delivery.count.limit", "1"),
        ("share.partition.max.record.locks", "20000"),
        ("streams.num.standby.replicas", "3"),
        ("streams.num.warmup.replicas", "100"),
        ("streams.task.offset.interval.ms", "1"),
        ("streams.rack.aware.assignment.tags", "b,b"),
        ("streams.rack.aware.assignment.tags", "b,c"),
        ("streams.assignor.name", "foo"),
        ("errors.deadletterqueue.topic.name", "__x"),
        ("errors.deadletterqueue.topic.name", "dlq.x"),
    ),
    group(("streams.rack.aware.assignment.tags", APPEND, "a")),
    group(("nope", DELETE, "1")),
    group(("consumer.session.timeout.ms", 7, "50000")),
    change((GROUP, "", [("consumer.session.timeout.ms", SET, "50000")])),
    change((GROUP, "a b/ü", [("consumer.session.timeout.ms", SET, "50000")])),
    describe((GROUP, "g", None)),
    # Client metrics.
    *sets(
        metrics,
        ("interval.ms", "5"),
        ("interval.ms", "5000"),
        ("interval.ms", "3600001"),
        ("interval.ms", "x"),
        ("match", "client_id=foo"),
        ("match", " client_id = a "),
        ("match", "foo=bar"),
        ("match", "client_id"),
        ("match", "client_id=(("),
        ("match", "client_id=a=b"),
        ("match", "client_id="),
        ("match", "=a"),
        ("match", "client_id=a,client_id=b"),
        ("metrics", "a.b"),
        ("metrics", "*"),
        ("metrics", ""),
        ("nope", "1"),
    ),
    metrics(("metrics", APPEND, "c.d")),
    change((METRICS, "", [("interval.ms", SET, "5000")])),
    describe((METRICS, "m", None)),
    list_resources(),
    list_resources(GROUP, METRICS, BROKER),
    # All settings of a resource at once.
    replace((TOPIC, "t1", [("retention.ms", "5"), ("segment.bytes", "2000000")])),
    describe((TOPIC, "t1", ["retention.ms", "segment.bytes", "local.retention.ms"])),
    replace((TOPIC, "t1", [("retention.ms", "6")])),
    replace((TOPIC, "t1", [("retention.ms", "7")]), validate_only=True),
    describe((TOPIC, "t1", ["retention.ms", "segment.bytes"])),
    replace((TOPIC, "t1", [("retention.ms", "abc")])),
    replace((TOPIC, "t1", [("retention.ms", None)])),
    replace((TOPIC, "t1", [("nope", "1")])),
    replace((TOPIC, "nope", [("retention.ms", "5")])),
    replace((TOPIC, "t1", [("retention.ms", "5"), ("retention.ms", "6")])),
    replace((TOPIC, "", [("retention.ms", "5")])),
    replace((TOPIC, "t1", [])),
    describe((TOPIC, "t1", ["retention.ms"])),
    replace((BROKER, "1", [])),
    replace((BROKER, "", [("log.retention.ms", "5000")])),
    replace((BROKER, "", [])),
    replace((BROKER, "", [("log.retention.ms", "5000"), ("min.insync.replicas", "1")])),
    describe((BROKER, "", None)),
    replace((BROKER, "1", [("log.segment.bytes", "2000000")])),
    replace((BROKER, "1", [])),
    replace((BROKER, "1", [("log.dirs", "x")])),
    replace((BROKER, "1", [("log.segment.bytes", "x")])),
    replace((BROKER, "1", [("log.segment.bytes", None)])),
    replace((BROKER, "2", [("log.segment.bytes", "2000000")])),
    replace((BROKER, "x", [("log.segment.bytes", "2000000")])),
    replace((LOGGER, "1", [("root", "INFO")])),
    replace((GROUP, "g", [("consumer.session.timeout.ms", "50000")])),
    replace((METRICS, "m", [("interval.ms", "500")])),
    replace((0, "1", [("root", "INFO")])),
    replace((99, "1", [("root", "INFO")])),
    replace((TOPIC, "t1", [("retention.ms", "7")]), (TOPIC, "nope", [("a", "7")]), (GROUP, "", [])),
    describe((GROUP, "g", ["consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"])),
    describe((METRICS, "m", None)),
    replace((METRICS, "m", [])),
    replace((GROUP, "g", [])),
    list_resources(),
]
