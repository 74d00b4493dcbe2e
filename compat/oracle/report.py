"""What ``make oracle`` does and says."""

from collections.abc import Collection, Iterator, Sequence
from typing import Final

from compat.oracle import fields
from compat.oracle.brokers import compared_kafka, compared_ottla
from compat.oracle.compare import differences, in_words, judge
from compat.oracle.conversation import Conversation
from compat.oracle.conversations import CONVERSATIONS
from compat.oracle.definitions import differences as definition_differences
from compat.oracle.differences import KNOWN
from compat.oracle.explore import explore
from compat.oracle.grid import make_grid
from compat.oracle.jars import find_jars
from compat.oracle.recording import Recording, read, write
from compat.oracle.run import hold

REPETITIONS: Final = 2
"""How often a new Kafka has to answer as it is recorded."""


def record(subjects: Collection[str] = ()) -> bool:
    """Keep what a new Kafka answers, in all subjects or in those named; whether another answers the same."""
    wanted = [each for each in CONVERSATIONS if not subjects or each.subject in subjects]
    with compared_kafka() as address:
        recorded = hold(address, wanted)
    if subjects:
        kept = {place: told for place, told in read().items() if place.subject not in subjects}
        write(kept | recorded)
    else:
        write(recorded)
    print(f"{len(recorded)} outcomes are recorded; now once more")
    return kafka_still_answers(recorded, wanted)


def everything() -> bool:
    """Whether Kafka is as it is recorded, Ottla as Kafka, and nothing left uncovered."""
    recording = read()
    results = [definitions_agree()]
    results += [kafka_still_answers(recording) for _ in range(REPETITIONS)]
    results.append(ottla_answers_so(recording))
    print()
    results.append(show_grid(recording))
    print()
    for line in exceptions():
        print(line)
    print()
    print("All is well." if all(results) else "Not all is well: see above.")
    return all(results)


def explore_both(seed: int, count: int) -> bool:
    """Print what a new Kafka and a new Ottla answer differently when requests are changed at random."""
    with compared_kafka() as kafka, compared_ottla() as ottla:
        found = list(explore((kafka, ottla), CONVERSATIONS, read(), seed, count))
    return told(f"of {count} changes from seed {seed} on are answered differently", found)


def definitions_agree() -> bool:
    """Whether our messages are declared as Kafka's are."""
    found = definition_differences(find_jars())
    return told("differences from the definitions in Kafka's jars", found)


def kafka_still_answers(recording: Recording, conversations: Sequence[Conversation] = CONVERSATIONS) -> bool:
    """Whether a new Kafka answers as it is recorded."""
    with compared_kafka() as address:
        found = list(in_words(differences(recording, hold(address, conversations))))
    return told(f"differences in {len(recording)} outcomes between a new Kafka and the recorded one", found)


def ottla_answers_so(recording: Recording) -> bool:
    """Whether a new Ottla answers as Kafka is recorded."""
    with compared_ottla() as address:
        found = list(judge(recording, hold(address, CONVERSATIONS)).lines())
    return told(f"unexplained differences in {len(recording)} outcomes between Ottla and Kafka", found)


def show_grid(recording: Recording) -> bool:
    """Print what is covered; whether each empty cell has a reason."""
    grid = make_grid(recording)
    for line in grid.lines():
        print(line)
    without = [f"{cell.api} {cell.version}: {cell.result}" for cell in grid.unreasoned()]
    clean = told("empty cells without a reason", without)
    return told("reasons without an empty cell", grid.stale_reasons()) and clean


def exceptions() -> Iterator[str]:
    """What is compared otherwise than as it is, or not at all, and what is known to differ."""
    for title, table in (
        ("Fields that are not compared", fields.LEFT_OUT),
        ("Compared by whether there is a text", fields.TEXTS),
        ("Compared with the address by which the broker was reached", fields.ADDRESSES),
        ("Compared by the order in which such numbers are first seen", {**fields.DRAWN, **fields.RECALLED}),
        ("Times: those since the recording began are all the same", fields.TIMES),
        ("Compared without their order", fields.UNORDERED),
        ("Compared without what other conversations have made", fields.SHARED),
    ):
        yield f"{title}:"
        for field in table:
            reason = table[field] if table is fields.LEFT_OUT else ""
            yield f"    {field}{': ' if reason else ''}{reason}"
    yield "Known differences, each with what Kafka and what Ottla answers:"
    for known in KNOWN:
        yield f"    {known.where} {known.path}".rstrip() + f": {known.kafka}, {known.ours}: {known.reason}"


def told(what: str, found: Sequence[str]) -> bool:
    """Print how many of something there are, and which; whether there are none."""
    print(f"{len(found)} {what}", flush=True)
    for line in found:
        print(f"    {line}")
    return not found
