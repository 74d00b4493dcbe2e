"""A log directory gets its identity and the cluster's first settings, as Kafka's storage tool gives them.

The metadata directory receives the 0-0 snapshot, whose records the first controller copies into its log,
and every directory its ``meta.properties``, last of all: it is what says that a directory is formatted.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from broker.metadata.features import levels_to_format
from broker.metadata.records import VersionedRecord
from broker.raft.snapshots import BOOTSTRAP, build_snapshot
from broker.raft.voters import Voter, VoterEndpoint
from protocol.stored.metadata_records import FeatureLevelRecord
from storage import paths
from storage.errors import DiskFailure
from storage.filesystem import FileSystem
from storage.node_files import MetaProperties, write_meta_properties


class Format(NamedTuple):
    """What a node is formatted as."""

    cluster_id: str
    node_id: int
    metadata_version: int
    controller_endpoints: tuple[VoterEndpoint, ...] = ()
    """Of the one voter, this node; empty where ``controller.quorum.voters`` names it (kraft.version 0)."""
    feature_levels: Mapping[str, int] = {}
    """Levels chosen instead of the release's own."""
    joins: bool = False
    """Whether others vote already: this node copies their log, and votes when they let it."""


def bootstrap_records(plan: Format) -> list[VersionedRecord]:
    """The feature levels as the 0-0 snapshot holds them.  Raises UnknownFeature."""
    levels = levels_to_format(plan.metadata_version, plan.feature_levels)
    return [(FeatureLevelRecord(name=name, feature_level=level), 0) for name, level in levels.items()]


def format_directories(
    file_system: FileSystem,
    metadata_directory: str | None,
    other_directories: Sequence[str],
    plan: Format,
    *,
    new_id: Callable[[], bytes],
    now_ms: int,
) -> dict[str, bytes]:
    """Format directories that are not; return the id each of them got.

    ``metadata_directory`` is None where that one is formatted already.  Returns when everything is on
    the device.  Raises DiskFailure, UnknownFeature.
    """
    records = bootstrap_records(plan)
    given = {}
    directories = list(other_directories)
    if metadata_directory is not None:
        directories.insert(0, metadata_directory)
    for directory in directories:
        directory_id = given[directory] = new_id()
        try:
            file_system.make_directory(directory)
            if directory == metadata_directory:
                _write_bootstrap(file_system, directory, directory_id, plan, records, now_ms)
        except OSError as error:
            raise DiskFailure(directory, "format", error) from error
        properties = MetaProperties(plan.cluster_id, plan.node_id, directory_id)
        write_meta_properties(file_system, directory, properties)
    return given


def _write_bootstrap(
    file_system: FileSystem,
    log_directory: str,
    directory_id: bytes,
    plan: Format,
    records: Sequence[VersionedRecord],
    now_ms: int,
) -> None:
    voters = () if plan.joins else (Voter(plan.node_id, directory_id, plan.controller_endpoints),)
    batches = build_snapshot(
        records,
        BOOTSTRAP,
        kraft_version=1 if plan.controller_endpoints else 0,
        voters=voters,
        last_timestamp_ms=now_ms,
        now_ms=now_ms,
    )
    directory = os.path.join(log_directory, paths.METADATA_REPLICA)
    file_system.make_directory(directory)
    file = file_system.open(os.path.join(directory, BOOTSTRAP.name), create=True)
    content = b"".join(batches)
    file.truncate(0)
    file.pwrite(content, 0)
    file.sync()
    file_system.sync_directory(directory)
