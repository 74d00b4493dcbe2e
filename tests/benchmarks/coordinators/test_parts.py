"""The parts of the comparison, against our broker in small amounts."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from benchmarks.coordinators import command, idle, rebalances, throughput
from benchmarks.parts import choose
from benchmarks.storage.brokers import StoredBroker, StoredOttla

SMALL = 0.01


def test_every_figure_is_measured_once() -> None:
    names = [figure.name for part in command.parts(1) for figure in part.figures]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("words", "sections"),
    [
        ("rebalances", {command.REBALANCES}),
        ("share,idle", {command.THROUGHPUT, command.IDLE}),
        ("none", set()),
    ],
)
def test_parts_can_be_chosen(words: str, sections: set[str]) -> None:
    assert {part.section for part in choose(command.parts(1), words)} == sections


@contextmanager
def ottla(folder: Path, settings: dict[str, str] | None = None) -> Iterator[StoredBroker]:
    broker = StoredOttla(folder, settings)
    try:
        yield broker
    finally:
        broker.kill()


@pytest.mark.slow
def test_crowds_of_every_protocol_come_to_rest(tmp_path: Path) -> None:
    with ottla(tmp_path, rebalances.SETTINGS) as broker:
        values = rebalances.rebalances_round(broker, [3], SMALL)
    assert len(values) == 6
    assert min(values.values()) > 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("measure", "count"),
    [
        (throughput.transactions_round, 2),
        (throughput.share_groups_round, 2),
        (idle.idle_groups_round, 4),
    ],
)
def test_every_figure_has_a_value(
    tmp_path: Path, measure: Callable[[StoredBroker, float], dict[str, float]], count: int
) -> None:
    with ottla(tmp_path, idle.SETTINGS) as broker:
        values = measure(broker, SMALL)
    assert len(values) == count
