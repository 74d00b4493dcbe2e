"""The order of a comparison, with brokers and steps that are made up."""

from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.peers import command
from benchmarks.peers.binaries import PeerMissing
from benchmarks.peers.brokers import BROKERS, Broker
from benchmarks.peers.command import Comparison, choose_brokers, choose_steps
from benchmarks.peers.isolated import OutOfTime, StepFailed
from benchmarks.peers.results import Row
from benchmarks.peers.steps import Figure, Step, Target

events: list[str] = []
FOREVER = float("inf")


class Healthy(Broker):
    """A broker that only takes note of what is done to it."""

    name = "healthy"

    def prepare(self) -> None:
        self.address = self.name

    def launch(self) -> None:
        events.append(f"{self.name} starts")

    @property
    def pid(self) -> int:
        return 1

    @property
    def is_running(self) -> bool:
        return True

    def end(self) -> None:
        events.append(f"{self.name} ends")

    @staticmethod
    def version() -> str:
        return "1"


class Dying(Healthy):
    name = "dying"

    @property
    def is_running(self) -> bool:
        return False


class Missing(Healthy):
    name = "missing"

    def prepare(self) -> None:
        raise PeerMissing("no compiler")


def no_measure(_target: Target) -> dict[str, float]:
    raise AssertionError("run_step is replaced")


def step(title: str) -> Step:
    return Step(title, "Speed", (Figure(title, "1/s", more_is_better=True),), no_measure)


@pytest.fixture
def compare(
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[..., dict[str, Row]]:
    def run(
        brokers: list[type[Broker]],
        outcomes: dict[str, Exception | float],
        *,
        rounds: int = 1,
        deadline: float = FOREVER,
    ) -> dict[str, Row]:
        def run_step(step: Step, target: Target, _patience: float) -> dict[str, float]:
            events.append(f"{target.address} {step.title}")
            outcome = outcomes[step.title]
            if isinstance(outcome, Exception):
                raise outcome
            return {step.title: outcome}

        monkeypatch.setattr(command, "run_step", run_step)
        chosen = [step(title) for title in outcomes]
        comparison = Comparison(brokers, chosen, share=1, patience=1, deadline=deadline)
        for number in range(rounds):
            comparison.run_round(number)
        return {row.figure.name: row for row in comparison.collector.rows()}

    def acknowledge(_address: str, _topic: str, *, timeout_seconds: float) -> None:
        assert timeout_seconds > 0

    events.clear()
    monkeypatch.setattr(command, "first_acknowledged", acknowledge)
    monkeypatch.setattr(command, "IDLE_SECONDS", 0)
    return run


def test_all_steps_run_on_one_start(compare: Callable[..., dict[str, Row]]) -> None:
    rows = compare([Healthy], {"first": 1.0, "second": 2.0})
    assert events == ["healthy starts", "healthy first", "healthy second", "healthy ends"]
    assert rows["first"].values == {"healthy": [1.0]}
    assert rows["second"].values == {"healthy": [2.0]}
    assert [name for name in rows if name.startswith(("start", "memory"))] == [
        "start to first acknowledged record",
        "memory, idle after one record",
        "memory, peak of the whole round",
    ]


def test_after_a_failure_the_broker_is_started_anew(compare: Callable[..., dict[str, Row]]) -> None:
    rows = compare([Healthy], {"first": StepFailed("refused"), "second": 2.0})
    assert events == [
        *("healthy starts", "healthy first", "healthy ends"),
        *("healthy starts", "healthy second", "healthy ends"),
    ]
    assert rows["first"].failures == {"healthy": "refused"}
    assert rows["second"].values == {"healthy": [2.0]}


def test_what_hung_is_not_tried_again_and_what_was_refused_is(compare: Callable[..., dict[str, Row]]) -> None:
    outcomes = {"hangs": OutOfTime("no result in 5 s"), "refused": StepFailed("refused")}
    compare([Healthy], outcomes, rounds=3)
    assert events.count("healthy hangs") == 1
    assert events.count("healthy refused") == 3


def test_a_broker_that_died_is_the_reason(compare: Callable[..., dict[str, Row]]) -> None:
    rows = compare([Dying], {"first": StepFailed("connection refused")})
    assert rows["first"].failures == {"dying": "the broker ended"}


def test_a_broker_that_cannot_be_had_fails_everything_once(compare: Callable[..., dict[str, Row]]) -> None:
    rows = compare([Missing, Healthy], {"first": 1.0}, rounds=2)
    assert {row.failures["missing"] for row in rows.values()} == {"no compiler"}
    assert rows["first"].values == {"missing": [None, None], "healthy": [1.0, 1.0]}


def test_no_broker_is_always_first(compare: Callable[..., dict[str, Row]]) -> None:
    compare([Healthy, Dying], {"first": 1.0}, rounds=2)
    assert [event for event in events if event.endswith("starts")] == [
        *("healthy starts", "dying starts"),
        *("dying starts", "healthy starts"),
    ]


def test_nothing_is_begun_when_the_time_is_up(compare: Callable[..., dict[str, Row]]) -> None:
    rows = compare([Healthy], {"first": 1.0}, deadline=0)
    assert events == []
    assert rows["first"].failures == {"healthy": "the time was up"}


def test_brokers_are_chosen_by_name() -> None:
    assert choose_brokers(None) == list(BROKERS)
    assert [broker.name for broker in choose_brokers("tansu, Apache Kafka")] == ["Tansu", "Apache Kafka"]
    with pytest.raises(SystemExit, match="no broker called 'rabbit'"):
        choose_brokers("rabbit")


def test_chosen_steps_begin_with_the_warm_up() -> None:
    titles = [step.title for step in choose_steps("tools", with_ten_thousand=False)]
    assert titles[0] == "warm-up"
    assert titles[1:]
    assert all(title.startswith("tools") for title in titles[1:])
    everything = [step.title for step in choose_steps(None, with_ten_thousand=True)]
    assert len(set(everything)) == len(everything)
    assert everything[-1] == "10,000 partitions"


def test_brokers_leave_their_files_in_the_folder_they_were_given(tmp_path: Path) -> None:
    Healthy(tmp_path / "new")
    assert (tmp_path / "new").is_dir()
