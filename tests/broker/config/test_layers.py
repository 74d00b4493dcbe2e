"""What DescribeConfigs shows of each setting is what Kafka shows."""

import json
from pathlib import Path
from typing import Any

import pytest

from broker.config.broker_config import BrokerConfig
from broker.config.definitions import OTTLA_DEFAULTS, Scope, definitions
from broker.config.layers import (
    ConfigSource,
    Entry,
    created_topic_entries,
    describe_broker,
    describe_client_metrics,
    describe_cluster_default,
    describe_group,
    describe_topic,
    synonyms_of,
)
from compat.oracle.kafka import SMALL_NODE
from tests.broker.config.one_node import STATIC

GOLDEN = Path(__file__).parents[2] / "golden" / "configs"

RECORDED: list[list[Any]] = json.loads((GOLDEN / "described.json").read_text(encoding="utf-8"))


def recorded_node() -> BrokerConfig:
    """With the settings of the node that was recorded: KIP-966 sets one for the whole cluster."""
    config = BrokerConfig({**STATIC, **SMALL_NODE})
    config.apply_dynamic({"min.insync.replicas": "1"}, {})
    return config


def brief(entry: Entry) -> list[Any]:
    marks = ("read-only " if entry.read_only else "") + ("sensitive" if entry.is_sensitive else "")
    layers = [list(layer) for layer in entry.synonyms]
    return [entry.name, entry.value, entry.type_number, entry.source, marks, layers]


def described(scope: str) -> dict[str, list[Any]]:
    config = recorded_node()
    entries = {
        "broker": lambda: describe_broker(config),
        "topic": lambda: describe_topic(config, {}),
        "group": lambda: describe_group(config, {}),
        "client-metrics": lambda: describe_client_metrics({}),
    }[scope]()
    return {entry.name: brief(entry) for entry in entries}


@pytest.mark.parametrize("scope", ["broker", "topic", "group", "client-metrics"])
def test_the_same_settings_are_shown_in_the_same_way(scope: str) -> None:
    ours = described(scope)
    places = {"controller.quorum.bootstrap.servers", "listeners", "advertised.listeners", "log.dirs"}
    recorded = {row[1]: row[1:] for row in RECORDED if row[0] == scope}
    assert ours.keys() - places == recorded.keys()
    for name, expected in recorded.items():
        if scope == "broker" and name in OTTLA_DEFAULTS:
            # Beneath what was set, another default; the rest is the same.
            assert ours[name][:1] + ours[name][2:3] == expected[:1] + expected[2:3]
            assert ours[name][4] == expected[4]
        else:
            assert ours[name] == expected, name


def test_defaults_that_are_ours_are_shown_as_defaults() -> None:
    entry = described("broker")["log.dir"]
    assert entry == [
        "log.dir",
        "ottla-data",
        7,
        ConfigSource.DEFAULT,
        "read-only ",
        [["log.dir", "ottla-data", 5]],
    ]


def test_a_created_topic_is_answered_with_the_settings_that_kafka_tells() -> None:
    told = [
        [entry.name, entry.value, entry.source, entry.read_only, entry.is_sensitive]
        for entry in created_topic_entries(recorded_node(), {})
    ]
    assert told == json.loads((GOLDEN / "created_topic.json").read_text(encoding="utf-8"))


def test_a_created_topic_is_told_texts_as_they_were_given_and_units_turned() -> None:
    config = BrokerConfig({"log.retention.hours": "2", "log.roll.ms": "50", "log.roll.hours": "1"})
    told = {entry.name: entry for entry in created_topic_entries(config, {"segment.bytes": " 2000000 "})}
    assert told["segment.bytes"].value == " 2000000 "
    assert told["segment.bytes"].source == ConfigSource.DYNAMIC_TOPIC
    assert told["retention.ms"].value == "7200000"
    assert told["retention.ms"].source == ConfigSource.STATIC_BROKER
    assert told["segment.ms"].value == "50"
    assert "internal.segment.bytes" not in told


def test_layers_come_in_the_order_in_which_they_count() -> None:
    config = BrokerConfig({"message.max.bytes": "4"})
    config.apply_dynamic({"message.max.bytes": "3"}, {"message.max.bytes": "2"})
    (entry,) = describe_topic(config, {"max.message.bytes": "1"}, frozenset(["max.message.bytes"]))
    assert [tuple(layer) for layer in entry.synonyms] == [
        ("max.message.bytes", "1", ConfigSource.DYNAMIC_TOPIC),
        ("message.max.bytes", "2", ConfigSource.DYNAMIC_BROKER),
        ("message.max.bytes", "3", ConfigSource.DYNAMIC_DEFAULT_BROKER),
        ("message.max.bytes", "4", ConfigSource.STATIC_BROKER),
        ("message.max.bytes", "1048588", ConfigSource.DEFAULT),
    ]
    assert (entry.value, entry.source) == ("1", ConfigSource.DYNAMIC_TOPIC)


def test_a_secret_is_never_shown_in_any_layer() -> None:
    config = BrokerConfig({"ssl.key.password": "static secret"})
    config.apply_dynamic({"sasl.jaas.config": "no"}, {"sasl.jaas.config": "broker secret", "unknown": "x"})
    shown = describe_broker(config, frozenset(["ssl.key.password", "sasl.jaas.config", "unknown"]))
    assert [(entry.value, entry.is_sensitive) for entry in shown] == [(None, True)] * 3
    assert all(layer.value is None for entry in shown for layer in entry.synonyms)
    assert "secret" not in str(shown)


def test_an_internal_setting_is_shown_once_it_is_set() -> None:
    internal = next(known.name for known in definitions(Scope.BROKER) if known.is_internal)
    assert internal not in {entry.name for entry in describe_broker(BrokerConfig({}))}
    assert "unstable.api.versions.enable" in {
        entry.name for entry in describe_broker(BrokerConfig({"unstable.api.versions.enable": "true"}))
    }


def test_the_cluster_default_shows_what_was_set_and_nothing_beneath() -> None:
    config = BrokerConfig({"log.segment.bytes": "3000000"})
    config.apply_dynamic({"log.segment.bytes": "2000000"}, {"num.io.threads": "9"})
    (entry,) = describe_cluster_default(config)
    assert [tuple(layer) for layer in entry.synonyms] == [("log.segment.bytes", "2000000", 3)]


@pytest.mark.parametrize(
    ("name", "synonyms"),
    [
        ("log.segment.bytes", ("log.segment.bytes",)),
        ("log.retention.hours", ("log.retention.ms", "log.retention.minutes", "log.retention.hours")),
        ("log.flush.interval.ms", ("log.flush.interval.ms", "log.flush.scheduler.interval.ms")),
        ("log.flush.scheduler.interval.ms", ("log.flush.scheduler.interval.ms",)),
        ("listener.name.a.max.connections", ("listener.name.a.max.connections", "max.connections")),
        (
            "listener.name.a.plain.sasl.jaas.config",
            ("listener.name.a.plain.sasl.jaas.config", "sasl.jaas.config"),
        ),
        ("nope", ("nope",)),
    ],
)
def test_the_names_under_which_a_broker_setting_may_stand(name: str, synonyms: tuple[str, ...]) -> None:
    assert tuple(synonyms_of(name)) == synonyms


def test_a_group_s_setting_is_shown_as_it_was_set_whatever_the_bounds_are_now() -> None:
    config = BrokerConfig({**STATIC, "group.consumer.max.session.timeout.ms": "46000"})
    overrides = {"consumer.session.timeout.ms": "50000"}
    assert config.group(overrides)["consumer.session.timeout.ms"] == 46_000
    (entry,) = describe_group(config, overrides, frozenset(overrides))
    assert (entry.value, entry.synonyms[0].value) == ("50000", "50000")


def test_internal_settings_of_groups_are_shown_where_somebody_has_set_them() -> None:
    name = "streams.num.warmup.replicas"
    wanted = frozenset((name,))
    assert describe_group(BrokerConfig(STATIC), {}, wanted) == []
    (own,) = describe_group(BrokerConfig(STATIC), {name: "3"}, wanted)
    assert (own.value, own.source) == ("3", ConfigSource.DYNAMIC_GROUP)
    (inherited,) = describe_group(BrokerConfig({**STATIC, f"group.{name}": "1"}), {}, wanted)
    assert (inherited.value, inherited.source) == ("1", ConfigSource.STATIC_BROKER)
