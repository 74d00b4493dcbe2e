"""Rules about settings of topics, groups and metrics that the recorded transcript does not try."""

import pytest

from broker.config.broker_config import BrokerConfig
from broker.config.resources import check_client_metrics, check_group, check_topic
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError


def test_a_topics_setting_must_fit_the_brokers() -> None:
    config = BrokerConfig({"log.cleaner.max.compaction.lag.ms": "50"})
    check_topic(config, {"min.compaction.lag.ms": "50"})
    with pytest.raises(KafkaError, match=r"min.compaction.lag.ms \(51\) > max.compaction.lag.ms \(50\)"):
        check_topic(config, {"min.compaction.lag.ms": "51"})


def test_no_settings_are_always_right() -> None:
    config = BrokerConfig({})
    check_topic(config, {})
    check_group(config, {})
    check_client_metrics("m", {})


def test_a_groups_session_must_outlast_its_heartbeats() -> None:
    config = BrokerConfig({"group.consumer.max.heartbeat.interval.ms": "60000"})
    with pytest.raises(KafkaError) as refused:
        check_group(config, {"consumer.heartbeat.interval.ms": "50000"})
    assert refused.value.code is ErrorCode.INVALID_CONFIG
    assert (
        refused.value.message
        == "consumer.session.timeout.ms must be greater than consumer.heartbeat.interval.ms"
    )
    check_group(config, {"consumer.heartbeat.interval.ms": "50000", "consumer.session.timeout.ms": "55000"})


def test_the_brokers_bounds_move_with_its_settings() -> None:
    config = BrokerConfig({"group.consumer.min.session.timeout.ms": "1000"})
    check_group(config, {"consumer.session.timeout.ms": "6000"})


@pytest.mark.parametrize("expression", ["(", r"(a)\1", "(?<=a)b", "\ud800"])
def test_a_client_is_told_by_what_can_be_looked_at_quickly(expression: str) -> None:
    check_client_metrics("m", {"match": r"client_id=[a-z]+\d{9}(?i)x|(a+)+"})
    with pytest.raises(KafkaError, match="Illegal client matching pattern: client_id=") as refused:
        check_client_metrics("m", {"match": f"client_id={expression}"})
    assert refused.value.code is ErrorCode.INVALID_CONFIG
