"""What a driver makes of scenarios that pass, fail, hang, or cannot be had from a library."""

import threading
import time
from collections.abc import Iterator
from typing import Any, cast

import pytest

from compat.raw_client import one_record_batch
from compat.scenarios.catalogue import Scenario
from compat.scenarios.outcome import FAILED, NOT_OFFERED, PASSED
from compat.scenarios.python import driver
from compat.scenarios.python.checks import Unexpected, expect, expect_subset, expect_that, refused
from compat.scenarios.python.client import Client, Code, Place, Record, Refused, TakenRecord, not_offered
from compat.scenarios.python.driver import Repertoire
from compat.scenarios.python.records import differences
from compat.scenarios.python.registry import Play
from compat.scenarios.python.stage import Stage
from compat.scenarios.python.stored import StoredBatch, read_batches


class NoClient:
    """Nothing that a scenario of this file needs."""

    name = "nobody"
    version = "1.0"


CLIENT = cast(Client, NoClient())


def passes(_: Stage) -> None:
    pass


def fails(_: Stage) -> None:
    expect(1, 2, "a number")


def is_refused(_: Stage) -> None:
    raise Refused(Code.INVALID_CONFIG, "no")


def cannot(_: Stage) -> None:
    not_offered("it does not want to")


@pytest.fixture
def plays() -> dict[str, Play]:
    """Functions of scenarios; those called ``alone…`` run alone."""
    return {}


def repertoire_of(plays: dict[str, Play]) -> Repertoire:
    scenarios = {name: Scenario(name, "", "", "", "", alone=name.startswith("alone")) for name in plays}
    return Repertoire(scenarios, plays)


def played(plays: dict[str, Play]) -> dict[str, tuple[str, str]]:
    outcomes = driver.play_all(
        repertoire_of(plays), CLIENT, "localhost:1", list(plays), parallel=4, trace=False
    )
    return {outcome.scenario: (outcome.result, outcome.reason) for outcome in outcomes}


def test_each_end_has_its_result(plays: dict[str, Play]) -> None:
    plays.update({"good": passes, "bad": fails, "worse": is_refused, "absent": cannot})
    assert played(plays) == {
        "good": (PASSED, ""),
        "bad": (FAILED, "a number: 1 instead of 2"),
        "worse": (FAILED, "Refused: error 40: no"),
        "absent": (NOT_OFFERED, "it does not want to"),
    }


def test_outcomes_name_client_and_version(plays: dict[str, Play]) -> None:
    plays["good"] = passes
    (outcome,) = driver.play_all(
        repertoire_of(plays), CLIENT, "localhost:1", ["good"], parallel=1, trace=False
    )
    assert (outcome.client, outcome.version) == ("nobody", "1.0")


def test_a_scenario_that_hangs_is_given_up(
    plays: dict[str, Play], monkeypatch: pytest.MonkeyPatch, released: threading.Event
) -> None:
    monkeypatch.setattr(driver, "SCENARIO_SECONDS_MAX", 0.05)

    def hangs(_: Stage) -> None:
        released.wait()

    plays.update({"hangs": hangs, "good": passes})
    assert played(plays) == {"hangs": (FAILED, "still not over after 0.05 s"), "good": (PASSED, "")}


@pytest.fixture
def released() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


def test_what_runs_alone_begins_when_the_others_are_over(plays: dict[str, Play]) -> None:
    running: set[str] = set()
    together: list[set[str]] = []

    def note(name: str) -> Play:
        def run(_: Stage) -> None:
            running.add(name)
            together.append(set(running))
            time.sleep(0)
            running.remove(name)

        return run

    for name in ("alone-1", "one", "alone-2", "two", "three"):
        plays[name] = note(name)
    assert [name for name, _ in played(plays).items()][-2:] == ["alone-1", "alone-2"]
    assert [each for each in together if each & {"alone-1", "alone-2"}] == [{"alone-1"}, {"alone-2"}]


def test_a_reason_is_one_line_of_bounded_length() -> None:
    reason = driver.reason_of(ValueError("a\nlong\n" + "x" * 1000))
    assert reason.startswith("ValueError: a long xxx")
    assert len(reason) == driver.REASON_LENGTH_MAX


def test_checks_say_what_is_wrong() -> None:
    expect([1], [1], "numbers")
    expect_that(True, "never said")
    expect_subset(["a"], {"a", "b"}, "letters")
    with pytest.raises(Unexpected, match=r"^letters: \['c'\] is missing$"):
        expect_subset(["a", "c"], {"a", "b"}, "letters")
    with pytest.raises(Unexpected, match=r"^none is left$"):
        expect_that([], "none is left")
    with pytest.raises(Unexpected, match=r"… \(1002 characters\) instead of 0$"):
        expect("x" * 1000, 0, "text")


def test_a_refusal_may_be_the_one_that_is_wanted() -> None:
    with refused(Code.INVALID_CONFIG, "a setting"):
        raise Refused(40)


def test_a_refusal_must_not_be_another() -> None:
    with pytest.raises(Unexpected, match=r"error 41.* instead of 40$"), refused(40, "a setting"):
        raise Refused(41)


def test_a_refusal_must_come() -> None:
    with pytest.raises(Unexpected, match=r"^a setting was not refused$"), refused(40, "a setting"):
        pass


def test_differences_are_seen() -> None:
    sent = [Record(b"a", timestamp_ms=5), Record(b"b", b"key", headers=[("name", None)])]
    places = [Place(0, 0), Place(1, 0)]
    taken = [
        TakenRecord("topic", Place(0, 0), None, b"a", [], 5),
        TakenRecord("topic", Place(1, 0), b"key", b"b", [("name", None)], 77),
    ]
    assert differences(sent, places, taken) == []
    changes: list[dict[str, Any]] = [
        {"value": b"c"},
        {"key": b""},
        {"headers": [("name", b"")]},
        {"timestamp_ms": 6},
    ]
    for change in changes:
        changed = [taken[0]._replace(**change), taken[1]]
        assert len(differences(sent, places, changed)) == 1, change
    assert differences(sent, places, taken[:1]) == [
        "1 records came back instead of 2",
        "nothing came back from Place(partition=1, offset=0)",
    ]
    assert "a place came back twice" in differences(sent, places, [*taken, taken[0]])
    assert differences(sent[:1], [Place(0, 3)], [taken[0]._replace(place=Place(0, 3))]) == [
        "the offsets of partition 0 have gaps"
    ]


def test_batches_are_read_up_to_one_that_is_cut() -> None:
    batch = one_record_batch(b"value")
    plain = StoredBatch(0, "none", -1, -1, -1, 1)
    assert read_batches(batch) == [plain]
    assert read_batches(batch + batch[:-1]) == [plain]
    compressed = bytearray(batch)
    compressed[22] = 3
    assert read_batches(bytes(compressed)) == [plain._replace(codec="lz4")]
