"""Playing transcripts to a broker."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from compat.broker_process import BrokerProcess
from compat.free_ports import free_ports
from compat.kafka_tools.several_tools import ToolRunner, tool_runner
from compat.kafka_tools.transcript import Command, Entry, File, Said, Transcript, told
from compat.oracle.kafka import SMALL_NODE, KafkaNode

SETTINGS: Final = {
    **SMALL_NODE,
    "node.id": "1",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
}


class Stage(NamedTuple):
    """A broker of our own, new, and where it can be met."""

    broker: str
    controller: str
    data: Path
    folder: Path
    """Where commands run, and have their files."""
    cluster_id: str

    @property
    def places(self) -> Mapping[str, str]:
        """What transcripts call these."""
        return {
            self.broker: "<broker>",
            self.controller: "<controller>",
            self.broker.replace(":", " "): "<broker>",
            self.controller.replace(":", " "): "<controller>",
            str(self.data): "<data>",
            str(self.folder): "<folder>",
            self.cluster_id: "<cluster>",
        }


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


def _own(text: str, places: Mapping[str, str]) -> str:
    """``text`` about this broker."""
    for known, name in places.items():
        text = text.replace(name, known)  # the first name for a thing is the one to use
    return text
