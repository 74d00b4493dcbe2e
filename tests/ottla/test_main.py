"""``python -m ottla`` as a process: how it starts, and how it says that it does not."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from compat.probe import answers_api_versions
from compat.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT_SECONDS = 30


def environment(more: Mapping[str, str]) -> dict[str, str]:
    kept = {name: text for name, text in os.environ.items() if not name.startswith("KAFKA_")}
    kept.pop("CLUSTER_ID", None)
    return {**kept, "PYTHONPATH": str(ROOT), **more}


class Started:
    """A running broker: its process, and the line by which it said that it was ready."""

    def __init__(self, folder: Path, *words: str, **variables: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "ottla", *words],
            cwd=folder,
            env=environment(variables),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        self.line = self.process.stdout.readline()

    @property
    def port(self) -> int:
        return int(self.line.partition(";")[0].rpartition(":")[2])

    def stop(self, how: signal.Signals = signal.SIGTERM) -> tuple[int, str]:
        self.process.send_signal(how)
        _, errors = self.process.communicate(timeout=TIMEOUT_SECONDS)
        return self.process.returncode, errors


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Started]:
    started = Started(tmp_path, "--port", "0")
    yield started
    if started.process.poll() is None:
        started.process.kill()
    started.process.communicate()


def refused(folder: Path, *words: str, **variables: str) -> str:
    """The one line with which the command ends instead of starting."""
    done = subprocess.run(
        [sys.executable, "-m", "ottla", *words],
        cwd=folder,
        env=environment(variables),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    assert done.returncode == 1
    assert done.stdout == ""
    errors = done.stderr.splitlines()
    assert "ERROR" in errors[-1]
    return errors[-1]


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_it_serves_from_its_own_folder_until_it_is_told_to_stop(
    broker: Started, tmp_path: Path, how: signal.Signals
) -> None:
    assert broker.line.startswith("Ottla is ready at localhost:")
    assert broker.line.endswith(f"data in {tmp_path}/ottla-data\n")
    with socket.create_connection(("localhost", broker.port), timeout=TIMEOUT_SECONDS):
        status, errors = broker.stop(how)
    assert status == 0
    stopping, stopped = errors.splitlines()[-2:]
    assert stopping.endswith(f" stopping after {how.name}")
    assert stopped.endswith(" stopped")
    assert json.loads((tmp_path / "ottla-data" / ".kafka_cleanshutdown").read_text())["version"] == 0


def test_what_is_taken_is_one_line(broker: Started, tmp_path: Path) -> None:
    assert f"port {broker.port} is in use" in refused(tmp_path, "--data", "other", "--port", str(broker.port))
    assert "ottla-data is in use by another process" in refused(tmp_path, "--port", "0")


def test_an_ephemeral_broker_leaves_nothing_behind(tmp_path: Path) -> None:
    started = Started(tmp_path, "--ephemeral", "--port", "0", TMPDIR=str(tmp_path))
    (directory,) = tmp_path.iterdir()
    assert started.line.endswith(f"data in {directory}\n")
    assert started.stop()[0] == 0
    assert list(tmp_path.iterdir()) == []


def test_without_standard_streams_it_serves_all_the_same(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "ottla", "--port", "0", "--data", "data", "--ready-file", "ready"]
    process = subprocess.Popen(
        ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", *command], cwd=tmp_path, env=environment({})
    )
    wait_until(lambda: (tmp_path / "ready").exists() or process.poll() is not None, "the broker is ready")
    process.terminate()
    assert process.wait(TIMEOUT_SECONDS) == 0
    assert (tmp_path / "data" / ".kafka_cleanshutdown").exists()


def test_a_name_that_the_terminal_cannot_show_is_escaped(tmp_path: Path) -> None:
    started = Started(tmp_path, "--port", "0", "--data", "ä", PYTHONIOENCODING="ascii")
    assert started.line.endswith("/\\xe4\n")
    assert started.stop()[0] == 0


def test_a_place_for_temporary_directories_that_is_not_there_is_named(tmp_path: Path) -> None:
    line = refused(tmp_path, "--ephemeral", "--port", "0", TMPDIR=str(tmp_path / "nowhere"))
    assert f"cannot make a temporary directory in {tmp_path}/nowhere: No such file or directory" in line


def test_requests_are_logged_from_the_start_if_a_variable_says_so(tmp_path: Path) -> None:
    wanted = {
        "KAFKA_LOG4J_ROOT_LOGLEVEL": "ERROR",
        "KAFKA_LOG4J_LOGGERS": "kafka.request.logger=DEBUG,x=INFO",
    }
    started = Started(tmp_path, "--ephemeral", "--port", "0", **wanted)
    assert answers_api_versions(f"localhost:{started.port}")
    status, errors = started.stop()
    assert status == 0
    (line,) = errors.splitlines()
    assert "DEBUG ApiVersions version" in line


def test_signals_without_end_neither_kill_it_nor_leave_anything_behind(tmp_path: Path) -> None:
    started = Started(tmp_path, "--ephemeral", "--port", "0", TMPDIR=str(tmp_path))
    while started.process.poll() is None:
        started.process.send_signal(signal.SIGTERM)
        started.process.send_signal(signal.SIGINT)
    status, errors = started.stop()
    assert status == 0
    assert errors.endswith(" stopped\n")
    assert list(tmp_path.iterdir()) == []


def test_variables_are_settings_or_are_named_in_one_line(tmp_path: Path) -> None:
    started = Started(
        tmp_path,
        "--port",
        "0",
        KAFKA_LOG_DIRS=str(tmp_path / "from-variable"),
        KAFKA_PORT="tcp://10.0.0.1:9092",
        KAFKA_OPTS="-Xmx1g",
        KAFKA_NUM_IO_THREADS="9",
        CLUSTER_ID="my-cluster",
    )
    assert "from-variable" in started.line
    status, errors = started.stop()
    assert status == 0
    assert "environment variables that name no setting, ignored: KAFKA_OPTS, KAFKA_PORT" in errors
    assert "settings without effect in this broker: num.io.threads" in errors
    assert "cluster.id=my-cluster" in (tmp_path / "from-variable" / "meta.properties").read_text()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--override", "log.segment.bytes=abc"], "Invalid value abc for configuration log.segment.bytes: "),
        (["--override", "process.roles=broker"], "a broker among others has to say where it is"),
        (["--override", "listeners=SSL://:9092"], "SSL://:9092 asks for SSL, which is not available yet"),
        (["--override", "nonsense"], "--override nonsense: expected name=value"),
        (["help"], "cannot read help: No such file or directory; `ottla --help` tells what may stand there"),
        (["--ready-file", "nowhere/ready"], "cannot write nowhere/ready: No such file or directory"),
    ],
)
def test_what_is_wrong_is_named_in_one_line(tmp_path: Path, words: list[str], told: str) -> None:
    assert told in refused(tmp_path, *words)
    assert list(tmp_path.iterdir()) == []


def test_folders_of_the_user_do_not_get_in_the_way(tmp_path: Path) -> None:
    for name in ("broker", "storage", "protocol", "trio"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise RuntimeError('not mine')")
    done = subprocess.run(
        [sys.executable, "-P", "-m", "ottla", "--version"],
        cwd=tmp_path,
        env=environment({}),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=True,
    )
    assert done.stdout.startswith("ottla")
