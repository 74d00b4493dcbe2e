"""Histories from a seed, and the shortest one that still fails."""

from collections.abc import Callable, Sequence
from random import Random
from typing import NamedTuple

from tests.storage.crashes.invariants import look
from tests.storage.crashes.subject import Step, Subject, random_fault

LENGTH = 50
FAULTY = 0.12
"""The share of steps in which something goes wrong, crashes not counted."""

STEPS = {
    "append": 34,
    "end_transaction": 10,
    "append_as_follower": 4,
    "advance_high_watermark": 3,
    "lead_anew": 1,
    "roll": 3,
    "begin_flush": 7,
    "finish_flush": 7,
    "checkpoint": 4,
    "checkpoint_high_watermarks": 2,
    "delete_records": 2,
    "apply_retention": 3,
    "truncate": 2,
    "truncate_fully": 0.7,
    "compact": 6,
    "swap_in": 3,
    "pass_time": 5,
    "delete_partition": 0.7,
    "create_partition": 2,
    "close": 2.5,
    "kill": 2.5,
    "cut_power": 3,
    "look": 1,
}
"""What happens, and how often."""

CHANGES_MAX = {
    "compact": 60,
    "close": 30,
    "swap_in": 20,
    "checkpoint": 15,
    "truncate": 25,
    "truncate_fully": 25,
}
"""Steps that make more than a handful of changes to the disk: a fault may come late in them."""


class Failure(NamedTuple):
    """What a history ended with."""

    error: BaseException
    steps_gone: int


class History(NamedTuple):
    """A seed for how the logs are set up, and what happens to them."""

    seed: str
    steps: tuple[Step, ...]

    def __str__(self) -> str:
        lines = [
            f"    {step.name}({step.seed}){f' with {step.fault}' if step.fault else ''}"
            for step in self.steps
        ]
        return "\n".join([f"history {self.seed!r}, {len(self.steps)} steps:", *lines])


def make_history(seed: str, length: int = LENGTH) -> History:
    """The history that belongs to a seed."""
    chance = Random(seed)
    steps = []
    for name in chance.choices(list(STEPS), list(STEPS.values()), k=length):
        fault = random_fault(chance, CHANGES_MAX.get(name, 8)) if chance.random() < FAULTY else None
        steps.append(Step(name, chance.getrandbits(32), fault))
    steps += [Step("look", 0), Step("kill", chance.getrandbits(32)), Step("close", chance.getrandbits(32))]
    return History(seed, tuple(steps))


def play(history: History) -> Failure | None:
    """Go through a history; the answer says where it failed, if it did."""
    gone = 0
    try:
        subject = Subject(Random(history.seed), look)
        for step in history.steps:
            gone += 1
            subject.perform(step)
    except Exception as error:
        return Failure(error, gone)
    return None


def shorten(history: History, is_failing: Callable[[History], bool]) -> History:
    """Leave out steps, many at once and then fewer, and faults, as long as the history still fails."""
    size = len(history.steps) // 2
    while size:
        start = 0
        while start < len(history.steps):
            shorter = history._replace(steps=history.steps[:start] + history.steps[start + size :])
            if is_failing(shorter):
                history = shorter
            else:
                start += size
        size //= 2
    for number, step in enumerate(history.steps):
        simpler = history._replace(
            steps=(*history.steps[:number], step._replace(fault=None), *history.steps[number + 1 :])
        )
        if step.fault is not None and is_failing(simpler):
            history = simpler
    return history


def shortest(history: History, failure: Failure) -> tuple[History, Failure]:
    """The shortest history that can be found to fail in the same way."""
    place = place_of(failure.error)
    best = failure

    def is_failing(shorter: History) -> bool:
        nonlocal best
        found = play(shorter)
        if found is None or place_of(found.error) != place:
            return False
        best = found
        return True

    history = history._replace(steps=history.steps[: failure.steps_gone])
    shorter = shorten(history, is_failing)
    return shorter, play(shorter) or best


def place_of(error: BaseException) -> Sequence[object]:
    """What tells one failure from another: its type and where it was raised."""
    trace = error.__traceback__
    assert trace is not None
    while trace.tb_next is not None:
        trace = trace.tb_next
    return type(error), trace.tb_frame.f_code.co_filename, trace.tb_lineno
