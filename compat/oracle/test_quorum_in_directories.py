"""What is done to the quorum, to its features and to its nodes is done for whoever opens the directory next.

Each step is also held against Kafka: both are asked the same on directories that were made alike.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from compat.oracle.conversations.cluster import hello
from compat.oracle.conversations.features import SAFE_DOWNGRADE, UNSAFE_DOWNGRADE, UPGRADE, update
from compat.oracle.conversations.quorum import remove
from compat.oracle.kafka import KafkaNode
from compat.oracle.names import Names, Origin
from compat.oracle.preparing import NOWHERE, Preparing, Topic
from compat.oracle.test_directories import ottla_on
from compat.verification import damages
from protocol.error_codes import ErrorCode
from protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from protocol.messages.describe_cluster import DescribeClusterRequest
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.messages.unregister_broker import UnregisterBrokerRequest
from protocol.records.builder import build_batch

pytestmark = pytest.mark.slow

Told = list[tuple[int, str | None]]
"""An error and its text for each request."""

Ask = Callable[[Preparing], Told]


@contextmanager
def client_of(address: str) -> Iterator[Preparing]:
    nobody = Origin(address, cluster_id="", log_dir="", began_ms=0)
    client = Preparing(nobody, "", Names("", nobody))
    try:
        yield client
    finally:
        client.close()


def levels(client: Preparing) -> dict[str, int]:
    """The finalized features."""
    features = client.quietly(hello()).finalized_features
    return {feature.name: feature.max_version_level for feature in features}


def ask_both(folder: Path, ask: Ask, *format_arguments: str, is_static: bool = False) -> KafkaNode:
    """Let both answer on directories of their own, both formatted by Kafka; returns the one that we had."""
    told = []
    for name in ("kafka", "ottla"):
        node = KafkaNode(folder / name)
        if is_static:
            del node.settings["controller.quorum.bootstrap.servers"]
            node = KafkaNode(folder / name, {"controller.quorum.voters": f"1@{node.controller}"})
        node.format(*format_arguments)
        server = node if name == "kafka" else ottla_on(node)
        server.start()
        try:
            with client_of(node.bootstrap) as client:
                told.append(ask(client))
        finally:
            if server is node:
                server.kill()  # once it is unregistered, it does not stop for a long time
            else:
                server.stop()
    assert told[1] == told[0]
    assert damages(node.data) == []
    return node


def test_metadata_levels_go_up_and_down(kafka_jars: Path, tmp_path: Path) -> None:
    def ask(client: Preparing) -> Told:
        def change(level: int, how: int = UPGRADE) -> tuple[int, str | None]:
            answer = client.quietly(update(("metadata.version", level, how)))
            assert answer.error_code or client.until(
                hello(), lambda _: levels(client)["metadata.version"] == level
            )
            return answer.error_code, answer.error_message

        return [
            change(29),
            change(26),
            change(26, SAFE_DOWNGRADE),
            change(31),
            change(29, UNSAFE_DOWNGRADE),
            change(30, SAFE_DOWNGRADE),
            change(29, SAFE_DOWNGRADE),
            change(33),
            change(32, SAFE_DOWNGRADE),
        ]

    node = ask_both(tmp_path, ask, "--release-version", "4.0")
    node.start()
    try:
        with client_of(node.bootstrap) as client:
            assert levels(client)["metadata.version"] == 33
    finally:
        node.stop()


def test_a_quorum_of_static_voters_goes_over_to_others(kafka_jars: Path, tmp_path: Path) -> None:
    def ask(client: Preparing) -> Told:
        answers: list[Any] = [client.quietly(remove(2))]
        assert "kraft.version" not in levels(client)
        answers.append(client.quietly(update(("kraft.version", 1, UPGRADE), validate_only=True)))
        answers.append(client.quietly(update(("kraft.version", 1, UPGRADE))))
        client.until(hello(), lambda _: levels(client).get("kraft.version") == 1)
        answers.append(client.quietly(update(("kraft.version", 0, SAFE_DOWNGRADE))))
        assert client.quietly(remove(2)).error_code == ErrorCode.VOTER_NOT_FOUND
        return [(answer.error_code, answer.error_message) for answer in answers]

    node = ask_both(tmp_path, ask, is_static=True)
    again = KafkaNode(node.folder)  # without the voters among its settings
    again.start()
    try:
        with client_of(again.bootstrap) as client:
            assert levels(client)["kraft.version"] == 1
    finally:
        again.stop()


def test_the_only_broker_is_unregistered(kafka_jars: Path, tmp_path: Path) -> None:
    made: list[Topic] = []

    def ask(client: Preparing) -> Told:
        topic = client.topic("t")
        made.append(topic)
        client.produce(topic, "before")
        answers: list[tuple[int, str | None]] = []
        for _ in range(2):
            answer = client.quietly(UnregisterBrokerRequest(broker_id=1))
            answers.append((answer.error_code, answer.error_message))
        client.until(DescribeClusterRequest(), lambda answer: not answer.brokers)
        batch = build_batch([(1, None, b"after", ())])
        data = TopicProduceData(topic_id=topic.id, partition_data=[PartitionProduceData(records=batch)])
        produced = client.until(
            ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[data]),
            lambda answer: answer.responses[0].partition_responses[0].error_code,
        )
        answers.append((produced.responses[0].partition_responses[0].error_code, None))
        new = CreatableTopic(name=NOWHERE.name, num_partitions=1, replication_factor=1)
        (refused,) = client.quietly(CreateTopicsRequest(topics=[new], timeout_ms=5000)).topics
        return [*answers, (refused.error_code, refused.error_message)]

    node = ask_both(tmp_path, ask)
    for server in (ottla_on(node), node):
        server.start()
        try:
            with client_of(node.bootstrap) as client:
                client.until(DescribeClusterRequest(), lambda answer: len(answer.brokers) == 1)
                assert client.produce(made[1], "again") >= 1
        finally:
            server.stop()
    assert damages(node.data) == []
