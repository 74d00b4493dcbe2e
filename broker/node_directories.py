"""The log directories of this node: taken at its start, formatted if they are new, and whose they are."""

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager

from broker.config.broker_config import BrokerConfig
from broker.errors import StartupError
from broker.metadata.features import METADATA_VERSION_MAX
from broker.metadata.formatting import Format, format_directories
from broker.raft.voters import VoterEndpoint
from broker.services import Services
from protocol.uuids import is_reserved, uuid_to_text
from storage import paths
from storage.errors import CorruptFile, DiskFailure, StorageError
from storage.filesystem import FileSystem
from storage.log_directory import LogDirectory
from storage.node_files import MetaProperties, read_meta_properties

DEFAULT_NODE_ID = 1
"""Of a node whose settings and directories name none."""


class NodeDirectories:
    """What this process holds, and what it could not use."""

    def __init__(
        self, metadata: LogDirectory, online: Sequence[LogDirectory], offline: dict[str, StorageError]
    ) -> None:
        self.metadata = metadata
        """Holds the metadata log.  It may be one of those that hold partitions, or stand apart."""
        self.online = list(online)
        """Entries of ``log.dirs`` that can be used, in their order."""
        self.offline = offline
        """The others by their paths, and what is wrong with them."""

    @property
    def held(self) -> list[LogDirectory]:
        """All that are to be closed in the end."""
        return self.online if self.metadata in self.online else [self.metadata, *self.online]


@contextmanager
def hold_directories(
    services: Services, file_system: FileSystem, *, open_files_max: int
) -> Iterator[NodeDirectories]:
    """Lock the log directories; those that are not closed inside the block are left as by a crash.

    One that cannot be used is left out, unless it is the metadata directory or the last one.  Raises
    StartupError or StorageError.
    """
    config = services.config
    metadata_path = os.path.abspath(config.metadata_directory)
    partition_paths = [os.path.abspath(path) for path in config.log_directories]
    all_paths = list(dict.fromkeys([metadata_path, *partition_paths]))
    _check_distinct(partition_paths)
    held: dict[str, LogDirectory] = {}
    offline: dict[str, StorageError] = {}
    try:
        for path in all_paths:
            try:
                held[path] = LogDirectory.open(
                    path,
                    file_system,
                    random_below=services.identifiers.random.randrange,
                    report=services.log.warn,
                    now_ms=services.clock.now_ms(),
                    open_files_max=max(open_files_max // len(all_paths), 1),
                    producer_expiration_ms=config.get("producer.id.expiration.ms"),
                )
            except (DiskFailure, CorruptFile) as failure:  # CorruptFile: meta.properties, as in Kafka
                if path == metadata_path:
                    raise
                services.log.error(f"log directory {path} is offline: {failure}")
                offline[path] = failure
        online = [held[path] for path in partition_paths if path in held]
        if not online:
            raise StartupError(f"none of the log directories {', '.join(partition_paths)} can be used")
        _check_contents(held[metadata_path], online, file_system)
        yield NodeDirectories(held[metadata_path], online, offline)
    except BaseException:
        for directory in held.values():
            directory.abandon()
        raise


def _check_distinct(given: Sequence[str]) -> None:
    if len({os.path.realpath(path) for path in given}) != len(given):
        raise StartupError(f"Duplicate log directory found: {', '.join(given)}")


def _check_contents(metadata: LogDirectory, online: Sequence[LogDirectory], file_system: FileSystem) -> None:
    for directory in online:
        if directory is not metadata and file_system.exists(
            os.path.join(directory.path, paths.METADATA_REPLICA)
        ):
            raise StartupError(
                f"Found unexpected metadata location in data directory `{directory.path}` "
                f"(the configured metadata directory is {metadata.path})."
            )
    if metadata not in online and metadata.replicas:
        raise StartupError(f"{metadata.path} holds partitions, but is not among log.dirs")


def asks_for_cluster_id(services: Services, directories: NodeDirectories) -> bool:
    """Whether this node is new and belongs to the cluster of a controller elsewhere, which knows its id."""
    is_new = all(directory.properties is None for directory in directories.held)
    return is_new and "controller" not in services.config.get("process.roles")


def identify(
    services: Services,
    directories: NodeDirectories,
    controller_endpoints: Sequence[VoterEndpoint],
    cluster_id: str | None,
    file_system: FileSystem,
) -> None:
    """Find out who this node is: what its directories say, or what they are formatted as now.

    Directories are only formatted where all are new: a single one without an identity may be the mount
    point of a disk that is missing.  ``cluster_id`` is for new ones; where they belong to another cluster,
    they are refused.  Only a controller begins a cluster: the metadata of a mere broker come from elsewhere.
    Raises StartupError or StorageError.
    """
    config = services.config
    held = directories.held
    formatted = [directory for directory in held if directory.properties is not None]
    node_id = _node_id(config, formatted)
    for directory in held:
        _check_identity(directory, node_id, cluster_id)
    _check_agreement(formatted)
    config.identify(node_id)
    services.node_id = node_id
    stored_ids = [stored.cluster_id for directory in formatted if (stored := directory.properties)]
    services.cluster_id = next(filter(None, stored_ids), cluster_id) or services.identifiers.uuid_text()
    blank = [directory for directory in held if directory.properties is None]
    if blank:
        if formatted or directories.offline:
            raise StartupError(
                f"No `meta.properties` found in {blank[0].path} "
                "(have you run `ottla format --ignore-formatted` to format the directory?)"
            )
        _format_all(services, directories, controller_endpoints, file_system)
    for directory in held:
        stored = directory.properties
        if stored is None or stored.directory_id is None:
            directory.write_properties(
                MetaProperties(services.cluster_id, node_id, services.identifiers.uuid())
            )


def _format_all(
    services: Services,
    directories: NodeDirectories,
    controller_endpoints: Sequence[VoterEndpoint],
    file_system: FileSystem,
) -> None:
    plan = Format(
        cluster_id=services.cluster_id,
        node_id=services.node_id,
        metadata_version=METADATA_VERSION_MAX,
        controller_endpoints=tuple(controller_endpoints),
    )
    metadata = directories.metadata if "controller" in services.config.get("process.roles") else None
    if metadata is not None:
        _warn_of_others(services, controller_endpoints)
    format_directories(
        file_system,
        None if metadata is None else metadata.path,
        [directory.path for directory in directories.held if directory is not metadata],
        plan,
        new_id=services.identifiers.uuid,
        now_ms=services.clock.now_ms(),
    )
    for directory in directories.held:
        directory.properties = read_meta_properties(file_system, directory.path)


def _warn_of_others(services: Services, controller_endpoints: Sequence[VoterEndpoint]) -> None:
    """Say that this node begins a cluster, where it looks as if it should have joined one."""
    named: Sequence[str] = services.config.get("controller.quorum.bootstrap.servers")
    own_ports = {str(endpoint.port) for endpoint in controller_endpoints}
    if named and not any(text.rpartition(":")[2] in own_ports for text in named):
        services.log.warn(
            f"this node begins a cluster of its own: it does not listen at {', '.join(named)}, which "
            "controller.quorum.bootstrap.servers names.  To join another one as a broker it needs "
            "process.roles=broker, and as a controller a directory from `ottla format`"
        )


def _node_id(config: BrokerConfig, formatted: Sequence[LogDirectory]) -> int:
    """By the settings, or else by the directories, or else that of a cluster's first node."""
    if config.is_set("node.id"):
        return config.node_id
    for directory in formatted:
        if directory.properties is not None and directory.properties.node_id is not None:
            return directory.properties.node_id
    if "controller" not in config.get("process.roles"):
        raise StartupError("node.id must be set: another node of the cluster has the default already")
    return DEFAULT_NODE_ID


def _check_identity(directory: LogDirectory, node_id: int, cluster_id: str | None) -> None:
    stored = directory.properties
    if stored is None:
        if directory.replicas:
            raise StartupError(
                f"{directory.path} holds partitions but no meta.properties, so nobody knows whose they are"
            )
        return
    if stored.node_id is not None and stored.node_id != node_id:
        raise StartupError(f"{directory.path} belongs to node {stored.node_id}, but node.id is {node_id}")
    if cluster_id is not None and stored.cluster_id not in (None, cluster_id):
        raise StartupError(f"{directory.path} belongs to cluster {stored.cluster_id}, not to {cluster_id}")
    if stored.directory_id is not None and is_reserved(stored.directory_id):
        raise StartupError(
            f"Invalid reserved directory ID {uuid_to_text(stored.directory_id)} found in {directory.path}"
        )


def _check_agreement(formatted: Sequence[LogDirectory]) -> None:
    """All belong to one cluster, and each has an id of its own."""
    first = formatted[0] if formatted else None
    seen: dict[bytes, LogDirectory] = {}
    for directory in formatted:
        assert first is not None
        assert first.properties is not None
        assert directory.properties is not None
        expected, found = first.properties.cluster_id, directory.properties.cluster_id
        if expected is not None and found is not None and expected != found:
            raise StartupError(
                f"Invalid cluster.id in: {os.path.join(directory.path, paths.META_PROPERTIES)}. "
                f"Expected {expected}, but read {found}"
            )
        if directory.id is not None:
            other = seen.setdefault(directory.id, directory)
            if other is not directory:
                raise StartupError(
                    f"Duplicate directory ID {uuid_to_text(directory.id)} found. "
                    f"It was the ID of {other.path}, but also of {directory.path}"
                )


def cordoned_ids(directories: Iterable[LogDirectory], cordoned: Collection[str]) -> tuple[bytes, ...]:
    """The ids of the directories that ``cordoned.log.dirs`` names; ``*`` names all."""
    named = {os.path.abspath(path) for path in cordoned}
    return tuple(
        directory.id
        for directory in directories
        if directory.id is not None and ("*" in cordoned or os.path.abspath(directory.path) in named)
    )
