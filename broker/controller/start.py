"""A node takes up the cluster's metadata: opens the log, leads or follows it, and registers itself."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from broker.controller.activation import activate
from broker.controller.brokers import (
    NO_EPOCH,
    Registration,
    register_controller,
    restart_broker,
    stop_only_broker,
)
from broker.controller.elections import TopicRules
from broker.controller.service import ControllerService
from broker.errors import StartupError
from broker.life.own_epoch import own_broker_epoch
from broker.metadata.features import METADATA_VERSION_MAX, SUPPORTED_FEATURES, default_levels
from broker.metadata.feed import MetadataFeed
from broker.metadata.image import METADATA_VERSION, Endpoint, MetadataImage, ResourceType
from broker.metadata.records import VersionedRecord
from broker.node_directories import cordoned_ids
from broker.raft.log import Loaded, MetadataLog
from broker.raft.quorum import Quorum
from broker.raft.service import QuorumMismatch, RaftService
from broker.raft.snapshotting import SnapshotRules, Snapshotting
from broker.raft.voter_changes import all_shown
from broker.raft.voters import VoterEndpoint
from protocol.stored.metadata_records import FeatureLevelRecord, UserScramCredentialRecord
from storage import paths
from storage.config import LogConfig
from storage.log_directory import LogDirectory

if TYPE_CHECKING:
    from broker.services import Services

RECORDS_PER_BATCH = 5000
"""Of a registration: its election records need not be one batch, only in their order."""


class Node(NamedTuple):
    """Who starts: its log directories, all formatted, and where it can be reached."""

    metadata_directory: LogDirectory
    directories: Sequence[LogDirectory]
    """Those for partitions that are online."""
    has_offline: bool
    """Whether there are others, which could not be used."""
    broker_endpoints: Sequence[Endpoint]
    controller_endpoints: Sequence[Endpoint]

    @property
    def directory_ids(self) -> list[bytes]:
        """Of the directories, in their order."""
        return [directory.id for directory in self.directories if directory.id is not None]

    @property
    def previous_broker_epoch(self) -> int:
        """What the clean-shutdown markers of all directories agree on; -1 after an unclean stop."""
        if self.has_offline:
            return NO_EPOCH
        epochs = {directory.previous_broker_epoch for directory in self.directories}
        return epochs.pop() if len(epochs) == 1 else NO_EPOCH


def start_controller(services: "Services", node: Node) -> ControllerService:
    """Open the metadata log, and make this node its controller, and its broker, if no other node votes.

    ``services`` gets quorum, metadata and controller.  If this node leads, then on return everything appended
    is on the device, and ``image`` holds this broker, unfenced.  If another one does, nothing is published
    before ``quorum.run`` has heard from it.

    Blocks.  Raises QuorumMismatch, CorruptFile or DiskFailure, or KafkaError where the broker may not
    register; each says in one line what is wrong.
    """
    roles = services.config.get("process.roles")
    log = _open_log(services, node)
    loaded = log.load(services.cluster_id, now_ms=services.clock.now_ms(), applies_log="controller" in roles)
    leads = "controller" in roles and _votes_alone(services, loaded, node)
    if not leads and "controller" in roles:  # what the log says is not known to be committed
        loaded = log.load(services.cluster_id, now_ms=services.clock.now_ms(), applies_log=False)
    feed = MetadataFeed(loaded.replay.image, kraft_version=(loaded.notes.kraft_version or 0) if leads else 0)
    services.metadata = feed
    services.quorum = _quorum(services, node, log, loaded, feed)
    services.controller = ControllerService(services, feed)
    if not leads:
        services.quorum.start_following(loaded)
        return services.controller
    raft = services.quorum.new_leader(loaded)
    _check_not_lost(raft, node)
    _activate(services, raft)
    if "broker" in roles:
        _register(services, raft, node)
    raft.flush()
    feed.image = raft.latest
    services.quorum.start_leading(raft)
    services.controller.activate(raft)
    return services.controller


def take_lead(services: "Services", *, elected_in: int | None = None) -> None:
    """Make this running node, which votes alone or was elected in that epoch, the controller.

    On return it is active.  What it found in the log is committed if it votes alone, and otherwise as soon as
    another voter has all of it.  Blocks for an fsync.  Raises QuorumMismatch, CorruptFile or DiskFailure.
    """
    quorum = services.quorum
    raft = quorum.new_leader(quorum.complete_log())
    _activate(services, raft, elected_in=elected_in)
    raft.flush()
    quorum.start_leading(raft)
    services.controller.activate(raft)


def _votes_alone(services: "Services", loaded: Loaded, node: Node) -> bool:
    """Whether no other node can lead; raises QuorumMismatch if nobody can."""
    if not loaded.notes.kraft_version:  # then the settings name the voters, and were checked
        return True
    voters = loaded.notes.voters or ()
    directory_id = node.metadata_directory.id
    if [(voter.id, voter.directory_id) for voter in voters] == [(services.node_id, directory_id)]:
        return True
    if {voter.id for voter in voters} <= {services.node_id} and not services.config.get(
        "controller.quorum.bootstrap.servers"
    ):
        raise QuorumMismatch(
            f"node {services.node_id} with the metadata directory {node.metadata_directory.path} is not "
            f"among the voters of its metadata log ({all_shown(voters)}), and no other controller is known"
        )
    return False


def _activate(services: "Services", raft: RaftService, *, elected_in: int | None = None) -> None:
    """Begin an epoch, and append what a new controller has to say."""
    endpoints = services.quorum.endpoints
    raft.lead(endpoints, elected_in=elected_in)
    activation = activate(
        raft.latest,
        in_transaction=raft.in_transaction,
        bootstrap=[] if raft.latest.metadata_version else _bootstrap_records(raft),
        min_isr=services.config.get("min.insync.replicas"),
    )
    _append(raft, activation.records)
    _check_level(raft.latest)
    controller = register_controller(
        raft.latest,
        services.node_id,
        services.quorum.incarnation_id,
        [Endpoint(*endpoint) for endpoint in endpoints],
        SUPPORTED_FEATURES,
    )
    _append(raft, controller.records)


def _register(services: "Services", raft: RaftService, node: Node) -> None:
    """Register the broker of this node as the controller would, if it asked for that, and unfence it."""
    registration = Registration(
        broker_id=services.node_id,
        cluster_id=services.cluster_id,
        incarnation_id=services.identifiers.uuid(),
        endpoints=node.broker_endpoints,
        features=SUPPORTED_FEATURES,
        rack=services.config.get("broker.rack"),
        directories=sorted(node.directory_ids),
        previous_epoch=node.previous_broker_epoch,
        cordoned=sorted(cordoned_ids(node.directories, _cordoned(services, raft.latest))),
    )
    broker = restart_broker(raft.latest, registration, topic_rules(services, raft.latest))
    _append(raft, broker.records)


def _check_not_lost(raft: RaftService, node: Node) -> None:
    """Refuse to begin a new metadata log beside partitions: it would make strays of them all."""
    full = [directory.path for directory in node.directories if directory.replicas]
    if full and not raft.latest.metadata_version:
        place = os.path.join(node.metadata_directory.path, paths.METADATA_REPLICA)
        raise StartupError(
            f"{place} is missing or empty, but there are partitions in {', '.join(full)}: "
            "restore it from a copy, or, to give them up, move them away"
        )


def stop_controller(services: "Services", node: Node) -> int:
    """Fence this broker, if its controller is here; return its epoch, for the markers of a clean stop.

    Another controller was asked for leave before.  -1 if the broker has no epoch.  The last thing to happen
    before the log directories are closed.  Blocks.
    """
    image = services.image
    if image.offset < 0:  # stopped before it knew the cluster: nothing has changed since the last stop
        return node.previous_broker_epoch
    broker = image.brokers.get(services.node_id)
    if broker is None:  # unregistered while it ran: there is nobody to fence
        return NO_EPOCH
    epoch = own_broker_epoch(services)
    if services.controller.is_active and broker.epoch == epoch:
        raft = services.controller.raft
        _append(raft, stop_only_broker(raft.latest, broker.id, broker.epoch).records)
        raft.flush()
        raft.feed.image = raft.latest
    return epoch


def topic_rules(services: "Services", image: MetadataImage) -> TopicRules:
    """The settings for elections, as ``image`` and what this node was started with give them."""
    return TopicRules(
        image,
        default_min_isr=services.config.started_with("min.insync.replicas"),
        default_unclean_election=services.config.started_with("unclean.leader.election.enable"),
        controller_id=services.node_id,
    )


def _cordoned(services: "Services", image: MetadataImage) -> Sequence[str]:
    """``cordoned.log.dirs`` as it was set last: dynamically, or else in this node's own settings."""
    dynamic = image.config(ResourceType.BROKER, str(services.node_id)).get("cordoned.log.dirs")
    if dynamic is not None:
        return [path.strip() for path in dynamic.split(",") if path.strip()]
    paths: Sequence[str] = services.config.get("cordoned.log.dirs") or ()
    return paths


def _open_log(services: "Services", node: Node) -> MetadataLog:
    config = services.config
    directory = node.metadata_directory
    log_config = LogConfig(
        segment_bytes=config.get("internal.metadata.log.segment.bytes")
        or config.get("metadata.log.segment.bytes"),
        segment_ms=config.get("metadata.log.segment.ms"),
        file_delete_delay_ms=config.get("internal.metadata.delete.delay.millis"),
    )
    return MetadataLog(
        directory.open_metadata_log(
            log_config,
            now_ms=services.clock.now_ms(),
            is_copy="controller" not in config.get("process.roles"),
        ),
        directory.services,
        batch_bytes_max=config.get("internal.metadata.max.batch.size.in.bytes"),
    )


def _quorum(services: "Services", node: Node, log: MetadataLog, loaded: Loaded, feed: MetadataFeed) -> Quorum:
    config = services.config
    directory_id = node.metadata_directory.id
    assert directory_id is not None, "it is formatted"
    snapshotting = Snapshotting(
        log,
        loaded,
        rules=SnapshotRules(
            bytes_between=config.get("metadata.log.max.record.bytes.between.snapshots"),
            interval_ms=config.get("metadata.log.max.snapshot.interval.ms"),
            retention_bytes=config.get("metadata.max.retention.bytes"),
            retention_ms=config.get("metadata.max.retention.ms"),
        ),
        now_ms=services.clock.now_ms,
        unique=lambda: str(services.identifiers.random.getrandbits(63)),
    )
    return Quorum(
        services,
        log,
        feed=feed,
        snapshotting=snapshotting,
        directory_id=directory_id,
        endpoints=[VoterEndpoint(name, host, port) for name, host, port, _ in node.controller_endpoints],
    )


def _bootstrap_records(raft: RaftService) -> list[VersionedRecord]:
    """What the directory was formatted with, or else what a new one would be."""
    if not raft.bootstrap:
        levels = default_levels(METADATA_VERSION_MAX)
        return [(FeatureLevelRecord(name=name, feature_level=level), 0) for name, level in levels.items()]
    for record in raft.bootstrap:
        if not isinstance(record, FeatureLevelRecord | UserScramCredentialRecord):
            raise QuorumMismatch(f"the directory was formatted with a {type(record).__name__}")
    return [(record, 0) for record in raft.bootstrap]


def _append(raft: RaftService, records: Sequence[VersionedRecord]) -> None:
    for first in range(0, len(records), RECORDS_PER_BATCH):
        raft.append(records[first : first + RECORDS_PER_BATCH])


def _check_level(image: MetadataImage) -> None:
    low, high = SUPPORTED_FEATURES[METADATA_VERSION]
    if not low <= image.metadata_version <= high:
        raise QuorumMismatch(
            f"the cluster's metadata.version is {image.metadata_version}, but this broker supports "
            f"{low} to {high}"
        )
