"""``ottla``: start a broker and serve until it is told to stop.

What only some starts need (argument parsing, temporary directories) is imported by those.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from broker.app import Ready, run
from broker.config.broker_config import BrokerConfig
from broker.config.checks import check, check_is_served, remarks
from broker.config.sources import gather
from broker.config.value_types import ConfigError
from broker.errors import StartupError
from broker.logs import Log
from broker.network.call import Address

EXIT_FAILURE = 1

DEFAULT_FOLDER = "ottla-data"
"""Where the data lies if nobody says otherwise: the default of ``log.dirs``."""

NODES_MAX = 50
"""More processes than that on one machine are a mistake."""


class Options(NamedTuple):
    """What the command line says."""

    properties_file: str | None = None
    overrides: Sequence[str] = ()
    data: str | None = None
    is_ephemeral: bool = False
    port: int | None = None
    ready_file: str | None = None
    nodes: int | None = None
    """How many, if a whole cluster is wanted."""


def run_broker(arguments: Sequence[str]) -> int:
    """Run the command; returns its exit status."""
    options = read_options(arguments) if arguments else Options()
    if options.nodes is not None:
        from ottla.nodes_command import run_nodes

        return run_nodes(options)
    log = Log()
    temporary = None
    try:
        gathered = gather(options.properties_file, os.environ, options.overrides)
        settings = gathered.settings
        if holds_cluster(options, settings):
            from ottla.nodes_command import run_nodes

            return run_nodes(options)
        log.set_levels(gathered.levels)
        if options.data is not None:
            settings["log.dirs"] = options.data
        if options.is_ephemeral:
            settings["log.dirs"] = temporary = make_temporary_directory()
        config = checked_config(settings, options.port)
        for directory in config.log_directories:
            refuse_cluster(directory)
        for line in (*gathered.remarks, *remarks(config)):
            log.warn(line)
        ready_file = None if options.ready_file is None else ReadyFile(options.ready_file)
        status = run(
            config,
            cluster_id=gathered.cluster_id,
            levels=gathered.levels,
            on_ready=lambda ready: announce(ready, ready_file),
        )
        if ready_file is not None:
            ready_file.withdraw()
        return status
    except (ConfigError, StartupError, OSError) as error:
        log.error(str(error))
        return EXIT_FAILURE
    finally:
        if temporary is not None:
            import shutil

            shutil.rmtree(temporary, ignore_errors=True)


def holds_cluster(options: Options, settings: Mapping[str, str]) -> bool:
    """Whether the folder that is to be used is that of a whole cluster, which starts as it was made."""
    if options.is_ephemeral or (options.data is None and ("log.dirs" in settings or "log.dir" in settings)):
        return False
    return os.path.exists(os.path.join(options.data or DEFAULT_FOLDER, "cluster.json"))


def refuse_cluster(directory: str) -> None:
    """Raises StartupError for the folder of a whole cluster: its nodes' folders look like partitions."""
    if os.path.exists(os.path.join(directory, "cluster.json")):
        raise StartupError(f"{directory} holds a cluster: `ottla --data {directory}` starts it")


def checked_config(settings: Mapping[str, str], port: int | None) -> BrokerConfig:
    """The configuration, with ``port`` where clients connect, if that is said.

    Raises ConfigError, in the words of ``settings`` if these are wrong whatever the port is.
    """
    try:
        config = BrokerConfig(settings if port is None else {**settings, **with_port(settings, port)})
        check_is_served(config)
        check(config)
    except ConfigError:
        if port is not None:
            checked_config(settings, None)
        raise
    return config


def with_port(settings: Mapping[str, str], port: int) -> dict[str, str]:
    """``listeners`` with another port for the first that is not the controller's.

    Where clients are told an address for that listener, its port changes, too.
    """
    given = BrokerConfig(settings)
    controllers = given.controller_listener_names
    settings = given.static  # with what stands elsewhere, which config.providers bring
    listeners = settings.get("listeners", "PLAINTEXT://:9092").split(",")
    chosen = next((name for name in map(name_of, listeners) if name and name not in controllers), None)
    changed = {"listeners": listeners}
    if "advertised.listeners" in settings:
        changed["advertised.listeners"] = settings["advertised.listeners"].split(",")
    return {
        setting: ",".join(
            f"{entry.rpartition(':')[0]}:{port}" if name_of(entry) == chosen else entry for entry in entries
        )
        for setting, entries in changed.items()
    }


def name_of(entry: str) -> str:
    """The listener's name in ``name://host:port``; empty if it is not of that form."""
    name, separator, _ = entry.strip().partition("://")
    return name.upper() if separator else ""


class ReadyFile:
    """The file that holds ``host:port`` while the broker can be reached.

    That of an earlier start is removed at once.  Raises StartupError where this one could not be written.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._partial = f"{path}.{os.getpid()}.part"
        self._written: tuple[int, ...] | None = None
        try:
            Path(self._partial).write_text("")
            os.remove(self._partial)
        except OSError as error:
            raise StartupError(f"cannot write {path}: {error.strerror or error}") from error
        try:
            os.remove(path)
        except FileNotFoundError:
            pass
        except OSError as error:
            raise StartupError(f"cannot replace {path}: {error.strerror or error}") from error

    def write(self, address: str) -> None:
        """Whoever sees the file sees all of it."""
        try:
            Path(self._partial).write_text(f"{address}\n")
            os.replace(self._partial, self._path)
            self._written = self._identity()
        except OSError as error:
            raise StartupError(f"cannot write {self._path}: {error.strerror or error}") from error

    def withdraw(self) -> None:
        """Remove the file, unless another broker has put its own there."""
        try:
            if self._written is not None and self._identity() == self._written:
                os.remove(self._path)
        except FileNotFoundError:
            pass
        except OSError as error:
            raise StartupError(f"cannot remove {self._path}: {error.strerror or error}") from error

    def _identity(self) -> tuple[int, ...]:
        found = os.stat(self._path)
        return found.st_dev, found.st_ino, found.st_mtime_ns  # a new file may have an old one's inode


def announce(ready: Ready, ready_file: ReadyFile | None) -> None:
    """Tell whoever waits for the file, and the user, where the broker is."""
    brokers = [connectable(address) for _, address in ready.brokers]
    controllers = [connectable(address) for _, address in ready.controllers]
    if ready_file is not None:
        ready_file.write((brokers or controllers)[0])
    places = [f"ready at {', '.join(brokers)}"] if brokers else ["ready"]
    if controllers:
        places.append(f"controller at {', '.join(controllers)}")
    line = f"Ottla is {'; '.join(places)}"
    try:
        sys.stdout.write(f"{line}; data in {', '.join(ready.directories)}\n")
        sys.stdout.flush()
    except OSError:
        pass  # nobody reads any more: no reason not to serve


def connectable(address: Address) -> str:
    """``host:port`` by which this machine reaches an address that may stand for all of them."""
    if address.host in ("", "0.0.0.0", "::"):
        return f"localhost:{address.port}"
    return str(address)


def make_temporary_directory() -> str:
    """A new directory for this user alone, where the system keeps such things.

    The standard ``tempfile`` would be imported for this alone, and delay the open port.
    """
    place = next((os.environ[name] for name in ("TMPDIR", "TEMP", "TMP") if os.environ.get(name)), "/tmp")
    directory = os.path.join(os.path.abspath(place), f"ottla-{os.urandom(6).hex()}")
    try:
        os.mkdir(directory, mode=0o700)
    except OSError as error:
        cause = error.strerror or error
        raise StartupError(f"cannot make a temporary directory in {place}: {cause}") from error
    return directory


def read_options(arguments: Sequence[str]) -> Options:
    """Parse the command line; ends the process for ``--help``, ``--version`` and mistakes.

    What is as it should be is read here.  Only the rest needs ``argparse``, and the time that it takes to
    load.
    """
    return read_plain_options(arguments) or parse_options(arguments)


def read_plain_options(arguments: Sequence[str]) -> Options | None:
    """The options of a command line without mistakes and abbreviations; None for any other."""
    given: dict[str, str] = {}
    overrides: list[str] = []
    properties_file = None
    is_ephemeral = False
    words = iter(arguments)
    for word in words:
        name, equals, value = word.partition("=")
        if word == "--ephemeral":
            is_ephemeral = True
        elif name == "--override" or (name in ("--data", "--port", "--ready-file") and name not in given):
            if not equals:
                value = next(words, "-")
                if value.startswith("-"):
                    return None
            if name == "--override":
                overrides.append(value)
            else:
                given[name] = value
        elif word.startswith("-") or properties_file is not None:
            return None
        else:
            properties_file = word
    if is_ephemeral and "--data" in given:
        return None
    try:
        number = port(given["--port"]) if "--port" in given else None
    except ValueError:
        return None
    return Options(
        properties_file, overrides, given.get("--data"), is_ephemeral, number, given.get("--ready-file")
    )


def parse_options(arguments: Sequence[str]) -> Options:
    """The same with ``argparse``, which knows what to say of everything."""
    from ottla.arguments import add_data, command_parser

    parser = command_parser(
        "ottla",
        "A Kafka-compatible broker: one process that is broker and controller, or with --nodes a cluster.",
        "Settings also come from KAFKA_... environment variables, as in Kafka's container image. "
        "Other commands: `ottla format` prepares a log directory, `ottla verify` checks one, "
        "`ottla dump` shows what is in its files, `ottla nodes` stops and starts the nodes of a cluster, "
        "and `ottla handover` lets another node be the controller; each has a --help.",
    )
    place = parser.add_mutually_exclusive_group()
    add_data(place)
    place.add_argument(
        "--ephemeral",
        action="store_true",
        help="keep the data in a temporary directory, removed at the end",
    )
    parser.add_argument("--port", type=port, metavar="N", help="where clients connect; 0 takes a free one")
    parser.add_argument(
        "--ready-file", metavar="FILE", help="is written, with host:port, once the broker can be used"
    )
    parser.add_argument(
        "--nodes",
        type=node_count,
        metavar="N",
        help="a cluster of so many nodes, each a process of its own; `ottla nodes` stops and starts them, "
        "and the next start needs no number",
    )
    parser.add_argument("--version", action="version", version=version() if "--version" in arguments else "")
    found = parser.parse_args(arguments)
    return Options(
        found.properties,
        found.override,
        found.data,
        found.ephemeral,
        found.port,
        found.ready_file,
        found.nodes,
    )


def node_count(text: str) -> int:
    """``text`` as a number of nodes.  Raises what ``argparse`` shows."""
    if not text.isdecimal() or not 1 <= int(text) <= NODES_MAX:
        from argparse import ArgumentTypeError

        raise ArgumentTypeError(f"{text} is not a number from 1 to {NODES_MAX}")
    return int(text)


def port(text: str) -> int:
    """``text`` as a port; ``ValueError`` if it is none."""
    number = int(text)
    if not 0 <= number <= 65535:
        raise ValueError(text)
    return number


def version() -> str:
    """What ``--version`` prints."""
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as installed

    try:
        return f"ottla {installed('ottla')}"
    except PackageNotFoundError:
        return "ottla, run from its source"
