"""A leader of Ottla treats its followers as one of Apache Kafka does."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from compat.cluster.nodes import OttlaNode
from compat.cluster.played_followers import CONVERSATIONS, SETTINGS, Line, Played, played
from compat.oracle.kafka import kafka_node

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def kafka_leader(kafka_jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    with kafka_node(tmp_path_factory.mktemp("kafka"), SETTINGS) as node:
        try:
            with played(node.bootstrap, node.controller) as cluster:
                yield cluster
        finally:
            node.kill()  # it would wait for others to take over what it leads


@pytest.fixture(scope="module")
def ottla_leader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    node = OttlaNode(tmp_path_factory.mktemp("ottla"), SETTINGS)
    node.start()
    try:
        with played(node.bootstrap, node.controller) as cluster:
            yield cluster
    finally:
        node.kill()


@pytest.mark.parametrize("conversation", CONVERSATIONS, ids=lambda each: each.__name__)
def test_both_say_the_same(conversation: object, kafka_leader: Played, ottla_leader: Played) -> None:
    assert callable(conversation)
    expected: list[Line] = conversation(kafka_leader)
    answered: list[Line] = conversation(ottla_leader)
    for theirs, ours in zip(expected, answered, strict=True):
        assert ours == theirs
