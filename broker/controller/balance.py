"""Elections that nobody asks for: leadership goes back to preferred replicas, and what can be led is."""

from collections.abc import Iterator

from broker.controller.decision import Decision
from broker.controller.elections import (
    ClusterRules,
    Election,
    TopicRules,
    Wish,
    acceptance,
    change_partition,
    partitions_without_leader,
)
from broker.metadata.features import PARTITION_RECORD_VERSION
from broker.metadata.image import MetadataImage, TopicImage
from broker.metadata.records import VersionedRecord


def balance_leaders(image: MetadataImage, topic_rules: TopicRules, *, elections_max: int) -> Decision[bool]:
    """Let preferred replicas lead where they can; the reply says whether there may be more to do.

    Another leader stays as long as the preferred one is not in sync (``auto.leader.rebalance.enable``).
    """
    elsewhere = (
        (topic, index)
        for topic in image.topics.values()
        for index, partition in enumerate(topic.partitions)
        if partition.leader != partition.replicas[0]
    )
    records = list(_elect(image, elsewhere, Election.PREFERRED, topic_rules, elections_max))
    return Decision(records, len(records) >= elections_max)


def elect_uncleanly(image: MetadataImage, topic_rules: TopicRules, *, elections_max: int) -> Decision[bool]:
    """Let anybody lead what nobody leads, where the topic allows it; the reply is as in ``balance_leaders``.

    ``unclean.leader.election.enable`` may have been set when the last leader was gone already.
    """
    waiting = (
        (topic, index)
        for topic, index in partitions_without_leader(image)
        if topic_rules.election(topic) is Election.UNCLEAN
    )
    records = list(_elect(image, waiting, Election.UNCLEAN, topic_rules, elections_max))
    return Decision(records, len(records) >= elections_max)


def _elect(
    image: MetadataImage,
    partitions: Iterator[tuple[TopicImage, int]],
    election: Election,
    topic_rules: TopicRules,
    elections_max: int,
) -> Iterator[VersionedRecord]:
    may_lead = acceptance(image)
    elr_enabled = image.eligible_leader_replicas_enabled
    for topic, index in partitions:
        rules = ClusterRules(may_lead, topic_rules.min_isr(topic), elr_enabled)
        record = change_partition(topic.id, index, topic.partitions[index], Wish(election=election), rules)
        if record is not None:
            yield record, PARTITION_RECORD_VERSION
            elections_max -= 1
            if elections_max == 0:
                return
