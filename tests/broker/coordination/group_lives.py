"""Random lives of groups of all kinds, as their coordinator writes them into one partition."""

import random
from collections.abc import Callable, Mapping
from typing import Final

from broker.config.broker_config import BrokerConfig
from broker.coordination.decision import StoredRecord
from broker.groups.classic import ClassicGroup
from broker.groups.cluster import Cluster
from broker.groups.consumer import ConsumerGroup
from broker.groups.machine import CODEC, GroupMachine
from broker.groups.offsets import offset_tombstones
from broker.groups.settings import GroupSettings
from broker.groups.streams.group import StreamsGroup
from broker.metadata.image import empty_image
from broker.share.group import ShareGroup
from protocol.records.batch import NO_PRODUCER_ID
from protocol.records.builder import build_batch
from protocol.records.control import EndTransactionMarker, build_end_transaction_marker
from protocol.stored import group_records as stored
from tests.broker.coordination.fake_log import FakeLog

GROUPS: Final = "ab"
PRODUCERS: Final = (7, 8)
TOPIC: Final = "t"

Telling = Callable[[str, str, int], list[StoredRecord]]


def _classic(group: str, member: str, number: int) -> list[StoredRecord]:
    members = [stored.MemberMetadata(member_id=member)]
    value = stored.GroupMetadataValue(
        protocol_type="consumer", generation=number, protocol="range", leader=member, members=members
    )
    return [StoredRecord(stored.GroupMetadataKey(group=group), value, 3)]


def _consumer(group: str, member: str, number: int) -> list[StoredRecord]:
    of_group = {"group_id": group}
    of_member = {"group_id": group, "member_id": member}
    return [
        StoredRecord(
            stored.ConsumerGroupMemberMetadataKey(**of_member),
            stored.ConsumerGroupMemberMetadataValue(subscribed_topic_names=[TOPIC], client_id=str(number)),
        ),
        StoredRecord(
            stored.ConsumerGroupMetadataKey(**of_group), stored.ConsumerGroupMetadataValue(epoch=number)
        ),
        StoredRecord(
            stored.ConsumerGroupTargetAssignmentMemberKey(**of_member),
            stored.ConsumerGroupTargetAssignmentMemberValue(),
        ),
        StoredRecord(
            stored.ConsumerGroupTargetAssignmentMetadataKey(**of_group),
            stored.ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=number),
        ),
        StoredRecord(
            stored.ConsumerGroupCurrentMemberAssignmentKey(**of_member),
            stored.ConsumerGroupCurrentMemberAssignmentValue(member_epoch=number),
        ),
    ]


def _share(group: str, member: str, number: int) -> list[StoredRecord]:
    of_group = {"group_id": group}
    of_member = {"group_id": group, "member_id": member}
    return [
        StoredRecord(
            stored.ShareGroupMemberMetadataKey(**of_member),
            stored.ShareGroupMemberMetadataValue(subscribed_topic_names=[TOPIC], client_id=str(number)),
        ),
        StoredRecord(stored.ShareGroupMetadataKey(**of_group), stored.ShareGroupMetadataValue(epoch=number)),
        StoredRecord(
            stored.ShareGroupTargetAssignmentMemberKey(**of_member),
            stored.ShareGroupTargetAssignmentMemberValue(),
        ),
        StoredRecord(
            stored.ShareGroupTargetAssignmentMetadataKey(**of_group),
            stored.ShareGroupTargetAssignmentMetadataValue(assignment_epoch=number),
        ),
        StoredRecord(
            stored.ShareGroupCurrentMemberAssignmentKey(**of_member),
            stored.ShareGroupCurrentMemberAssignmentValue(member_epoch=number),
        ),
        StoredRecord(
            stored.ShareGroupStatePartitionMetadataKey(**of_group),
            stored.ShareGroupStatePartitionMetadataValue(
                initialized_topics=[
                    stored.TopicPartitionsInfo(topic_id=bytes(16), topic_name=TOPIC, partitions=[number])
                ]
            ),
        ),
    ]


def _streams(group: str, member: str, number: int) -> list[StoredRecord]:
    of_group = {"group_id": group}
    of_member = {"group_id": group, "member_id": member}
    return [
        StoredRecord(
            stored.StreamsGroupMemberMetadataKey(**of_member),
            stored.StreamsGroupMemberMetadataValue(process_id="p", client_id=str(number)),
        ),
        StoredRecord(
            stored.StreamsGroupMetadataKey(**of_group), stored.StreamsGroupMetadataValue(epoch=number)
        ),
        StoredRecord(
            stored.StreamsGroupTopologyKey(**of_group), stored.StreamsGroupTopologyValue(epoch=number)
        ),
        StoredRecord(
            stored.StreamsGroupTargetAssignmentMemberKey(**of_member),
            stored.StreamsGroupTargetAssignmentMemberValue(),
        ),
        StoredRecord(
            stored.StreamsGroupTargetAssignmentMetadataKey(**of_group),
            stored.StreamsGroupTargetAssignmentMetadataValue(assignment_epoch=number),
        ),
        StoredRecord(
            stored.StreamsGroupCurrentMemberAssignmentKey(**of_member),
            stored.StreamsGroupCurrentMemberAssignmentValue(member_epoch=number),
        ),
    ]


TOLD: Final[Mapping[type, Telling]] = {
    ClassicGroup: _classic,
    ConsumerGroup: _consumer,
    ShareGroup: _share,
    StreamsGroup: _streams,
}
"""The records of a group with one member, whose values have ``number`` in them."""


def state_of(machine: GroupMachine) -> dict[str, object]:
    """Everything that is stored of each group."""
    return {group_id: _stored_of(group) for group_id, group in machine.groups.items()}


def _stored_of(group: object) -> object:
    if isinstance(group, ClassicGroup):
        return group.stored()
    if isinstance(group, StreamsGroup):
        target: object = (group.target_epoch, group.targets)
        more: object = group.topology
    else:
        assert isinstance(group, ConsumerGroup | ShareGroup)
        target = (group.target.epoch, group.target.by_member)
        more = group.states if isinstance(group, ShareGroup) else None
    return (group.kind, group.group_epoch, dict(group.members), target, more)


class Partition:
    """A log, and the machine of the coordinator that writes it."""

    def __init__(self) -> None:
        self.log = FakeLog()
        self.machine = GroupMachine(GroupSettings(), Cluster(empty_image("cluster"), BrokerConfig({})))

    def write(self, *records: StoredRecord, producer_id: int = NO_PRODUCER_ID) -> None:
        """One batch."""
        for index, record in enumerate(records):
            self.machine.apply(record, self.log.log_end + index, producer_id)
        self.log.append(
            build_batch(
                [(0, *CODEC.encode(record), ()) for record in records],
                producer_id=producer_id,
                producer_epoch=-1 if producer_id == NO_PRODUCER_ID else 0,
                is_transactional=producer_id != NO_PRODUCER_ID,
            )
        )

    def commit(self, group_id: str, partition: int, number: int, producer_id: int = NO_PRODUCER_ID) -> None:
        key = stored.OffsetCommitKey(group=group_id, topic=TOPIC, partition=partition)
        self.write(StoredRecord(key, stored.OffsetCommitValue(offset=number), 4), producer_id=producer_id)

    def end_transaction(self, producer_id: int, *, is_commit: bool) -> None:
        self.machine.end_transaction(producer_id, is_commit=is_commit)
        marker = EndTransactionMarker(is_commit, 0)
        self.log.append(
            build_end_transaction_marker(marker, producer_id=producer_id, producer_epoch=0, timestamp=0)
        )

    def forget_offsets(self, group_id: str) -> None:
        """Also those that a transaction may make."""
        tombstones = offset_tombstones(group_id, self.machine.offsets.partitions_of(group_id))
        if tombstones:
            self.write(*tombstones)

    def empty(self, group_id: str) -> None:
        """The members leave."""
        tombstones = [
            record
            for record in self.machine.groups[group_id].tombstones()
            if hasattr(record.key, "member_id")
        ]
        if tombstones:
            self.write(*tombstones)

    def end(self, group_id: str) -> None:
        """The group is deleted; its offsets may be gone before."""
        self.write(*self.machine.groups[group_id].tombstones())


def random_lives(chance: random.Random, steps: int) -> Partition:
    """Groups that begin, change, commit, become another kind, end, and begin again."""
    partition = Partition()
    for number in range(1, steps):
        group_id = chance.choice(GROUPS)
        group = partition.machine.groups.get(group_id)
        step = chance.random()
        if step < 0.15:
            partition.end_transaction(chance.choice(PRODUCERS), is_commit=chance.random() < 0.7)
        elif step < 0.4 and not isinstance(group, ShareGroup):
            producer_id = chance.choice((NO_PRODUCER_ID, *PRODUCERS))
            partition.commit(group_id, chance.randrange(2), number, producer_id)
        elif group is None:
            partition.write(*TOLD[chance.choice(list(TOLD))](group_id, chance.choice("mn"), number))
        elif step < 0.6:
            told = TOLD[type(group)](group_id, chance.choice("mn"), number)
            partition.write(*chance.sample(told, chance.randint(1, len(told))))
        elif step < 0.7:
            partition.empty(group_id)
        elif step < 0.75:
            partition.forget_offsets(group_id)
        elif step < 0.9:
            if chance.random() < 0.8:
                partition.forget_offsets(group_id)
            partition.end(group_id)
        elif isinstance(group, ClassicGroup | ConsumerGroup):
            other = ConsumerGroup if isinstance(group, ClassicGroup) else ClassicGroup
            told = TOLD[other](group_id, "m", number)
            partition.write(*group.tombstones(), *told)
    return partition
