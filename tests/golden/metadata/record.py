"""Record anew what Apache Kafka 4.4.0 answers: ``python -m tests.golden.metadata.record``.

Needs Java and the jars (see ``compat.oracle``); starts a node of its own.
"""

import json
import sys
import tempfile
import time
from pathlib import Path

from compat.oracle.kafka import kafka_node
from compat.probe import split_address
from tests.golden.metadata.answers import brief_answer, note_ids
from tests.golden.metadata.steps import ANSWERS, STEPS
from tests.support.raw_client import RawClient

HERE = Path(__file__).resolve().parent

SETTLE_SECONDS = 0.2
"""A Kafka broker learns of what its controller has acknowledged a moment later."""


def record(client: RawClient) -> None:
    ids: dict[str, bytes] = {}
    lines = []
    for step in STEPS:
        request = step.ask(ids)
        answer = client.ask(request, ANSWERS[type(request)], step.version)
        note_ids(answer, ids)
        lines.append(json.dumps({"step": step.label, "answer": brief_answer(answer)}, ensure_ascii=False))
        time.sleep(SETTLE_SECONDS)
    (HERE / "transcript.json").write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")


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
