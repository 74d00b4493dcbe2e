"""Checks the log directories of one broker, which must be at rest."""

import os
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from protocol.records.batch import RecordBatch
from protocol.stored.decoding import METADATA_TOPIC, TOPICS, decode_record
from protocol.uuids import is_reserved, uuid_to_text
from storage import paths
from storage.checkpoints import Replica
from storage.filesystem import FileSystem
from storage.verification.facts import Kind, ReplicaFacts
from storage.verification.findings import Finding, Findings, Totals
from storage.verification.log_check import LookInto, Moved
from storage.verification.log_dir import LogDir, survey
from storage.verification.metadata import Cluster
from storage.verification.replica import CheckedReplica, check_replica

CheckAll = Callable[[list[ReplicaFacts]], Iterable[CheckedReplica]]
"""Checks replicas, perhaps in several processes; the answers come in the order of the replicas."""


_WRITTEN_OFTEN = (paths.RECOVERY_POINTS, paths.HIGH_WATERMARKS)
"""Checkpoints that soon forget a topic that was deleted; the others may know one of the same name."""


def check_one(file_system: FileSystem, facts: ReplicaFacts, moved: Moved) -> CheckedReplica:
    """The check of one replica, with all that is known of records of its topic."""
    return check_replica(file_system, facts, look_into(facts.topic), moved)


def look_into(topic: str) -> LookInto | None:
    """Reads the records of a topic that only brokers write; None for any other topic."""
    return partial(_decode_all, topic) if topic in TOPICS and topic != METADATA_TOPIC else None


def _decode_all(topic: str, batch: RecordBatch) -> None:
    if not batch.is_control:
        for record in batch.records():
            decode_record(topic, record)


def verify(
    file_system: FileSystem, directories: Iterable[str], check_all: CheckAll, totals: Totals
) -> Iterator[list[Finding]]:
    """What is wrong with these log directories, bit by bit; ``totals`` counts along.

    Raises OSError where a directory itself cannot be read.
    """
    findings = Findings()
    log_dirs = [survey(file_system, path, findings) for path in directories]
    totals.directories += len(log_dirs)
    _compare(log_dirs, findings)
    yield findings.take()
    replicas = [facts for log_dir in log_dirs for facts in log_dir.replicas]
    cluster: Cluster | None = None
    for checked in check_all([facts for facts in replicas if facts.kind is Kind.METADATA]):
        totals.add(checked.totals)
        cluster = cluster or checked.cluster
        yield checked.findings
    _find_duplicates(log_dirs, cluster, findings)
    _tell_of_absent(log_dirs, cluster, findings)
    if cluster is not None:
        _compare_with_cluster(log_dirs, cluster, findings)
    elif not any(facts.kind is Kind.METADATA for facts in replicas):
        _tell_of_no_metadata_log(log_dirs, findings)
    yield findings.take()
    rest = [_with_topic(facts, cluster) for facts in replicas if facts.kind is not Kind.METADATA]
    for checked in check_all(rest):
        totals.add(checked.totals)
        yield checked.findings


def _find_duplicates(log_dirs: list[LogDir], cluster: Cluster | None, findings: Findings) -> None:
    """Replicas that lie in two log directories, as a move between them leaves it if it does not end."""
    homes: dict[str, LogDir] = {}
    for log_dir in log_dirs:
        for facts in log_dir.replicas:
            if facts.kind not in (Kind.LIVE, Kind.METADATA):
                continue
            first = homes.setdefault(facts.name, log_dir)
            if first is log_dir:
                continue
            where = f"the same replica lies in {first.path}"
            home = _home((facts.topic, facts.partition), log_dir, cluster)
            meant = [each.path for each in (first, log_dir) if each.directory_id == home is not None]
            if meant:
                meaning = f"a start takes that in {meant[0]}, as the metadata log says"
                findings.note(facts.path, f"{where}; {meaning}")
            else:
                findings.damage(facts.path, f"{where}, and nothing says which is the right one")


def _home(replica: Replica, log_dir: LogDir, cluster: Cluster | None) -> bytes | None:
    """The id of the directory in which the cluster expects a replica of this node."""
    topic = cluster.topic(replica[0]) if cluster is not None else None
    node_id = log_dir.properties.node_id if log_dir.properties is not None else None
    if cluster is None or topic is None or node_id is None:
        return None
    return cluster.home(topic.topic_id, replica[1], node_id)


def _tell_of_absent(log_dirs: list[LogDir], cluster: Cluster | None, findings: Findings) -> None:
    """Replicas that checkpoints know of and that have no folder.

    Something is lost where the cluster has such a partition here, and it lies in none of the others either.
    """
    present = {
        (facts.topic, facts.partition)
        for log_dir in log_dirs
        for facts in log_dir.replicas
        if facts.kind is Kind.LIVE
    }
    for log_dir in log_dirs:
        for replica, offsets in log_dir.absent.items():
            name = paths.replica_name(*replica)
            home = _home(replica, log_dir, cluster)
            is_meant_here = home is not None and (home == log_dir.directory_id or is_reserved(home))
            known = [offsets[checkpoint] for checkpoint in _WRITTEN_OFTEN if checkpoint in offsets]
            if known and is_meant_here and replica not in present and replica not in log_dir.deleted:
                findings.damage(
                    os.path.join(log_dir.path, name),
                    "this folder is not there: the metadata log places the partition in this directory, and "
                    f"the checkpoints know of offsets up to {max(known)}; a start makes it anew, "
                    "empty",
                )
                continue
            for checkpoint in offsets:
                findings.note(
                    os.path.join(log_dir.path, checkpoint),
                    f"it names {name}, which is not in this directory",
                )


def _tell_of_no_metadata_log(log_dirs: list[LogDir], findings: Findings) -> None:
    for log_dir in log_dirs:
        if any(facts.kind is Kind.LIVE for facts in log_dir.replicas):
            findings.note(
                log_dir.path,
                f"{paths.METADATA_REPLICA} is not among what is checked, so nothing says which partitions "
                "must be here; a broker that does not find it does not start",
            )


def _compare_with_cluster(log_dirs: list[LogDir], cluster: Cluster, findings: Findings) -> None:
    """Whether the node has registered with these directories, if it ever did."""
    for log_dir in log_dirs:
        properties = log_dir.properties
        if properties is None or properties.node_id is None or not cluster.directory_ids:
            continue
        path = f"{log_dir.path}/{paths.META_PROPERTIES}"
        known = cluster.directory_ids.get(properties.node_id)
        if known is None:
            findings.note(path, f"the metadata log knows no node {properties.node_id}")
        elif known and properties.directory_id is not None and properties.directory_id not in known:
            findings.note(
                path,
                f"node {properties.node_id} has never registered with directory "
                f"{uuid_to_text(properties.directory_id)}",
            )


def _with_topic(facts: ReplicaFacts, cluster: Cluster | None) -> ReplicaFacts:
    if cluster is None:
        return facts
    topic = cluster.topic(facts.topic)
    return facts._replace(
        is_cluster_known=True,
        expected=topic,
        may_have_gaps=cluster.may_compact_any or (topic is not None and topic.is_compacted),
    )


def _compare(log_dirs: list[LogDir], findings: Findings) -> None:
    """What one broker's log directories must have in common, and what not."""
    known: list[LogDir] = []
    for log_dir in log_dirs:
        properties = log_dir.properties
        if properties is None:
            continue
        path = f"{log_dir.path}/{paths.META_PROPERTIES}"
        for other in known:
            assert other.properties is not None
            for field in ("cluster_id", "node_id"):
                here, there = getattr(properties, field), getattr(other.properties, field)
                if here != there and here is not None and there is not None:
                    name = field.replace("_", ".")
                    findings.damage(path, f"{name} is {here}, that of {other.path} is {there}")
            if (
                properties.directory_id is not None
                and properties.directory_id == other.properties.directory_id
            ):
                findings.damage(path, f"directory.id is the same as that of {other.path}")
        known.append(log_dir)
