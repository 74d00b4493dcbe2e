"""Kafka 4.4's tools for streams groups do on our broker what they do on Kafka's.

OTTLA_TEST_BOOTSTRAP names another broker to run them against, such as Kafka's own.
"""

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from compat.kafka_tools.several_tools import run_tools
from compat.oracle.conversations.offsets import commit
from compat.oracle.conversations.streams_groups import (
    FIRST,
    at_once,
    describe,
    internal,
    join,
    leave,
    part,
    topology,
)
from compat.oracle.names import Names, Origin
from compat.oracle.preparing import Preparing
from compat.oracle.run import STARTING
from protocol.messages.find_coordinator import FindCoordinatorRequest

pytestmark = pytest.mark.slow

RECORDS = 20


class Application(Preparing):
    """A member of a streams group that counts words, and the group."""

    def __init__(self, address: str) -> None:
        prefix = f"tools-{uuid.uuid4()}-"
        super().__init__(Origin(address, "", "", 0), prefix, Names(prefix, Origin(address, "", "", 0)))
        talk: Any = self
        self.address = address
        self.until(
            FindCoordinatorRequest(key_type=0, coordinator_keys=["any"]),
            lambda answer: answer.coordinators[0].error_code not in STARTING,
        )
        self.until(describe("any"), lambda answer: answer.groups[0].error_code not in STARTING)
        self.barrier_topic()
        self.source = self.topic("words", retention_ms="-1")
        for number in range(RECORDS):
            self.produce(self.source, f"word {number}")
        self.group = at_once(talk)
        self.log = f"{self.group}-counts-changelog"

    def starts(self) -> None:
        app = topology(part("0", self.source, stores=[internal(self.log)]))
        self.until(join(self.group, FIRST, app), lambda answer: not answer.error_code and not answer.status)
        self.commits(5, member=FIRST, generation=3)

    def stops(self) -> None:
        assert not self.quietly(leave(self.group, FIRST)).error_code
        self.commits(5)

    def commits(self, offset: int, **by: Any) -> None:
        (topic,) = self.quietly(commit(self.group, (self.source, 0, offset), **by)).topics
        assert not topic.partitions[0].error_code, topic

    def of_group(self, *what: str) -> list[str]:
        return ["kafka-streams-groups", "--group", self.group, *what]

    def run(self, *commands: list[str]) -> list[list[list[str]]]:
        """The words of each line that each command prints."""
        printed = run_tools(self.address, *commands)
        return [[line.split() for line in text.splitlines() if line.strip()] for text in printed]


@pytest.fixture
def app(kafka_jars: Path, address: str) -> Iterator[Application]:
    application = Application(address)
    try:
        yield application
    finally:
        application.close()


def test_streams_groups_are_listed_and_described(app: Application) -> None:
    app.starts()
    group, source = app.group, app.source.name
    listed, stable, by_kind, stands, verbosely, state, members, tasks, refused = app.run(
        ["kafka-streams-groups", "--list"],
        ["kafka-streams-groups", "--list", "--state", "Stable"],
        ["kafka-groups", "--list", "--streams"],
        app.of_group("--describe"),
        app.of_group("--describe", "--verbose"),
        app.of_group("--describe", "--state", "--verbose"),
        app.of_group("--describe", "--members"),
        app.of_group("--describe", "--members", "--verbose"),
        app.of_group("--delete"),
    )
    assert [group] in listed
    assert [group, "Stable"] in stable
    assert [group, "Streams", "streams"] in by_kind
    assert stands[1:] == [[group, source, "0", str(RECORDS - 5)]]
    assert verbosely[1:] == [[group, source, "0", "5", "-", str(RECORDS), str(RECORDS - 5)]]
    assert state[1][0] == group
    assert state[1][3:] == ["sticky", "Stable", "3", "3", "1"]
    assert " ".join(members[1]) == f"{group} {FIRST} process of {FIRST} ACTIVE: 0:[0];"
    described = f"{group} 3 0 {FIRST} streams 3 process of {FIRST} ACTIVE: 0:[0]; TARGET-ACTIVE: 0:[0];"
    assert " ".join(tasks[1]) == described
    assert " ".join(refused[1]).endswith(f"GroupNotEmptyException: Streams group '{group}' is not EMPTY.")


def test_streams_groups_are_moved_and_deleted(app: Application) -> None:
    app.starts()
    app.stops()
    group, source = app.group, app.source.name
    empty, state, plan, latest, deleted_offsets, deleted, left, topics = app.run(
        ["kafka-streams-groups", "--list", "--state", "Empty"],
        app.of_group("--describe", "--state"),
        app.of_group("--reset-offsets", "--to-earliest", "--input-topic", source, "--dry-run"),
        app.of_group("--reset-offsets", "--to-latest", "--all-input-topics", "--execute"),
        app.of_group("--delete-offsets", "--input-topic", source),
        app.of_group("--delete", "--delete-all-internal-topics"),
        ["kafka-streams-groups", "--list"],
        ["kafka-topics", "--list"],
    )
    assert [group, "Empty"] in empty
    assert " ".join(state[0]) == f"Error: Streams group '{group}' has no active members."
    assert state[2][3:] == ["sticky", "Empty", "0"]
    assert plan[1] == [group, source, "0", "0"]
    assert latest[1] == [group, source, "0", str(RECORDS)]
    assert [source, "0", "Successful"] in deleted_offsets
    assert [" ".join(line) for line in deleted] == [
        f"Deletion of requested streams groups ('{group}') was successful.",
        f"Deletion of associated internal topics of the streams groups ('{group}') was successful.",
    ]
    assert [group] not in left
    assert [app.log] not in topics
    assert [source] in topics
