"""Log directories of brokers: where each replica lies (KIP-858), and who takes no new ones (KIP-1066)."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from broker.controller.brokers import image_after, registered
from broker.controller.decision import Decision, LongDecision
from broker.controller.elections import (
    ClusterRules,
    TopicRules,
    Wish,
    acceptance,
    broker_changes,
    change_partition,
)
from broker.metadata.features import (
    CORDONED_CHANGE_VERSION,
    DIRECTORIES_CHANGE_VERSION,
    PARTITION_RECORD_VERSION,
    writes_cordoned_directories,
)
from broker.metadata.image import NO_LEADER, MetadataImage, TopicImage
from broker.metadata.records import VersionedRecord
from protocol.error_codes import ErrorCode
from protocol.stored.metadata_records import BrokerRegistrationChangeRecord


class Assignment(NamedTuple):
    """A broker's replica of this partition lies in this directory, or is about to."""

    topic_id: bytes
    partition: int
    directory: bytes


def assign_replicas(
    image: MetadataImage,
    broker_id: int,
    broker_epoch: int,
    assignments: Sequence[Assignment],
    topic_rules: TopicRules,
) -> Decision[Sequence[ErrorCode]]:
    """Note where a broker's replicas lie; the reply says of each assignment what became of it.

    A replica that is assigned to a directory that is not online cannot be led any longer; what nobody led
    because its directory was missing is led again.  Raises what AssignReplicasToDirs answers as a whole.
    """
    broker = registered(image, broker_id, broker_epoch)
    may_lead = acceptance(image)
    records: list[VersionedRecord] = []
    codes: list[ErrorCode] = []
    offline: list[tuple[TopicImage, int]] = []
    found: list[tuple[TopicImage, int]] = []
    for topic_id, index, directory in assignments:
        topic = image.topics_by_id.get(topic_id)
        if topic is None:
            codes.append(ErrorCode.UNKNOWN_TOPIC_ID)
            continue
        if not 0 <= index < len(topic.partitions):
            codes.append(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            continue
        partition = topic.partitions[index]
        if broker_id not in partition.replicas:
            codes.append(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            continue
        codes.append(ErrorCode.NONE)
        rules = ClusterRules(may_lead, topic_rules.min_isr(topic), image.eligible_leader_replicas_enabled)
        wish = Wish(directories={broker_id: directory})
        record = change_partition(topic_id, index, partition, wish, rules)
        if record is not None:
            records.append((record, PARTITION_RECORD_VERSION))
        if not broker.has_online(directory):
            offline.append((topic, index))
        elif partition.leader == NO_LEADER:
            found.append((topic, index))
    records += broker_changes(image, offline, topic_rules, leaving=broker_id)
    if found:
        # Kafka lets them wait for the broker's next start.
        after = image_after(image, records)
        again = [(after.topics_by_id[topic.id], index) for topic, index in found]
        records += broker_changes(after, again, topic_rules)
    return LongDecision(records, codes)


def take_directories_offline(
    image: MetadataImage,
    broker_id: int,
    broker_epoch: int,
    directories: Iterable[bytes],
    topic_rules: TopicRules,
) -> Decision[None]:
    """Log directories have failed: their broker leaves the in-sync sets of what lies there."""
    broker = registered(image, broker_id, broker_epoch)
    failed = [directory for directory in directories if directory in broker.directories]
    if not failed:
        return Decision([], None)
    concerned = list(_partitions_in(image, broker_id, failed))
    records = list(broker_changes(image, concerned, topic_rules, leaving=broker_id))
    change = BrokerRegistrationChangeRecord(
        broker_id=broker_id,
        broker_epoch=broker_epoch,
        log_dirs=[directory for directory in broker.directories if directory not in failed],
    )
    return Decision([*records, (change, DIRECTORIES_CHANGE_VERSION)], None)


def cordon_directories(
    image: MetadataImage, broker_id: int, broker_epoch: int, directories: Sequence[bytes]
) -> Decision[None]:
    """These, and no others, of a broker's log directories take no new replicas from now on."""
    broker = registered(image, broker_id, broker_epoch)
    if not writes_cordoned_directories(image.metadata_version):
        return Decision([], None)
    known = broker.cordoned_directories
    if known is not None and set(known) == set(directories):
        return Decision([], None)
    change = BrokerRegistrationChangeRecord(
        broker_id=broker_id, broker_epoch=broker_epoch, cordoned_log_dirs=list(directories)
    )
    return Decision([(change, CORDONED_CHANGE_VERSION)], None)


def _partitions_in(
    image: MetadataImage, broker_id: int, directories: Sequence[bytes]
) -> Iterator[tuple[TopicImage, int]]:
    """Partitions whose replica on this broker lies in one of these directories."""
    for topic in image.topics.values():
        for index, partition in enumerate(topic.partitions):
            if broker_id in partition.replicas and partition.directory_of(broker_id) in directories:
                yield topic, index
