"""What must hold of a cluster after anything that has happened to it."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from protocol.records.batch import read_batches
from tests.integration.cluster.traffic import NumberedRecords, Pairs, Reader


def broken_promises(
    writers: Sequence[NumberedRecords], pairs: Sequence[Pairs], live: Reader, final: Reader
) -> list[str]:
    """What is wrong with what readers saw, a line each."""
    broken = []
    numbers: dict[tuple[str, int], list[int]] = defaultdict(list)
    values: dict[tuple[int, int], bytes] = {}
    for partition, seen in final.seen.items():
        for offset, value in seen:
            values[partition, offset] = value
            label, number = value.split()[:2]
            numbers[label.decode(), partition].append(int(number))
        if live.seen[partition] != seen:
            broken.append(f"partition {partition}: who read from the beginning to the end saw something else")
        offsets = [offset for offset, _ in seen]
        if offsets != sorted(set(offsets)):
            broken.append(f"partition {partition}: offsets do not rise")
    for writer in writers:
        for partition, promised in writer.acknowledged.items():
            found = numbers[writer.label, partition]
            if found != sorted(set(found)):
                broken.append(f"partition {partition}: {writer.label}'s records are doubled, or out of order")
            there = set(found)
            for record in promised:
                if record.offset is None:
                    is_there = record.number in there
                else:
                    value = values.get((partition, record.offset), b"")
                    is_there = value.split()[:2] == [writer.label.encode(), b"%d" % record.number]
                if not is_there:
                    broken.append(f"partition {partition}: {writer.label} was told {record}")
                    break
        broken += [f"{writer.label} was told {error}" for error in writer.errors[:3]]
    for pair in pairs:
        times = Counter(
            number for (label, _), found in numbers.items() if label == pair.label for number in found
        )
        broken += [
            f"{pair.label}: {number} is there {count} times" for number, count in times.items() if count != 2
        ]
        broken += [f"{pair.label}: {number} was committed" for number in pair.committed if not times[number]]
        broken += [f"{pair.label}: {number} was given up" for number in pair.aborted if times[number]]
    broken += [f"a reader was told {error}" for error in [*live.errors, *final.errors][:3]]
    return broken


def differing_replicas(directories: Iterable[Path], topic: str, partitions: int) -> list[str]:
    """Where the logs of a topic's replicas, none of which is open, are not the same batches."""
    found = []
    places = list(directories)
    for partition in range(partitions):
        first, *others = [list(_batches(place / f"{topic}-{partition}")) for place in places]
        found += [
            f"{topic}-{partition}: {place} differs from {places[0]}"
            for place, other in zip(places[1:], others, strict=True)
            if other != first
        ]
    return found


def _batches(folder: Path) -> Iterator[bytes]:
    for segment in sorted(folder.glob("*.log")):
        for batch in read_batches(segment.read_bytes()):
            yield bytes(batch.data)
