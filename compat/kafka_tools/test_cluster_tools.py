"""Kafka 4.4's tools for replicas, leaders and the metadata quorum, on a broker with two log directories."""

import json
import uuid
from pathlib import Path

import pytest

from compat.broker_process import running_broker
from compat.kafka_tools.several_tools import run_tools

pytestmark = pytest.mark.slow


def test_replicas_move_between_log_directories(kafka_jars: Path, tmp_path: Path) -> None:
    directories = [str(tmp_path / name) for name in ("one", "other")]
    with running_broker(tmp_path, settings={"log.dirs": ",".join(directories)}) as broker:
        topic = f"tools-{uuid.uuid4()}"
        placed = ("kafka-log-dirs", "--describe", "--topic-list", topic)
        _, before = run_tools(broker.address, ("kafka-topics", "--create", "--topic", topic), placed)
        (old,) = places_of(before, topic)
        (new,) = {*directories} - {old}
        plan = tmp_path / "plan.json"
        replica = {"topic": topic, "partition": 0, "replicas": [1], "log_dirs": [new]}
        plan.write_text(json.dumps({"version": 1, "partitions": [replica]}))
        move = ("kafka-reassign-partitions", "--reassignment-json-file", str(plan))
        begun, verified, listed, after, elected, quorum = run_tools(
            broker.address,
            (*move, "--execute"),
            (*move, "--verify"),
            ("kafka-reassign-partitions", "--list"),
            placed,
            ("kafka-leader-election", "--election-type", "preferred", "--all-topic-partitions"),
            ("kafka-metadata-quorum", "describe", "--status"),
        )
    assert f"Successfully started partition reassignment for {topic}-0" in begun
    assert f"Successfully started moving log directory to {new} for replica {topic}-0" in begun
    assert f"Reassignment of partition {topic}-0 is completed." in verified
    assert "No partition reassignments found." in listed
    assert new in places_of(after, topic)
    assert elected.strip() == ""
    words = dict(line.split(":", 1) for line in quorum.splitlines() if ":" in line)
    assert (words["LeaderId"].strip(), words["CurrentObservers"].strip()) == ("1", "[]")
    assert [voter["id"] for voter in json.loads(words["CurrentVoters"])] == [1]


def places_of(described: str, topic: str) -> set[str]:
    """The log directories that have the topic's only partition, moving or not."""
    (line,) = [line for line in described.splitlines() if line.startswith("{")]
    return {
        directory["logDir"]
        for directory in json.loads(line)["brokers"][0]["logDirs"]
        if any(partition["partition"] == f"{topic}-0" for partition in directory["partitions"])
    }
