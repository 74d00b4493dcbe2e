"""What the outcome of a request comes to, in a word or two."""

from collections.abc import Iterator
from typing import Final

from compat.oracle.brief import Json

SUCCESS: Final = "success"

NOT_ASKED: Final = "not asked"
"""How an outcome begins when the version cannot carry the request."""


def results_of(outcome: Json) -> set[str]:
    """The names of the errors in an answer, or that it has none; ``closed`` and the like are themselves.

    A request that was not made has no result.
    """
    if isinstance(outcome, str):
        return set() if outcome.startswith(NOT_ASKED) else {outcome}
    return set(_errors_in(outcome)) or {SUCCESS}


def _errors_in(value: Json) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            if key.endswith("error_code"):
                yield inner
            else:
                yield from _errors_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _errors_in(inner)
