"""Checks the folder of one replica."""

import os
from itertools import pairwise
from typing import NamedTuple

from protocol.uuids import uuid_to_text
from storage import paths
from storage.checkpoints import read_epochs
from storage.errors import StorageError
from storage.filesystem import FileSystem
from storage.log_directory import METADATA_TOPIC_ID
from storage.node_files import read_topic_id
from storage.swaps import Plan, plan_swaps
from storage.verification.facts import Kind, ReplicaFacts
from storage.verification.findings import Finding, Findings, Severity, Totals
from storage.verification.log_check import LogCheck, LookInto, Moved
from storage.verification.metadata import Cluster, MetadataCheck
from storage.verification.read_only import reason_of
from storage.wording import counted

_TEMPORARY = ".tmp"

_LEFTOVERS = {
    paths.DELETED: "marked as deleted",
    paths.CLEANED: "of a cleaning that was not finished",
    paths.SNAPSHOT_PART: "of a snapshot that was not finished",
}


class CheckedReplica(NamedTuple):
    """What the check of one replica came to."""

    findings: list[Finding]
    totals: Totals
    cluster: Cluster | None = None
    """What the metadata log says."""


class ReplicaFiles(NamedTuple):
    """The files of a replica's log, as a start will find them."""

    names: dict[str, str]
    """Name -> the name on disk, which is another one where a rename was not completed."""
    bases: list[int]
    snapshots: list[int]
    """Offsets of producer snapshots."""
    others: list[str]


def check_replica(
    file_system: FileSystem, facts: ReplicaFacts, look_into: LookInto | None, moved: Moved
) -> CheckedReplica:
    """Read everything in a replica's folder; ``look_into`` is shown each batch that is sound."""
    findings = Findings()
    totals = Totals(partitions=1)
    try:
        files = find_files(file_system, facts, findings)
    except OSError as error:
        findings.damage(facts.path, f"cannot be read: {error.strerror or error}")
        return CheckedReplica(findings.take(), totals)
    _check_topic(file_system, facts, findings, has_segments=bool(files.bases))
    epochs = _read_epochs(file_system, facts, findings)
    metadata = None
    if facts.kind is Kind.METADATA:
        metadata = MetadataCheck(file_system, facts, findings, files.others)
        metadata.check_files(files.bases)
        look_into = metadata.look_into
    log = LogCheck(
        file_system, facts, findings, files.names, files.bases, epochs, files.snapshots, look_into, moved
    )
    log.run()
    if metadata is not None:
        metadata.end()
    _check_ends(facts, findings, files, log, epochs)
    totals.segments = len(files.bases)
    totals.bytes = log.bytes
    totals.records = log.records
    return CheckedReplica(findings.take(), totals, metadata.cluster if metadata is not None else None)


def find_files(file_system: FileSystem, facts: ReplicaFacts, findings: Findings) -> ReplicaFiles:
    """Sort the names in a folder, and name those that do not belong there.  Raises OSError."""
    folders = set(file_system.list_directories(facts.path))
    found = [name for name in file_system.list_names(facts.path) if name not in folders]
    try:
        plan = plan_swaps(file_system, facts.path, found)
    except StorageError as error:
        findings.damage(facts.path, f"a rename that was not completed: {error}")
        plan = Plan({}, {})
    names = {plan.renamed.get(name, name): name for name in found if name not in plan.removed}
    for name in plan.removed:
        if not name.endswith((paths.DELETED, paths.CLEANED)):
            findings.note(os.path.join(facts.path, name), f"{plan.removed[name]}; a start will remove it")
    for name, plain in plan.renamed.items():
        findings.note(
            os.path.join(facts.path, name),
            f"is the outcome of a cleaning; a start will complete its rename to {plain}",
        )
    bases = set()
    snapshots = []
    strange = []
    for name in names:
        base = paths.parse_offset_name(name, paths.LOG)
        snapshot = paths.parse_offset_name(name, paths.PRODUCER_SNAPSHOT)
        if base is not None and name == paths.offset_name(base) + paths.LOG:
            bases.add(base)
        elif snapshot is not None and name == paths.offset_name(snapshot) + paths.PRODUCER_SNAPSHOT:
            snapshots.append(snapshot)
        else:
            strange.append(name)
    for name in [*strange, *folders]:
        if (complaint := _complaint(facts, name, bases, is_folder=name in folders)) is not None:
            findings.note(os.path.join(facts.path, name), complaint)
    unfinished = [name for name in strange if _is_old_snapshot(facts, name)]
    _tell_of_leftovers(facts, [*plan.removed, *unfinished], findings)
    return ReplicaFiles(names, sorted(bases), sorted(snapshots), strange)


def _is_old_snapshot(facts: ReplicaFacts, name: str) -> bool:
    """Whether a file of the metadata log is a snapshot that counts no more, or not yet."""
    suffixes = (paths.SNAPSHOT_PART, paths.SNAPSHOT + paths.DELETED)
    return facts.kind is Kind.METADATA and name.endswith(suffixes)


def _tell_of_leftovers(facts: ReplicaFacts, names: list[str], findings: Findings) -> None:
    """Files that a start will remove, in one line for each kind: there may be many."""
    for suffix, what in _LEFTOVERS.items():
        count = sum(name.endswith(suffix) for name in names)
        if count:
            files, them = ("file", "it") if count == 1 else ("files", "them")
            findings.note(facts.path, f"{count} {files} ({suffix}) {what}; a start will remove {them}")


def _complaint(facts: ReplicaFacts, name: str, bases: set[int], *, is_folder: bool) -> str | None:
    """Why a file should not be there; None if it may."""
    if is_folder:
        return "is a folder, which does not belong here"
    if name in (paths.LEADER_EPOCHS, paths.PARTITION_METADATA):
        return None
    if facts.kind is Kind.METADATA and (
        name == paths.QUORUM_STATE or paths.parse_snapshot_name(name) is not None
    ):
        return None
    if _is_old_snapshot(facts, name):
        return None
    if name.endswith(_TEMPORARY):
        return "is left of a write that was not finished, and has no effect"
    for suffix in paths.SEGMENT_FILES:
        base = paths.parse_offset_name(name, suffix)
        if base is not None and name == paths.offset_name(base) + suffix:
            return None if base in bases else "has no segment; a start will remove it"
    return "does not belong here"


def _check_topic(
    file_system: FileSystem, facts: ReplicaFacts, findings: Findings, *, has_segments: bool
) -> None:
    path = os.path.join(facts.path, paths.PARTITION_METADATA)
    try:
        topic_id = read_topic_id(file_system, facts.path)
    except StorageError as error:
        findings.damage(path, reason_of(error))
        return
    if topic_id is None:
        if facts.kind is Kind.LIVE:
            # Without a segment the broker went down while it made the replica.
            severity = Severity.DAMAGE if has_segments else Severity.NOTE
            findings.add(severity, path, "is missing: a start will set the replica aside as a stray")
        return
    if facts.kind is Kind.METADATA and topic_id != METADATA_TOPIC_ID:
        findings.damage(
            path, f"the topic id of the metadata log is {uuid_to_text(METADATA_TOPIC_ID)}, not that"
        )
    if facts.kind is not Kind.LIVE or not facts.is_cluster_known:
        return
    aside = "a start will set the replica aside as a stray"
    expected = facts.expected
    if expected is None:
        findings.note(path, f"the metadata log has no topic {facts.topic}; {aside}")
    elif expected.topic_id != topic_id:
        findings.note(
            path,
            f"the topic id is {uuid_to_text(topic_id)}, by the metadata log "
            f"{uuid_to_text(expected.topic_id)}; {aside}",
        )
    elif facts.partition >= expected.partition_count:
        findings.note(
            path,
            f"the metadata log has only {counted(expected.partition_count, 'partition')} of {facts.topic}; "
            f"{aside}",
        )


def _read_epochs(
    file_system: FileSystem, facts: ReplicaFacts, findings: Findings
) -> list[tuple[int, int]] | None:
    path = os.path.join(facts.path, paths.LEADER_EPOCHS)
    try:
        epochs = read_epochs(file_system, path)
    except StorageError as error:
        findings.damage(path, reason_of(error))
        return None
    for before, after in pairwise(epochs):
        if not (before[0] < after[0] and before[1] < after[1]):
            findings.damage(
                path, f"epoch {after[0]} from {after[1]} on stands behind {before[0]} from {before[1]}"
            )
            return None
    return epochs


def _check_ends(
    facts: ReplicaFacts,
    findings: Findings,
    files: ReplicaFiles,
    log: LogCheck,
    epochs: list[tuple[int, int]] | None,
) -> None:
    """Compare what the checkpoints say of a log with where it ends."""
    end = log.next_offset
    if not files.bases:
        at_least = max(facts.recovery_point, facts.log_start or 0, facts.high_watermark or 0)
        if at_least:
            # What was never flushed may be gone after a power cut.
            was_safe = facts.was_clean or facts.recovery_point > 0
            findings.add(
                Severity.DAMAGE if was_safe else Severity.NOTE,
                facts.path,
                f"there is no segment, but the checkpoints know of offsets up to {at_least}",
            )
        return
    if log.is_cut and facts.recovery_point > end:
        return  # told as the damage that it comes from
    if facts.recovery_point > end:
        findings.damage(
            facts.path,
            f"everything below offset {facts.recovery_point} was on the device, says "
            f"{paths.RECOVERY_POINTS}, but the log ends at {end}",
        )
        return
    if facts.log_start is not None and facts.log_start > end:
        findings.add(
            Severity.DAMAGE if facts.was_clean else Severity.NOTE,
            facts.path,
            f"the log begins at {facts.log_start}, says {paths.LOG_STARTS}, but it ends at {end}: a start "
            "will drop its segments",
        )
    if facts.high_watermark is not None and facts.high_watermark > end:
        text = (
            f"offsets below {facts.high_watermark} were committed, says {paths.HIGH_WATERMARKS}, but the log "
            f"ends at {end}"
        )
        is_damaged = any(finding.severity is Severity.DAMAGE for finding in findings.found)
        if facts.was_clean:
            findings.damage(facts.path, text)
        elif is_damaged:
            findings.note(facts.path, f"{text}: lost with what is damaged, or before they were on the device")
        else:
            findings.note(facts.path, f"{text}: the machine went down before they were on the device")
    if facts.cleaned_to is not None and facts.cleaned_to > end:
        findings.note(
            facts.path,
            f"{paths.CLEANER_OFFSETS} says that the log is clean up to {facts.cleaned_to}, it ends at {end}",
        )
    if epochs and epochs[-1][1] > end:
        findings.note(
            os.path.join(facts.path, paths.LEADER_EPOCHS),
            f"epoch {epochs[-1][0]} begins at {epochs[-1][1]}, behind the log's end, {end}; a start will "
            "drop it",
        )
