"""Kafka 4.4's tools for share groups do on our broker what they do on Kafka's.

OTTLA_TEST_BOOTSTRAP names another broker to run them against, such as Kafka's own.
"""

import uuid
from pathlib import Path

import pytest

from compat.kafka_tools.several_tools import run_tools
from compat.python_clients import CLIENTS
from compat.scenarios.python.records import sample_records
from compat.scenarios.python.stage import Stage

pytestmark = pytest.mark.slow

RECORDS = 20


class ShareGroup:
    """A topic of one partition, and a share group that is to read it from the beginning."""

    def __init__(self, address: str) -> None:
        self.address = address
        with Stage(CLIENTS["confluent-kafka"], address) as stage:
            self.topic = stage.topic()
            stage.send(self.topic, sample_records(RECORDS))
        self.name = f"sharers-{uuid.uuid4()}"

    def setting(self, setting: str) -> list[str]:
        group = ("--entity-type", "groups", "--entity-name", self.name)
        return ["kafka-configs", "--alter", *group, "--add-config", setting]

    def reads(self, count: int, *more: str) -> list[str]:
        places = ("--formatter-property", "print.offset=true", "--formatter-property", "print.delivery=true")
        what = ("--topic", self.topic, "--group", self.name, "--max-messages", str(count))
        return ["kafka-console-share-consumer", *what, *places, "--timeout-ms", "60000", *more]

    def of_group(self, *what: str) -> list[str]:
        return ["kafka-share-groups", "--group", self.name, *what]

    def moved(self, *where: str) -> list[str]:
        return self.of_group("--reset-offsets", "--topic", self.topic, *where)

    def run(self, *commands: list[str]) -> list[list[list[str]]]:
        """The words of each line that each command prints."""
        printed = run_tools(self.address, *commands)
        return [[line.split() for line in text.splitlines() if line.strip()] for text in printed]


@pytest.fixture
def group(kafka_jars: Path, address: str) -> ShareGroup:
    return ShareGroup(address)


def test_the_console_consumer_shares_records(group: ShareGroup) -> None:
    stands = group.of_group("--describe")
    queue = f"dlq.{group.name}"
    enabled = ("--config", "errors.deadletterqueue.group.enable=true")
    with_headers = ("--formatter-property", "print.headers=true", "--timeout-ms", "60000")
    _, _, _, accepted, rejected, letters, released, after, again, done = group.run(
        ["kafka-topics", "--create", "--topic", queue, *enabled],
        group.setting("share.auto.offset.reset=earliest"),
        group.setting(f"errors.deadletterqueue.topic.name={queue}"),
        group.reads(3),
        group.reads(2, "--reject"),
        [
            *("kafka-console-consumer", "--topic", queue, "--from-beginning", "--max-messages", "2"),
            *with_headers,
        ],
        group.reads(2, "--release"),
        stands,
        group.reads(RECORDS - 5),
        stands,
    )
    assert [line[0] for line in accepted] == ["Offset:0", "Offset:1", "Offset:2"]
    assert [line[0] for line in rejected] == ["Offset:3", "Offset:4"]
    for offset, letter in zip("34", letters, strict=True):
        assert f"__dlq.errors.topic:{group.topic}" in letter[0]
        assert f"__dlq.errors.offset:{offset}" in letter[0]
    assert [line[0] for line in released] == ["Offset:5", "Offset:6"]
    assert after[1] == [group.name, group.topic, "0", "5", str(RECORDS - 5)]
    assert [line[0] for line in again] == [f"Offset:{offset}" for offset in range(5, RECORDS)]
    assert {line[1] for line in again[:2]} == {"Delivery:4"}, "each consumer was given everything"
    assert done[1][-1] == "0"


def test_share_groups_are_listed_described_moved_and_deleted(group: ShareGroup) -> None:
    name, topic = group.name, group.topic
    stands = group.of_group("--describe", "--offsets")
    (
        _,
        _,
        listed,
        by_state,
        by_kind,
        state,
        members,
        plan,
        export,
        latest,
        after_latest,
        _,
        after_offset,
        _,
        after_datetime,
        unknown,
        known,
        after,
        deleted,
        twice,
        left,
    ) = group.run(
        group.setting("share.auto.offset.reset=earliest"),
        group.reads(RECORDS),
        ["kafka-share-groups", "--list"],
        ["kafka-share-groups", "--list", "--state", "Empty"],
        ["kafka-groups", "--list", "--share"],
        group.of_group("--describe", "--state", "--verbose"),
        group.of_group("--describe", "--members"),
        group.moved("--to-earliest", "--dry-run"),
        group.moved("--to-current", "--dry-run", "--export"),
        group.moved("--to-latest", "--execute"),
        stands,
        group.moved("--to-offset", "7", "--execute"),
        stands,
        group.moved("--to-datetime", "2020-01-01T00:00:00.000", "--execute"),
        group.of_group("--describe", "--offsets", "--verbose"),
        group.of_group("--delete-offsets", "--topic", "nowhere"),
        group.of_group("--delete-offsets", "--topic", topic),
        stands,
        group.of_group("--delete"),
        group.of_group("--delete"),
        ["kafka-share-groups", "--list"],
    )
    assert [name] in listed
    assert [name, "Empty"] in by_state
    assert [name, "Share", "share"] in by_kind
    assert state[1][0] == name
    assert state[1][3:] == ["Empty", "4", "4", "0"]
    assert members == []
    assert plan[1] == [*latest[1][:3], "0"] == [name, topic, "0", "0"]
    assert export == [[f'"{topic}",0,0']]
    assert latest[1] == [name, topic, "0", str(RECORDS)]
    assert after_latest[1] == [name, topic, "0", str(RECORDS), "0"]
    assert after_offset[1] == [name, topic, "0", "7", str(RECORDS - 7)]
    assert after_datetime[1] == [name, topic, "0", "0", "0", str(RECORDS)]
    assert " ".join(unknown[1]) == "nowhere Error: This server does not host this topic-partition."
    assert known[1] == [topic, "Successful"]
    assert " ".join(after[0]) == f"Share group '{name}' has no offset information."
    assert " ".join(deleted[0]) == f"Deletion of requested share groups ('{name}') was successful."
    assert " ".join(twice[1]).endswith(f"GroupIdNotFoundException: Group '{name}' is not a share group.")
    assert [name] not in left
