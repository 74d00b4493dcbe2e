"""The controller goes to Apache Kafka and back, again and again, and each time somebody is killed meanwhile.

``python -m compat.cluster.interrupted_handover [--rounds N] [--seed S] [--folder F]`` does it under traffic,
and tells what is broken in the end.
"""

import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from compat.broker_process import ROOT
from compat.cluster.clients import PARTITIONS, Traffic
from compat.cluster.nodes import OTTLA_ID, OttlaNode, kafka_in
from compat.cluster.quorum import describe, leads
from compat.oracle.kafka import KafkaNode, kept_addresses
from compat.waiting import wait_until
from tests.integration.cluster.command import conclude, new_parser, say
from tests.integration.cluster.traffic import QUICK

KAFKA_ID: Final = 101
PATIENCE_SECONDS: Final = 120.0

DURING: Final = "during"
"""At some moment, which chance chooses."""

MOMENTS: Final = (DURING, "votes", "votes no longer", "is the controller")
"""When somebody is killed: once the command has said so of a node."""

VICTIMS: Final = ("ottla", "kafka")

SETTINGS: Final = {
    "offsets.topic.replication.factor": "2",
    "transaction.state.log.replication.factor": "2",
    "transaction.state.log.min.isr": "1",
}


class Pair:
    """A node of each kind, with broker and controller both, and what they were asked for."""

    def __init__(self, ottla: OttlaNode, kafka: KafkaNode, chance: random.Random) -> None:
        self._nodes: dict[str, OttlaNode | KafkaNode] = {"ottla": ottla, "kafka": kafka}
        self._controllers = {OTTLA_ID: ottla.controller, KAFKA_ID: kafka.controller}
        self._chance = chance
        self.bootstrap = f"{ottla.bootstrap},{kafka.bootstrap}"
        self.admin = AdminClient({**QUICK, "bootstrap.servers": self.bootstrap})
        self.made: list[str] = []
        """Topics that were acknowledged."""

    def hand_over(self, to: int, victim: str, moment: str) -> None:
        """Kill the victim at the moment, start it again, and let the command finish at last."""
        node = self._nodes[victim]
        process = self._begin(to)
        assert process.stdout is not None
        if moment == DURING:
            time.sleep(self._chance.uniform(0.2, 1.0))
        else:
            for line in process.stdout:
                if line.rstrip().endswith(moment):
                    break
        node.kill()
        node.launch()
        process.communicate()
        if process.returncode:
            wait_until(
                lambda: self._is_done(to), f"{to} is the controller", patience_seconds=PATIENCE_SECONDS
            )
        wait_until(lambda: leads(self._controllers[to]), f"{to} leads", patience_seconds=PATIENCE_SECONDS)
        told = describe(self._controllers[to])
        assert told is None or [voter.replica_id for voter in told.current_voters] == [to]

    def make_topic(self) -> None:
        """One that is to outlive everything."""
        name = f"made-{len(self.made)}"

        def is_made() -> bool:
            try:
                self.admin.create_topics([NewTopic(name, 1, 1)])[name].result(15)
            except KafkaException as error:
                return "TOPIC_ALREADY_EXISTS" in str(error)
            return True

        _wait(is_made, f"{name} is made")
        self.made.append(name)

    def wait_in_sync(self, topic: str) -> None:
        def is_in_sync() -> bool:
            try:
                partitions = self.admin.list_topics(topic, timeout=10).topics[topic].partitions.values()
            except KafkaException:
                return False
            return len(partitions) == PARTITIONS and all(len(each.isrs) == 2 for each in partitions)

        _wait(is_in_sync, f"{topic} is in sync")

    def _is_done(self, to: int) -> bool:
        process = self._begin(to)
        process.communicate()
        return process.returncode == 0

    def _begin(self, to: int) -> "subprocess.Popen[str]":
        door = self._chance.choice(self.bootstrap.split(","))
        return subprocess.Popen(
            [sys.executable, "-m", "ottla", "handover", "--bootstrap-server", door, "--to", str(to)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=ROOT,
        )


def _wait(holds: Callable[[], object], what: str) -> None:
    wait_until(holds, what, patience_seconds=PATIENCE_SECONDS)


@contextmanager
def _pair_in(folder: Path, chance: random.Random) -> Iterator[Pair]:
    ottla = OttlaNode(folder / "ottla", SETTINGS)
    place = folder / "kafka"
    _, controller = kept_addresses(place)
    controllers = f"{ottla.controller},{controller}"
    ottla.settings["controller.quorum.bootstrap.servers"] = controllers
    ottla.start()
    try:
        kafka = kafka_in(
            ottla,
            place,
            node_id=KAFKA_ID,
            roles="broker,controller",
            settings={**SETTINGS, "controller.quorum.bootstrap.servers": controllers},
        )
        kafka.start()
        try:
            pair = Pair(ottla, kafka, chance)
            _wait(lambda: len(pair.admin.list_topics(timeout=10).brokers) == 2, "both brokers are there")
            yield pair
        finally:
            kafka.kill()
    finally:
        ottla.kill()


def hand_over_and_kill(
    folder: Path, chance: random.Random, rounds: Sequence[tuple[str, str]], say: Callable[[str], None]
) -> list[str]:
    """There and back in turn, with a victim and a moment each time; what is broken.  Raises KafkaMissing."""
    began = time.monotonic()
    with _pair_in(folder, chance) as pair:
        topic = "handed-over"
        pair.admin.create_topics([NewTopic(topic, PARTITIONS, 2)])[topic].result(PATIENCE_SECONDS)
        traffic = Traffic(pair.bootstrap, topic, chance)
        traffic.start()
        leader = OTTLA_ID
        for victim, moment in rounds:
            leader = KAFKA_ID if leader == OTTLA_ID else OTTLA_ID
            pair.hand_over(leader, victim, moment)
            pair.make_topic()
            traffic.wait_for_more()
            pair.wait_in_sync(topic)
            say(f"{time.monotonic() - began:6.1f} s  to node {leader}; {victim} was killed: {moment}")
        broken = traffic.end()
        topics = pair.admin.list_topics(timeout=PATIENCE_SECONDS).topics
        broken += [f"{name} is no more" for name in pair.made if name not in topics]
        say(traffic.told())
        return broken


def rounds_by_chance(chance: random.Random, count: int) -> list[tuple[str, str]]:
    """Victims and moments, each pair once before any comes again."""
    every = [(victim, moment) for victim in VICTIMS for moment in MOMENTS]
    rounds: list[tuple[str, str]] = []
    while len(rounds) < count:
        rounds += chance.sample(every, len(every))
    return rounds[:count]


def main() -> int:
    parser = new_parser("compat.cluster.interrupted_handover")
    parser.add_argument("--rounds", type=int, default=16)
    options = parser.parse_args()
    say(f"seed {options.seed}")
    chance = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as temporary:
        broken = hand_over_and_kill(
            options.folder or Path(temporary), chance, rounds_by_chance(chance, options.rounds), say
        )
    return conclude(broken)


if __name__ == "__main__":
    sys.exit(main())
