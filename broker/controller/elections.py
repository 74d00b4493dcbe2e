"""Who leads a partition, and what a change of brokers does to its in-sync set (KIP-966, KIP-704).

``change_partition`` turns a wish (another in-sync set, other replicas, an election) into the one record
that carries it out together with all that follows from it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from broker.config.value_types import JAVA_BLANKS
from broker.groups.java_order import joined_numbers_in_java_order
from broker.metadata.features import PARTITION_RECORD_VERSION
from broker.metadata.image import (
    NO_LEADER,
    LeaderRecoveryState,
    MetadataImage,
    PartitionImage,
    ResourceType,
    TopicImage,
)
from broker.metadata.records import VersionedRecord
from protocol.stored.metadata_records import PartitionChangeRecord

MIN_INSYNC_REPLICAS = "min.insync.replicas"
UNCLEAN_LEADER_ELECTION = "unclean.leader.election.enable"


class Election(Enum):
    """Who is preferred when a partition may change its leader."""

    ONLINE = "keep the leader while it may lead, else the first in-sync replica"
    PREFERRED = "the first replica if it is in sync, else as ONLINE"
    UNCLEAN = "as ONLINE, else any replica that is alive, at the price of what it has not copied"


class Wish(NamedTuple):
    """What is to become of a partition; None leaves a part as it is."""

    isr: Sequence[int] | None = None
    replicas: Sequence[int] | None = None
    removing: Sequence[int] | None = None
    adding: Sequence[int] | None = None
    directories: Mapping[int, bytes] | None = None
    """Of the replicas that move or are new."""
    recovery_state: LeaderRecoveryState | None = None
    unclean_shutdown: frozenset[int] = frozenset()
    """Brokers that may have lost the end of their logs: they are not eligible any longer."""
    election: Election = Election.ONLINE


class ClusterRules(NamedTuple):
    """What an election must know beside the partition."""

    may_lead: Callable[[int, PartitionImage], bool]
    """Whether a broker is alive and has its replica's directory online."""
    min_isr: int
    """Effective ``min.insync.replicas``, not more than there are replicas."""
    elr_enabled: bool


def change_partition(
    topic_id: bytes, index: int, partition: PartitionImage, wish: Wish, rules: ClusterRules
) -> PartitionChangeRecord | None:
    """The record that brings ``partition`` to what ``wish`` and ``rules`` say; None if it is there."""
    isr, replicas, removing, adding = _complete_reassignment(partition, wish)
    elr = _next_eligible(partition, isr, wish, rules)
    leader, is_unclean = _elect(partition, replicas, isr, elr, wish.election, rules)
    recovery_state = wish.recovery_state
    record = PartitionChangeRecord(partition_id=index, topic_id=topic_id)
    if leader != partition.leader:
        record.leader = leader
        if leader in elr or is_unclean:
            isr = (leader,)
            elr = tuple(replica for replica in elr if replica != leader)
        if is_unclean:
            recovery_state = LeaderRecoveryState.RECOVERING
    elif not set(partition.replicas) <= set(replicas):
        # Replicas that lose their place must learn it, so the leadership begins anew (KIP-841).
        record.leader = leader
    if is_unclean or not rules.elr_enabled:
        elr = ()
    if elr != partition.eligible_leader_replicas:
        record.eligible_leader_replicas = list(elr)
    if isr != partition.isr and (isr or rules.elr_enabled):
        record.isr = list(isr)
    if rules.elr_enabled:
        _note_last_leader(partition, record)
    if replicas != partition.replicas or wish.directories is not None:
        directories = _next_directories(partition, replicas, wish)
        if directories != partition.directories:
            record.directories = list(directories)
    if replicas != partition.replicas:
        record.replicas = list(replicas)
    if removing != partition.removing_replicas:
        record.removing_replicas = list(removing)
    if adding != partition.adding_replicas:
        record.adding_replicas = list(adding)
    if recovery_state is not None and recovery_state != partition.leader_recovery_state:
        record.leader_recovery_state = int(recovery_state)
    return None if record == PartitionChangeRecord(partition_id=index, topic_id=topic_id) else record


def _complete_reassignment(
    partition: PartitionImage, wish: Wish
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """In-sync, all, removing and adding replicas; without the leaving ones once all newcomers are in sync.

    With fewer newcomers than leave, all others must be: else there would be fewer in sync than before.
    """
    isr = _or(wish.isr, partition.isr)
    replicas = _or(wish.replicas, partition.replicas)
    removing = _or(wish.removing, partition.removing_replicas)
    adding = _or(wish.adding, partition.adding_replicas)
    if not removing and not adding:
        return isr, replicas, removing, adding
    staying = tuple(replica for replica in replicas if replica not in removing)
    staying_isr = tuple(replica for replica in isr if replica not in removing)
    awaited = set(staying if len(adding) < len(removing) else adding).difference(removing)
    if not staying_isr or not awaited <= set(staying_isr):
        return isr, replicas, removing, adding
    return staying_isr, staying, (), ()


def _next_eligible(
    partition: PartitionImage, isr: tuple[int, ...], wish: Wish, rules: ClusterRules
) -> tuple[int, ...]:
    """Replicas out of sync that are known to have everything committed while the set is too small.

    In Kafka's order, which is told to whoever describes the topic.
    """
    if not rules.elr_enabled:
        return partition.eligible_leader_replicas
    if len(isr) >= rules.min_isr:
        return ()
    gone = {*isr, *wish.unclean_shutdown}
    candidates = joined_numbers_in_java_order(partition.eligible_leader_replicas, partition.isr)
    return tuple([replica for replica in candidates if replica not in gone])


def _elect(
    partition: PartitionImage,
    replicas: tuple[int, ...],
    isr: tuple[int, ...],
    elr: tuple[int, ...],
    election: Election,
    rules: ClusterRules,
) -> tuple[int, bool]:
    """The leader, and whether it may lack committed records."""

    def is_valid(replica: int) -> bool:
        in_sync = replica in isr or (not isr and replica in elr)
        return in_sync and rules.may_lead(replica, partition)

    first = [partition.leader]
    if election is Election.PREFERRED:
        first.insert(0, replicas[0])
    for replica in (*first, *replicas):
        if is_valid(replica):
            return replica, False
    last_known = partition.last_known_elr
    if (
        rules.elr_enabled
        and not isr
        and not elr
        and len(last_known) == 1
        and rules.may_lead(last_known[0], partition)
    ):
        return last_known[0], True
    if election is Election.UNCLEAN:
        for replica in replicas:
            if rules.may_lead(replica, partition):
                return replica, True
    return NO_LEADER, False


def _note_last_leader(partition: PartitionImage, record: PartitionChangeRecord) -> None:
    """Remember who led last while nobody does: once it is back, it is the best there is."""
    if record.leader == NO_LEADER and not partition.last_known_elr:
        record.last_known_elr = [partition.leader]
    elif record.leader >= 0 and partition.last_known_elr:
        record.last_known_elr = []


def _next_directories(partition: PartitionImage, replicas: tuple[int, ...], wish: Wish) -> tuple[bytes, ...]:
    known = dict(zip(partition.replicas, partition.directories, strict=True))
    if wish.directories is not None:
        known.update(wish.directories)
    return tuple([known[replica] for replica in replicas])


def _or(wished: Sequence[int] | None, present: tuple[int, ...]) -> tuple[int, ...]:
    return present if wished is None else tuple(wished)


class TopicRules:
    """The settings that elections depend on, per topic, from an image and the broker's own defaults."""

    def __init__(
        self,
        image: MetadataImage,
        *,
        default_min_isr: int,
        default_unclean_election: bool,
        controller_id: int | None = None,
    ) -> None:
        """``controller_id``: what is set for this node alone counts before what is set for all."""
        self._image = image
        cluster = dict(image.config(ResourceType.BROKER, ""))
        if controller_id is not None:
            cluster.update(image.config(ResourceType.BROKER, str(controller_id)))
        min_isr, unclean = cluster.get(MIN_INSYNC_REPLICAS), cluster.get(UNCLEAN_LEADER_ELECTION)
        self._min_isr = default_min_isr if min_isr is None else _count(min_isr)
        self._unclean = default_unclean_election if unclean is None else _is_true(unclean)

    def min_isr(self, topic: TopicImage) -> int:
        """``min.insync.replicas``, but not more than the topic's partitions have replicas."""
        text = self._image.topic_config(topic.name).get(MIN_INSYNC_REPLICAS)
        wanted = self._min_isr if text is None else _count(text)
        return min(wanted, len(topic.partitions[0].replicas)) if topic.partitions else wanted

    def election(self, topic: TopicImage) -> Election:
        """The kind of election that this topic allows."""
        text = self._image.topic_config(topic.name).get(UNCLEAN_LEADER_ELECTION)
        unclean = self._unclean if text is None else _is_true(text)
        return Election.UNCLEAN if unclean else Election.ONLINE


def _count(text: str) -> int:
    """The number that a stored setting stands for, with whatever blanks it was accepted."""
    return int(text.strip(JAVA_BLANKS))


def _is_true(text: str) -> bool:
    """As Kafka's controller reads it: in any case, but unlike elsewhere not with blanks around it."""
    return text.lower() == "true"


def acceptance(
    image: MetadataImage, *, gone: Iterable[int | None] = (), arriving: int | None = None
) -> Callable[[int, PartitionImage], bool]:
    """Which brokers may lead a partition: alive ones that have its log directory online.

    ``arriving`` counts as alive although the image still has it fenced; those in ``gone`` do not any more.
    """

    def may_lead(replica: int, partition: PartitionImage) -> bool:
        if replica in gone:
            return False
        broker = image.brokers.get(replica)
        if broker is None or replica not in partition.replicas:
            return False
        if replica != arriving and not broker.is_active:
            return False
        return broker.has_online(partition.directory_of(replica))

    return may_lead


def broker_changes(
    image: MetadataImage,
    partitions: Iterable[tuple[TopicImage, int]],
    topic_rules: TopicRules,
    *,
    leaving: int | None = None,
    arriving: int | None = None,
    unclean: int | None = None,
) -> Iterator[VersionedRecord]:
    """The changes of ``partitions`` that follow when a broker leaves, arrives or lost unflushed records.

    ``arriving`` counts as alive although the image still has it fenced; ``leaving`` does not any more.
    """

    may_lead = acceptance(image, gone=(leaving, unclean), arriving=arriving)
    gone = {broker for broker in (leaving, unclean) if broker is not None}
    elr_enabled = image.eligible_leader_replicas_enabled
    unclean_shutdown: frozenset[int] = frozenset() if unclean is None else frozenset((unclean,))
    before: TopicImage | None = None
    for topic, index in partitions:
        if topic is not before:  # those of one topic mostly come together
            before = topic
            election = topic_rules.election(topic)
            rules = ClusterRules(may_lead, topic_rules.min_isr(topic), elr_enabled)
        partition = topic.partitions[index]
        wish = Wish(
            isr=[replica for replica in partition.isr if replica not in gone],
            unclean_shutdown=unclean_shutdown,
            election=election,
        )
        record = change_partition(topic.id, index, partition, wish, rules)
        if record is not None:
            yield record, PARTITION_RECORD_VERSION


def concerns(partition: PartitionImage, broker_id: int) -> bool:
    """Whether the broker's coming and going changes the partition: it is in sync, or eligible."""
    return broker_id in partition.isr or broker_id in partition.eligible_leader_replicas


def partitions_with(image: MetadataImage, broker_id: int) -> Iterator[tuple[TopicImage, int]]:
    """Every partition in which the broker is in sync or eligible."""
    for topic in image.topics.values():
        for index, partition in enumerate(topic.partitions):
            if concerns(partition, broker_id):
                yield topic, index


def partitions_in_sync_with(image: MetadataImage, broker_id: int) -> Iterator[tuple[TopicImage, int]]:
    """Every partition in which the broker is in sync.

    Where it is only eligible its absence makes no difference: it still has everything when it is back.
    """
    for topic in image.topics.values():
        for index, partition in enumerate(topic.partitions):
            if broker_id in partition.isr:
                yield topic, index


def partitions_without_leader(image: MetadataImage) -> Iterator[tuple[TopicImage, int]]:
    """Every partition that waits for somebody to lead it."""
    for topic in image.topics.values():
        for index, partition in enumerate(topic.partitions):
            if partition.leader == NO_LEADER:
                yield topic, index
