"""The effective settings, layer upon layer."""

import pytest

from broker.config.broker_config import BrokerConfig
from broker.config.definitions import ConfigError, Scope, definitions


def test_a_setting_has_the_type_that_kafka_gives_it() -> None:
    config = BrokerConfig(
        {"log.segment.bytes": " 2000000 ", "log.dirs": "/a , /b", "log.preallocate": "TRUE"}
    )
    assert config.get("log.segment.bytes") == 2_000_000
    assert config.get("log.dirs") == ("/a", "/b")
    assert config.get("log.preallocate") is True
    assert config.get("log.cleaner.min.cleanable.ratio") == 0.5
    assert config.get("broker.rack") is None


def test_every_setting_can_be_asked_for() -> None:
    config = BrokerConfig({})
    for known in definitions(Scope.BROKER):
        assert config.get(known.name) == known.default


def test_a_wrong_value_is_refused_by_the_name_of_its_setting() -> None:
    with pytest.raises(ConfigError, match=r"Invalid value abc for configuration log\.segment\.bytes"):
        BrokerConfig({"log.segment.bytes": "abc"})


def test_a_name_that_kafka_does_not_have_is_a_mistake_in_the_code() -> None:
    with pytest.raises(KeyError):
        BrokerConfig({"nope": "1"}).get("nope")


def test_the_node_has_one_id_under_two_names() -> None:
    assert BrokerConfig({"broker.id": "7"}).node_id == 7
    assert BrokerConfig({"node.id": "7"}).get("broker.id") == 7
    assert BrokerConfig({}).node_id == 1
    assert not BrokerConfig({}).is_set("node.id")


def test_a_directory_may_say_who_the_node_is() -> None:
    config = BrokerConfig({})
    assert config.node_id == 1
    config.identify(7)
    assert config.node_id == config.get("broker.id") == 7
    assert config.is_set("node.id")
    config.apply_dynamic({}, {})
    assert config.node_id == 7


def test_one_directory_is_as_good_as_a_list() -> None:
    assert BrokerConfig({}).log_directories == ("ottla-data",)
    assert BrokerConfig({"log.dir": "/a"}).log_directories == ("/a",)
    assert BrokerConfig({"log.dir": "/a", "log.dirs": "/b"}).log_directories == ("/b",)


@pytest.mark.parametrize(
    ("settings", "retention_ms"),
    [
        ({}, 604_800_000),
        ({"log.retention.hours": "2"}, 7_200_000),
        ({"log.retention.hours": "2", "log.retention.minutes": "3"}, 180_000),
        ({"log.retention.minutes": "3", "log.retention.ms": "4"}, 4),
        ({"log.retention.hours": "-1"}, -1),
        ({"log.retention.ms": "-5"}, -1),
    ],
)
def test_the_finest_unit_that_is_set_counts(settings: dict[str, str], retention_ms: int) -> None:
    config = BrokerConfig(settings)
    assert config.log_retention_ms == retention_ms
    assert config.topic({}).retention_ms == retention_ms


def test_a_topic_has_the_brokers_settings_under_its_own_names_unless_it_has_others() -> None:
    config = BrokerConfig(
        {"message.max.bytes": "5", "log.roll.hours": "1", "log.flush.scheduler.interval.ms": "9"}
    )
    settings = config.topic({"cleanup.policy": "compact", "segment.bytes": "2000000"})
    assert settings["max.message.bytes"] == settings.max_message_bytes == 5
    assert settings.segment_ms == 3_600_000
    assert settings.flush_ms == 9
    assert settings.segment_bytes == 2_000_000
    assert (settings.compact, settings.delete) == (True, False)


def test_topics_with_the_same_settings_share_them() -> None:
    config = BrokerConfig({})
    assert config.topic({}) is config.topic({})
    assert config.topic({"a": "1", "segment.ms": "5"}) is config.topic({"segment.ms": "5", "a": "1"})
    assert config.topic({"segment.ms": "5"}) is not config.topic({"segment.ms": "6"})


def test_what_another_version_of_kafka_wrote_into_the_log_does_not_stop_a_topic() -> None:
    settings = BrokerConfig({}).topic({"message.format.version": "3.0", "compression.type": "none"})
    assert settings.compression_type == "producer"


def test_dynamic_settings_lie_above_static_ones_and_this_brokers_above_everybodys() -> None:
    config = BrokerConfig({"log.segment.bytes": "3000000", "num.partitions": "4"})
    before = config.topic({})
    assert config.apply_dynamic({"log.segment.bytes": "4000000"}, {}) == []
    assert config.get("log.segment.bytes") == config.topic({}).segment_bytes == 4_000_000
    config.apply_dynamic({"log.segment.bytes": "4000000"}, {"log.segment.bytes": "5000000"})
    assert config.get("log.segment.bytes") == config.topic({}).segment_bytes == 5_000_000
    config.apply_dynamic({}, {})
    assert config.get("log.segment.bytes") == 3_000_000
    assert before.segment_bytes == 3_000_000
    assert config.get("num.partitions") == 4


def test_dynamic_settings_that_cannot_hold_are_left_out_and_complained_about() -> None:
    config = BrokerConfig({})
    complaints = config.apply_dynamic(
        {"log.dirs": "/x", "sasl.jaas.config": "x", "message.max.bytes": "x", "nope": "1"},
        {"node.id": "9", "sasl.jaas.config": "y"},
    )
    assert config.log_directories == ("ottla-data",)
    assert config.get("message.max.bytes") == 1_048_588
    assert config.get("sasl.jaas.config") == "y"
    assert config.node_id == 1
    assert [complaint.split()[3] for complaint in complaints if "changed this way" in complaint] == [
        "log.dirs",
        "sasl.jaas.config",
        "node.id",
    ]
    assert any("Invalid value x for configuration message.max.bytes" in complaint for complaint in complaints)
    assert dict(config.dynamic_default) == {"nope": "1"}


def test_a_group_has_the_brokers_settings_under_its_own_names_unless_it_has_others() -> None:
    config = BrokerConfig({"group.consumer.heartbeat.interval.ms": "6000"})
    settings = config.group({"consumer.session.timeout.ms": "50000"})
    assert settings["consumer.heartbeat.interval.ms"] == 6000
    assert settings["consumer.session.timeout.ms"] == 50_000
    assert settings["streams.assignor.name"] == "sticky"
    assert settings["share.auto.offset.reset"] == "latest"
    assert settings.keys() == {known.name for known in definitions(Scope.GROUP)}


def test_a_groups_setting_ends_where_the_brokers_bounds_are() -> None:
    config = BrokerConfig({"group.consumer.max.session.timeout.ms": "48000"})
    assert config.group({"consumer.session.timeout.ms": "50000"})["consumer.session.timeout.ms"] == 48_000
    assert config.group({"consumer.session.timeout.ms": "1"})["consumer.session.timeout.ms"] == 45_000
