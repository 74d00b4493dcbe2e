"""How scenarios say what they expect: plainly, so that a failure reads well in a table."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager

from compat.scenarios.python.client import Refused

SHOWN = 200
"""Characters of a value that a failure shows."""


class Unexpected(Exception):
    """Something is not as it should be; the text is the whole reason."""


def expect(actual: object, wanted: object, what: str) -> None:
    if actual != wanted:
        raise Unexpected(f"{what}: {shown(actual)} instead of {shown(wanted)}")


def expect_that(holds: object, what: str) -> None:
    """Fail with ``what``, which says what is wrong, if it does not hold."""
    if not holds:
        raise Unexpected(what)


def expect_subset(wanted: Collection[object], actual: Collection[object], what: str) -> None:
    missing = [each for each in wanted if each not in actual]
    if missing:
        raise Unexpected(f"{what}: {shown(missing)} is missing")


@contextmanager
def refused(code: int, what: str) -> Iterator[None]:
    """The block must fail with the error that the broker numbers ``code``."""
    try:
        yield
    except Refused as error:
        if error.code != code:
            raise Unexpected(f"{what} was refused with {error} instead of {code}") from error
    else:
        raise Unexpected(f"{what} was not refused")


def shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}… ({len(text)} characters)"
