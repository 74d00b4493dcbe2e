"""One Ottla broker grows into a cluster of Apache Kafka, and back, while clients are at work.

``python -m compat.cluster.growing [--release 4.2] [--seed S] [--folder F]`` does it with the commands that a
user would type, and tells how long each step took, and what is broken in the end.
"""

import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.cimpl import NewTopic

from compat.cluster.clients import PARTITIONS, LongLived, Traffic
from compat.cluster.nodes import OTTLA_ID, SMALL_CLUSTER, OttlaNode, stamp
from compat.cluster.operators import format_to_join, hand_over, run_ottla, said
from compat.cluster.quorum import ask, describe
from compat.oracle.java import run_tool
from compat.oracle.kafka import KafkaNode, kept_addresses
from compat.waiting import wait_until
from protocol.error_codes import ErrorCode
from protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from protocol.messages.unregister_controller import UnregisterControllerRequest, UnregisterControllerResponse
from tests.integration.cluster.command import conclude, new_parser, say
from tests.integration.cluster.traffic import QUICK

KAFKA_IDS: Final = (101, 102, 103)

PATIENCE_SECONDS: Final = 120.0

SECURITY: Final = {"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT"}

PLANNING: Final = r"""
  BEGIN { n = split(brokers, b, " "); print "{\"version\": 1, \"partitions\": [" }
  $3 == "Partition:" {
    replicas = ""
    for (i = 0; i < n; i++) replicas = replicas (i ? ", " : "") b[($4 + i) % n + 1]
    printf "%s{\"topic\": \"%s\", \"partition\": %d, \"replicas\": [%s]}\n", comma, $2, $4, replicas
    comma = ","
  }
  END { print "]}" }
"""
"""Makes a plan for ``kafka-reassign-partitions`` of what ``kafka-topics --describe`` says."""

Place = tuple[str, int]
"""A topic and a partition."""


class Growing:
    """The nodes of both kinds, and the steps on the way there and back; ``say`` is told of each."""

    def __init__(self, folder: Path, release: str, say: Callable[[str], None]) -> None:
        self.folder = folder
        self._release = release
        self._say = say
        self._began = time.monotonic()
        self.ottla = OttlaNode(folder / "ottla")
        places = {node_id: folder / f"kafka-{node_id}" for node_id in KAFKA_IDS}
        addresses = [kept_addresses(place) for place in places.values()]
        self.controllers = ",".join([self.ottla.controller, *(controller for _, controller in addresses)])
        """Of everybody, now and then."""
        self.bootstrap = ",".join([self.ottla.bootstrap, *(broker for broker, _ in addresses)])
        self.kafkas = {
            node_id: KafkaNode(
                place,
                {**SECURITY, **SMALL_CLUSTER},
                node_id=node_id,
                controllers=self.controllers,
                heap_mebibytes=300,
            )
            for node_id, place in places.items()
        }
        self.admin = AdminClient({**QUICK, "bootstrap.servers": self.bootstrap})

    def close(self) -> None:
        nodes: list[OttlaNode | KafkaNode] = [*self.kafkas.values(), self.ottla]
        for node in nodes:
            if node.is_running:
                node.kill()

    def note(self, text: str) -> None:
        self._say(f"{time.monotonic() - self._began:6.1f} s  {text}")

    # One node

    def begin(self) -> None:
        """Ottla alone: first as one is that nobody is to join, and then at addresses for others."""
        run_ottla("format", "--data", str(self.ottla.data), "--release-version", self._release)
        settings, self.ottla.settings = self.ottla.settings, dict(SMALL_CLUSTER)
        port = self.ottla.bootstrap.rpartition(":")[2]
        self.ottla.arguments = ["--port", port]
        self.ottla.start()
        self.make_topic(LongLived.TOPIC, 1)
        self.ottla.stop()
        self.ottla.arguments = []
        self.ottla.settings = settings
        self.ottla.start()
        self.note(f"Ottla is alone, with the features of Kafka {self._release}")

    def make_topic(self, name: str, partitions: int = PARTITIONS, replicas: int = 1) -> None:
        self.admin.create_topics([NewTopic(name, partitions, replicas)])[name].result(PATIENCE_SECONDS)

    # There

    def add_kafkas(self) -> None:
        """Kafka's nodes join as brokers and observers of the quorum."""

        def format_and_launch(node: KafkaNode) -> None:
            node.format("--no-initial-controllers", cluster_id=self.ottla.cluster_id)
            node.launch()

        with ThreadPoolExecutor() as threads:
            list(threads.map(format_and_launch, self.kafkas.values()))
        self.wait_for_brokers({OTTLA_ID, *KAFKA_IDS})
        self.note("Kafka's brokers have joined")

    def restart_ottla_with_all_controllers(self) -> None:
        self.ottla.stop()
        self.ottla.settings["controller.quorum.bootstrap.servers"] = self.controllers
        self.ottla.start()
        self.note("Ottla knows the new controllers")

    def add_voters(self) -> None:
        """The other controllers of Kafka's vote beside the first one."""
        for node_id in KAFKA_IDS[1:]:
            configuration = ("--command-config", str(self.kafkas[node_id].folder / "server.properties"))

            def is_added(node_id: int = node_id, configuration: tuple[str, str] = configuration) -> bool:
                asked = ("--bootstrap-server", self.kafkas[node_id].bootstrap)
                done = run_tool("kafka-metadata-quorum", *configuration, *asked, "add-controller")
                return f"Added controller {node_id}" in done.output

            wait_until(is_added, f"{node_id} is added", patience_seconds=PATIENCE_SECONDS)
        wait_until(lambda: set(self.voters()) == set(KAFKA_IDS), "all of Kafka's controllers vote")
        self.note("Kafka's controllers are three")

    def retire_ottla(self) -> None:
        """Stop it, and let the cluster forget it."""
        self.ottla.stop()
        asked = ("--bootstrap-server", self.kafkas[KAFKA_IDS[0]].bootstrap)
        who = ("--id", str(OTTLA_ID))
        said("kafka-cluster", "unregister", *asked, *who)
        said("kafka-features", *asked, "upgrade", "--release-version", "4.4")
        told = said(
            "kafka-cluster", "unregister-controller", *asked, *who
        )  # which a release before 4.4 refuses
        assert "is no longer registered" in told, told
        self.wait_for_brokers(set(KAFKA_IDS))
        self.note("Ottla has retired, and the features are those of Kafka 4.4")

    # Back

    def add_empty_ottla(self) -> None:
        """Ottla joins Kafka's cluster with a new directory, in the place of the one that had retired."""
        (self.ottla.data).rename(self.ottla.folder / "retired")
        format_to_join(self.ottla, stamp(self.kafkas[KAFKA_IDS[0]].data, "cluster.id"))
        self.ottla.start()
        self.wait_for_brokers({OTTLA_ID, *KAFKA_IDS})
        self.note("an empty Ottla has joined")

    def retire_kafkas(self) -> None:
        with ThreadPoolExecutor() as threads:
            list(threads.map(KafkaNode.stop, self.kafkas.values()))
        for node_id in KAFKA_IDS:
            # As the tool does, which takes its time.
            for answer in (
                ask(
                    self.ottla.bootstrap,
                    UnregisterBrokerRequest(broker_id=node_id),
                    UnregisterBrokerResponse,
                    0,
                ),
                ask(
                    self.ottla.bootstrap,
                    UnregisterControllerRequest(controller_id=node_id),
                    UnregisterControllerResponse,
                    0,
                ),
            ):
                assert answer is not None
                assert answer.error_code == ErrorCode.NONE
        self.wait_for_brokers({OTTLA_ID})
        self.note("Kafka has retired")

    # Either way

    def hand_over(self, to: int) -> None:
        hand_over(self.some_broker(), to)
        assert self.voters() == [to]
        self.note(f"node {to} is the controller, alone")

    def move_everything(self, to: Sequence[int]) -> None:
        """Let each partition have its replicas on all the nodes ``to``, with the leaders in turn."""
        door = ("--bootstrap-server", self.bootstrap)
        planning = subprocess.run(
            ["awk", "-v", f"brokers={' '.join(map(str, to))}", PLANNING],
            input=said("kafka-topics", *door, "--describe"),
            capture_output=True,
            text=True,
            check=True,
        )
        plan = self.folder / "plan.json"
        plan.write_text(planning.stdout)
        wanted = {
            (each["topic"], each["partition"]): each["replicas"]
            for each in json.loads(planning.stdout)["partitions"]
        }
        assert sorted(wanted) == self.places()
        asked = (*door, "--reassignment-json-file", str(plan))
        said("kafka-reassign-partitions", *asked, "--execute")

        def has_moved() -> bool:
            try:
                topics = self.admin.list_topics(timeout=10).topics
            except KafkaException:
                return False
            return all(
                found.replicas == replicas and set(found.isrs) == set(replicas) and found.leader in replicas
                for (topic, partition), replicas in wanted.items()
                for found in [topics[topic].partitions[partition]]
            )

        wait_until(has_moved, f"everything is on {to}", patience_seconds=PATIENCE_SECONDS)
        verified = said("kafka-reassign-partitions", *asked, "--verify")
        assert verified.count("is completed") == len(wanted), verified
        self.note(f"{len(wanted)} partitions have their replicas on {', '.join(map(str, to))}")

    def set_min_in_sync(self, count: int) -> None:
        """For all topics that do not say otherwise, as those of transactions and share groups do: two."""
        setting = ("--alter", "--add-config", f"min.insync.replicas={count}")
        door = ("--bootstrap-server", self.bootstrap)
        said("kafka-configs", *door, "--entity-type", "brokers", "--entity-default", *setting)
        self.note(f"{count} replicas must be in sync")

    def set_share_group(self, group: str) -> None:
        """Let a share group that comes begin at the beginning."""
        entry = ConfigEntry(
            "share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET
        )
        resource = ConfigResource(ResourceType.GROUP, group, incremental_configs=[entry])
        for done in self.admin.incremental_alter_configs([resource]).values():
            done.result(PATIENCE_SECONDS)

    def places(self) -> list[Place]:
        """All partitions of all topics."""
        topics = self.admin.list_topics(timeout=PATIENCE_SECONDS).topics
        return sorted((name, partition) for name, topic in topics.items() for partition in topic.partitions)

    def wait_for_brokers(self, expected: set[int]) -> None:
        def are_there() -> bool:
            try:
                return set(self.admin.list_topics(timeout=10).brokers) == expected
            except KafkaException:
                return False

        wait_until(are_there, f"the brokers are {expected}", patience_seconds=PATIENCE_SECONDS)

    def some_broker(self) -> str:
        nodes: list[OttlaNode | KafkaNode] = [self.ottla, *self.kafkas.values()]
        return next(node.bootstrap for node in nodes if node.is_running)

    def voters(self) -> list[int]:
        """As the leader says; none while there is no leader."""
        for address in self.controllers.split(","):
            told = describe(address)
            if told is not None:
                return sorted(voter.replica_id for voter in told.current_voters)
        return []


class Journey:
    """The way there, ``grow``, and the way back, ``go_back``; each returns what is broken."""

    def __init__(self, growing: Growing, chance: random.Random) -> None:
        self._growing = growing
        self._long_lived = LongLived(growing.bootstrap)
        self._there = Traffic(growing.bootstrap, "there", chance)
        self._back = Traffic(growing.bootstrap, "back", chance)

    def grow(self) -> list[str]:
        """From Ottla alone to Kafka alone."""
        growing, traffic = self._growing, self._there
        growing.begin()
        growing.make_topic(traffic.topic)
        growing.make_topic(LongLived.SHARED, 1)
        growing.set_share_group(LongLived.SHARE_GROUP)
        self._long_lived.begin()
        traffic.start()
        growing.note("clients are at work")
        for step in (
            growing.add_kafkas,
            lambda: growing.move_everything(KAFKA_IDS),
            lambda: growing.set_min_in_sync(2),
            growing.restart_ottla_with_all_controllers,
            lambda: growing.hand_over(KAFKA_IDS[0]),
            growing.add_voters,
            growing.retire_ottla,
        ):
            step()
            traffic.wait_for_more()
            growing.note("and all clients get on")
        broken = [*self._long_lived.end(), *traffic.end()]
        growing.note(f"there: {traffic.told()}")
        return broken

    def go_back(self) -> list[str]:
        """From Kafka alone to Ottla alone."""
        growing, traffic = self._growing, self._back
        growing.make_topic(traffic.topic, replicas=len(KAFKA_IDS))
        traffic.start()
        growing.note("clients are at work again")
        for step in (
            growing.add_empty_ottla,
            lambda: growing.hand_over(OTTLA_ID),
            lambda: growing.set_min_in_sync(1),
            lambda: growing.move_everything([OTTLA_ID]),
            growing.retire_kafkas,
        ):
            step()
            traffic.wait_for_more()
            growing.note("and all clients get on")
        broken = traffic.end()
        growing.ottla.stop()
        growing.ottla.start()
        broken += [*traffic.check_kept(), *self._there.check_kept()]
        growing.note(f"back: {traffic.told()}")
        return broken


@contextmanager
def journey_in(
    folder: Path, chance: random.Random, say: Callable[[str], None], *, release: str
) -> Iterator[Journey]:
    """Not begun yet; its nodes are in ``folder``, and killed behind the block.  Raises KafkaMissing."""
    growing = Growing(folder, release, say)
    try:
        yield Journey(growing, chance)
    finally:
        growing.close()


def main() -> int:
    parser = new_parser("compat.cluster.growing")
    parser.add_argument("--release", default="4.2", help="the oldest Kafka that might join; default: 4.2")
    options = parser.parse_args()
    say(f"seed {options.seed}")
    with tempfile.TemporaryDirectory() as temporary:
        folder, chance = options.folder or Path(temporary), random.Random(options.seed)
        with journey_in(folder, chance, say, release=options.release) as journey:
            broken = [*journey.grow(), *journey.go_back()]
    return conclude(broken)


if __name__ == "__main__":
    sys.exit(main())
