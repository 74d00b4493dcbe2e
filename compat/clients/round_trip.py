"""Produce records, consume them again, and say what is not as it was."""

from collections.abc import Sequence

from compat.clients.library import ClientLibrary, Sample


def differences(
    library: ClientLibrary,
    address: str,
    topic: str,
    samples: Sequence[Sample],
    *,
    codec: str,
    idempotent: bool,
) -> list[str]:
    """In words, what of ``samples`` did not come back as it was from where the broker had said."""
    places = library.produce(address, topic, samples, codec=codec, idempotent=idempotent)
    taken = library.consume(address, topic, len(samples))
    found = []
    if len(taken) != len(samples):
        found.append(f"{len(taken)} records came back instead of {len(samples)}")
    by_place = {record.place: record for record in taken}
    if len(by_place) != len(taken):
        found.append("a place came back twice")
    for sample, place in zip(samples, places, strict=True):
        record = by_place.get(place)
        if record is None:
            found.append(f"nothing at {place}")
        elif record[1:] != sample[1:]:
            found.append(f"{record} at {place} is not {sample}")
        if len(found) >= 5:
            break
    for partition in {place.partition for place in places}:
        offsets = sorted(place.offset for place in places if place.partition == partition)
        if offsets != list(range(len(offsets))):
            found.append(f"the offsets of partition {partition} have gaps")
    return found
