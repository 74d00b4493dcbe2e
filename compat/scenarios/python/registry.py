"""The functions that carry out scenarios, by the name that the list gives them."""

from collections.abc import Callable

from compat.scenarios.python.stage import Stage

Play = Callable[[Stage], None]
"""Returns if all holds; raises Unexpected, Refused, NotOffered or whatever the library raises."""

PLAYS: dict[str, Play] = {}


def plays(name: str) -> Callable[[Play], Play]:
    """Says that a function carries out the scenario ``name``."""

    def register(function: Play) -> Play:
        if name in PLAYS:
            raise ValueError(f"two functions for the scenario {name}")
        PLAYS[name] = function
        return function

    return register
