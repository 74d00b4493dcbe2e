"""The command line of every Python driver: plays scenarios and prints one line of JSON for each.

``python -m compat.python_confluent_kafka --bootstrap localhost:9092 --scenarios keys,headers``
"""

import argparse
import os
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from queue import Empty, SimpleQueue
from typing import NamedTuple, NoReturn

from compat.scenarios.catalogue import Scenario, scenarios
from compat.scenarios.outcome import FAILED, NOT_OFFERED, PASSED, Outcome
from compat.scenarios.python.checks import Unexpected
from compat.scenarios.python.client import Client, NotOffered
from compat.scenarios.python.plays import PLAYS
from compat.scenarios.python.registry import Play
from compat.scenarios.python.stage import Stage

SCENARIO_SECONDS_MAX = 90
"""A scenario that takes longer has failed: its library hangs."""

REASON_LENGTH_MAX = 500

WAIT_MOST = ("groups", "shares")
"""Areas to begin with: sessions end after six seconds, and members of share groups hear after five of their
partitions, which the others can use."""


class Repertoire(NamedTuple):
    """What can be played."""

    scenarios: Mapping[str, Scenario]
    plays: Mapping[str, Play]
    """A function for each of them."""


def main(
    client: Client, arguments: Sequence[str] | None = None, repertoire: Repertoire | None = None
) -> None:
    """Play, print, and end the process with 1 if a scenario failed.  Most clients share a repertoire."""
    end(run(client, arguments, repertoire or Repertoire(scenarios(), PLAYS)))


def run(client: Client, arguments: Sequence[str] | None, repertoire: Repertoire) -> int:
    """Play and print; 1 if a scenario failed."""
    parser = argparse.ArgumentParser(description=f"{client.name} {client.version} through the scenarios")
    parser.add_argument("--bootstrap", required=True, help="host:port of the broker")
    parser.add_argument("--scenarios", default="", help="names, with commas between them; all if left out")
    parser.add_argument("--parallel", type=int, default=8, help="scenarios at a time (%(default)s)")
    parser.add_argument("--traceback", action="store_true", help="show on standard error where one failed")
    options = parser.parse_args(arguments)
    names = [name for name in options.scenarios.split(",") if name] or list(repertoire.scenarios)
    if unknown := [name for name in names if name not in repertoire.scenarios]:
        parser.error(f"no such scenario: {', '.join(unknown)}")
    failed = False
    for outcome in play_all(
        repertoire, client, options.bootstrap, names, options.parallel, options.traceback
    ):
        print(outcome.to_line(), flush=True)
        failed |= outcome.result == FAILED
    return 1 if failed else 0


def end(exit_code: int) -> NoReturn:
    """End the process, not waiting for threads that a library left behind."""
    sys.stderr.flush()
    os._exit(exit_code)


def play_all(
    repertoire: Repertoire, client: Client, address: str, names: Sequence[str], parallel: int, trace: bool
) -> Iterator[Outcome]:
    """Outcomes as they come: ``parallel`` scenarios at a time, then one by one those that run alone."""
    together = [name for name in names if not repertoire.scenarios[name].alone]
    together.sort(key=lambda name: repertoire.scenarios[name].area not in WAIT_MOST)
    alone = [name for name in names if name not in together]
    yield from play_some(repertoire.plays, client, address, together, parallel, trace)
    yield from play_some(repertoire.plays, client, address, alone, 1, trace)


def play_some(
    plays: Mapping[str, Play], client: Client, address: str, names: Sequence[str], parallel: int, trace: bool
) -> Iterator[Outcome]:
    waiting = deque(names)
    deadlines: dict[str, float] = {}
    reports: SimpleQueue[Outcome] = SimpleQueue()

    def report(name: str) -> None:
        reports.put(play(plays[name], client, address, name, trace))

    while waiting or deadlines:
        while waiting and len(deadlines) < parallel:
            name = waiting.popleft()
            deadlines[name] = time.monotonic() + SCENARIO_SECONDS_MAX
            threading.Thread(target=report, args=(name,), daemon=True).start()
        try:
            outcome = reports.get(timeout=max(0.0, min(deadlines.values()) - time.monotonic()))
        except Empty:
            name = min(deadlines, key=deadlines.__getitem__)
            reason = f"still not over after {SCENARIO_SECONDS_MAX} s"
            outcome = Outcome(name, client.name, client.version, FAILED, reason, SCENARIO_SECONDS_MAX)
        if deadlines.pop(outcome.scenario, None) is not None:  # else it was given up before
            yield outcome


def play(carry_out: Play, client: Client, address: str, name: str, trace: bool = False) -> Outcome:
    """Play one scenario."""
    began = time.monotonic()
    result, reason = PASSED, ""
    try:
        with Stage(client, address) as stage:
            carry_out(stage)
    except NotOffered as error:
        result, reason = NOT_OFFERED, str(error)
    except Exception as error:
        if trace:
            traceback.print_exc()
        result, reason = FAILED, reason_of(error)
    return Outcome(name, client.name, client.version, result, reason, round(time.monotonic() - began, 2))


def reason_of(error: Exception) -> str:
    """One line that says what went wrong."""
    text = " ".join(str(error).split())
    if isinstance(error, Unexpected):
        return text[:REASON_LENGTH_MAX]
    named = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return named[:REASON_LENGTH_MAX]
