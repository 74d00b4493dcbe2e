"""Record anew what Apache Kafka 4.4.0 answers: ``python -m tests.golden.configs.record``.

Needs a JDK and the jars (see ``compat.oracle``); starts a node of its own.  The questions are those of
``steps.py``, and those that stand in ``values.json``, ``broker_checks.json`` and ``properties.json`` already.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from compat.oracle.java import java_command
from compat.oracle.kafka import kafka_node
from compat.probe import split_address
from protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from protocol.messages.describe_configs import DescribeConfigsResponse
from protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from tests.golden.configs.alterable import asked_about_all
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
    lines = ",\n".join(json.dumps(row) for row in rows)
    (HERE / name).write_text(f"[\n{lines}\n]\n", encoding="utf-8")


def record_alterable(client: RawClient) -> None:
    def ask(request: IncrementalAlterConfigsRequest) -> tuple[int, str | None]:
        (answer,) = client.ask(request, IncrementalAlterConfigsResponse, 1).responses
        return answer.error_code, answer.error_message

    text = json.dumps(asked_about_all(ask), indent=1, ensure_ascii=False)
    (HERE / "alterable.json").write_text(f"{text}\n", encoding="utf-8")


def record(client: RawClient) -> None:
    record_alterable(client)
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


A_NODE = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
    "controller.quorum.bootstrap.servers": "127.0.0.1:9093",
}
"""The settings to which a check adds others, or from which it takes some (null)."""


def ask_kafka(questions: Iterable[Any]) -> list[Any]:
    """The answers of ``AskKafka.java``."""
    asked = "".join(f"{json.dumps(question)}\n" for question in questions)
    done = subprocess.run(
        java_command(str(HERE / "AskKafka.java")), input=asked, stdout=subprocess.PIPE, text=True, check=True
    )
    return [json.loads(line) for line in done.stdout.split("\n") if line]


def record_checks() -> None:
    cases = json.loads((HERE / "broker_checks.json").read_text(encoding="utf-8"))
    merged = [{**A_NODE, **case["settings"]} for case in cases]
    nodes = [{name: text for name, text in node.items() if text is not None} for node in merged]
    refusals = ask_kafka({"ask": "check", "settings": node} for node in nodes)
    write_lines(
        "broker_checks.json",
        [
            {"settings": case["settings"], "refused": refused}
            for case, refused in zip(cases, refusals, strict=True)
        ],
    )


def record_properties() -> None:
    files = [case["file"] for case in json.loads((HERE / "properties.json").read_text(encoding="utf-8"))]
    pairs = ask_kafka({"ask": "properties", "file": file} for file in files)
    write_lines(
        "properties.json", [{"file": file, "pairs": read} for file, read in zip(files, pairs, strict=True)]
    )


def record_values() -> None:
    recorded = json.loads((HERE / "values.json").read_text(encoding="utf-8"))
    texts = [text for texts in recorded[0]["outcomes"].values() for text in texts]
    (answer,) = ask_kafka([{"ask": "values", "texts": texts}])
    groups: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for setting, outcomes in answer.items():
        name = setting.partition("/")[2]
        templates = [template(outcome, name, text) for text, outcome in zip(texts, outcomes, strict=True)]
        groups[tuple(templates)].append(setting)
    blocks = []
    for templates_of_group, settings in groups.items():
        by_outcome: dict[str, list[str | None]] = defaultdict(list)
        for text, outcome in zip(texts, templates_of_group, strict=True):
            by_outcome[outcome].append(text)
        names = ",\n".join(f"  {json.dumps(setting)}" for setting in settings)
        rows = ",\n".join(
            f"  {json.dumps(outcome, ensure_ascii=False)}:\n    {json.dumps(given, ensure_ascii=False)}"
            for outcome, given in by_outcome.items()
        )
        blocks.append(f'{{"settings": [\n{names}],\n "outcomes": {{\n{rows}}}}}')
    (HERE / "values.json").write_text("[\n" + ",\n".join(blocks) + "\n]\n", encoding="utf-8")


def template(outcome: str, name: str, text: str | None) -> str:
    """The outcome with ``{name}`` and ``{value}`` for what differs between settings and values."""
    outcome = outcome.replace(name, "{name}")
    if text is None or not text.strip():
        return outcome
    if outcome == f"= {text}":
        return "= {value}"
    if outcome.startswith("!"):
        for shown in (text, text.strip()):
            for before, after in (("Invalid value ", " for"), ("`", "`"), ("Class ", " could")):
                outcome = outcome.replace(f"{before}{shown}{after}", f"{before}{{value}}{after}")
    return outcome


def main() -> None:
    record_values()
    record_checks()
    record_properties()
    with (
        tempfile.TemporaryDirectory() as folder,
        kafka_node(Path(folder)) as node,
        RawClient(split_address(node.bootstrap)) as client,
    ):
        record(client)
    sys.stdout.write("recorded\n")


if __name__ == "__main__":
    main()
