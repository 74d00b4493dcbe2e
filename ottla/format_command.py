"""``ottla format``: give a log directory its identity, as Kafka's ``kafka-storage format`` does."""

import argparse
import os
import sys
import time
from collections.abc import Mapping, Sequence

from broker.config.broker_config import BrokerConfig
from broker.config.checks import check, check_is_served
from broker.config.sources import gather
from broker.config.value_types import ConfigError
from broker.errors import StartupError
from broker.identifiers import Identifiers
from broker.metadata.features import (
    KRAFT_VERSION,
    METADATA_VERSION_MAX,
    METADATA_VERSION_MIN,
    METADATA_VERSION_NAMES,
    UnknownFeature,
    metadata_version_of_release,
)
from broker.metadata.formatting import Format, format_directories
from broker.metadata.image import METADATA_VERSION
from broker.raft.voters import VoterEndpoint
from ottla.arguments import add_data, command_parser
from ottla.broker_command import refuse_cluster
from ottla.output import run_printing, write_line
from storage.errors import StorageError
from storage.filesystem import RealFileSystem
from storage.node_files import MetaProperties, read_meta_properties


class FormatError(Exception):
    """Why nothing was formatted, in one line."""


def format_node(arguments: Sequence[str]) -> int:
    """Run the command; returns its exit status."""
    options = _parse(arguments)
    try:
        lines = _format(options)
    except (FormatError, ConfigError, StartupError, UnknownFeature, StorageError, OSError) as error:
        sys.stderr.write(f"ottla format: {error}\n")
        return 1

    def tell() -> int:
        for line in lines:
            write_line(line)
        return 0

    return run_printing("format", tell)


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = command_parser(
        "ottla format",
        "Format the log directory of a node. A broker that starts on an empty one does it by itself.",
    )
    add_data(parser)
    for names, where, what in (
        (("-c", "--config"), "FILE", "the same as server.properties, for who knows Kafka's tool"),
        (("-t", "--cluster-id"), "ID", "default: $CLUSTER_ID, or a new one"),
        (("--node-id",), "N", "the same as --override node.id=N"),
        (("-r", "--release-version"), "VERSION", "4.0 to 4.4: the oldest Kafka that may join the cluster"),
    ):
        parser.add_argument(*names, metavar=where, help=what)
    parser.add_argument(
        "-f",
        "--feature",
        action="append",
        default=[],
        metavar="NAME=LEVEL",
        help="another level of one feature; may be repeated",
    )
    for names, what in (
        (("-s", "--standalone"), "this node alone is the controller; the default"),
        (("-N", "--no-initial-controllers"), "others are the controllers; this node may become one of them"),
        (("-g", "--ignore-formatted"), "a directory that is formatted already is no error"),
    ):
        parser.add_argument(*names, action="store_true", help=what)
    return parser.parse_args(arguments)


def _format(options: argparse.Namespace) -> list[str]:
    gathered = gather(options.properties or options.config, os.environ, options.override)
    settings = gathered.settings
    if options.node_id is not None:
        settings["node.id"] = options.node_id
    if options.data is not None:
        settings["log.dirs"] = options.data
    config = BrokerConfig(settings)
    check_is_served(config)
    check(config)
    for directory in config.log_directories:
        refuse_cluster(directory)
    levels = _levels(options.feature)
    metadata_version = _metadata_version(options.release_version, levels)
    is_dynamic = _is_dynamic(config, options.standalone, levels)
    is_controller = "controller" in config.get("process.roles")
    if options.standalone and not is_controller:
        raise FormatError("You can only use --standalone on a controller.")
    identifiers = Identifiers()
    file_system = RealFileSystem()
    metadata_directory = os.path.abspath(config.metadata_directory)
    paths = [metadata_directory, *[os.path.abspath(path) for path in config.log_directories]]
    directories = list(dict.fromkeys(paths))
    cluster_id = options.cluster_id or gathered.cluster_id
    blank = []
    for directory in directories:
        stored = read_meta_properties(file_system, directory)
        if stored is None:
            blank.append(directory)
            continue
        _check_identity(directory, stored, cluster_id, config)
        cluster_id = cluster_id or stored.cluster_id
        if not options.ignore_formatted:
            raise FormatError(
                f"Log directory {directory} is already formatted. Use --ignore-formatted to ignore this "
                "directory and format the others."
            )
    if not blank:
        return ["All of the log directories are already formatted."]
    if options.no_initial_controllers and options.standalone:
        raise FormatError(
            "who votes is said by --standalone, or by the others of the cluster (--no-initial-controllers): "
            "choose one"
        )
    if options.no_initial_controllers and cluster_id is None:
        raise FormatError("a cluster that has controllers has an id: give it, --cluster-id")
    if not is_controller and cluster_id is None:
        raise FormatError("a broker belongs to the cluster of its controllers: give its id, --cluster-id")
    plan = Format(
        cluster_id=cluster_id or identifiers.uuid_text(),
        node_id=config.node_id,
        metadata_version=metadata_version,
        controller_endpoints=_endpoints(config) if is_dynamic else (),
        feature_levels=levels,
        joins=options.no_initial_controllers and is_dynamic,
    )
    format_directories(
        file_system,
        metadata_directory if is_controller and metadata_directory in blank else None,
        [directory for directory in blank if not is_controller or directory != metadata_directory],
        plan,
        new_id=identifiers.uuid,
        now_ms=time.time_ns() // 1_000_000,
    )
    kind = "dynamic metadata voter directory" if is_dynamic else "metadata directory"
    release = METADATA_VERSION_NAMES[metadata_version]
    return [
        *[
            f"Formatted {kind if is_controller and directory == metadata_directory else 'data directory'} "
            f"{directory} "
            f"with metadata.version {release}."
            for directory in blank
        ],
        f"The cluster id is {plan.cluster_id}.",
    ]


def _levels(features: Sequence[str]) -> dict[str, int]:
    levels: dict[str, int] = {}
    for feature in features:
        name, equals, level = feature.partition("=")
        if not equals:
            raise FormatError(f"Can't parse feature=level string {feature}: equals sign not found.")
        if not level.strip().isdecimal():
            raise FormatError(
                f"Can't parse feature=level string {feature}: unable to parse {level} as a short."
            )
        levels[name.strip()] = int(level)
    return levels


def _metadata_version(release: str | None, levels: dict[str, int]) -> int:
    chosen = levels.pop(METADATA_VERSION, None)
    if chosen is None:
        return METADATA_VERSION_MAX if release is None else metadata_version_of_release(release)
    if release is not None:
        raise FormatError("Use --release-version instead of --feature metadata.version=X to avoid ambiguity.")
    if not METADATA_VERSION_MIN <= chosen <= METADATA_VERSION_MAX:
        raise FormatError(f"No feature:{METADATA_VERSION} with feature level {chosen}")
    return chosen


def _is_dynamic(config: BrokerConfig, is_standalone: bool, levels: dict[str, int]) -> bool:
    """Whether the voters stand in the log (kraft.version 1), and not in ``controller.quorum.voters``."""
    is_dynamic = not config.get("controller.quorum.voters")
    if is_standalone and not is_dynamic:
        raise FormatError(
            "You cannot specify controller.quorum.voters and format the node with --standalone. If you want "
            "to use dynamic quorum, please remove controller.quorum.voters and specify "
            "controller.quorum.bootstrap.servers instead."
        )
    kraft_version = levels.pop(KRAFT_VERSION, int(is_dynamic))
    if kraft_version not in (0, 1):
        raise FormatError(f"No feature:{KRAFT_VERSION} with feature level {kraft_version}")
    if kraft_version != int(is_dynamic):
        needed = "set" if kraft_version == 0 else "empty"
        raise FormatError(
            f"Cannot set kraft.version to {kraft_version} unless controller.quorum.voters is {needed}."
        )
    return is_dynamic


def _check_identity(
    directory: str, stored: MetaProperties, cluster_id: str | None, config: BrokerConfig
) -> None:
    expected: Mapping[str, tuple[object, object]] = {
        "cluster.id": (cluster_id, stored.cluster_id),
        "node.id": (config.node_id if config.is_set("node.id") else None, stored.node_id),
    }
    for name, (wanted, found) in expected.items():
        if wanted is not None and found is not None and wanted != found:
            raise FormatError(
                f"Invalid {name} in: {directory}/meta.properties. Expected {wanted}, but read {found}"
            )


def _endpoints(config: BrokerConfig) -> tuple[VoterEndpoint, ...]:
    """The controller's address as far as it is known before it listens; starting completes it."""
    return tuple(
        VoterEndpoint(address.name, address.host or "localhost", address.port)
        for address in config.advertised_controllers
    )
