"""Where two recordings differ, value by value, and which of the differences are meant."""

import json
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Final, NamedTuple, TypeAlias

from compat.oracle.brief import Json
from compat.oracle.differences import ANYTHING, KNOWN, NOTHING, Known
from compat.oracle.outcomes import results_of
from compat.oracle.recording import Place, Recording, Told, range_text


class Missing:
    """Stands for a value that only the other side has."""


MISSING: Final = Missing()

Value: TypeAlias = Json | Missing


class Difference(NamedTuple):
    """One value that is not the same."""

    place: Place
    api: str
    version: int
    path: str
    """Where in the answer: ``/responses/0/partition_responses/1/error_code``; empty for all of it."""
    expected: Value
    found: Value


class Verdict(NamedTuple):
    """What is left of the differences once the known ones are taken away."""

    unexplained: list[Difference]
    vanished: list[tuple[Known, Place]]
    """Known differences, and where they should have been seen and were not."""

    @property
    def is_clean(self) -> bool:
        return not self.unexplained and not self.vanished

    def lines(self) -> Iterator[str]:
        """All of it in words."""
        yield from in_words(self.unexplained)
        for known, place in self.vanished:
            yield f"{place}: {known.path or 'the outcome'} is known to differ, and does not: {known.reason}"


def differences(expected: Recording, found: Recording) -> Iterator[Difference]:
    """Every value of ``found`` that is not as ``expected``."""
    for place in {**expected, **found}:
        left, right = expected.get(place), found.get(place)
        told = left or right
        assert told is not None
        for path, *values in unlike(_outcome(left), _outcome(right)):
            yield Difference(place, told.api, told.version, path, *values)


def judge(expected: Recording, found: Recording, known: Sequence[Known] = KNOWN) -> Verdict:
    """Hold what a broker answered against what Kafka did."""
    explained: set[tuple[Known, Place]] = set()
    unexplained = []
    for difference in differences(expected, found):
        place = difference.place
        whole = _outcome(expected.get(place)), _outcome(found.get(place))
        reason = next((each for each in known if _explains(each, difference, *whole)), None)
        if reason is None:
            unexplained.append(difference)
        else:
            explained.add((reason, place))
    vanished = [
        (each, place)
        for each in known
        for place, told in expected.items()
        if _applies(each, place, _value_at(told.outcome, each.path)) and (each, place) not in explained
    ]
    return Verdict(unexplained, vanished)


def unlike(left: Value, right: Value, path: str = "") -> Iterator[tuple[str, Value, Value]]:
    """The path of each value that differs, and the values."""
    if isinstance(left, dict) and isinstance(right, dict):
        for key in {**left, **right}:
            yield from unlike(left.get(key, MISSING), right.get(key, MISSING), f"{path}/{key}")
    elif isinstance(left, list) and isinstance(right, list):
        for index in range(max(len(left), len(right))):
            first, second = (side[index] if index < len(side) else MISSING for side in (left, right))
            yield from unlike(first, second, f"{path}/{index}")
    elif type(left) is not type(right) or left != right:
        yield path, left, right


def in_words(found: Iterable[Difference]) -> Iterator[str]:
    """A line for each difference; the same one in several rounds shares a line."""
    versions: dict[tuple[str, str], list[int]] = {}
    for each in found:
        where = ": ".join((*each.place[:3], each.api))
        what = f"{each.path or 'the outcome'} is {_show(each.expected)}, not {_show(each.found)}"
        versions.setdefault((where, what), []).append(each.version)
    for (where, what), same in versions.items():
        yield f"{where} {range_text(min(same), max(same))}: {what}"


def _outcome(told: Told | None) -> Value:
    return MISSING if told is None else told.outcome


def _explains(known: Known, difference: Difference, expected: Value, found: Value) -> bool:
    """``expected`` and ``found`` are the whole outcomes."""
    if known.path:
        expected, found = difference.expected, difference.found
    return (
        known.path in ("", difference.path)
        and _applies(known, difference.place, expected)
        and _comes_to(found, known.ours)
    )


def _applies(known: Known, place: Place, expected: Value) -> bool:
    return (
        not isinstance(expected, Missing)
        and (known.kafka == ANYTHING or _comes_to(expected, known.kafka))
        and fnmatchcase(": ".join(place[:3]), known.where)
    )


def _comes_to(value: Value, what: str) -> bool:
    return what == NOTHING if isinstance(value, Missing) else results_of(value) == {what}


def _value_at(outcome: Json, path: str) -> Value:
    """The value that a path without indexes leads to."""
    for key in path.split("/")[1:]:
        if not isinstance(outcome, dict) or key not in outcome:
            return MISSING
        outcome = outcome[key]
    return outcome


def _show(value: Value) -> str:
    return NOTHING if isinstance(value, Missing) else json.dumps(value, ensure_ascii=False)
