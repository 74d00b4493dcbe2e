"""A cluster on this machine: one process for each node, started, stopped, killed and paused by name.

``node-1`` is broker and controller, the others are brokers.  Everything lies in one folder, so that the same
cluster can be started again.
"""

import base64
import errno
import fcntl
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from enum import Enum
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Final

HOST: Final = "127.0.0.1"

DESCRIPTION: Final = "cluster.json"
"""What a cluster is made of; beside the folders of its nodes."""

REPLICATION_FACTORS: Final = (
    "offsets.topic.replication.factor",
    "transaction.state.log.replication.factor",
    "share.coordinator.state.topic.replication.factor",
)
"""Of the brokers' own topics."""

REPLICAS_MAX: Final = 3
"""What these settings are by default."""

LOCK: Final = "cluster.lock"
"""Held by the process that looks after the nodes."""

NODES: Final = 3
"""Of a new cluster, if nobody says otherwise."""

PORT_MAX: Final = 65_535

BELOW_CLIENTS: Final = range(10_000, 32_768)
"""Ports that systems do not give to clients: a node finds its own again after a restart."""

START_TIMEOUT_SECONDS: Final = 60.0
STOP_TIMEOUT_SECONDS: Final = 60.0
LOOK_SECONDS: Final = 0.01


class ClusterError(Exception):
    """What cannot be done with the cluster, in one line."""


class State(Enum):
    """What a node is doing, as far as its process shows."""

    STARTING = "starting"
    RUNNING = "running"
    PAUSED = "paused"
    STOPPED = "stopped"
    FAILED = "failed"
    """It ended although nobody had asked it to."""


class Node:
    """One node: a process of ``ottla`` with a folder of its own, which outlives the process."""

    def __init__(
        self,
        number: int,
        folder: Path,
        port: int,
        settings: Mapping[str, str],
        properties_file: str | None = None,
    ) -> None:
        """``settings`` win over those of the file."""
        self.id = number
        self.name = f"node-{number}"
        self.folder = folder
        self.port = port
        self.address = settings["advertised.listeners"].split(",")[0].removeprefix("PLAINTEXT://")
        """Where clients reach it."""
        self._settings = dict(settings)
        self._properties_file = properties_file
        self._process: subprocess.Popen[bytes] | None = None
        self._log_begin: int | None = None
        """How long the log file was when the process began, if that writes to it."""
        self._is_paused = False
        self._is_ending = False

    def __repr__(self) -> str:
        return f"<{self.name} at {self.address}, {self.state.value}>"

    @property
    def data(self) -> Path:
        """The log directory."""
        return self.folder / "data"

    @property
    def log_file(self) -> Path:
        """What the process prints, where the cluster keeps that."""
        return self.folder / "log"

    @property
    def pid(self) -> int | None:
        """Of the process, while there is one."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    @property
    def state(self) -> State:
        if self._process is None:
            return State.STOPPED
        if self._process.poll() is not None:
            return State.STOPPED if self._is_ending else State.FAILED
        if self._is_paused:
            return State.PAUSED
        return State.RUNNING if self._ready_file.exists() else State.STARTING

    def start(
        self,
        environment: Mapping[str, str],
        output: BinaryIO | int | None = None,
        log: BinaryIO | int | None = None,
    ) -> None:
        """Start the process, which need not be ready on return.

        It prints to ``output`` and writes its log to ``log``, or both to ``output``; without that to its log
        file.
        """
        if self.pid is not None:
            raise ClusterError(f"{self.name} is {self.state.value} already")
        self.check_ports()
        self.folder.mkdir(parents=True, exist_ok=True)
        self._ready_file.unlink(missing_ok=True)
        command = [sys.executable, "-m", "ottla", "--ready-file", str(self._ready_file)]
        command += ["--data", str(self.data)]
        for name, value in self._settings.items():
            command += ["--override", f"{name}={value}"]
        if self._properties_file is not None:
            command.append(self._properties_file)
        self._is_paused = self._is_ending = False
        own = None if output is not None else self.log_file.open("ab")
        self._log_begin = None if own is None else own.tell()
        try:
            with _undisturbed():
                # A signal from the terminal is for who looks after the nodes, and stops them in their order.
                self._process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=output if own is None else own,
                    stderr=subprocess.STDOUT if own is not None or log is None else log,
                    env=dict(environment),
                    start_new_session=True,
                )
                self._pid_file.write_text(f"{self._process.pid} {os.getpid()}\n")
        finally:
            if own is not None:
                own.close()

    def check_ports(self) -> None:
        """Raises ClusterError if another process has a port that this node wants."""
        for listener in self._settings["listeners"].split(","):
            _check_port(int(listener.rpartition(":")[2]), self.id)

    def left_behind(self) -> int | None:
        """The process of this node, if whoever started it has died before it; None without one."""
        try:
            pid, starter = map(int, self._pid_file.read_text().split())
            if starter == os.getpid() or not _is_locked(self.data / ".lock"):
                return None
        except (OSError, ValueError):
            return None
        return pid

    def end_left_behind(self, pid: int, timeout_seconds: float = STOP_TIMEOUT_SECONDS) -> None:
        """Stop that process as an operator would.  Raises ClusterError."""
        try:
            os.kill(pid, signal.SIGTERM)
            os.kill(pid, signal.SIGCONT)  # it may be paused
        except ProcessLookupError:
            pass
        except OSError as error:
            raise ClusterError(f"{self.name} still runs as process {pid}: {error.strerror}") from error
        deadline = time.monotonic() + timeout_seconds
        while self.left_behind() is not None:
            if time.monotonic() > deadline:
                raise ClusterError(f"{self.name} still runs as process {pid}, and does not stop")
            time.sleep(LOOK_SECONDS)

    def wait_ready(self, timeout_seconds: float = START_TIMEOUT_SECONDS) -> None:
        """Return when clients can be served.  Raises ClusterError."""
        deadline = time.monotonic() + timeout_seconds
        while (state := self.state) is not State.RUNNING:
            if state in (State.FAILED, State.STOPPED):
                raise ClusterError(f"{self.name} has ended instead of starting{self._last_words()}")
            if time.monotonic() > deadline:
                raise ClusterError(f"{self.name} is not ready after {timeout_seconds:g} s")
            time.sleep(LOOK_SECONDS)

    def begin_stop(self) -> None:
        """Ask the process to stop as an operator would."""
        self._end(signal.SIGTERM)

    def stop(self, timeout_seconds: float = STOP_TIMEOUT_SECONDS) -> None:
        """Stop as an operator would, and wait for the end.  Raises ClusterError if that does not come."""
        self.begin_stop()
        self._wait_end(timeout_seconds)

    def kill(self) -> None:
        """``kill -9``."""
        self._end(signal.SIGKILL)
        self._wait_end(STOP_TIMEOUT_SECONDS)

    def pause(self) -> None:
        """Let the process stand still, as a long pause of the machine would (SIGSTOP)."""
        self._signal(signal.SIGSTOP)
        self._is_paused = True

    def resume(self) -> None:
        """Let a paused process go on."""
        self._signal(signal.SIGCONT)
        self._is_paused = False

    def _last_words(self) -> str:
        """What this start has put at the end of the log file."""
        if self._log_begin is None:
            return ""
        said = self.log_file.read_bytes()[self._log_begin :].decode(errors="replace").splitlines()
        return f": {said[-1]}" if said else ""

    @property
    def _ready_file(self) -> Path:
        return self.folder / "ready"

    @property
    def _pid_file(self) -> Path:
        """Its process, and that which started it."""
        return self.folder / "pid"

    def _end(self, number: int) -> None:
        self._is_ending = True
        self._signal(number)
        if self._is_paused and self._process is not None:
            self._is_paused = False
            self._process.send_signal(signal.SIGCONT)  # else it does not hear of its end; it may have come

    def _signal(self, number: int) -> None:
        if self.pid is None:
            raise ClusterError(f"{self.name} is {self.state.value}")
        assert self._process is not None
        self._process.send_signal(number)

    def _wait_end(self, timeout_seconds: float) -> None:
        assert self._process is not None
        try:
            self._process.wait(timeout_seconds)
        except subprocess.TimeoutExpired as error:
            raise ClusterError(f"{self.name} has not stopped after {timeout_seconds:g} s") from error
        self._pid_file.unlink(missing_ok=True)  # the number may be another process's some day


class _Held:
    """The lock of a cluster's folder, which all objects of a process share while any of them lives.

    If each had opened the file, the first that goes would take the lock from all.
    """

    def __init__(self, path: Path) -> None:
        descriptor = os.open(path, os.O_RDWR)
        weakref.finalize(self, os.close, descriptor)
        self.is_ours = _lock(descriptor)


_HELD: Final = weakref.WeakValueDictionary[tuple[int, int], _Held]()
"""By device and inode: the folder may be removed, and made again."""


class Cluster:
    """Nodes that know each other.  As a context manager it starts them all, and stops them at the end."""

    def __init__(
        self,
        folder: str | os.PathLike[str],
        nodes: int | None = None,
        *,
        port: int = 0,
        settings: Mapping[str, str] | None = None,
        properties_file: str | None = None,
        environment: Mapping[str, str] | None = None,
        advertised: Mapping[int, int] | None = None,
    ) -> None:
        """A cluster in ``folder``, new or as it was left.

        ``nodes`` is how many there are; without it as many as the folder has, or three in a new one.
        ``port`` is that of the first node, and the others follow it; 0 takes free ones, or those of last
        time.  ``settings`` are for all nodes.  ``advertised`` says by which port others reach a port, where
        that is another one.  CLUSTER_ID in the environment is the id of a new cluster, as for one broker; a
        cluster that has another one is refused.  Raises ClusterError.
        """
        self.folder = Path(folder).resolve()
        self._environment = dict(os.environ if environment is None else environment)
        if nodes is not None and nodes < 1:
            raise ClusterError("a cluster has one node or more")
        wanted_id = self._environment.get("CLUSTER_ID") or None
        described = self._read()
        if described is None:
            nodes = NODES if nodes is None else nodes
            described = {"cluster.id": wanted_id or _new_id(), **self._choose_ports(nodes, port)}
            # Before there is a folder, which would keep the number of nodes.
            for number, node_port in enumerate(described["ports"], 1):
                _check_port(node_port, number)
            self._make_folder()
        elif wanted_id not in (None, described["cluster.id"]):
            raise ClusterError(
                f"{self.folder} belongs to cluster {described['cluster.id']}, not to {wanted_id}"
            )
        self._take_lock()
        has = len(described["ports"])
        if nodes is None:
            nodes = has
        elif nodes != has:
            raise ClusterError(f"{self.folder} holds a cluster of {has} nodes, not of {nodes}")
        if port and described["ports"][0] != port:
            described |= self._choose_ports(nodes, port)
        self._write(described)
        self._described = described
        self._environment["CLUSTER_ID"] = described["cluster.id"]
        self._advertised = advertised or {}
        self._environment = _replicas_of_internal_topics(nodes, properties_file) | self._environment
        self.nodes = {
            node.name: node
            for node in (
                Node(
                    number,
                    self.folder / f"node-{number}",
                    node_port,
                    {**(settings or {}), **self._settings_of(number, node_port)},
                    properties_file,
                )
                for number, node_port in enumerate(described["ports"], 1)
            )
        }

    @property
    def bootstrap_servers(self) -> str:
        """All nodes' addresses, as clients want them."""
        return ",".join(node.address for node in self.nodes.values())

    @property
    def controller_port(self) -> int:
        port: int = self._described["controller.port"]
        return port

    @property
    def controller_address(self) -> str:
        """Where the controller listens, for ``controller.quorum.bootstrap.servers`` of who is to join."""
        return self._reached(self.controller_port)

    def node(self, name: str) -> Node:
        """The node of that name, or of that number.  Raises ClusterError."""
        found = self.nodes.get(name) or self.nodes.get(f"node-{name}")
        if found is None:
            raise ClusterError(f"there is no {name}, only {', '.join(self.nodes)}")
        return found

    def end_left_behind(self) -> Sequence[str]:
        """Stop nodes that still run because who started them was killed; returns their names."""
        found = [(node, pid) for node in self.nodes.values() if (pid := node.left_behind()) is not None]
        for node, pid in reversed(found):  # the controller last, as in ``stop_all``
            node.end_left_behind(pid)
        return [node.name for node, _ in found]

    def check_ports(self) -> int | None:
        """See to it that no other process has a port of a node.  Raises ClusterError, before any is started.

        The controller gets another port if need be, unless that is advertised as another one: its nodes find
        it by their settings, and the voters record follows when it leads.  Returns the port that it had then.
        """
        moved_from = None
        if _is_taken(self.controller_port) and self.controller_port not in self._advertised:
            moved_from = self.controller_port
            (port,) = free_ports(1, beside=self._described["ports"])
            self._described["controller.port"] = port
            self._write(self._described)
            for node in self.nodes.values():
                node._settings |= self._settings_of(node.id, node.port)
        for node in self.nodes.values():
            node.check_ports()
        return moved_from

    def start(
        self, name: str, output: BinaryIO | int | None = None, log: BinaryIO | int | None = None
    ) -> Node:
        """Start one node; it need not be ready on return.  For ``output`` and ``log`` see ``Node.start``."""
        node = self.node(name)
        node.start(self._environment, output, log)
        return node

    def start_all(self, output_of: Callable[[Node], BinaryIO | int | None] = lambda _: None) -> None:
        """Start all nodes, and return when all are ready."""
        self.end_left_behind()
        self.check_ports()
        for node in self.nodes.values():
            node.start(self._environment, output_of(node))
        for node in self.nodes.values():
            node.wait_ready()

    def stop_all(self, timeout_seconds: float = STOP_TIMEOUT_SECONDS) -> None:
        """Stop all nodes that run, the controller last: the others take their leave from it."""
        first, *others = self.nodes.values()
        running = [node for node in others if node.pid is not None]
        for node in running:
            node.begin_stop()
        for node in running:
            node._wait_end(timeout_seconds)
        if first.pid is not None:
            first.stop(timeout_seconds)

    def kill_all(self) -> None:
        """``kill -9`` to every node that runs."""
        with _undisturbed():
            for node in self.nodes.values():
                if node.pid is not None:
                    node.kill()

    def __enter__(self) -> "Cluster":
        try:
            self.start_all()
        except BaseException:
            self.kill_all()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            if kind is None:
                self.stop_all()
        finally:
            self.kill_all()

    def _settings_of(self, number: int, port: int) -> dict[str, str]:
        listeners = [("PLAINTEXT", port)]
        if number == 1:
            listeners.append(("CONTROLLER", self.controller_port))
        return {
            "node.id": str(number),
            "process.roles": "broker,controller" if number == 1 else "broker",
            "listeners": ",".join(f"{name}://{HOST}:{port}" for name, port in listeners),
            "advertised.listeners": ",".join(f"{name}://{self._reached(port)}" for name, port in listeners),
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.bootstrap.servers": self.controller_address,
        }

    def _reached(self, port: int) -> str:
        return f"{HOST}:{self._advertised.get(port, port)}"

    def _read(self) -> dict[str, Any] | None:
        try:
            found: dict[str, Any] = json.loads((self.folder / DESCRIPTION).read_text())
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise ClusterError(f"{self.folder / DESCRIPTION} cannot be read: {error}") from error
        if not _is_description(found):
            raise ClusterError(f"{self.folder / DESCRIPTION} does not say what the cluster is made of")
        return found

    def _make_folder(self) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            if (self.folder / "meta.properties").exists():
                raise ClusterError(f"{self.folder} holds the data of a single broker, not of a cluster")
            beginnings = {LOCK, f"{DESCRIPTION}.part"}  # of a start that was killed
            if any(entry.name not in beginnings for entry in self.folder.iterdir()):
                raise ClusterError(f"{self.folder} is not empty, and holds no cluster")
        except OSError as error:
            raise ClusterError(f"{self.folder} cannot be used: {error.strerror or error}") from error

    def _take_lock(self) -> None:
        """Have the cluster for this process, as long as this object lives."""
        path = self.folder / LOCK
        try:
            path.touch(0o644)
            place = path.stat()
            held = _HELD.get((place.st_dev, place.st_ino)) or _Held(path)
        except OSError as error:
            raise ClusterError(f"{self.folder} cannot be used: {error.strerror or error}") from error
        if not held.is_ours:
            raise ClusterError(f"the cluster in {self.folder} runs already")
        self._held = _HELD[place.st_dev, place.st_ino] = held

    def _write(self, description: Mapping[str, Any]) -> None:
        try:
            partial = self.folder / f"{DESCRIPTION}.part"
            with partial.open("w") as file:
                file.write(json.dumps(description, indent=2) + "\n")
                file.flush()
                os.fsync(file.fileno())  # without it nobody finds the nodes' data again
            partial.replace(self.folder / DESCRIPTION)
        except OSError as error:
            raise ClusterError(f"{self.folder} cannot be used: {error.strerror or error}") from error

    def _choose_ports(self, nodes: int, port: int) -> dict[str, Any]:
        if port + nodes - 1 > PORT_MAX:
            raise ClusterError(f"the ports of {nodes} nodes from {port} on would end above {PORT_MAX}")
        ports = list(range(port, port + nodes)) if port else free_ports(nodes)
        (controller_port,) = free_ports(1, beside=ports)
        return {"ports": ports, "controller.port": controller_port}


def running_nodes(folder: Path) -> Sequence[str]:
    """The names of nodes in a cluster's folder that run, whoever has started them; none if that is hidden."""
    locks = sorted(folder.glob("node-*/data/.lock"))
    try:
        return [lock.parent.parent.name for lock in locks if _is_locked(lock)]
    except PermissionError:
        return []


def _check_port(port: int, number: int) -> None:
    if _is_taken(port):
        raise ClusterError(
            f"node-{number} cannot start: another process has its port {port}; end that, "
            "or let --port name other ports"
        )


def free_ports(count: int, *, beside: Sequence[int] = ()) -> list[int]:
    """``count`` ports on which nothing listens, other than those ``beside`` them."""
    found: list[int] = []
    chance = random.SystemRandom()
    while len(found) < count:
        port = chance.choice(BELOW_CLIENTS)
        if port not in found and port not in beside and not _is_taken(port):
            found.append(port)
    return found


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Let Ctrl-C wait until this is done: a process that is lost on the way would run for ever."""
    before = signal.getsignal(signal.SIGINT)
    if before is None or threading.current_thread() is not threading.main_thread():
        yield  # it comes elsewhere
        return
    came: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if came:
            signal.raise_signal(signal.SIGINT)


def _replicas_of_internal_topics(nodes: int, properties_file: str | None) -> dict[str, str]:
    """Variables that say how many replicas the brokers' own topics get, unless the file does.

    A first client may come before all nodes have registered, and what is then there would be too few for
    ever.  What is set otherwise wins: other variables, and overrides.
    """
    told: set[str] = set()
    if properties_file is not None:
        with suppress(OSError):  # each node tells that it cannot read it
            lines = Path(properties_file).read_text("utf-8", "replace").splitlines()
            told = {re.split(r"[=:\s]", line.lstrip(), maxsplit=1)[0] for line in lines}
    replicas = str(min(nodes, REPLICAS_MAX))
    return {
        f"KAFKA_{name.upper().replace('.', '_')}": replicas
        for name in REPLICATION_FACTORS
        if name not in told
    }


def _is_description(found: object) -> bool:
    """Whether it is what ``Cluster`` has written."""
    if not isinstance(found, dict):
        return False
    ports = found.get("ports")
    return (
        isinstance(found.get("cluster.id"), str)
        and isinstance(ports, list)
        and bool(ports)
        and all(isinstance(port, int) for port in (*ports, found.get("controller.port")))
    )


def _is_taken(port: int) -> bool:
    """Whether another process has the port."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            return error.errno == errno.EADDRINUSE  # what else there may be, the node says when it listens
    return False


def _is_locked(path: Path) -> bool:
    """Whether another process holds the lock of this file."""
    with path.open("r+") as file:
        return not _lock(file.fileno())


def _lock(descriptor: int) -> bool:
    """Lock a file; False if another process holds its lock."""
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EAGAIN):
            return False
        raise
    return True


def _new_id() -> str:
    """A cluster id.  Made here, because who imports this module cannot import ``broker`` out of a wheel."""
    while True:
        text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if not text.startswith("-"):  # which tools would take for an option
            return text
