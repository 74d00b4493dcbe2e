"""Settings that contradict each other, settings that are not served, and what is said at start."""

import json
from pathlib import Path
from typing import Any

import pytest

from broker.config.broker_config import BrokerConfig
from broker.config.checks import base_name, check, check_is_served, remarks
from broker.config.definitions import ConfigError
from broker.config.reasons import REASONS
from tests.broker.config.one_node import STATIC

GOLDEN = Path(__file__).parents[2] / "golden" / "configs" / "broker_checks.json"
CASES: list[dict[str, Any]] = json.loads(GOLDEN.read_text(encoding="utf-8"))

BASE = {**STATIC, "listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093"}
del BASE["log.dirs"]

OURS: dict[tuple[tuple[str, str | None], ...], str | None] = {
    # What every Kafka node must be told has a default here.
    (("node.id", None),): None,
    (("process.roles", None),): None,
    (("controller.listener.names", None),): None,
    (("controller.quorum.bootstrap.servers", None),): None,
    (
        ("process.roles", "broker"),
        ("listeners", "PLAINTEXT://:9092"),
        ("controller.listener.names", None),
    ): None,
    # Another default directory.
    (
        ("cordoned.log.dirs", "/tmp/kafka-logs"),
    ): "requirement failed: All entries in cordoned.log.dirs must be "
    "present in log.dirs or log.dir. Missing entries : /tmp/kafka-logs",
    # Clients are told the address by which they came.
    (("listeners", "PLAINTEXT://0.0.0.0:9092,CONTROLLER://:9093"),): None,
    # Kafka's words are those of an exception, and do not name the setting or its form.
    (("listener.security.protocol.map", "PLAINTEXT"),): "Error parsing configuration property "
    "'listener.security.protocol.map': 'PLAINTEXT' is not of the form name:value",
    (("max.connections.per.ip.overrides", "a"),): "Error parsing configuration property "
    "'max.connections.per.ip.overrides': 'a' is not of the form name:value",
    (("max.connections.per.ip.overrides", "127.0.0.1:x"),): "Error parsing configuration property "
    "'max.connections.per.ip.overrides': 'x' for 127.0.0.1 is not a number",
    (("offsets.topic.compression.codec", "9"),): "Invalid value 9 for configuration "
    "offsets.topic.compression.codec: Unknown compression type id: 9",
    (("log.cleaner.threads", "0"),): "requirement failed: log.cleaner.threads must be at least 1",
}
"""Where the outcome is meant to differ from Kafka's."""


def outcome(settings: dict[str, str]) -> str | None:
    try:
        check(BrokerConfig(settings))
    except ConfigError as error:
        return error.wire_message
    return None


def test_what_kafka_refuses_is_refused_in_its_words() -> None:
    for case in CASES:
        changed = case["settings"]
        settings = {name: text for name, text in {**BASE, **changed}.items() if text is not None}
        assert outcome(settings) == OURS.get(tuple(changed.items()), case["refused"]), changed


def test_no_settings_at_all_are_enough() -> None:
    config = BrokerConfig({})
    check(config)
    check_is_served(config)
    assert remarks(config) == []


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"process.roles": "broker"}, "a broker among others has to say where it is reached"),
        ({"controller.quorum.voters": "1@a:1,2@b:2"}, "controller.quorum.voters"),
        ({"listeners": "PLAINTEXT://:70000"}, "listeners: PLAINTEXT://:70000"),
        ({"log.dirs": "/a,/b\0c"}, "log.dirs: "),
        ({"metadata.log.dir": ""}, "metadata.log.dir: "),
        (
            {"listeners": "SSL://:9092", "inter.broker.listener.name": "SSL"},
            "listeners: SSL://:9092 asks for SSL",
        ),
        (
            {
                "listeners": "A://:9092",
                "listener.security.protocol.map": "A:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
            },
            "A://:9092 asks for SASL_PLAINTEXT",
        ),
    ],
)
def test_what_is_not_served_yet_is_refused_by_name(settings: dict[str, str], named: str) -> None:
    with pytest.raises(ConfigError) as refused:
        check_is_served(BrokerConfig(settings))
    assert named in refused.value.message
    assert "\n" not in refused.value.message


def test_settings_that_do_nothing_are_named_once() -> None:
    lines = remarks(
        BrokerConfig(
            {
                "num.io.threads": "16",
                "ssl.keystore.location": "/x",
                "listener.name.plaintext.ssl.keystore.type": "PEM",
                "replica.fetch.min.bytes": "1",
                "log.segment.bytes": "2000000",
                "message.format.version": "3.0",
                "zookeeper.connect": "x",
                "leader.replication.throttled.rate": "5",
            }
        )
    )
    unknown = "leader.replication.throttled.rate, message.format.version, zookeeper.connect"
    protected = "listener.name.plaintext.ssl.keystore.type, ssl.keystore.location"
    threads = f"num.io.threads ({REASONS['threads']})"
    assert lines == [
        f"unknown settings, ignored: {unknown}",
        f"settings without effect in this broker: {protected} ({REASONS['security']}); {threads}",
    ]


def test_nothing_is_said_of_what_kafka_s_own_properties_say() -> None:
    assert remarks(BrokerConfig({"controller.quorum.bootstrap.servers": "localhost:9093"})) == []


def test_a_misspelt_name_comes_with_what_was_probably_meant() -> None:
    assert remarks(BrokerConfig({"num.partitons": "3", "my.own": "x"})) == [
        "unknown settings, ignored: my.own, num.partitons (did you mean num.partitions?)"
    ]


def test_an_authorizer_that_nobody_asks_is_pointed_out() -> None:
    (line,) = remarks(
        BrokerConfig({"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"})
    )
    assert "every client may do everything" in line


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("log.dirs", "log.dirs"),
        ("listener.name.a.ssl.keystore.location", "ssl.keystore.location"),
        ("listener.name.a.plain.sasl.jaas.config", "sasl.jaas.config"),
        ("listener.name.a.plain.nope", "plain.nope"),
        ("listener.name.a", "a"),
    ],
)
def test_the_listener_in_front_of_a_name_is_taken_off(name: str, base: str) -> None:
    assert base_name(name) == base
