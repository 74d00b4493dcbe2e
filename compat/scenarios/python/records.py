"""Records to try a broker with, and what to say when they come back otherwise."""

import random
import time
from collections.abc import Sequence

from compat.scenarios.python.client import Place, Record, TakenRecord

HOUR_MS = 3_600_000

START_MS = int(time.time() * 1000) - HOUR_MS
"""An hour ago: sample records are a millisecond apart from here on.  Old ones would be deleted soon."""

DIFFERENCES_MAX = 5


def sample_records(count: int, chance: random.Random | None = None) -> list[Record]:
    """Records of about a hundred bytes that compress as real ones do: some have no key, some headers."""
    chance = chance or random.Random(1)
    words = [chance.randbytes(4).hex().encode() for _ in range(50)]
    return [
        Record(
            value=b"%d " % number + b" ".join(chance.choices(words, k=chance.randrange(12))),
            key=None if number % 7 == 0 else b"key-%d" % (number % 100),
            # By their names, for those who keep them in that order.
            headers=[("empty", b""), ("trace", b"%d" % number)] if number % 10 == 0 else [],
            timestamp_ms=START_MS + number,
        )
        for number in range(count)
    ]


def differences(sent: Sequence[Record], places: Sequence[Place], taken: Sequence[TakenRecord]) -> list[str]:
    """What did not come back as it was sent, from where the broker had said, in words; the first few."""
    found = []
    if len(taken) != len(sent):
        found.append(f"{len(taken)} records came back instead of {len(sent)}")
    by_place = {record.place: record for record in taken}
    if len(by_place) != len(taken):
        found.append("a place came back twice")
    for record, place in zip(sent, places, strict=True):
        other = by_place.get(place)
        if other is None:
            found.append(f"nothing came back from {place}")
        elif not is_same(record, other):
            found.append(f"{record} came back as {other}")
        if len(found) >= DIFFERENCES_MAX:
            break
    for partition in sorted({place.partition for place in places}):
        offsets = sorted(place.offset for place in places if place.partition == partition)
        if offsets != list(range(len(offsets))):
            found.append(f"the offsets of partition {partition} have gaps")
    return found


def is_same(sent: Record, taken: TakenRecord) -> bool:
    """Whether key, value and headers are the same, and the timestamp if one was given."""
    return (
        sent.value == taken.value
        and sent.key == taken.key
        and list(sent.headers) == taken.headers
        and sent.timestamp_ms in {None, taken.timestamp_ms}
    )
