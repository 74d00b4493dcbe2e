"""One history, played to Kafka's log, or to what is known of it, and to ours."""

from typing import Final, NamedTuple, Protocol

from tests.storage.cleaning.histories import History, Step
from tests.storage.cleaning.ottla import OttlaLog
from tests.storage.cleaning.outcomes import Outcome, differences

LOOKED_AT: Final = ("clean", "restart")
"""The steps after which both are compared."""


class Played(Protocol):
    """A log in which the steps of a history are done."""

    def perform(self, step: Step) -> bool: ...

    def outcome(self) -> Outcome: ...


class Compared(NamedTuple):
    rounds: int
    """Turns of the cleaner after which the same was left."""
    step: int
    """The number of the last step that was done."""
    differences: list[str]


def compare(theirs: Played, history: History) -> Compared:
    """Play until something differs, or to the end."""
    ours = OttlaLog(history)
    is_packed = any("codec" in step.facts for step in history.steps)
    was_restarted = False
    rounds = number = 0
    for number, step in enumerate(history.steps):
        if (is_done := theirs.perform(step)) != ours.perform(step):
            verb = "does" if is_done else "refuses"
            return Compared(rounds, number, [f"only one of both does a step, and Kafka {verb} it: {step}"])
        if step.name not in LOOKED_AT:
            continue
        their_outcome = theirs.outcome()
        if step.name == "restart":
            was_restarted = True
            if forgets_producers(their_outcome):
                break
        found = differences(their_outcome, ours.outcome(), _suffixes(is_packed, was_restarted))
        if found:
            return Compared(rounds, number, found)
        rounds += step.name == "clean"
    return Compared(rounds, number, [])


def forgets_producers(outcome: Outcome) -> bool:
    """Whether Kafka no longer trusts a snapshot after a start, as it lies where the log begins.

    It then forgets producers whose batches are gone; we know them, so that their retries are no duplicates.
    """
    return bool(outcome.facts["log start"] >= max(outcome.segments))


def _suffixes(is_packed: bool, was_restarted: bool) -> tuple[str, ...]:
    """Of the files that must be the same byte by byte.

    A restart makes Kafka forget how far the last entry of an index lies back.
    """
    if is_packed:
        return ()
    return (".log", ".txnindex") if was_restarted else (".log", ".txnindex", ".index", ".timeindex")
