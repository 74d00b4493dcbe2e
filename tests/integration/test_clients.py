"""Three client libraries with every codec: what was produced comes back as it was."""

import random
import uuid

import pytest

from compat.clients import CODECS, LIBRARIES, Place, Sample, make_samples
from compat.clients.round_trip import differences

RECORD_COUNT = 2000
"""Enough for several batches on each partition; ``python -m compat.clients`` does the same with 100,000."""


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_few_records_come_back(library: str, address: str, chance: random.Random) -> None:
    round_trip(library, address, chance, count=20, codec="none", idempotent=True)


@pytest.mark.slow
@pytest.mark.parametrize("idempotent", [False, True], ids=["plain", "idempotent"])
@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("library", LIBRARIES)
def test_records_come_back_as_they_were(
    library: str, codec: str, idempotent: bool, address: str, chance: random.Random
) -> None:
    round_trip(library, address, chance, count=RECORD_COUNT, codec=codec, idempotent=idempotent)


@pytest.mark.slow
@pytest.mark.parametrize("codec", CODECS)
def test_what_one_library_writes_the_others_read(codec: str, address: str, chance: random.Random) -> None:
    topic = f"across-{uuid.uuid4()}"
    samples = make_samples(100, chance)
    LIBRARIES["confluent-kafka"].create_topic(address, topic, 1)
    produced: dict[Place, Sample] = {}
    for library in LIBRARIES.values():
        places = library.produce(address, topic, samples, codec=codec, idempotent=False)
        produced.update(zip(places, samples, strict=True))
    for library in LIBRARIES.values():
        taken = {record.place: record for record in library.consume(address, topic, len(produced))}
        assert {place: record[1:] for place, record in taken.items()} == {
            place: sample[1:] for place, sample in produced.items()
        }


def round_trip(
    name: str, address: str, chance: random.Random, *, count: int, codec: str, idempotent: bool
) -> None:
    library = LIBRARIES[name]
    topic = f"round-trip-{uuid.uuid4()}"
    library.create_topic(address, topic, 3)
    samples = make_samples(count, chance)
    assert differences(library, address, topic, samples, codec=codec, idempotent=idempotent) == []
