"""Checks what lies directly in a log directory, and learns which replicas it has."""

import os
from collections.abc import Mapping
from typing import NamedTuple

from storage import paths
from storage.checkpoints import Replica, read_offsets
from storage.errors import StorageError
from storage.filesystem import FileSystem
from storage.node_files import MetaProperties, read_clean_shutdown, read_meta_properties
from storage.verification.facts import Kind, ReplicaFacts
from storage.verification.findings import Findings
from storage.verification.read_only import reason_of
from storage.wording import counted

CHECKPOINTS = (paths.RECOVERY_POINTS, paths.LOG_STARTS, paths.HIGH_WATERMARKS, paths.CLEANER_OFFSETS)

_KNOWN_FILES = frozenset((paths.LOCK, paths.META_PROPERTIES, paths.CLEAN_SHUTDOWN, *CHECKPOINTS))

OLD_BOOTSTRAP = "bootstrap.checkpoint"

_MARKS = {paths.STRAY_MARK: Kind.STRAY, paths.FUTURE_MARK: Kind.FUTURE}


class LogDir(NamedTuple):
    """What a log directory holds."""

    path: str
    properties: MetaProperties | None
    replicas: list[ReplicaFacts]
    absent: Mapping[Replica, Mapping[str, int]]
    """Replicas that have no folder here, by what each checkpoint that names them says."""
    deleted: frozenset[Replica]
    """Those of which there is a deleted one, whose files have not been removed yet."""

    @property
    def directory_id(self) -> bytes | None:
        """By which the metadata log knows it."""
        return None if self.properties is None else self.properties.directory_id


def is_log_directory(file_system: FileSystem, path: str) -> bool:
    """Whether there is anything to be checked.  Raises OSError."""
    marks = (*_MARKS, paths.DELETE_MARK)
    return file_system.exists(os.path.join(path, paths.META_PROPERTIES)) or any(
        paths.parse_replica_name(name) is not None
        or any(paths.parse_marked_name(name, mark) is not None for mark in marks)
        for name in file_system.list_directories(path)
    )


def survey(file_system: FileSystem, path: str, findings: Findings) -> LogDir:
    """Read the small files of a log directory and the names of its folders.  Raises OSError."""
    folders = file_system.list_directories(path)
    files = [name for name in file_system.list_names(path) if name not in set(folders)]
    properties = _read_properties(file_system, path, findings)
    was_clean = _read_mark(file_system, path, findings)
    checkpoints = {name: _read_checkpoint(file_system, path, name, findings) for name in CHECKPOINTS}
    replicas = []
    for name in sorted(folders):
        facts = _replica(path, name, was_clean, checkpoints, findings)
        if facts is not None:
            replicas.append(facts)
    _tell_of_names(path, files, findings)
    if properties is None and paths.META_PROPERTIES not in files:
        if replicas:
            findings.damage(
                os.path.join(path, paths.META_PROPERTIES),
                "is missing, so nobody knows whose replicas these are",
            )
        else:
            findings.note(path, "was never formatted")
    to_recover = [facts for facts in replicas if facts.kind is Kind.LIVE]
    if to_recover and not was_clean:
        findings.note(
            path,
            "there is no mark of a clean stop: the next start will recover "
            f"{counted(len(to_recover), 'log')}",
        )
    return LogDir(path, properties, replicas, _absent(replicas, checkpoints), _deleted(folders))


def _read_properties(file_system: FileSystem, path: str, findings: Findings) -> MetaProperties | None:
    try:
        properties = read_meta_properties(file_system, path)
        if properties is not None and properties.directory_id is None:
            findings.note(
                os.path.join(path, paths.META_PROPERTIES), "has no directory.id; a start will choose one"
            )
        return properties
    except StorageError as error:
        findings.damage(os.path.join(path, paths.META_PROPERTIES), reason_of(error))
        return None


def _read_mark(file_system: FileSystem, path: str, findings: Findings) -> bool:
    try:
        return read_clean_shutdown(file_system, path) is not None
    except StorageError as error:
        findings.damage(os.path.join(path, paths.CLEAN_SHUTDOWN), reason_of(error))
        return False


def _read_checkpoint(
    file_system: FileSystem, path: str, name: str, findings: Findings
) -> Mapping[Replica, int]:
    try:
        return read_offsets(file_system, os.path.join(path, name))
    except StorageError as error:
        findings.damage(os.path.join(path, name), f"{reason_of(error)}; a start will ignore it")
        return {}


def _replica(
    path: str,
    name: str,
    was_clean: bool,
    checkpoints: Mapping[str, Mapping[Replica, int]],
    findings: Findings,
) -> ReplicaFacts | None:
    """What is known of the replica in a folder; None if there is none to be checked."""
    folder = os.path.join(path, name)
    if name == paths.METADATA_REPLICA:
        return ReplicaFacts(folder, paths.METADATA_TOPIC, 0, Kind.METADATA, was_clean)
    if name == paths.REMOTE_INDEX_CACHE:
        return None
    if paths.parse_marked_name(name, paths.DELETE_MARK) is not None:
        findings.note(folder, "is a replica that was deleted; a start will remove it")
        return None
    for mark, kind in _MARKS.items():
        marked = paths.parse_marked_name(name, mark)
        if marked is not None:
            what = "belongs to no topic; it is kept, and not served"
            if kind is Kind.FUTURE:
                what = "is a replica on its way here from another log directory"
            findings.note(folder, what)
            return ReplicaFacts(folder, *marked, kind)
    replica = paths.parse_replica_name(name)
    if replica is None:
        findings.damage(folder, "is no replica's name: a broker does not start with such a folder")
        return None
    return ReplicaFacts(
        folder,
        *replica,
        was_clean=was_clean,
        recovery_point=checkpoints[paths.RECOVERY_POINTS].get(replica, 0),
        log_start=checkpoints[paths.LOG_STARTS].get(replica),
        high_watermark=checkpoints[paths.HIGH_WATERMARKS].get(replica),
        cleaned_to=checkpoints[paths.CLEANER_OFFSETS].get(replica),
    )


def _tell_of_names(path: str, files: list[str], findings: Findings) -> None:
    for name in sorted(files):
        if name in _KNOWN_FILES or name == OLD_BOOTSTRAP:
            continue
        if name.removesuffix(".tmp") in _KNOWN_FILES:
            complaint = "is left of a write that was not finished, and has no effect"
        else:
            complaint = "does not belong here"
        findings.note(os.path.join(path, name), complaint)


def _absent(
    replicas: list[ReplicaFacts], checkpoints: Mapping[str, Mapping[Replica, int]]
) -> Mapping[Replica, Mapping[str, int]]:
    here = {(facts.topic, facts.partition) for facts in replicas}
    absent: dict[Replica, dict[str, int]] = {}
    for name, offsets in checkpoints.items():
        for replica in sorted(offsets.keys() - here):
            absent.setdefault(replica, {})[name] = offsets[replica]
    return absent


def _deleted(folders: list[str]) -> frozenset[Replica]:
    marked = (paths.parse_marked_name(name, paths.DELETE_MARK) for name in folders)
    return frozenset(replica for replica in marked if replica is not None)
