"""Calls into a program of another language, over its standard input and output.

The program first writes a line ``{"client": "…", "version": "…"}``.  Then each call is a line of JSON, and so
is its answer; answers come as they are ready, not in the order of the calls:

    {"id": 7, "on": 3, "do": "seek", "with": {"partition": ["topic", 0], "offset": 5}}
    {"id": 7, "gives": null}

``on`` names an object: 0 is the library itself, and what opens another object gives its number.  Bytes are
base64.  A call that fails has ``error`` in its answer, one of ``refused`` (with Kafka's ``code``),
``not offered``, ``fenced``, ``commit failed`` and ``failed``, and ``text``.  An answer may tell of
``events``: partitions that a consumer has ``gained`` or ``lost`` since the last one.  The program ends when
its input does.
"""

import json
import subprocess
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from itertools import count
from typing import Any, NamedTuple

from compat.scenarios.python.client import (
    LONG_TIMEOUT_SECONDS,
    CommitFailed,
    Fenced,
    NotOffered,
    Refused,
)


class RemoteError(Exception):
    """The library failed in its own way, or its program did."""


class Answer(NamedTuple):
    """What a call gave."""

    gives: Any
    events: list[tuple[str, list[tuple[str, int]]]]
    failure: Exception | None


class RemoteProcess:
    """A program that runs until the process that started it ends; threads may call it at the same time."""

    def __init__(self, command: Sequence[str]) -> None:
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._numbers = count(1)
        self._waiting: dict[int, Future[Answer]] = {}
        self._guard = threading.Lock()
        self._ended = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        greeting = self._read_line()
        if greeting is None:
            self._close()
            raise RemoteError(f"{command[0]} ended without a word")
        self.client: str = greeting["client"]
        self.version: str = greeting["version"]
        self._reader.start()

    def call(self, target: int, operation: str, **arguments: Any) -> Answer:
        """Carry out one call and wait for it."""
        number, answer = next(self._numbers), Future[Answer]()
        line = json.dumps({"id": number, "on": target, "do": operation, "with": arguments})
        assert self._process.stdin is not None
        with self._guard:
            if self._ended:
                raise RemoteError("the program of the client has ended")
            self._waiting[number] = answer
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
        return answer.result(LONG_TIMEOUT_SECONDS)

    def stop(self) -> None:
        """End the program, and wait until it has ended."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._reader.join(LONG_TIMEOUT_SECONDS)
        self._close()

    def kill(self) -> None:
        """End the program as a crash would."""
        self._process.kill()
        self._reader.join(LONG_TIMEOUT_SECONDS)
        self._close()

    def _close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(LONG_TIMEOUT_SECONDS)

    def _read_line(self) -> dict[str, Any] | None:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        return json.loads(line) if line else None

    def _read(self) -> None:
        while (line := self._read_line()) is not None:
            events = [
                (kind, [(name, number) for name, number in each]) for kind, each in line.get("events", [])
            ]
            with self._guard:
                answer = self._waiting.pop(line["id"])
            answer.set_result(Answer(line.get("gives"), events, failure_of(line)))
        with self._guard:
            self._ended = True
            left, self._waiting = self._waiting, {}
        for answer in left.values():
            answer.set_exception(RemoteError("the program of the client ended meanwhile"))


class RemoteObject:
    """Something that a program holds for us."""

    def __init__(self, process: RemoteProcess, target: int) -> None:
        self.process = process
        self.target = target

    def call(self, operation: str, **arguments: Any) -> Any:
        """What a call on it gives.  Raises what the library did."""
        answer = self.process.call(self.target, operation, **arguments)
        self.note(answer.events)
        if answer.failure is not None:
            raise answer.failure
        return answer.gives

    def note(self, events: list[tuple[str, list[tuple[str, int]]]]) -> None:
        """Called with the events of each answer; for those who have some."""


def failure_of(line: dict[str, Any]) -> Exception | None:
    """The exception that an answer stands for."""
    text = line.get("text", "")
    match line.get("error"):
        case None:
            return None
        case "refused":
            return Refused(line["code"], text)
        case "not offered":
            return NotOffered(text)
        case "fenced":
            return Fenced(text)
        case "commit failed":
            return CommitFailed(text)
        case _:
            return RemoteError(text)
