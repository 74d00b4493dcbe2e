"""Record anew what Apache Kafka 4.4.0 answers: ``python -m tests.golden.groups.record``.

Needs Java and the jars (see ``compat.oracle``); starts a node of its own.
"""

import json
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from compat.oracle.kafka import KafkaNode, kafka_node
from compat.probe import split_address
from protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from protocol.schema import Message
from tests.golden.groups.answers import Names
from tests.golden.groups.steps import ANSWERS, SETTINGS, STEPS
from tests.support.raw_client import RawClient

HERE = Path(__file__).resolve().parent

SETTLE_SECONDS = 0.3
"""What one client has begun must have arrived before the next one speaks."""


def record(node: KafkaNode) -> None:
    names = Names()
    lines = []
    with ExitStack() as stack:
        clients = {
            name: stack.enter_context(RawClient(split_address(node.bootstrap), client_id=f"client-{name}"))
            for name in sorted({step.client for step in STEPS if step.client})
        }
        for client in clients.values():
            wait_for_coordinators(client)
        names.note_topic("t", make_topic(clients["a"], "t"))
        pending: dict[str, tuple[type[Message], int]] = {}
        for step in STEPS:
            if step.pass_ms:
                time.sleep(step.pass_ms / 1000)
                continue
            client = clients[step.client]
            if step.request is not None:
                client.send(names.fill_in(step.request), step.version)
                pending[step.client] = ANSWERS[type(step.request)], step.version
            if not step.answered:
                time.sleep(SETTLE_SECONDS)
                continue
            answer = client.receive(*pending.pop(step.client))
            names.note_member(answer, step.name)
            lines.append(json.dumps({"step": step.label, "answer": names.brief(answer)}, ensure_ascii=False))
    (HERE / "transcript.json").write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")


def wait_for_coordinators(client: RawClient) -> None:
    """The topic behind them is made when somebody asks for the first time."""
    for _ in range(100):
        found = client.ask(FindCoordinatorRequest(key="g"), FindCoordinatorResponse, 0)
        if not found.error_code:
            time.sleep(1)
            return
        time.sleep(0.1)
    raise RuntimeError("there is no coordinator")


def make_topic(client: RawClient, name: str) -> bytes:
    """A topic of three partitions; its id."""
    topic = CreatableTopic(name=name, num_partitions=3, replication_factor=1)
    request = CreateTopicsRequest(topics=[topic], timeout_ms=10_000)
    made = client.ask(request, CreateTopicsResponse, 7).topics[0]
    if made.error_code:
        raise RuntimeError(f"topic {name} could not be made: {made.error_message}")
    time.sleep(1)
    return made.topic_id


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, kafka_node(Path(folder), SETTINGS) as node:
        record(node)
    sys.stdout.write("recorded\n")


if __name__ == "__main__":
    main()
