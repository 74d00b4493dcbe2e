"""Some histories of a cluster; ``python -m tests.simulation`` has many more."""

import os
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from tests.simulation.faults import Fault
from tests.simulation.histories import History, Outcome, make_history, play, shortest
from tests.simulation.mutations import MISTAKES, history_that_shows, made
from tests.simulation.network import SLOW_LATENCY_SECONDS

ROOT = Path(__file__).parents[2]

SEEDS = 200
IN_ONE_TEST = 20

FOUND: dict[str, str] = {
    "4": "rounding woke the controller a moment too early, again and again until the clock had moved",
    "77017": "a power cut left a hole between segments of a copied metadata log: no broker would start on it",
    "30265": "a simulated client left a transaction open for longer than the peace after the faults",
    "40628": "a controller decided something when its process had ended the partitions: the stop failed",
    "65491": "a metadata log whose last segment was empty began behind a hole that a power cut had left",
    "66442": "a leader lost its place before the simulation had seen how far it had committed",
    "696": "internal topics got one replica, because the other brokers were registered and still fenced",
}
"""Seeds that have failed once, and why; all from before some kinds of faults."""

FOUND_SINCE: dict[str, str] = {
    "89075": "a process ended in peace of a disk that had failed before, and nobody started it again",
}
"""The same, with all kinds."""

SHOW_LATE = (
    "the_leader_lets_late_followers_go_by_itself",
    "replicas_are_not_compared",
    "a_new_leader_takes_all_that_it_has_for_committed",
    "a_broker_that_lost_its_power_stays_in_sync",
)
"""Mistakes that need more time than there is here; the command has ``--mistakes`` for all."""


def check(history: History) -> Outcome:
    outcome = play(history)
    if outcome.failure is not None:
        outcome.failure.add_note(str(history))
        raise outcome.failure
    return outcome


def lines_of(seed: str, hash_seed: str) -> bytes:
    """What happens in another process, in which sets of text have another order."""
    arguments = ["--first", seed, "--seeds", "1", "--lines"]
    return subprocess.run(
        [sys.executable, "-m", "tests.simulation", *arguments],
        cwd=ROOT,
        env=os.environ | {"PYTHONHASHSEED": hash_seed},
        capture_output=True,
        check=True,
    ).stdout.rpartition(b"all is well")[0]


def test_a_seed_gives_the_same_history_again_byte_for_byte() -> None:
    first, second = play(make_history("7")), play(make_history("7"))
    assert first.lines == second.lines
    assert len(first.lines) > 100
    assert lines_of("7", "1") == lines_of("7", "2") == ("\n".join(first.lines) + "\n").encode()


def test_one_node() -> None:
    for seed in range(1, 6):
        check(make_history(str(seed), nodes=1, is_brief=True))


@pytest.mark.parametrize("first", range(1, SEEDS, IN_ONE_TEST))
@pytest.mark.slow
def test_three_nodes(first: int) -> None:
    """Always the same histories: the command tries others, and has the time to make much of a failure."""
    for seed in range(first, first + IN_ONE_TEST):
        check(make_history(str(seed), is_brief=True))


@pytest.mark.parametrize("first", range(1, 41, IN_ONE_TEST))
@pytest.mark.slow
def test_full_disks(first: int) -> None:
    """Some of them so full that the metadata do not fit, and the process ends."""
    left = 0
    for seed in range(first, first + IN_ONE_TEST):
        history = make_history(f"full disks {seed}", is_brief=True)
        chance = Random(seed)
        full = [
            Fault(chance.uniform(0.1, history.seconds), "fill_disk", node, chance.getrandbits(32))
            for node in chance.choices(range(1, history.nodes + 1), k=3)
        ]
        outcome = check(history._replace(faults=tuple(sorted((*history.faults, *full)))))
        left += sum("is left to its other replicas" in line for line in outcome.lines)
    assert left


def test_a_suspended_process_does_nothing() -> None:
    """What it has sent before still arrives."""
    history = make_history("1")._replace(faults=(Fault(0.5, "suspend", 1, 5),))
    lines = check(history).lines
    start = next(index for index, line in enumerate(lines) if line.endswith(" suspend node 1"))
    end = next(index for index, line in enumerate(lines) if line.endswith(" node 1 goes on"))
    since = float(lines[start].split()[0])
    assert float(lines[end].split()[0]) - since > 2, "its session has not expired"
    meanwhile = [line for line in lines[start + 1 : end] if " node 1: " in line or " 10.0.0.1 10.0." in line]
    assert all(float(line.split()[0]) < since + SLOW_LATENCY_SECONDS[1] for line in meanwhile)


@pytest.mark.parametrize("seed", [*FOUND, *FOUND_SINCE])
@pytest.mark.slow
def test_what_went_wrong_once(seed: str) -> None:
    check(make_history(seed, has_later_kinds=seed in FOUND_SINCE))


@pytest.mark.parametrize("mistake", sorted(MISTAKES.keys() - set(SHOW_LATE)))
@pytest.mark.slow
def test_a_mistake_shows(mistake: str) -> None:
    assert history_that_shows(mistake, 20) is not None, "no invariant sees it"


def test_a_failure_is_shortened_to_the_faults_that_matter() -> None:
    faults = (Fault(0.2, "cut", 1, 1), Fault(0.4, "pause", 2, 2))
    history = make_history("1", is_brief=True)._replace(faults=faults)
    with made("acks_all_is_answered_at_once"):
        outcome = play(history)
        assert outcome.failure is not None
        shorter, _ = shortest(history, outcome)
    assert not shorter.faults
    assert str(shorter).startswith("history '1', 3 nodes")
