from broker.config.broker_config import BrokerConfig
from broker.groups.settings import GroupSettings, MigrationPolicy


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
            "group.consumer.max.size": "8",
            "group.consumer.assignors": "org.apache.kafka.coordinator.group.assignor.RangeAssignor,uniform",
            "group.consumer.migration.policy": "upgrade",
            "group.consumer.regex.refresh.interval.ms": "10000",
        }
    )
    assert GroupSettings.from_config(config) == GroupSettings(
        3, 1, 2, 4, 5, 360_000, 7, 8, ("range", "uniform"), MigrationPolicy.UPGRADE, 10_000
    )


def test_metadata_is_measured_as_java_does() -> None:
    settings = GroupSettings(offset_metadata_max_bytes=4)
    assert [settings.allows_metadata(text) for text in ("four", "fifth", "ééé€", "𝄞𝄞", "𝄞𝄞𝄞")] == [
        True,
        False,
        True,
        True,
        False,
    ]
