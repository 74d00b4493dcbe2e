"""``kafka-configs`` prints the same, and ends in the same way, as against Apache Kafka 4.4.0."""

import pytest

from compat.kafka_tools.config_commands import COMMANDS, outcomes, recorded


@pytest.mark.slow
def test_every_command_ends_as_it_does_with_kafka(address: str, kafka_jars: None) -> None:
    found = dict(enumerate(zip(COMMANDS, outcomes(address), strict=True)))
    expected = dict(enumerate(zip(COMMANDS, recorded(), strict=True)))
    assert {number: found[number] for number in found if found[number] != expected[number]} == {}
