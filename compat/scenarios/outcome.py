"""How a driver reports: one line of JSON for each scenario."""

import json
from typing import Final, NamedTuple

PASSED: Final = "passed"
FAILED: Final = "failed"
NOT_OFFERED: Final = "not offered"
RESULTS: Final = (PASSED, FAILED, NOT_OFFERED)


class Outcome(NamedTuple):
    """What became of one scenario with one client."""

    scenario: str
    client: str
    version: str
    """The version that the client says it has."""
    result: str
    """One of ``RESULTS``."""
    reason: str = ""
    """Why it did not pass; empty if it did."""
    seconds: float = 0.0

    def to_line(self) -> str:
        return json.dumps(self._asdict())


def from_line(line: str) -> Outcome:
    """Read what ``to_line`` or a driver of another language wrote.  Raises ValueError."""
    fields = json.loads(line)
    if not isinstance(fields, dict):
        raise ValueError(f"not an outcome: {line!r}")
    try:
        outcome = Outcome(**fields)
    except TypeError as error:
        raise ValueError(f"not an outcome: {line!r}") from error
    if outcome.result not in RESULTS or bool(outcome.reason) == (outcome.result == PASSED):
        raise ValueError(f"an outcome that says too much or too little: {line!r}")
    return outcome
