"""Calls reach a program of another language and come back, in whatever order, and its end is noticed."""

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from compat.scenarios.python.client import (
    CommitFailed,
    Fenced,
    NotOffered,
    Partition,
    Place,
    Record,
    Refused,
    TakenRecord,
)
from compat.scenarios.remote.client import RemoteClient, record_in, record_out
from compat.scenarios.remote.process import RemoteError, RemoteProcess, failure_of
from compat.waiting import wait_until

PROGRAM = """
import json, sys
print(json.dumps({"client": "toy", "version": "1.5"}), flush=True)
held = []
for line in sys.stdin:
    call = json.loads(line)
    answer = {"id": call["id"], "gives": call["with"]}
    if call["do"] == "hold":
        held.append(answer)
        continue
    if call["do"] == "consumer":
        answer["gives"] = 1
    if call["do"] == "poll":
        answer |= {"gives": [], "events": [["gained", [["topic", 3]]], ["lost", [["topic", 4]]]]}
    if call["do"] == "end":
        sys.exit()
    for each in [answer, *held]:
        print(json.dumps(each), flush=True)
    held.clear()
"""


@pytest.fixture
def process() -> Iterator[RemoteProcess]:
    process = RemoteProcess([sys.executable, "-c", PROGRAM])
    yield process
    process.stop()


def test_it_says_who_it_is(process: RemoteProcess) -> None:
    client = RemoteClient(process)
    assert (client.name, client.version) == ("toy", "1.5")


def test_answers_find_their_calls_in_whatever_order(process: RemoteProcess) -> None:
    with ThreadPoolExecutor(1) as pool:
        held = pool.submit(process.call, 0, "hold", number=1)
        wait_until(lambda: process._waiting, "the first call is made")
        assert process.call(0, "now", number=2).gives == {"number": 2}
        assert held.result(10).gives == {"number": 1}


def test_a_program_that_ends_fails_its_calls(process: RemoteProcess) -> None:
    with pytest.raises(RemoteError, match=r"ended meanwhile$"):
        process.call(0, "end")
    with pytest.raises(RemoteError, match=r"has ended$"):
        process.call(0, "now")


def test_a_program_that_is_killed_fails_its_calls(process: RemoteProcess) -> None:
    with ThreadPoolExecutor(1) as pool:
        held = pool.submit(process.call, 0, "hold", number=1)
        wait_until(lambda: process._waiting, "the call is about to be made")
        with process._guard:
            pass  # it is made
        process.kill()
        with pytest.raises(RemoteError, match=r"ended meanwhile$"):
            held.result(10)


def test_a_program_that_says_nothing_is_no_client() -> None:
    with pytest.raises(RemoteError, match=r"ended without a word$"):
        RemoteProcess([sys.executable, "-c", ""])


def test_a_consumer_tells_of_partitions_before_its_call_returns(process: RemoteProcess) -> None:
    consumer = RemoteClient(process).consumer("localhost:1")
    told: list[tuple[str, set[Partition]]] = []
    consumer.subscribe(
        ["topic"],
        gained=lambda partitions: told.append(("gained", partitions)),
        lost=lambda partitions: told.append(("lost", partitions)),
    )
    assert told == []
    assert consumer.poll() == []
    assert told == [("gained", {Partition("topic", 3)}), ("lost", {Partition("topic", 4)})]


def test_each_kind_of_failure_has_its_exception() -> None:
    assert failure_of({"id": 1, "gives": None}) is None
    refusal = failure_of({"error": "refused", "code": 40, "text": "no"})
    assert isinstance(refusal, Refused)
    assert refusal.code == 40
    kinds = {
        "not offered": NotOffered,
        "fenced": Fenced,
        "commit failed": CommitFailed,
        "failed": RemoteError,
    }
    for kind, exception in kinds.items():
        assert isinstance(failure_of({"error": kind, "text": "why"}), exception)


def test_records_keep_null_and_empty_apart() -> None:
    sent = Record(b"", None, [("name", None), ("other", b"\xff")], timestamp_ms=5, partition=2)
    fields = record_out(sent) | {"topic": "topic", "offset": 7}
    assert record_in(fields) == TakenRecord(
        topic="topic",
        place=Place(2, 7),
        key=None,
        value=b"",
        headers=[("name", None), ("other", b"\xff")],
        timestamp_ms=5,
    )
