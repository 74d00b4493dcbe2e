"""Our declarations against the definitions inside Kafka's jars."""

from pathlib import Path

import pytest

from compat.oracle.definitions import differences


@pytest.mark.slow
def test_declarations_say_what_kafka_s_definitions_say(kafka_jars: Path) -> None:
    assert differences(kafka_jars) == []
