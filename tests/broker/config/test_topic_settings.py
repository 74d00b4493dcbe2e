"""A topic's settings by name and as attributes."""

from broker.config.broker_config import BrokerConfig
from broker.config.definitions import Scope, names
from broker.config.topic_settings import TopicSettings
from storage.config import LogConfig


def test_attributes_are_the_settings_of_their_names() -> None:
    settings = BrokerConfig({}).topic({"segment.ms": "77"})
    for attribute in TopicSettings.__annotations__:
        assert getattr(settings, attribute) == settings[attribute.replace("_", ".")]
    assert settings.segment_ms == 77


def test_it_is_a_mapping_of_all_topic_settings() -> None:
    settings = BrokerConfig({}).topic({})
    assert set(settings) == set(names(Scope.TOPIC))
    assert len(settings) == len(list(names(Scope.TOPIC)))
    assert settings.get("nope") is None


def test_a_topic_may_neither_delete_nor_compact() -> None:
    settings = BrokerConfig({}).topic({"cleanup.policy": ""})
    assert (settings.compact, settings.delete) == (False, False)


def test_a_log_takes_what_it_needs() -> None:
    log = LogConfig.from_settings(BrokerConfig({}).topic({"segment.bytes": "2000000", "flush.messages": "1"}))
    assert (log.segment_bytes, log.flush_messages) == (2_000_000, 1)
