from broker.config.broker_config import BrokerConfig
from broker.groups.settings import GroupSettings


def test_kafka_s_defaults_but_for_the_first_rebalance() -> None:
    """Tests should not wait three seconds for members that do not come."""
    assert GroupSettings.from_config(BrokerConfig({})) == GroupSettings(initial_rebalance_delay_ms=0)


def test_settings_are_read_under_kafka_s_names() -> None:
    config = BrokerConfig(
        {
            "group.max.size": "3",
            "group.min.session.timeout.ms": "1",
            "group.max.session.timeout.ms": "2",
            "group.initial.rebalance.delay.ms": "4",
            "offset.metadata.max.bytes": "5",
            "offsets.retention.minutes": "6",
            "offsets.retention.check.interval.ms": "7",
        }
    )
    assert GroupSettings.from_config(config) == GroupSettings(3, 1, 2, 4, 5, 360_000, 7)
