"""``ottla format``: what it writes, and what it says instead of writing."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from ottla.format_command import format_node
from storage.filesystem import RealFileSystem
from storage.node_files import read_meta_properties

ID = "8cEJ3zFkR_q7LEfcwkgPLA"


class Formatting:
    """Runs the command on one directory and keeps what it said."""

    def __init__(self, directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.directory = directory
        self._capsys = capsys

    def run(self, *words: str, data: bool = True) -> tuple[int, str]:
        place: Sequence[str] = ("--data", str(self.directory)) if data else ()
        status = format_node([*words, *place])
        said = self._capsys.readouterr()
        assert not (said.out and said.err)
        return status, said.out or said.err

    def files(self) -> list[str]:
        return sorted(
            str(path.relative_to(self.directory)) for path in self.directory.rglob("*") if path.is_file()
        )


@pytest.fixture
def formatting(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Formatting:
    monkeypatch.delenv("CLUSTER_ID", raising=False)
    return Formatting(tmp_path / "data", capsys)


def test_a_directory_gets_its_identity(formatting: Formatting) -> None:
    status, said = formatting.run("-t", ID, "--node-id", "7", "--standalone")
    kind = f"dynamic metadata voter directory {formatting.directory}"
    assert status == 0
    assert said == f"Formatted {kind} with metadata.version 4.4-IV2.\nThe cluster id is {ID}.\n"
    properties = read_meta_properties(RealFileSystem(), str(formatting.directory))
    assert properties is not None
    assert (properties.cluster_id, properties.node_id, properties.version) == (ID, 7, 1)
    assert formatting.files() == [
        "__cluster_metadata-0/00000000000000000000-0000000000.checkpoint",
        "meta.properties",
    ]


BROKER = (
    *("--override", "process.roles=broker", "--override", "listeners=PLAINTEXT://127.0.0.1:9092"),
    *("--override", "controller.quorum.bootstrap.servers=127.0.0.1:9093"),
)


def test_a_broker_has_no_settings_for_the_cluster(formatting: Formatting) -> None:
    status, said = formatting.run("-t", ID, "--node-id", "2", *BROKER)
    assert status == 0
    assert said.startswith(f"Formatted data directory {formatting.directory} ")
    assert formatting.files() == ["meta.properties"]


def test_voters_that_the_settings_name_are_no_initial_controllers(formatting: Formatting) -> None:
    voters = (
        *("--override", "controller.quorum.voters=1@127.0.0.1:9093", "--override", "node.id=1"),
        *("--override", "controller.listener.names=CONTROLLER"),
        *("--override", "listeners=PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093"),
    )
    status, said = formatting.run("-t", ID, "--no-initial-controllers", *voters)
    assert status == 0
    assert said.startswith(f"Formatted metadata directory {formatting.directory} ")
    assert len(formatting.files()) == 2


def test_a_broker_is_no_controller_of_its_own(formatting: Formatting) -> None:
    status, said = formatting.run("-t", ID, "--node-id", "2", "--standalone", *BROKER)
    assert (status, said) == (1, "ottla format: You can only use --standalone on a controller.\n")
    assert formatting.files() == []


def test_a_broker_does_not_begin_a_cluster(formatting: Formatting) -> None:
    assert formatting.run("--node-id", "2", *BROKER) == (
        1,
        "ottla format: a broker belongs to the cluster of its controllers: give its id, --cluster-id\n",
    )


def test_a_cluster_without_an_id_gets_one(formatting: Formatting, monkeypatch: pytest.MonkeyPatch) -> None:
    status, said = formatting.run()
    assert status == 0
    cluster_id = said.rpartition("The cluster id is ")[2].rstrip(".\n")
    assert len(cluster_id) == 22
    monkeypatch.setenv("CLUSTER_ID", cluster_id)
    assert formatting.run("-g") == (0, "All of the log directories are already formatted.\n")


def test_settings_come_from_a_file_as_with_kafkas_tool(formatting: Formatting, tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text(f"node.id=3\nlog.dirs={formatting.directory}\nlisteners=PLAINTEXT://:9092\n")
    assert formatting.run("-c", str(file), "-t", ID, "-s", data=False)[0] == 0
    properties = read_meta_properties(RealFileSystem(), str(formatting.directory))
    assert properties is not None
    assert properties.node_id == 3


@pytest.mark.parametrize(
    ("words", "level"),
    [
        (["-r", "4.0"], "4.0-IV3"),
        (["-r", "4.4-IV1"], "4.4-IV1"),
        (["-f", "metadata.version=30"], "4.3-IV0"),
        (["-r", "4.0", "-f", "group.version=0", "-f", "kraft.version=1"], "4.0-IV3"),
        (["-r", "4.0", "-f", "eligible.leader.replicas.version=1"], "4.0-IV3"),
    ],
)
def test_levels_are_chosen(formatting: Formatting, words: list[str], level: str) -> None:
    status, said = formatting.run("-t", ID, *words)
    assert status == 0
    assert f"with metadata.version {level}." in said


def test_voters_in_the_settings_make_a_static_quorum(formatting: Formatting) -> None:
    status, said = formatting.run("-t", ID, "--override", "controller.quorum.voters=1@localhost:9093")
    assert status == 0
    assert said.startswith("Formatted metadata directory ")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["-r", "5.0"], "Unknown metadata.version '5.0'. Supported metadata.version are: 4.0-IV3, "),
        (["-f", "foo=1"], "Unsupported feature: foo. Supported features are: "),
        (["-f", "group.version=7"], "No feature:group.version with feature level 7"),
        (["-f", "group.version"], "Can't parse feature=level string group.version: equals sign not found."),
        (
            ["-f", "group.version=x"],
            "Can't parse feature=level string group.version=x: unable to parse x as a short.",
        ),
        (["-f", "metadata.version=7"], "No feature:metadata.version with feature level 7"),
        (
            ["-f", "metadata.version=30", "-r", "4.0"],
            "Use --release-version instead of --feature metadata.version=X to avoid ambiguity.",
        ),
        (["-f", "kraft.version=0"], "Cannot set kraft.version to 0 unless controller.quorum.voters is set."),
        (["-f", "kraft.version=2"], "No feature:kraft.version with feature level 2"),
        (
            ["-s", "--override", "controller.quorum.voters=1@localhost:9093"],
            "You cannot specify controller.quorum.voters and format the node with --standalone.",
        ),
        (["--override", "process.roles=broker"], "a broker among others has to say where it is"),
        (["--node-id", "x"], "Invalid value x for configuration node.id: Not a number of type INT"),
        (["nowhere.properties"], "cannot read nowhere.properties: No such file or directory"),
    ],
)
def test_mistakes_are_one_line_and_change_nothing(
    formatting: Formatting, words: list[str], told: str
) -> None:
    status, said = formatting.run("-t", ID, *words)
    assert status == 1
    assert said.startswith(f"ottla format: {told}")
    assert said.count("\n") == 1
    assert not formatting.directory.exists()


def test_a_formatted_directory_stays_what_it_is(formatting: Formatting) -> None:
    formatting.run("-t", ID)
    before = (formatting.directory / "meta.properties").read_bytes()
    for words, told in (
        ([], f"Log directory {formatting.directory} is already formatted."),
        (["-t", "other", "-g"], "Invalid cluster.id in: "),
        (["--node-id", "9", "-g"], "Invalid node.id in: "),
    ):
        status, said = formatting.run(*words)
        assert status == 1
        assert said.startswith(f"ottla format: {told}")
    assert (formatting.directory / "meta.properties").read_bytes() == before


def test_a_directory_that_cannot_be_made_is_one_line(formatting: Formatting, tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file")
    status, said = formatting.run("-t", ID)
    assert status == 1
    assert said.count("\n") == 1


def test_several_directories(formatting: Formatting, tmp_path: Path) -> None:
    first, second, third = (str(tmp_path / name) for name in ("first", "second", "third"))
    status, said = formatting.run("--override", f"log.dirs={first},{second}", "-t", ID, data=False)
    assert status == 0
    assert said.splitlines() == [
        f"Formatted dynamic metadata voter directory {first} with metadata.version 4.4-IV2.",
        f"Formatted data directory {second} with metadata.version 4.4-IV2.",
        f"The cluster id is {ID}.",
    ]
    # One that comes later belongs to the same cluster, whoever holds the metadata.
    words = ("--override", f"log.dirs={third},{first},{second}", "--override", f"metadata.log.dir={first}")
    status, said = formatting.run(*words, data=False)
    assert (status, said.partition(". ")[0]) == (
        1,
        f"ottla format: Log directory {first} is already formatted",
    )
    status, said = formatting.run(*words, "--ignore-formatted", data=False)
    assert said.splitlines() == [
        f"Formatted data directory {third} with metadata.version 4.4-IV2.",
        f"The cluster id is {ID}.",
    ]
    ids = set()
    for path in (first, second, third):
        properties = read_meta_properties(RealFileSystem(), path)
        assert properties is not None
        assert properties.cluster_id == ID
        ids.add(properties.directory_id)
    assert len(ids) == 3
    assert not (tmp_path / "third" / "__cluster_metadata-0").exists()


def test_the_folder_of_a_cluster_is_not_a_nodes(formatting: Formatting) -> None:
    formatting.directory.mkdir()
    (formatting.directory / "cluster.json").touch()
    status, said = formatting.run()
    assert status == 1
    folder = formatting.directory
    assert said == f"ottla format: {folder} holds a cluster: `ottla --data {folder}` starts it\n"
    assert formatting.files() == ["cluster.json"]


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_what_nobody_can_be_told_is_one_line(tmp_path: Path, unbuffered: str) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "ottla", "format", "--data", str(tmp_path / "data")],
            stdout=full,
            stderr=subprocess.PIPE,
            env=os.environ | {"PYTHONUNBUFFERED": unbuffered},
            text=True,
            check=False,
        )
    assert done.returncode == 2
    assert done.stderr.splitlines() == ["ottla format: [Errno 28] No space left on device"]
