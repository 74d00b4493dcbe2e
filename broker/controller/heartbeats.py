"""A broker's heartbeat, and what the controller makes of it: unfenced, fenced, on its way out (KIP-631)."""

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

from broker.controller.brokers import (
    begin_shutdown,
    fence_broker,
    image_after,
    registered,
    unfence_broker,
)
from broker.controller.decision import Decision, LongDecision
from broker.controller.directories import cordon_directories, take_directories_offline
from broker.controller.elections import TopicRules
from broker.controller.sessions import BrokerSessions
from broker.metadata.image import BrokerImage, MetadataImage
from broker.metadata.records import VersionedRecord


class Heartbeat(NamedTuple):
    """What a broker tells of itself.

    ``metadata_offset`` is the last that it has applied.  ``cordoned`` is None as long as it does not know.
    """

    broker_id: int
    broker_epoch: int
    metadata_offset: int
    want_fence: bool = False
    want_shut_down: bool = False
    offline: Sequence[bytes] = ()
    """Of its log directories, those that have failed."""
    cordoned: Sequence[bytes] | None = None
    """Of its log directories, those that take no new replicas."""


class HeartbeatReply(NamedTuple):
    """``is_caught_up`` says that the broker knows of its own registration."""

    is_caught_up: bool
    is_fenced: bool
    should_shut_down: bool


class ControlState(Enum):
    """What a broker is to the controller: the BrokerControlState of Kafka."""

    FENCED = "no client is sent there"
    UNFENCED = "serves, and may lead"
    CONTROLLED_SHUTDOWN = "serves what it still leads, and gets nothing new"
    SHUTDOWN_NOW = "fenced, and may end"


def process_heartbeat(
    image: MetadataImage, heartbeat: Heartbeat, sessions: BrokerSessions, topic_rules: TopicRules
) -> Decision[HeartbeatReply]:
    """Let the broker have what it wants as far as that can be.

    Raises STALE_BROKER_EPOCH, also where no such broker is registered.
    """
    broker = registered(image, heartbeat.broker_id, heartbeat.broker_epoch)
    is_caught_up = heartbeat.metadata_offset >= sessions.registration_offset(broker)
    before = _state(broker, sessions)
    after = _next_state(image, broker, before, heartbeat, sessions, is_caught_up)
    records = list(_transition(image, broker, before, after, topic_rules))
    is_fenced = after in (ControlState.FENCED, ControlState.SHUTDOWN_NOW)
    sessions.reached(broker.id, heartbeat.metadata_offset)
    if after is ControlState.SHUTDOWN_NOW:
        sessions.let_go(broker.id, broker.epoch)
    if is_fenced:
        sessions.end_shutdown(broker.id)
    elif after is ControlState.CONTROLLED_SHUTDOWN:
        sessions.begin_shutdown(broker.id, image.offset + len(records))
    records += _directory_changes(image, records, heartbeat, topic_rules)
    reply = HeartbeatReply(is_caught_up, is_fenced, after is ControlState.SHUTDOWN_NOW)
    return LongDecision(records, reply)


def fence_stale_broker(
    image: MetadataImage, sessions: BrokerSessions, topic_rules: TopicRules, now_ms: float
) -> Decision[int | None]:
    """Fence the broker that was silent longest, if that is too long; the reply is its id.

    None if there is nobody to fence.  The session lasts until the broker is found fenced: so one whose record
    could not be written is not forgotten.
    """
    while (stale := sessions.find_stale(now_ms)) is not None:
        broker = image.brokers.get(stale.broker_id)
        if broker is not None and broker.epoch == stale.broker_epoch and not broker.fenced:
            sessions.end_shutdown(broker.id)
            fencing = fence_broker(image, broker.id, broker.epoch, topic_rules)
            return LongDecision(fencing.records, broker.id)
        sessions.end(stale.broker_id, stale.broker_epoch)
    return Decision([], None)


def _state(broker: BrokerImage, sessions: BrokerSessions) -> ControlState:
    if broker.fenced:
        return ControlState.FENCED
    if sessions.shutdown_offset(broker.id) is not None:
        return ControlState.CONTROLLED_SHUTDOWN
    return ControlState.UNFENCED


def _next_state(
    image: MetadataImage,
    broker: BrokerImage,
    state: ControlState,
    heartbeat: Heartbeat,
    sessions: BrokerSessions,
    is_caught_up: bool,
) -> ControlState:
    match state:
        case ControlState.FENCED:
            if heartbeat.want_shut_down:
                return ControlState.SHUTDOWN_NOW
            return ControlState.UNFENCED if is_caught_up and not heartbeat.want_fence else ControlState.FENCED
        case ControlState.UNFENCED:
            if heartbeat.want_fence:
                return ControlState.SHUTDOWN_NOW if heartbeat.want_shut_down else ControlState.FENCED
            if not heartbeat.want_shut_down:
                return ControlState.UNFENCED
            leads = _leads_something(image, broker.id)
            return ControlState.CONTROLLED_SHUTDOWN if leads else ControlState.SHUTDOWN_NOW
        case _:
            if _leads_something(image, broker.id):
                return ControlState.CONTROLLED_SHUTDOWN
            # The others must know by now whom to follow instead.
            awaited = sessions.shutdown_offset(broker.id)
            reached = sessions.lowest_active_offset(image)
            if awaited is None or reached is None or awaited <= reached:
                return ControlState.SHUTDOWN_NOW
            return ControlState.CONTROLLED_SHUTDOWN


def _transition(
    image: MetadataImage,
    broker: BrokerImage,
    before: ControlState,
    after: ControlState,
    topic_rules: TopicRules,
) -> Sequence[VersionedRecord]:
    if before is after and after is not ControlState.CONTROLLED_SHUTDOWN:
        return ()
    if after is ControlState.UNFENCED:
        return unfence_broker(image, broker.id, broker.epoch, topic_rules).records
    if after is ControlState.CONTROLLED_SHUTDOWN:
        # Whoever is in it leads nothing any more, unless the records of its beginning were not written.
        if before is after and not _leads_something(image, broker.id):
            return ()
        return begin_shutdown(image, broker.id, broker.epoch, topic_rules).records
    return fence_broker(image, broker.id, broker.epoch, topic_rules).records


def _directory_changes(
    image: MetadataImage,
    before: Sequence[VersionedRecord],
    heartbeat: Heartbeat,
    topic_rules: TopicRules,
) -> Sequence[VersionedRecord]:
    """What the failed and the cordoned directories change, after all that was decided ``before``."""
    broker_id, broker_epoch = heartbeat.broker_id, heartbeat.broker_epoch
    records: list[VersionedRecord] = []
    if heartbeat.offline:
        now = image_after(image, before) if before else image
        failing = take_directories_offline(now, broker_id, broker_epoch, heartbeat.offline, topic_rules)
        records += failing.records
    if heartbeat.cordoned is not None:
        records += cordon_directories(image, broker_id, broker_epoch, heartbeat.cordoned).records
    return records


def _leads_something(image: MetadataImage, broker_id: int) -> bool:
    return any(
        partition.leader == broker_id for topic in image.topics.values() for partition in topic.partitions
    )
