"""Kafka Streams on Ottla, with both protocols by which its instances share their work."""

from pathlib import Path

import pytest

from compat.broker_process import running_broker
from compat.oracle.jars import KafkaMissing
from compat.streams.counting import SETTINGS, count_words
from compat.streams.jars import find_streams_jars

pytestmark = pytest.mark.slow

SEED = 7
"""Which words the lines are made of; when instances come, go and crash is left to the clock anyway."""


def test_words_are_counted_exactly_once(kafka_jars: Path, tmp_path: Path) -> None:
    try:
        find_streams_jars()
    except KafkaMissing as missing:
        pytest.skip(f"Kafka Streams is not to be had: {missing}")
    with running_broker(tmp_path / "broker", SETTINGS) as broker:
        count_words(broker.address, tmp_path / "applications", SEED)
