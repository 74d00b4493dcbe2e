"""Record anew what Apache Kafka 4.4.0 answers: ``python -m tests.golden.configs.record``.

Needs Java and the jars (see ``compat.oracle``); starts a node of its own.
"""

import json
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from compat.oracle.kafka import kafka_node
from compat.probe import split_address
from protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from protocol.messages.describe_configs import DescribeConfigsResponse
from tests.golden.configs.answers import ANSWERS, brief_answer, brief_request
from tests.golden.configs.steps import BROKER, GROUP, METRICS, STEPS, TOPIC, describe
from tests.support.raw_client import RawClient

HERE = Path(__file__).resolve().parent

SETTLE_SECONDS = 0.3
"""A Kafka broker learns of what its controller has acknowledged a moment later."""

OF_THE_PLACE = ("controller.quorum.bootstrap.servers", "listeners", "advertised.listeners", "log.dirs")
"""Settings whose values say where the recording was made."""


def write_lines(name: str, rows: Iterable[Any]) -> None:
    """A JSON list, one entry a line."""
    lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    (HERE / name).write_text(f"[\n{lines}\n]\n", encoding="utf-8")


def record(client: RawClient) -> None:
    topic = CreatableTopic(name="t1", num_partitions=1, replication_factor=1)
    made = client.ask(CreateTopicsRequest(topics=[topic]), CreateTopicsResponse, 7)
    time.sleep(SETTLE_SECONDS)
    created = made.topics[0].configs or []
    write_lines(
        "created_topic.json",
        [[c.name, c.value, c.config_source, c.read_only, c.is_sensitive] for c in created],
    )
    resources = ((BROKER, "1", None), (TOPIC, "t1", None), (GROUP, "g", None), (METRICS, "m", None))
    described = brief_answer(client.ask(describe(*resources), DescribeConfigsResponse, 4))
    kinds = ("broker", "topic", "group", "client-metrics")
    write_lines(
        "described.json",
        [
            [kind, *setting]
            for kind, (_, _, settings) in zip(kinds, described, strict=True)
            for setting in settings
            if setting[0] not in OF_THE_PLACE
        ],
    )
    transcript = []
    for request in STEPS:
        kind_of_answer, version = ANSWERS[type(request)]
        answer = client.ask(request, kind_of_answer, version)
        transcript.append({"ask": brief_request(request), "answer": brief_answer(answer)})
        time.sleep(SETTLE_SECONDS)
    write_lines("transcript.json", transcript)


def main() -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        kafka_node(Path(folder)) as node,
        RawClient(split_address(node.bootstrap)) as client,
    ):
        record(client)
    sys.stdout.write("recorded\n")


if __name__ == "__main__":
    main()
