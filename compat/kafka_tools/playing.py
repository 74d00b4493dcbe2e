"""Playing transcripts to a broker."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from compat.broker_process import BrokerProcess, clean_environment
from compat.free_ports import free_ports
from compat.kafka_tools.several_tools import ToolRunner, tool_runner
from compat.kafka_tools.transcript import Command, Deed, Entry, File, Said, Transcript, told
from compat.oracle.java import run_tool
from compat.oracle.kafka import SMALL_NODE, KafkaNode
from compat.waiting import wait_until
from ottla.cluster import Cluster

SETTINGS: Final = {
    **SMALL_NODE,
    "node.id": "1",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
}


NODES: Final = (1, 2, 3)

CLUSTER_SETTINGS: Final = {
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "group.initial.rebalance.delay.ms": "0",
    "log.cleaner.dedupe.buffer.size": "16777216",
    "auto.leader.rebalance.enable": "false",
}
"""Leaders stay where they are, unless somebody moves them."""


class Other(NamedTuple):
    """A broker beside the first."""

    address: str
    data: Path


class Stage(NamedTuple):
    """A broker of our own, new, and where it can be met; or a cluster, of which this one is the first."""

    broker: str
    controller: str
    data: Path
    folder: Path
    """Where commands run, and have their files."""
    cluster_id: str
    others: Sequence[Other] = ()
    stop: Callable[[int], None] | None = None
    """Stops the node of this number."""
    start: Callable[[int], None] | None = None

    @property
    def places(self) -> Mapping[str, str]:
        """What transcripts call these."""
        places = {
            self.broker: "<broker>",
            self.controller: "<controller>",
            self.broker.replace(":", " "): "<broker>",
            self.controller.replace(":", " "): "<controller>",
            str(self.data): "<data>",
            str(self.folder): "<folder>",
            self.cluster_id: "<cluster>",
        }
        for number, other in enumerate(self.others, 2):
            places[other.address] = places[other.address.replace(":", " ")] = f"<broker-{number}>"
            places[str(other.data)] = f"<data-{number}>"
        return places


@contextmanager
def kafka_stage(folder: Path) -> Iterator[Stage]:
    """Apache Kafka, formatted anew."""
    node = KafkaNode(folder / "broker", SETTINGS)
    node.format()
    try:
        node.start()
        yield _stage(folder, node.bootstrap, node.controller, node.data)
    finally:
        node.stop()


@contextmanager
def ottla_stage(folder: Path) -> Iterator[Stage]:
    """Ottla, with a controller that can be asked, too."""
    address, controller = (f"127.0.0.1:{port}" for port in free_ports(2))
    settings = {
        **SETTINGS,
        "listeners": f"PLAINTEXT://{address},CONTROLLER://{controller}",
        "controller.listener.names": "CONTROLLER",
    }
    broker = BrokerProcess(folder / "broker", settings)
    broker.start()
    try:
        yield _stage(folder, address, controller, broker.data)
    finally:
        broker.kill()


@contextmanager
def kafka_cluster_stage(folder: Path) -> Iterator[Stage]:
    """Three nodes of Apache Kafka, of which the first is controller, too."""
    cluster_id = run_tool("kafka-storage", "random-uuid").output.strip()
    nodes: list[KafkaNode] = []
    for number in NODES:
        roles, controllers = ("broker", nodes[0].controller) if nodes else ("broker,controller", None)
        settings = {**CLUSTER_SETTINGS, "node.id": str(number)}
        node = KafkaNode(folder / f"node-{number}", settings, roles=roles, controllers=controllers)
        node.format(*(() if nodes else ("--standalone",)), cluster_id=cluster_id)
        nodes.append(node)
    first, *others = nodes
    try:
        for node in nodes:
            node.start()
        stage = _stage(folder, first.bootstrap, first.controller, first.data)
        yield stage._replace(
            others=[Other(node.bootstrap, node.data) for node in others],
            stop=lambda number: nodes[number - 1].stop(),
            start=lambda number: nodes[number - 1].start(),
        )
    finally:
        for node in reversed(nodes):
            if node.is_running:
                node.stop()


@contextmanager
def ottla_cluster_stage(folder: Path) -> Iterator[Stage]:
    """Three nodes of Ottla, likewise."""
    cluster = Cluster(
        folder / "cluster", len(NODES), settings=CLUSTER_SETTINGS, environment=clean_environment()
    )
    first, *others = cluster.nodes.values()
    try:
        cluster.start_all()
        stage = _stage(folder, first.address, cluster.controller_address, first.data)
        yield stage._replace(
            others=[Other(node.address, node.data) for node in others],
            stop=lambda number: cluster.node(str(number)).stop(),
            start=lambda number: cluster.start(str(number)).wait_ready(),
        )
    finally:
        cluster.kill_all()


def _stage(folder: Path, broker: str, controller: str, data: Path) -> Stage:
    work = folder / "work"
    work.mkdir()
    properties = dict(
        line.split("=", 1)
        for line in (data / "meta.properties").read_text().splitlines()
        if not line.startswith("#")
    )
    return Stage(broker, controller, data, work, properties["cluster.id"])


def play(stage: Stage, transcripts: Mapping[str, Transcript]) -> dict[str, Transcript]:
    """The transcripts as this broker lets them be written, one played after the other."""
    with tool_runner(stage.folder) as runner:
        return {subject: _play(stage, runner, transcript) for subject, transcript in transcripts.items()}


def _play(stage: Stage, runner: ToolRunner, transcript: Sequence[Entry]) -> Transcript:
    played: Transcript = []
    for step, _ in transcript:
        said = None
        if isinstance(step, File):
            content = _own(step.content, stage.places).replace("\\n", "\n")
            (stage.folder / step.name).write_text(content)
        elif isinstance(step, Command):
            said = _run(stage, runner, step)
        elif isinstance(step, Deed):
            _do(stage, runner, step)
        played.append(Entry(step, said))
    return played


def _run(stage: Stage, runner: ToolRunner, command: Command) -> Said:
    tool, *arguments = (_own(word, stage.places) for word in command.words)
    done = runner.run(tool, *arguments, text=command.text)
    return Said(
        told(done.output, stage.places, command.kind),
        told(done.errors, stage.places, command.kind),
        done.exit_code,
    )


def _do(stage: Stage, runner: ToolRunner, deed: Deed) -> None:
    if deed.name == "rest":
        wait_until(lambda: _rests(stage, runner), "all replicas are in sync")
        return
    assert deed.node is not None
    assert stage.stop is not None
    assert stage.start is not None
    {"stop": stage.stop, "start": stage.start}[deed.name](deed.node)


def _rests(stage: Stage, runner: ToolRunner) -> bool:
    at = ("--bootstrap-server", stage.broker)
    moving = runner.run("kafka-reassign-partitions", *at, "--list").output
    late = runner.run("kafka-topics", *at, "--describe", "--under-replicated-partitions").output
    return "No partition reassignments found." in moving and not late.strip()


def _own(text: str, places: Mapping[str, str]) -> str:
    """``text`` about this broker."""
    for known, name in places.items():
        text = text.replace(name, known)  # the first name for a thing is the one to use
    return text
