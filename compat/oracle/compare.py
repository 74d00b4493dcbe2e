"""Where two recordings differ, value by value."""

import json
from collections.abc import Iterator
from typing import Final, NamedTuple

from compat.oracle.brief import Json
from compat.oracle.recording import Place, Recording, Told


class Missing:
    """Stands for a value that only the other side has."""

    def __repr__(self) -> str:
        return "nothing"


MISSING: Final = Missing()


class Difference(NamedTuple):
    """One value that is not the same."""

    place: Place
    api: str
    version: int
    path: str
    """Where in the answer: ``.responses[0].partition_responses[1].error_code``."""
    expected: Json | Missing
    found: Json | Missing

    def __str__(self) -> str:
        where = f"{self.place} ({self.api} {self.version})"
        return f"{where}: {self.path or 'outcome'}: {_show(self.expected)}, not {_show(self.found)}"


def differences(expected: Recording, found: Recording) -> list[Difference]:
    """Every value of ``found`` that is not as ``expected``."""
    result = []
    for place in {**expected, **found}:
        nowhere = Told("", 0, MISSING)
        left, right = expected.get(place, nowhere), found.get(place, nowhere)
        told = left if left is not nowhere else right
        if (left.api, left.version) != (right.api, right.version) and nowhere not in (left, right):
            result.append(
                Difference(
                    place,
                    told.api,
                    told.version,
                    "request",
                    left.api + str(left.version),
                    right.api + str(right.version),
                )
            )
        for path, *values in unlike(left.outcome, right.outcome):
            result.append(Difference(place, told.api, told.version, path, *values))
    return result


def unlike(left: Json, right: Json, path: str = "") -> Iterator[tuple[str, Json | Missing, Json | Missing]]:
    """The path of each value that differs, and the values."""
    if isinstance(left, dict) and isinstance(right, dict):
        for key in {**left, **right}:
            yield from unlike(left.get(key, MISSING), right.get(key, MISSING), f"{path}.{key}")
    elif isinstance(left, list) and isinstance(right, list):
        for index in range(max(len(left), len(right))):
            pair = (side[index] if index < len(side) else MISSING for side in (left, right))
            yield from unlike(*pair, f"{path}[{index}]")
    elif type(left) is not type(right) or left != right:
        yield path, left, right


def _show(value: Json | Missing) -> str:
    return repr(value) if isinstance(value, Missing) else json.dumps(value, ensure_ascii=False)
