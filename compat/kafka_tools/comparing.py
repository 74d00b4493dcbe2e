"""Holding what a broker lets tools say against what Kafka did."""

import difflib
from collections.abc import Iterator, Mapping

from compat.kafka_tools.differences import OLD_LEVELS, OTHERWISE
from compat.kafka_tools.transcript import Command, Entry, Said, Transcript, shown


def differences(expected: Mapping[str, Transcript], found: Mapping[str, Transcript]) -> Iterator[str]:
    """Where the two are not the same, as a patch shows it."""
    for subject, transcript in expected.items():
        yield from difflib.unified_diff(
            list(shown(transcript)), list(shown(found[subject])), subject, subject, lineterm="", n=4
        )


def judge(recorded: Mapping[str, Transcript], ours: Mapping[str, Transcript]) -> Iterator[str]:
    """What is left of the differences between Kafka and us once the known ones are taken away."""
    expected = {}
    for subject, transcript in recorded.items():
        expected[subject] = [
            _meant(theirs, our) for theirs, our in zip(transcript, ours[subject], strict=True)
        ]
        for theirs, our in zip(transcript, ours[subject], strict=True):
            if _is_known(theirs) and theirs == our:
                yield f"{subject}: {theirs.step} is known to be answered otherwise, and is not"
    yield from differences(expected, ours)


def _is_known(entry: Entry) -> bool:
    return isinstance(entry.step, Command) and entry.step.line in OTHERWISE


def _meant(theirs: Entry, ours: Entry) -> Entry:
    """What we should say where Kafka says this."""
    if theirs.said is None or _is_known(theirs):
        return ours
    return theirs._replace(said=_translated(theirs.said))


def _translated(said: Said) -> Said:
    def translate(line: str) -> str:
        for kafka, ottla in OLD_LEVELS.items():
            line = line.replace(kafka, ottla)
        return line

    return Said(tuple(map(translate, said.output)), tuple(map(translate, said.errors)), said.exit_code)
