"""The controller is handed over to Apache Kafka while clients go on, and back; either side dies meanwhile."""

import re
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from compat.cluster.lengthy import LENGTHY
from compat.cluster.nodes import OTTLA_ID, OttlaNode, ottla_and_kafka, stamp
from compat.cluster.operators import ottla_command
from compat.cluster.quorum import add_voter, describe, leads, remove_voter, voters
from compat.cluster.records import Worker, first_partition, numbers, writing
from compat.oracle.java import run_tool
from compat.oracle.kafka import KafkaNode
from compat.waiting import wait_until

pytestmark = pytest.mark.slow

KAFKA_ID = 101

TOPIC = "t"


class Pair:
    """Ottla with its broker, and a controller of Kafka's that copies its metadata."""

    def __init__(self, ottla: OttlaNode, kafka: KafkaNode) -> None:
        self.ottla = ottla
        self.kafka = kafka
        self._made = 0

    @property
    def kafka_directory_id(self) -> str:
        return stamp(self.kafka.data, "directory.id")

    def leader(self) -> str | None:
        """The address of the controller that leads."""
        return next((each for each in (self.ottla.controller, self.kafka.controller) if leads(each)), None)

    def let_kafka_vote(self) -> None:
        wait_until(
            lambda: add_voter(
                self.leader() or self.ottla.controller,
                KAFKA_ID,
                self.kafka_directory_id,
                self.kafka.controller,
            ),
            "Kafka's controller votes",
        )

    def let_ottla_vote(self) -> None:
        wait_until(
            lambda: add_voter(
                self.leader() or self.kafka.controller,
                OTTLA_ID,
                self.ottla.directory_id,
                self.ottla.controller,
            ),
            "Ottla votes",
        )

    def let_ottla_go(self) -> None:
        wait_until(
            lambda: (
                (leader := self.leader()) is not None
                and (voters(leader) == [KAFKA_ID] or remove_voter(leader, OTTLA_ID, self.ottla.directory_id))
            ),
            "Ottla votes no longer",
        )
        wait_until(lambda: leads(self.kafka.controller), "Kafka leads")

    def let_kafka_go(self) -> None:
        wait_until(
            lambda: (
                (leader := self.leader()) is not None
                and (voters(leader) == [OTTLA_ID] or remove_voter(leader, KAFKA_ID, self.kafka_directory_id))
            ),
            "Kafka's controller votes no longer",
        )
        wait_until(lambda: leads(self.ottla.controller), "Ottla leads")

    def check_that_it_works(self) -> None:
        """Make a topic, whoever the controller is, and find it where it was asked for."""
        self._made += 1
        name = f"made-{self._made}"

        def is_made() -> bool:
            admin = AdminClient({"bootstrap.servers": self.ottla.bootstrap})
            try:
                admin.create_topics([NewTopic(name, 1, 1)])[name].result(15)
            except Exception as error:  # whatever confluent-kafka says while there is no controller
                return "TOPIC_ALREADY_EXISTS" in str(error)
            return True

        wait_until(is_made, f"{name} is made")
        with Worker(writing(self.ottla.bootstrap, name)) as worker:
            worker.wait_for(1)


@contextmanager
def pair_in(folder: Path, settings: Mapping[str, str] | None = None) -> Iterator[Pair]:
    """``settings`` are Kafka's."""
    with ottla_and_kafka(folder, kafka_id=KAFKA_ID, roles="controller", settings=settings) as nodes:
        pair = Pair(*nodes)
        admin = AdminClient({"bootstrap.servers": pair.ottla.bootstrap})
        admin.create_topics([NewTopic(TOPIC, 1, 1)])[TOPIC].result(30)
        yield pair


def errors(kafka: KafkaNode) -> list[str]:
    """What Kafka has logged as an error, but for requests that met it just before it was the controller."""
    entries = re.split(r"\n(?=\d{4}-)", kafka.log.read_text())
    return [
        entry
        for entry in entries
        if " ERROR " in entry and not (" ControllerApis: " in entry and "NotControllerException" in entry)
    ]


def test_there_and_back_while_a_producer_writes(kafka_jars: Path, tmp_path: Path) -> None:
    with pair_in(tmp_path) as pair, Worker(writing(pair.ottla.bootstrap, TOPIC)) as worker:
        worker.wait_for(100)
        pair.let_kafka_vote()
        pair.check_that_it_works()
        worker.wait_for(100)
        pair.let_ottla_go()
        pair.check_that_it_works()
        worker.wait_for(100)
        told = describe(pair.kafka.controller)
        assert told is not None
        assert [voter.replica_id for voter in told.current_voters] == [KAFKA_ID]
        assert [observer.replica_id for observer in told.observers] == [OTTLA_ID]
        assert describe(pair.ottla.controller) is None
        pair.let_ottla_vote()
        pair.check_that_it_works()
        pair.let_kafka_go()
        pair.check_that_it_works()
        worker.wait_for(100)
        assert voters(pair.ottla.controller) == [OTTLA_ID]
    assert worker.failure is None
    assert errors(pair.kafka) == []
    pair.ottla.start()
    try:
        assert first_partition(pair.ottla.bootstrap, TOPIC, worker.done) == numbers(worker.done)
    finally:
        pair.ottla.stop()


@LENGTHY
@pytest.mark.parametrize("dies", ["ottla", "kafka", "both"])
@pytest.mark.parametrize("when", ["before", "both vote", "after"])
def test_somebody_dies_at_each_step(kafka_jars: Path, tmp_path: Path, when: str, dies: str) -> None:
    with pair_in(tmp_path) as pair:
        if when != "before":
            pair.let_kafka_vote()
            pair.check_that_it_works()
        if when == "after":
            pair.let_ottla_go()
        nodes: dict[str, OttlaNode | KafkaNode] = {"ottla": pair.ottla, "kafka": pair.kafka}
        mortals = list(nodes.values()) if dies == "both" else [nodes[dies]]
        for node in mortals:
            node.kill()
        for node in reversed(mortals):
            node.launch()
        wait_until(lambda: pair.leader() is not None, "somebody leads")
        pair.check_that_it_works()
        pair.let_kafka_vote()
        pair.let_ottla_go()
        pair.check_that_it_works()
        assert voters(pair.kafka.controller) == [KAFKA_ID]


def test_a_controller_of_kafka_joins_by_itself(kafka_jars: Path, tmp_path: Path) -> None:
    with pair_in(tmp_path, {"controller.quorum.auto.join.enable": "true"}) as pair:
        wait_until(lambda: voters(pair.ottla.controller) == [OTTLA_ID, KAFKA_ID], "Kafka's controller votes")
        pair.check_that_it_works()


def test_kafka_s_tool_does_it(kafka_jars: Path, tmp_path: Path) -> None:
    with pair_in(tmp_path) as pair:
        controllers = ("--bootstrap-controller", pair.ottla.controller)
        newcomer = ("--command-config", str(pair.kafka.folder / "server.properties"))

        def is_added() -> bool:
            done = run_tool("kafka-metadata-quorum", *newcomer, *controllers, "add-controller")
            return f"Added controller {KAFKA_ID}" in done.output

        wait_until(is_added, "Kafka's controller is added")
        directory = pair.ottla.directory_id
        done = run_tool(
            "kafka-metadata-quorum",
            *controllers,
            *("remove-controller", "--controller-id", "1", "--controller-directory-id", directory),
        )
        assert f"Removed KRaft controller {OTTLA_ID}" in done.output, done.errors
        wait_until(lambda: leads(pair.kafka.controller), "Kafka leads")

        def status() -> str:
            asked = ("--bootstrap-server", pair.ottla.bootstrap, "describe", "--status")
            return run_tool("kafka-metadata-quorum", *asked).output

        wait_until(lambda: f"LeaderId:               {KAFKA_ID}" in status(), "Ottla's broker passes it on")
        log = pair.ottla.data / "__cluster_metadata-0" / "00000000000000000000.log"
        dumped = run_tool("kafka-dump-log", "--cluster-metadata-decoder", "--files", str(log))
        assert dumped.output.count("KRaftVoters {") == 3
        assert "Could not" not in dumped.output


def test_ottla_s_tool_does_it_if_everybody_finds_the_new_controller(kafka_jars: Path, tmp_path: Path) -> None:
    with pair_in(tmp_path) as pair:

        def hand_over(to: int) -> subprocess.CompletedProcess[str]:
            return ottla_command("handover", "--bootstrap-server", pair.ottla.bootstrap, "--to", str(to))

        refused = hand_over(KAFKA_ID)
        assert refused.returncode == 2
        assert f"would not find node {KAFKA_ID} at {pair.kafka.controller}" in refused.stderr
        assert hand_over(7).returncode == 2
        both = f"{pair.ottla.controller},{pair.kafka.controller}"
        pair.ottla.settings["controller.quorum.bootstrap.servers"] = both
        pair.ottla.stop()
        pair.ottla.start()
        done = hand_over(KAFKA_ID)
        assert done.stdout.splitlines() == [
            f"node {KAFKA_ID} votes",
            f"node {OTTLA_ID} votes no longer",
            f"node {KAFKA_ID} is the controller",
        ], done.stderr
        assert leads(pair.kafka.controller)
        pair.check_that_it_works()
        pair.ottla.stop()
        pair.ottla.start()
        pair.check_that_it_works()
        done = hand_over(OTTLA_ID)
        assert done.returncode == 0, done.stderr
        assert leads(pair.ottla.controller)
        pair.check_that_it_works()
