"""Other brokers for the replicas of a partition (KIP-455).

A reassignment first adds the newcomers and keeps those who shall leave; once all who stay are in sync,
``broker.controller.elections`` takes the leaving ones out.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from broker.controller.decision import Decision
from broker.controller.elections import ClusterRules, Election, TopicRules, Wish, acceptance, change_partition
from broker.controller.topics import check_assignment, default_directory
from broker.metadata.features import PARTITION_RECORD_VERSION
from broker.metadata.image import NO_LEADER, MetadataImage, PartitionImage, TopicImage
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.stored.metadata_records import PartitionChangeRecord


class Reassignment(NamedTuple):
    """The brokers that shall have a partition; None gives up a reassignment that is under way."""

    topic: str
    partition: int
    replicas: Sequence[int] | None


def alter_reassignments(
    image: MetadataImage,
    wanted: Sequence[Reassignment],
    topic_rules: TopicRules,
    *,
    may_change_replication_factor: bool = True,
) -> Decision[list[KafkaError | None]]:
    """Begin, change or give up each; the reply has None for what is done, in the order of ``wanted``."""
    records = []
    outcomes: list[KafkaError | None] = []
    for one in wanted:
        try:
            topic, partition = _find(image, one)
            if one.replicas is None:
                wish = _revert(one, partition, topic_rules.election(topic))
            else:
                check_assignment(image, one.replicas, None)
                if not may_change_replication_factor:
                    _check_replication_factor(partition, one.replicas)
                wish = _begin(image, partition, one.replicas)
            rules = ClusterRules(
                acceptance(image), topic_rules.min_isr(topic), image.eligible_leader_replicas_enabled
            )
            record = change_partition(topic.id, one.partition, partition, wish, rules)
        except KafkaError as error:
            outcomes.append(error)
            continue
        outcomes.append(None)
        if record is not None:
            records.append((record, PARTITION_RECORD_VERSION))
    return Decision(records, outcomes)


def is_reassigning(partition: PartitionImage) -> bool:
    return bool(partition.adding_replicas or partition.removing_replicas)


def under_way(image: MetadataImage) -> Iterator[tuple[TopicImage, int]]:
    """Every partition that is being reassigned."""
    for topic in image.topics.values():
        for index, partition in enumerate(topic.partitions):
            if is_reassigning(partition):
                yield topic, index


def _find(image: MetadataImage, wanted: Reassignment) -> tuple[TopicImage, PartitionImage]:
    topic = image.topics.get(wanted.topic)
    if topic is None:
        raise KafkaError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {wanted.topic}."
        )
    if not 0 <= wanted.partition < len(topic.partitions):
        raise KafkaError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            f"Unable to find partition {wanted.topic}:{wanted.partition}.",
        )
    return topic, topic.partitions[wanted.partition]


def _begin(image: MetadataImage, partition: PartitionImage, target: Sequence[int]) -> Wish:
    """Those who leave stand last, so that the newcomers' first is preferred as leader already."""
    removing = sorted(set(partition.replicas).difference(target))
    adding = sorted(set(target).difference(partition.replicas))
    return Wish(
        replicas=[*target, *removing],
        removing=removing or None,
        adding=adding or None,
        directories={broker_id: default_directory(image, broker_id) for broker_id in adding},
    )


def _revert(wanted: Reassignment, partition: PartitionImage, election: Election) -> Wish:
    """As before the reassignment; if only newcomers are in sync, that costs what they alone have."""
    if not is_reassigning(partition):
        raise KafkaError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
    replicas = [replica for replica in partition.replicas if replica not in partition.adding_replicas]
    isr = [replica for replica in partition.isr if replica not in partition.adding_replicas]
    if not isr:
        if election is not Election.UNCLEAN:
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Unable to revert partition assignment for {wanted.topic}:{wanted.partition} because it "
                "would require an unclean leader election.",
            )
        isr = replicas[:1]
    return Wish(isr=isr, replicas=replicas, removing=[], adding=[], election=election)


def _check_replication_factor(partition: PartitionImage, target: Sequence[int]) -> None:
    """Held against what a reassignment under way will come to, if there is one (KIP-860)."""
    present = len(set(partition.replicas).difference(partition.removing_replicas))
    if len(target) != present:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"The replication factor is changed from {present} to {len(target)}",
        )


def elect_leader(
    image: MetadataImage, topic_name: str, index: int, election: Election, topic_rules: TopicRules
) -> PartitionChangeRecord:
    """The record that lets the preferred replica lead, or any at all; raises why there is none (KIP-460)."""
    topic = image.topics.get(topic_name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {topic_name}")
    if not 0 <= index < len(topic.partitions):
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {topic_name}-{index}")
    partition = topic.partitions[index]
    is_preferred = election is Election.PREFERRED
    if partition.leader == partition.replicas[0] if is_preferred else partition.leader != NO_LEADER:
        raise KafkaError(ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition.")
    rules = ClusterRules(
        acceptance(image), topic_rules.min_isr(topic), image.eligible_leader_replicas_enabled
    )
    record = change_partition(topic.id, index, partition, Wish(election=election), rules)
    if record is None:
        if is_preferred:
            raise KafkaError(
                ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
                "The preferred leader was not available.",
            )
        raise KafkaError(
            ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, "Eligible topic partition leaders are not available."
        )
    return record
