import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from compat.broker_process import clean_environment
from compat.waiting import wait_until
from ottla.cluster import Cluster, running_nodes

pytestmark = pytest.mark.slow

ENVIRONMENT = clean_environment()
OTTLA = (sys.executable, "-m", "ottla")


def nodes(folder: Path, *arguments: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [*OTTLA, "nodes", *arguments, "--data", str(folder)],
        capture_output=True,
        text=True,
        timeout=120,
        env=ENVIRONMENT,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def node_count() -> int:
    return 1


@pytest.fixture
def supervisor(tmp_path: Path, node_count: int) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [*OTTLA, "--nodes", str(node_count), "--data", "cluster", "--port", "0", "--ready-file", "ready"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**ENVIRONMENT, "PYTHONPATH": str(Path(__file__).parents[2])},
    ) as process:
        try:
            wait_until((tmp_path / "ready").exists, "the cluster is ready")
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)


def test_nodes_are_told_what_to_do(tmp_path: Path, supervisor: subprocess.Popen[str]) -> None:
    folder = tmp_path / "cluster"
    address = (tmp_path / "ready").read_text().strip()
    status, printed, _ = nodes(folder)
    assert (status, printed.split()[:3]) == (0, ["node-1", "running", address])
    for action, state in (
        ("pause", "paused"),
        ("resume", "running"),
        ("kill", "stopped"),
        ("start", "running"),
        ("stop", "stopped"),
    ):
        status, printed, _ = nodes(folder, action, "node-1")
        assert (status, printed.split()[:2]) == (0, ["node-1", state]), action
    assert nodes(folder, "kill", "1")[::2] == (1, "ottla nodes: node-1 is stopped\n")
    assert nodes(folder, "stop")[::2] == (1, "ottla nodes: which node? node-1\n")
    assert nodes(folder, "start", "7")[::2] == (1, "ottla nodes: there is no 7, only node-1\n")
    supervisor.send_signal(signal.SIGTERM)
    output, _ = supervisor.communicate(timeout=60)
    assert supervisor.returncode == 0
    assert f"The cluster is ready at {address}; controller at 127.0.0.1:" in output
    assert "node-1 | Ottla is ready at " in output
    assert not (tmp_path / "ready").exists()
    status, _, complaint = nodes(folder)
    assert status == 1
    assert complaint == f"ottla nodes: no cluster runs in {folder}; --data names the folder of one\n"


@pytest.mark.parametrize("node_count", [2])
@pytest.mark.usefixtures("supervisor")
def test_a_node_that_waits_for_another_does_not_keep_that_from_being_started(tmp_path: Path) -> None:
    folder = tmp_path / "cluster"
    for name in ("node-2", "node-1"):
        assert nodes(folder, "stop", name)[0] == 0
    command = [*OTTLA, "nodes", "start", "node-2", "--data", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT) as waiting:
        wait_until(lambda: nodes(folder)[1].split()[5] == "starting", "node-2 waits for its controller")
        assert nodes(folder, "start", "node-1")[1].split()[1] == "running"
        printed, _ = waiting.communicate(timeout=60)
    assert waiting.returncode == 0
    assert printed.split()[1::4] == ["running", "running"]


def test_nobody_else_may_ask(tmp_path: Path, supervisor: subprocess.Popen[str]) -> None:
    control = tmp_path / "cluster" / "control.json"
    assert stat.S_IMODE(control.stat().st_mode) == 0o600
    told = json.loads(control.read_text())
    control.write_text(json.dumps({**told, "token": "guessed"}))
    status, _, complaint = nodes(tmp_path / "cluster", "stop", "1")
    assert (status, complaint) == (1, f"ottla nodes: the cluster in {tmp_path / 'cluster'} does not answer\n")
    control.write_text(json.dumps(told))
    assert nodes(tmp_path / "cluster")[1].split()[1] == "running"


def test_a_node_that_ends_by_itself_is_told_of(tmp_path: Path, supervisor: subprocess.Popen[str]) -> None:
    pid = int(nodes(tmp_path / "cluster")[1].split()[3])
    os.kill(pid, signal.SIGKILL)
    assert supervisor.stdout is not None
    for line in supervisor.stdout:
        if line.endswith(" ERROR node-1 has ended; `ottla nodes start node-1` starts it again\n"):
            break
    assert nodes(tmp_path / "cluster", "start", "1")[1].split()[1] == "running"


def start_again(folder: Path, *arguments: str) -> tuple[int, str]:
    """What a second start in a cluster's folder logs, if it cannot begin, without the time."""
    done = subprocess.run(
        [*OTTLA, "--nodes", "1", "--data", str(folder), *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        env=ENVIRONMENT,
        check=False,
    )
    assert done.stdout == ""
    return done.returncode, "".join(timeless(done.stderr))


def timeless(log: str) -> list[str]:
    """Lines without the time, behind the name of a node if there is one."""
    return [re.sub(r"^(node-\d+ \| )?[-0-9]{10} [:.0-9]{12} +", r"\1", line) for line in log.splitlines(True)]


def test_a_second_start_leaves_the_first_alone(tmp_path: Path, supervisor: subprocess.Popen[str]) -> None:
    folder = tmp_path / "cluster"
    assert start_again(folder) == (1, f"ERROR the cluster in {folder} runs already\n")
    assert nodes(folder)[1].split()[1] == "running"


def test_what_cannot_be_is_told_before_anything_is_made(tmp_path: Path) -> None:
    folder = tmp_path / "cluster"
    for arguments, complaint in (
        (("--override", "num.partitions=x"), "Not a number of type INT"),
        (("--override", "metadata.log.dir=x"), "not for all nodes of a cluster: metadata.log.dir"),
        (("nothing.properties",), "cannot read nothing.properties"),
        (("--port", "65535", "--nodes", "2"), "would end above 65535"),
    ):
        status, complained = start_again(folder, *arguments)
        assert (status, complaint in complained) == (1, True), complained
        assert not folder.exists()


def test_nodes_left_behind_are_stopped_by_the_next_start(tmp_path: Path) -> None:
    again = [*OTTLA, "--data", "cluster", "--ready-file", "ready"]  # as it was made
    environment = {**ENVIRONMENT, "PYTHONPATH": str(Path(__file__).parents[2])}
    found = []
    complaints = []
    for command, end in (
        ([*again, "--nodes", "2", "--port", "0"], signal.SIGKILL),
        (again, signal.SIGTERM),
    ):
        with (tmp_path / "log").open("w") as log:
            process = subprocess.Popen(command, cwd=tmp_path, stdout=log, stderr=log, env=environment)
        try:
            wait_until((tmp_path / "ready").exists, "the cluster is ready")
            found.append(nodes(tmp_path / "cluster")[1].split()[3::4])
            if end == signal.SIGKILL:
                (tmp_path / "ready").unlink()
        finally:
            process.send_signal(end)
            process.wait(60)
        complaints.append(nodes(tmp_path / "cluster")[2])
    folder = tmp_path / "cluster"
    assert complaints == [
        f"ottla nodes: node-1, node-2 run, but nobody looks after them: `ottla --data {folder}` does\n",
        f"ottla nodes: no cluster runs in {folder}; --data names the folder of one\n",
    ]
    assert len(found[0]) == len(found[1]) == 2
    assert not set(found[0]) & set(found[1])
    assert (
        "stopped what an earlier start had left running: node-1, node-2\n" in (tmp_path / "log").read_text()
    )


def test_a_port_that_another_process_has(tmp_path: Path) -> None:
    folder = tmp_path / "cluster"
    ports = json.loads((Cluster(folder, 1).folder / "cluster.json").read_text())
    (port,) = ports["ports"]
    complaint = f"node-1 cannot start: another process has its port {port}; end that, "
    with socket.create_server(("127.0.0.1", port)):
        assert start_again(folder) == (1, f"ERROR {complaint}or let --port name other ports\n")
    command = [*OTTLA, "--data", str(folder), "--ready-file", str(tmp_path / "ready")]
    with (
        socket.create_server(("127.0.0.1", ports["controller.port"])),
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT
        ) as process,
    ):
        wait_until((tmp_path / "ready").exists, "the cluster is ready")
        process.send_signal(signal.SIGTERM)
        output, log = process.communicate(timeout=60)
    moved_to = json.loads((folder / "cluster.json").read_text())["controller.port"]
    assert timeless(log)[0] == (
        f"WARN  the controller listens at 127.0.0.1:{moved_to} from now on: "
        f"another process has port {ports['controller.port']}\n"
    )
    # The rest is as of one broker: where it is, on standard output, and its log.
    cluster, node = sorted(output.splitlines())  # who is the first to say it is left to chance
    assert node.startswith(f"node-1 | Ottla is ready at 127.0.0.1:{port}; ")
    assert cluster.startswith(f"The cluster is ready at 127.0.0.1:{port}; ")
    assert timeless(log)[-1] == "node-1 | INFO  stopped\n"


def test_why_a_node_does_not_start_is_in_the_log(tmp_path: Path) -> None:
    folder = Cluster(tmp_path / "cluster", 1).folder
    (folder / "node-1").mkdir()
    (folder / "node-1" / "data").touch()
    status, log = start_again(folder)
    first, last = log.splitlines()
    assert status == 1
    assert first.startswith("node-1 | ERROR ")
    assert last == "ERROR node-1 has ended instead of starting"


def test_settings_that_each_node_has_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "cluster").mkdir()
    (tmp_path / "cluster" / "something").touch()
    overrides = ("--override", "node.id=7", "--override", "listeners=PLAINTEXT://:1")
    status, complained = start_again(tmp_path / "cluster", *overrides)
    assert status == 1
    assert complained.startswith(
        "WARN  each node of a cluster has its own, so this is ignored: listeners, node.id\n"
    )


def test_a_closed_terminal_stops_all_nodes(tmp_path: Path, supervisor: subprocess.Popen[str]) -> None:
    supervisor.send_signal(signal.SIGHUP)
    supervisor.communicate(timeout=60)
    assert supervisor.returncode == 0
    assert not (tmp_path / "ready").exists()
    assert running_nodes(tmp_path / "cluster") == []


@pytest.mark.parametrize("name", ["node-1", "node-2", "node-3"])
def test_asked_twice_to_stop_while_it_starts_it_leaves_no_node_behind(tmp_path: Path, name: str) -> None:
    """One signal comes when this node's process has just begun, the other while they are all being ended."""
    folder = tmp_path / "cluster"
    command = [*OTTLA, "--nodes", "3", "--data", str(folder), "--port", "0"]
    output = subprocess.DEVNULL
    with subprocess.Popen(command, stdout=output, stderr=output, env=ENVIRONMENT) as process:
        while not (folder / name / "pid").exists():
            assert process.poll() is None
        for _ in range(2):
            process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                process.wait(0.003)
        process.wait(60)
    left = [int(file.read_text().split()[0]) for file in folder.glob("*/pid")]
    assert [pid for pid in left if runs(pid)] == []


def runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
