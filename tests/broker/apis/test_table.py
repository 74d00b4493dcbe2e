"""Which APIs a controller's listener serves: those of Kafka's but those about its log itself."""

from broker.apis.table import served

KAFKA_S_CONTROLLER = {
    *(1, 17, 18, 19, 20, 29, 30, 31, 32, 33, 36, 37, 38, 39, 40, 41, 43, 44, 45, 46, 49, 50, 51, 52, 53, 54),
    *(55, 56, 57, 58, 59, 60, 62, 63, 64, 67, 70, 73, 80, 81, 82, 94),
}
"""The keys that Apache Kafka 4.4.0 announces there."""


def test_a_controller_is_asked_what_kafka_s_is() -> None:
    keys = {int(api.key) for api in served(on_controller=True, unstable_versions=False)}
    assert keys == KAFKA_S_CONTROLLER


def test_telemetry_is_answered_and_not_announced() -> None:
    unannounced = [
        int(api.key) for api in served(on_controller=False, unstable_versions=False) if not api.is_announced
    ]
    assert unannounced == [71, 72]
