"""Three client libraries with every codec: what was produced comes back as it was."""

import random

import pytest

from compat.python_clients import CLIENTS
from compat.scenarios.python.client import CODECS, Place, Record
from compat.scenarios.python.records import differences, sample_records
from compat.scenarios.python.round_trip import round_trip
from compat.scenarios.python.stage import Stage

RECORD_COUNT = 2000
"""Enough for several batches on each partition; ``python -m compat.matrix round-trips`` has 100,000."""


@pytest.mark.parametrize("client", CLIENTS)
def test_a_few_records_come_back(client: str, address: str, chance: random.Random) -> None:
    assert round_trip(CLIENTS[client], address, sample_records(20, chance)) == []


@pytest.mark.slow
@pytest.mark.parametrize("idempotent", [False, True], ids=["plain", "idempotent"])
@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("client", CLIENTS)
def test_records_come_back_as_they_were(
    client: str, codec: str, idempotent: bool, address: str, chance: random.Random
) -> None:
    sent = sample_records(RECORD_COUNT, chance)
    assert round_trip(CLIENTS[client], address, sent, codec=codec, idempotent=idempotent) == []


@pytest.mark.slow
@pytest.mark.parametrize("codec", CODECS)
def test_what_one_client_writes_the_others_read(codec: str, address: str, chance: random.Random) -> None:
    sent: list[Record] = []
    places: list[Place] = []
    with Stage(CLIENTS["confluent-kafka"], address) as stage:
        topic = stage.topic()
    for client in CLIENTS.values():
        with Stage(client, address) as stage:
            records = sample_records(100, chance)
            places += stage.send(topic, records, codec=codec)
            sent += records
    for client in CLIENTS.values():
        with Stage(client, address) as stage:
            assert differences(sent, places, stage.take(topic, len(sent))) == []
