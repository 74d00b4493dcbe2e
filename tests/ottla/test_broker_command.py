"""The command line of ``ottla``, without starting a broker."""

from pathlib import Path

import pytest

from broker.app import Ready
from broker.config.broker_config import BrokerConfig
from broker.config.value_types import ConfigError
from broker.errors import StartupError
from broker.network.call import Address, Listener
from ottla.broker_command import (
    DEFAULT_FOLDER,
    Options,
    ReadyFile,
    announce,
    checked_config,
    connectable,
    holds_cluster,
    make_temporary_directory,
    parse_options,
    read_options,
    read_plain_options,
    refuse_cluster,
    with_port,
)


def test_a_command_line() -> None:
    words = ["s.properties", "--override", "a=1", "--override", "b=2", "--data", "d", "--port", "0"]
    expected = Options("s.properties", ["a=1", "b=2"], "d", False, 0, "r")
    assert read_options([*words, "--ready-file", "r"]) == expected
    assert read_options(["--ephemeral"]) == Options(is_ephemeral=True, overrides=[])


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["s.properties"],
        ["--ephemeral", "s.properties", "--port=5"],
        ["--override=a=1", "--override", "b=", "--data=d", "--ready-file=r"],
        ["--data", "d", "--override", "x"],
        ["--data=", "--port", "65535"],
    ],
)
def test_what_is_read_quickly_is_what_argparse_reads(words: list[str]) -> None:
    assert read_plain_options(words) == parse_options(words)


@pytest.mark.parametrize(
    "words", [["--data"], ["--override", "--ephemeral"], ["--data", "a", "--data", "b"], ["--", "x"], ["-h"]]
)
def test_what_is_not_plain_is_for_argparse(words: list[str]) -> None:
    assert read_plain_options(words) is None


def test_a_temporary_directory_is_its_owners_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    directory = Path(make_temporary_directory())
    assert directory.parent == tmp_path
    assert directory.name.startswith("ottla-")
    assert directory.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    "words",
    [
        ["--port", "x"],
        ["--port", "-1"],
        ["--port", "65536"],
        ["--data", "d", "--ephemeral"],
        ["--nodes", "0"],
        ["--nodes", "51"],
        ["--nope"],
        ["--over", "a=1"],
        ["a", "b"],
    ],
)
def test_a_mistake_ends_the_process_with_2(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        read_options(words)
    assert ended.value.code == 2
    assert "usage: ottla" in capsys.readouterr().err


@pytest.mark.parametrize("word", ["--help", "--version"])
def test_help_and_version_end_it_with_0(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        read_options([word])
    assert ended.value.code == 0
    assert "ottla" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("settings", "listeners"),
    [
        ({}, "PLAINTEXT://:5"),
        ({"listeners": "PLAINTEXT://localhost:9092"}, "PLAINTEXT://localhost:5"),
        ({"listeners": "CONTROLLER://:1,A://[::1]:2, B://:3"}, "CONTROLLER://:1,A://[::1]:5, B://:3"),
        ({"listeners": "A://:1,B://:2", "controller.listener.names": "A"}, "A://:1,B://:5"),
        ({"listeners": "nonsense"}, "nonsense"),
    ],
)
def test_the_port_is_that_of_the_first_listener_for_clients(settings: dict[str, str], listeners: str) -> None:
    assert with_port(settings, 5) == {"listeners": listeners}


def test_a_listener_that_a_provider_brings_gets_the_port(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WHERE", "PLAINTEXT://127.0.0.1:9092")
    java_class = "org.apache.kafka.common.config.provider.EnvVarConfigProvider"
    settings = {
        "config.providers": "env",
        "config.providers.env.class": java_class,
        "listeners": "${env:WHERE}",
        "advertised.listeners": "${env:WHERE}",
    }
    config = checked_config(settings, 0)
    assert [address.port for address in (*config.broker_listeners, *config.advertised_brokers)] == [0, 0]


@pytest.mark.parametrize(
    ("address", "text"),
    [
        (Address("::", 9092), "localhost:9092"),
        (Address("0.0.0.0", 9092), "localhost:9092"),
        (Address("10.0.0.1", 9092), "10.0.0.1:9092"),
        (Address("::1", 9092), "[::1]:9092"),
    ],
)
def test_an_address_by_which_this_machine_reaches_it(address: Address, text: str) -> None:
    assert connectable(address) == text


READY = Ready(
    [(Listener("A"), Address("10.0.0.1", 1)), (Listener("B"), Address("::", 2))],
    [(Listener("C", is_controller=True), Address("127.0.0.1", 3))],
    ["/data"],
)


def test_a_ready_broker_says_so_in_one_line_and_in_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "ready"
    announce(READY, ReadyFile(str(file)))
    line = "Ottla is ready at 10.0.0.1:1, localhost:2; controller at 127.0.0.1:3; data in /data\n"
    assert capsys.readouterr().out == line
    assert file.read_text() == "10.0.0.1:1\n"
    assert list(tmp_path.iterdir()) == [file]


def test_a_controller_alone_tells_where_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "ready"
    announce(READY._replace(brokers=[]), ReadyFile(str(file)))
    assert capsys.readouterr().out == "Ottla is ready; controller at 127.0.0.1:3; data in /data\n"
    assert file.read_text() == "127.0.0.1:3\n"


def test_a_ready_file_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(StartupError, match=r"cannot write .*ready: No such file or directory"):
        ReadyFile(str(tmp_path / "nowhere" / "ready"))
    with pytest.raises(StartupError, match=r"cannot replace .*"):
        ReadyFile(str(tmp_path))


def test_a_ready_file_is_there_while_the_broker_is(tmp_path: Path) -> None:
    path = tmp_path / "ready"
    path.write_text("of an earlier start")
    file = ReadyFile(str(path))
    assert list(tmp_path.iterdir()) == []
    file.withdraw()
    file.write("localhost:1")
    assert path.read_text() == "localhost:1\n"
    file.withdraw()
    assert list(tmp_path.iterdir()) == []
    file.withdraw()


def test_the_ready_file_of_another_broker_stays(tmp_path: Path) -> None:
    path = str(tmp_path / "ready")
    mine = ReadyFile(path)
    mine.write("localhost:1")
    kept = tmp_path / "kept"
    kept.hardlink_to(path)  # else its inode may be that of the next
    other = ReadyFile(path)
    other.write("localhost:1")
    mine.withdraw()
    assert Path(path).read_text() == "localhost:1\n"


def test_a_listener_is_wrong_as_it_stands_in_the_settings() -> None:
    with pytest.raises(ConfigError, match="SSL://:9999 asks for SSL"):
        checked_config({"listeners": "SSL://:9999"}, 0)
    twice = {"listeners": "PLAINTEXT://:9092,CONTROLLER://:9092", "controller.listener.names": "CONTROLLER"}
    with pytest.raises(ConfigError, match="must have a different port"):
        checked_config(twice, None)
    assert [address.port for address in checked_config(twice, 0).listeners] == [0, 9092]


def test_the_folder_of_a_cluster_is_not_a_brokers(tmp_path: Path) -> None:
    refuse_cluster(str(tmp_path))
    (tmp_path / "cluster.json").touch()
    with pytest.raises(StartupError, match=f"holds a cluster: `ottla --data {tmp_path}` starts it"):
        refuse_cluster(str(tmp_path))


def test_the_folder_of_a_cluster_starts_all_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "ottla-data"
    named = Options(data=str(folder))
    monkeypatch.chdir(tmp_path)
    folder.mkdir()
    assert not holds_cluster(named, {})
    assert not holds_cluster(Options(), {})
    (folder / "cluster.json").touch()
    assert holds_cluster(named, {"log.dirs": "elsewhere"})
    assert holds_cluster(Options(), {})
    assert BrokerConfig({}).log_directories == (DEFAULT_FOLDER,)
    # Settings for one broker, which is refused there; and a broker that keeps nothing.
    assert not holds_cluster(Options(), {"log.dir": str(folder)})
    assert not holds_cluster(Options(), {"log.dirs": str(folder)})
    assert not holds_cluster(Options(is_ephemeral=True), {})
