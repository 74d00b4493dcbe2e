"""A leader of Ottla treats its followers as one of Apache Kafka does.

What Kafka says is kept in ``played_followers.json``; ``python -m compat.cluster.test_played_followers`` asks
it again, given Java.
"""

import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from compat.cluster.nodes import OttlaNode
from compat.cluster.played_followers import CONVERSATIONS, SETTINGS, Line, Played, played
from compat.oracle.kafka import kafka_node

pytestmark = pytest.mark.slow

RECORDED = Path(__file__).with_name("played_followers.json")


@contextmanager
def kafka_leads(folder: Path) -> Iterator[Played]:
    with kafka_node(folder, SETTINGS) as node:
        try:
            with played(node.bootstrap, node.controller) as cluster:
                yield cluster
        finally:
            node.kill()  # it would wait for others to take over what it leads


@contextmanager
def ottla_leads(folder: Path) -> Iterator[Played]:
    node = OttlaNode(folder, SETTINGS)
    node.start()
    try:
        with played(node.bootstrap, node.controller) as cluster:
            yield cluster
    finally:
        node.kill()


@pytest.fixture(scope="module")
def kafka_leader(kafka_jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    with kafka_leads(tmp_path_factory.mktemp("kafka")) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def ottla_leader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    with ottla_leads(tmp_path_factory.mktemp("ottla")) as cluster:
        yield cluster


def in_json(lines: list[Line]) -> Any:
    """As it comes out of a file."""
    return json.loads(json.dumps(lines))


def check(conversation: Callable[[Played], list[Line]], cluster: Played) -> None:
    recorded = json.loads(RECORDED.read_text())[conversation.__name__]
    for expected, said in zip(recorded, in_json(conversation(cluster)), strict=True):
        assert said == expected


@pytest.mark.parametrize("conversation", CONVERSATIONS, ids=lambda each: each.__name__)
def test_ottla_says_what_kafka_said(
    conversation: Callable[[Played], list[Line]], ottla_leader: Played
) -> None:
    check(conversation, ottla_leader)


@pytest.mark.parametrize("conversation", CONVERSATIONS, ids=lambda each: each.__name__)
def test_kafka_says_so_still(conversation: Callable[[Played], list[Line]], kafka_leader: Played) -> None:
    check(conversation, kafka_leader)


def record() -> None:
    with tempfile.TemporaryDirectory() as folder, kafka_leads(Path(folder)) as cluster:
        answers = {conversation.__name__: conversation(cluster) for conversation in CONVERSATIONS}
    lines = [
        f"  {json.dumps(name)}: [\n" + ",\n".join(f"    {json.dumps(line)}" for line in said) + "\n  ]"
        for name, said in answers.items()
    ]
    RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    record()
