"""``ottla --nodes 3`` runs a whole cluster, and ``ottla nodes`` stops, kills and starts its nodes by name.

The second finds the first by a file in the cluster's folder, which says at which port of this machine it
listens, and holds what it wants to hear before it does anything.
"""

import argparse
import json
import os
import queue
import secrets
import shutil
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import IO, TYPE_CHECKING, Any, Final

from broker.config.value_types import ConfigError
from broker.errors import StartupError
from broker.logs import Log
from broker.stopping import heeded_signals
from ottla.cluster import HOST, STOP_TIMEOUT_SECONDS, Cluster, ClusterError, Node, State, running_nodes

if TYPE_CHECKING:
    from ottla.broker_command import Options, ReadyFile

DEFAULT_FOLDER: Final = "ottla-data"
DEFAULT_PORT: Final = 9092
CONTROL: Final = "control.json"
WATCH_SECONDS: Final = 0.2

LAST_WORDS_SECONDS: Final = 5.0
"""How long what the nodes have printed may take to be passed on when all have ended."""

REQUEST_BYTES_MAX: Final = 1 << 16

EXIT_FAILURE: Final = 1

EXIT_INTERRUPTED: Final = 130

STREAMS: Final = ("stdout", "stderr")
"""Of a node, and of this process: what one prints on one goes to the other's of that name."""

OF_EACH_NODE: Final = frozenset(
    (
        "advertised.listeners",
        "controller.listener.names",
        "controller.quorum.bootstrap.servers",
        "listeners",
        "log.dir",
        "log.dirs",
        "node.id",
        "process.roles",
    )
)
"""Settings that a cluster chooses for each of its nodes."""

OF_NO_CLUSTER: Final = frozenset(("broker.id", "controller.quorum.voters", "metadata.log.dir"))
"""Settings that would contradict these, or make nodes share what one alone can have."""

ACTIONS: Final[Mapping[str, str]] = {
    "status": "what each node does; the default",
    "start": "start a node that has ended",
    "stop": "stop a node as an operator would",
    "kill": "end a node at once (kill -9)",
    "pause": "let a node stand still (SIGSTOP)",
    "resume": "let a paused node go on",
}


def run_nodes(options: "Options") -> int:
    """Run a cluster until it is told to stop; returns the exit status.

    Without a number of nodes it is that of the folder.
    """
    temporary = None
    log = Log()
    try:
        _check_settings(options, log)
        folder = options.data or DEFAULT_FOLDER
        if options.is_ephemeral:
            from ottla.broker_command import make_temporary_directory

            folder = temporary = make_temporary_directory()
        cluster = Cluster(
            folder,
            options.nodes,
            port=_first_port(options, folder),
            settings=dict(_setting(override) for override in options.overrides),
            properties_file=options.properties_file,
        )
        ready_file = None
        if options.ready_file is not None:
            from ottla.broker_command import ReadyFile

            ready_file = ReadyFile(options.ready_file)
        return Supervisor(cluster, ready_file, log).run()
    except (ClusterError, ConfigError, StartupError) as error:
        log.error(str(error))
        return EXIT_FAILURE
    finally:
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)


def _check_settings(options: "Options", log: Log) -> None:
    """Tell of wrong settings before there is a folder, and of those that no node will use.

    The log gets the levels that the environment names, as that of each node.

    Raises ConfigError and ClusterError.
    """
    from broker.config.sources import gather
    from ottla.broker_command import checked_config

    gathered = gather(options.properties_file, os.environ, options.overrides)
    settings = gathered.settings
    log.set_levels(gathered.levels)
    if wrong := sorted(OF_NO_CLUSTER & settings.keys()):
        raise ClusterError(f"not for all nodes of a cluster: {', '.join(wrong)}")
    unused = sorted(OF_EACH_NODE & settings.keys())
    checked_config({name: value for name, value in settings.items() if name not in OF_EACH_NODE}, None)
    if unused:
        log.warn(f"each node of a cluster has its own, so this is ignored: {', '.join(unused)}")


def _first_port(options: "Options", folder: str) -> int:
    """That of the last start, unless another one is asked for."""
    if options.port is not None:
        return options.port
    return 0 if (Path(folder) / "cluster.json").exists() else DEFAULT_PORT


def _setting(override: str) -> tuple[str, str]:
    name, equals, value = override.partition("=")
    if not equals:
        raise ClusterError(f"--override {override} is not of the form NAME=VALUE")
    return name.strip(), value


class Supervisor:
    """Looks after the nodes: starts them, passes on what they print, and does what ``ottla nodes`` asks.

    What a node prints goes where one broker alone prints it: its log to standard error.
    """

    def __init__(self, cluster: Cluster, ready_file: "ReadyFile | None", log: Log) -> None:
        self._cluster = cluster
        self._ready_file = ready_file
        self._log = log
        self._passing_on: list[threading.Thread] = []
        self._is_stopping = False
        self._is_interruptible = False
        """Whether a second SIGINT ends what is going on: not where a process might be lost."""
        self._woken: queue.SimpleQueue[None] = queue.SimpleQueue()
        """By a signal.  Its handler interrupts who waits here, and an Event's lock would be taken then."""
        self._turn = threading.Lock()
        """Held while a process is started or ended: one after the other."""
        self._reported: set[str] = set()
        """Nodes whose unexpected end has been told."""

    def run(self) -> int:
        """Until SIGINT, SIGTERM or SIGHUP; returns the exit status.

        A second SIGINT kills nodes that still stop.
        """
        for number in heeded_signals():
            signal.signal(number, self._signalled)
        try:
            with self._control():
                if self._start():
                    self._watch()
                with self._turn, self._interruptible():
                    self._cluster.stop_all()
        except KeyboardInterrupt:
            return EXIT_INTERRUPTED
        finally:
            self._cluster.kill_all()
            give_up_at = time.monotonic() + LAST_WORDS_SECONDS
            for passing_on in self._passing_on:  # the last words of a node are those that tell why
                passing_on.join(max(give_up_at - time.monotonic(), 0))
            if self._ready_file is not None:
                self._ready_file.withdraw()
        return 0

    def _signalled(self, number: int, frame: FrameType | None) -> None:
        if not self._is_stopping:
            self._is_stopping = True
            self._woken.put(None)
        elif number == signal.SIGINT and self._is_interruptible:
            self._is_interruptible = False  # what follows is quick, and must not be cut short
            raise KeyboardInterrupt

    @contextmanager
    def _interruptible(self) -> Iterator[None]:
        try:
            self._is_interruptible = True
            yield
        finally:
            self._is_interruptible = False

    def _stops_within(self, seconds: float) -> bool:
        """Wait so long, or until it is to stop."""
        if not self._is_stopping:
            with suppress(queue.Empty):
                self._woken.get(timeout=seconds)
        return self._is_stopping

    def _start(self) -> bool:
        """False if the start was called off."""
        with self._interruptible():
            names = self._cluster.end_left_behind()
        if names:
            self._log.info(f"stopped what an earlier start had left running: {', '.join(names)}")
        if self._is_stopping:
            return False
        if moved_from := self._cluster.check_ports():
            self._log.warn(
                f"the controller listens at {self._cluster.controller_address} from now on: "
                f"another process has port {moved_from}"
            )
        with self._turn:
            for name in self._cluster.nodes:
                self._start_node(name)
        for node in self._cluster.nodes.values():
            while node.state is State.STARTING:
                if self._stops_within(WATCH_SECONDS / 10):
                    return False
            if node.state is not State.RUNNING:
                raise ClusterError(f"{node.name} has ended instead of starting")
        _print(
            f"The cluster is ready at {self._cluster.bootstrap_servers}; "
            f"controller at {self._cluster.controller_address}; data in {self._cluster.folder}"
        )
        if self._ready_file is not None:
            self._ready_file.write(self._cluster.bootstrap_servers)
        return True

    def _start_node(self, name: str) -> Node:
        pipes = [os.pipe() for _ in STREAMS]
        try:
            node = self._cluster.start(name, *(writer for _, writer in pipes))
        except BaseException:
            for reader, _ in pipes:
                os.close(reader)
            raise
        finally:
            for _, writer in pipes:
                os.close(writer)
        self._reported.discard(name)
        self._passing_on = [each for each in self._passing_on if each.is_alive()]
        for (reader, _), stream in zip(pipes, STREAMS, strict=True):
            lines = os.fdopen(reader, "rb")
            thread = threading.Thread(target=_pass_on, args=(name, lines, stream), daemon=True)
            thread.start()
            self._passing_on.append(thread)
        return node

    def _watch(self) -> None:
        """Tell of nodes that end although nobody asked them to: the others go on."""
        while not self._stops_within(WATCH_SECONDS):
            for node in self._cluster.nodes.values():
                if node.state is State.FAILED and node.name not in self._reported:
                    self._reported.add(node.name)
                    self._log.error(f"{node.name} has ended; `ottla nodes start {node.name}` starts it again")

    # What ``ottla nodes`` asks

    @contextmanager
    def _control(self) -> Iterator[None]:
        token = secrets.token_hex(16)
        with socket.create_server((HOST, 0)) as door:
            place = self._cluster.folder / CONTROL
            with open(place, "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
                json.dump({"port": door.getsockname()[1], "token": token}, file)
            threading.Thread(target=self._answer_all, args=(door, token), daemon=True).start()
            try:
                yield
            finally:
                place.unlink(missing_ok=True)

    def _answer_all(self, door: socket.socket, token: str) -> None:
        while True:
            try:
                connected, _ = door.accept()
            except OSError:
                return  # the cluster ends
            threading.Thread(target=self._answer, args=(connected, token), daemon=True).start()

    def _answer(self, connected: socket.socket, token: str) -> None:
        with connected, connected.makefile("rw") as stream:
            try:
                asked = json.loads(stream.readline(REQUEST_BYTES_MAX))
                if not isinstance(asked, dict) or asked.get("token") != token:
                    return
                answer = {"nodes": self._do(str(asked.get("action")), asked.get("name"))}
            except ClusterError as error:
                answer = {"error": str(error)}
            except (OSError, ValueError):
                return
            stream.write(json.dumps(answer) + "\n")

    def _do(self, action: str, name: str | None) -> Any:
        if action != "status":
            if name is None:
                raise ClusterError(f"which node? {', '.join(self._cluster.nodes)}")
            node = self._cluster.node(name)
            doing: Mapping[str, Callable[[], object]] = {
                "start": lambda: self._start_node(node.name),
                "stop": node.stop,
                "kill": node.kill,
                "pause": node.pause,
                "resume": node.resume,
            }
            if action not in doing:
                raise ClusterError(f"{action} is nothing that can be done to a node")
            with self._turn:
                if self._is_stopping:
                    raise ClusterError("the cluster stops")
                self._log.info(f"{action} {node.name}, as `ottla nodes` asks")
                doing[action]()
            if action == "start":  # not in turn: it may need another node, which is to be started, too
                node.wait_ready()
        return [
            {"name": node.name, "state": node.state.value, "address": node.address, "pid": node.pid}
            for node in self._cluster.nodes.values()
        ]


def _pass_on(name: str, lines: IO[bytes], stream: str) -> None:
    """Print what a node prints, each line behind its name."""
    with lines:
        for line in lines:
            _print(f"{name} | {line.decode('utf-8', 'replace').rstrip()}", stream)


def _print(line: str, stream: str = "stdout") -> None:
    try:
        to = getattr(sys, stream)
        to.write(line + "\n")
        to.flush()
    except (OSError, ValueError):
        pass  # nobody reads any more: no reason not to go on


def control_nodes(arguments: Sequence[str]) -> int:
    """Run ``ottla nodes``; returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="ottla nodes",
        description="Nodes of a cluster that `ottla --nodes` runs: what they do, and what one is to do.",
        epilog="  ".join(f"{action}: {what}." for action, what in ACTIONS.items()),
        allow_abbrev=False,
    )
    parser.add_argument("action", nargs="?", default="status", choices=ACTIONS)
    parser.add_argument("name", nargs="?", metavar="NODE", help="node-1, or 1")
    parser.add_argument(
        "--data",
        metavar="DIR",
        default=DEFAULT_FOLDER,
        help=f"the cluster's folder; default: ./{DEFAULT_FOLDER}",
    )
    options = parser.parse_args(arguments)
    try:
        for node in _ask(Path(options.data), options.action, options.name):
            _print(f"{node['name']}  {node['state']:8}  {node['address']}  {node['pid'] or '-'}")
    except ClusterError as error:
        sys.stderr.write(f"ottla nodes: {error}\n")
        return EXIT_FAILURE
    return 0


def _ask(folder: Path, action: str, name: str | None) -> list[dict[str, Any]]:
    try:
        control = json.loads((folder / CONTROL).read_text())
        with (
            socket.create_connection((HOST, control["port"]), timeout=2 * STOP_TIMEOUT_SECONDS) as connected,
            connected.makefile("rw") as stream,
        ):
            stream.write(json.dumps({"token": control["token"], "action": action, "name": name}) + "\n")
            stream.flush()
            line = stream.readline()
    except (FileNotFoundError, ConnectionRefusedError) as error:
        if names := running_nodes(folder):
            raise ClusterError(
                f"{', '.join(names)} run, but nobody looks after them: `ottla --data {folder}` does"
            ) from error
        raise ClusterError(f"no cluster runs in {folder}; --data names the folder of one") from error
    except (OSError, ValueError, KeyError) as error:
        raise ClusterError(f"the cluster in {folder} cannot be asked: {error}") from error
    if not line:
        raise ClusterError(f"the cluster in {folder} does not answer")
    answer = json.loads(line)
    if "error" in answer:
        raise ClusterError(answer["error"])
    found: list[dict[str, Any]] = answer["nodes"]
    return found
