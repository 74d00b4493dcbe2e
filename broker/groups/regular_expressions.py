"""Regular expressions that consumers subscribe with: RE2's, matched against whole names (KIP-848)."""

from collections.abc import Iterable
from typing import Any

import re2

from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError

_QUIET = re2.Options()
_QUIET.log_errors = False  # it would write to standard error by itself


def check(pattern: str) -> None:
    """Raise INVALID_REGULAR_EXPRESSION, with Kafka's words, if this is none."""
    try:
        _compile(pattern)
    except re2.error as error:
        raise KafkaError(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex `{pattern}` is not a valid regular expression: {_fault(error)}.",
        ) from error


def resolve(patterns: Iterable[str], names: Iterable[str]) -> dict[str, frozenset[str]]:
    """Which of ``names`` each pattern matches: none, if only another broker's RE2 understands it."""
    names = list(names)
    resolved: dict[str, frozenset[str]] = {}
    for pattern in patterns:
        try:
            compiled = _compile(pattern)
        except re2.error:
            resolved[pattern] = frozenset()
        else:
            resolved[pattern] = frozenset(name for name in names if compiled.fullmatch(name))
    return resolved


def _compile(pattern: str) -> Any:
    return re2.compile(pattern, _QUIET)


def _fault(error: Exception) -> str:
    """What is wrong, without the place, in the words of Java's RE2."""
    said = error.args[0] if error.args else b""
    text = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
    fault = text.partition(":")[0]
    return _FAULTS.get(fault, fault)


_FAULTS = {
    "bad repetition operator": "invalid nested repetition operator",
    "invalid named capture group": "invalid named capture",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid repetition size": "invalid repeat count",
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "no argument for repetition operator": "missing argument to repetition operator",
    "trailing \\": "trailing backslash at end of expression",
    "unexpected )": "regexp/syntax: internal error",
}
"""Those that the two libraries call by different words."""
