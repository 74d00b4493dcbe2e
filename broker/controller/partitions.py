"""What the controller makes of the in-sync set that a leader proposes (KIP-497, KIP-841, KIP-903)."""

from collections.abc import Sequence
from typing import NamedTuple

from broker.controller.brokers import NO_EPOCH, registered
from broker.controller.decision import Decision, LongDecision
from broker.controller.elections import ClusterRules, TopicRules, Wish, acceptance, change_partition
from broker.metadata.features import PARTITION_RECORD_VERSION
from broker.metadata.image import LeaderRecoveryState, MetadataImage, PartitionImage
from broker.metadata.records import VersionedRecord
from broker.metadata.replay import KEEP_LEADER, changed_partition
from protocol.error_codes import ErrorCode


class IsrMember(NamedTuple):
    """A replica as the leader knows it; without an epoch (-1) any incarnation will do."""

    broker_id: int
    broker_epoch: int = NO_EPOCH


class IsrProposal(NamedTuple):
    """Who the leader of a partition finds in sync, on the ground of the partition's state that it knows."""

    topic_id: bytes
    partition: int
    leader_epoch: int
    partition_epoch: int
    isr: Sequence[IsrMember]
    leader_recovery_state: int = LeaderRecoveryState.RECOVERED


Verdict = PartitionImage | ErrorCode
"""The partition as it is from now on, or why it is not."""


def alter_partitions(
    image: MetadataImage,
    broker_id: int,
    broker_epoch: int,
    proposals: Sequence[IsrProposal],
    topic_rules: TopicRules,
) -> Decision[list[Verdict]]:
    """Judge each proposal; the reply has the verdicts in their order.

    NEW_LEADER_ELECTED stands with a proposal that was accepted: it has completed a reassignment in which
    the proposing leader loses its place.  Raises STALE_BROKER_EPOCH.
    """
    registered(image, broker_id, broker_epoch)
    records: list[VersionedRecord] = []
    verdicts: list[Verdict] = []
    changed: dict[tuple[bytes, int], PartitionImage] = {}
    may_lead = acceptance(image)
    for proposal in proposals:
        topic = image.topics_by_id.get(proposal.topic_id)
        if topic is None:
            verdicts.append(ErrorCode.UNKNOWN_TOPIC_ID)
            continue
        if not 0 <= proposal.partition < len(topic.partitions):
            verdicts.append(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            continue
        place = topic.id, proposal.partition
        partition = changed.get(place) or topic.partitions[proposal.partition]
        fault = find_fault(image, broker_id, partition, proposal)
        if fault is not None:
            verdicts.append(fault)
            continue
        wish = Wish(
            isr=[member.broker_id for member in proposal.isr],
            recovery_state=LeaderRecoveryState(proposal.leader_recovery_state),
            election=topic_rules.election(topic),
        )
        rules = ClusterRules(may_lead, topic_rules.min_isr(topic), image.eligible_leader_replicas_enabled)
        record = change_partition(topic.id, proposal.partition, partition, wish, rules)
        if record is None:
            verdicts.append(partition)
            continue
        records.append((record, PARTITION_RECORD_VERSION))
        changed[place] = partition = changed_partition(partition, record)
        moved = record.leader not in (KEEP_LEADER, broker_id)
        verdicts.append(ErrorCode.NEW_LEADER_ELECTED if moved else partition)
    return LongDecision(records, verdicts)


def find_fault(
    image: MetadataImage, broker_id: int, partition: PartitionImage, proposal: IsrProposal
) -> ErrorCode | None:
    """Why this broker's proposal cannot be accepted."""
    if proposal.leader_epoch > partition.leader_epoch or proposal.partition_epoch > partition.partition_epoch:
        # The broker knows more than this controller: another one must have taken over.
        return ErrorCode.NOT_CONTROLLER
    if proposal.leader_epoch < partition.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if broker_id != partition.leader:
        return ErrorCode.INVALID_REQUEST
    if proposal.partition_epoch < partition.partition_epoch:
        return ErrorCode.INVALID_UPDATE_VERSION
    if not _is_possible(partition, proposal):
        return ErrorCode.INVALID_REQUEST
    if not all(_is_eligible(image, member) for member in proposal.isr):
        return ErrorCode.INELIGIBLE_REPLICA
    return None


def _is_possible(partition: PartitionImage, proposal: IsrProposal) -> bool:
    members = [member.broker_id for member in proposal.isr]
    if not set(members) <= set(partition.replicas) or len(set(members)) != len(members):
        return False
    if partition.leader not in members:
        return False
    recovering = LeaderRecoveryState.RECOVERING
    if proposal.leader_recovery_state not in (LeaderRecoveryState.RECOVERED, recovering):
        return False
    # A leader that lacks records must find that out before anybody is called in sync with it.
    return proposal.leader_recovery_state != recovering or (
        len(members) == 1 and partition.leader_recovery_state is recovering
    )


def _is_eligible(image: MetadataImage, member: IsrMember) -> bool:
    broker = image.brokers.get(member.broker_id)
    return broker is not None and broker.is_active and member.broker_epoch in (NO_EPOCH, broker.epoch)
