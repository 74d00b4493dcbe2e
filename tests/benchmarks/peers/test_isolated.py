import json
import sys
from pathlib import Path

import pytest

from benchmarks.peers.isolated import (
    REASON_LENGTH_MAX,
    OutOfTime,
    StepFailed,
    few_words,
    read_result,
    run_step,
)
from benchmarks.peers.steps import Step, Target
from compat.free_ports import free_ports


def no_measure(_target: Target) -> dict[str, float]:
    raise AssertionError("a step is measured in its own process")


def step(title: str, seconds_max: float) -> Step:
    return Step(title, "Speed", (), no_measure, seconds_max)


def test_values_are_read_from_the_last_line() -> None:
    assert read_result('chatter\n{"values": {"a": 1}}\n', 0) == {"a": 1.0}


def test_the_other_sides_reason_is_kept() -> None:
    with pytest.raises(StepFailed, match="it hung"):
        read_result(json.dumps({"failed": "it hung"}), 1)


@pytest.mark.parametrize("said", ["", "no figures here\n"])
def test_a_side_that_says_nothing_has_failed(said: str) -> None:
    with pytest.raises(StepFailed, match="the client ended with -11"):
        read_result(said, -11)


def test_reasons_are_short() -> None:
    assert few_words(RuntimeError("one\n  two")) == "one two"
    assert few_words(ValueError()) == "ValueError"
    assert (
        few_words(RuntimeError('KafkaError{code=X,val=44,str="Too much: at most 7"}'))
        == "Too much: at most 7"
    )
    assert len(few_words(RuntimeError("x" * 1000))) == REASON_LENGTH_MAX


@pytest.mark.slow
def test_a_step_fails_on_a_broker_that_is_not_there() -> None:
    (port,) = free_ports(1)
    with pytest.raises(StepFailed, match="refused"):
        run_step(step("idle connections", 30), Target(f"127.0.0.1:{port}", 1, 1.0))


def test_a_step_that_does_not_end_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "hangs"
    program.write_text(f"#!{sys.executable}\nimport threading\nthreading.Event().wait()\n")
    program.chmod(0o755)
    monkeypatch.setattr("sys.executable", str(program))
    with pytest.raises(OutOfTime, match="no result in 0"):
        run_step(step("anything", 0.1), Target("127.0.0.1:1", 1, 1.0), patience=2)
