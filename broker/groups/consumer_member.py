"""One member of a consumer group (KIP-848): an immutable value that records describe."""

from collections.abc import Iterable, Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Final, NamedTuple

from broker.groups.requests import Protocols
from protocol.stored.group_records import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupCurrentMemberAssignmentTopicPartitions,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
)

JOINING_EPOCH: Final = 0
LEAVING_EPOCH: Final = -1
STATIC_LEAVING_EPOCH: Final = -2
"""A static member goes away for a while: its place is kept until its session ends."""


class MemberState(IntEnum):
    """How far a member has come on the way to its target; the numbers are those of the records."""

    STABLE = 0
    """It owns all that it should."""
    UNREVOKED_PARTITIONS = 1
    """It has to give partitions up, and to say so, before it may go on."""
    UNRELEASED_PARTITIONS = 2
    """Others have not yet given up what it should get."""
    UNKNOWN = 127
    """A newer Kafka wrote something else."""


OwnedPartitions = Mapping[bytes, Mapping[int, int]]
"""By topic id and partition: the epoch in which it was given to the member."""

NOTHING_OWNED: Final[OwnedPartitions] = MappingProxyType({})


class ClassicSide(NamedTuple):
    """What only a member has that speaks the classic protocol."""

    session_timeout_ms: int
    protocols: Protocols

    @property
    def protocol_name(self) -> str:
        return self.protocols[0][0]


class ConsumerMember(NamedTuple):
    """Who it is, what it reads, and what it owns.

    ``member_epoch`` is the last one that the member was told, ``previous_member_epoch`` the one before:
    an answer may have been lost.  ``revoking`` are partitions that it must give up and still holds.
    """

    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    topic_names: frozenset[str] = frozenset()
    topic_regex: str | None = ""
    server_assignor: str | None = None
    classic: ClassicSide | None = None
    member_epoch: int = 0
    previous_member_epoch: int = -1
    state: MemberState = MemberState.STABLE
    assigned: OwnedPartitions = NOTHING_OWNED
    revoking: OwnedPartitions = NOTHING_OWNED

    def is_reconciled_to(self, target_epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.member_epoch == target_epoch

    # Records

    def with_metadata(self, value: ConsumerGroupMemberMetadataValue) -> "ConsumerMember":
        """As a record describes it."""
        classic = value.classic_member_metadata
        return self._replace(
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            topic_names=frozenset(value.subscribed_topic_names),
            topic_regex=value.subscribed_topic_regex,
            server_assignor=value.server_assignor,
            classic=(
                None
                if classic is None
                else ClassicSide(
                    classic.session_timeout_ms,
                    tuple((protocol.name, protocol.metadata) for protocol in classic.supported_protocols),
                )
            ),
        )

    def metadata(self) -> ConsumerGroupMemberMetadataValue:
        """The record that describes who it is and what it reads."""
        classic = self.classic
        return ConsumerGroupMemberMetadataValue(
            instance_id=self.instance_id,
            rack_id=self.rack_id,
            client_id=self.client_id,
            client_host=self.client_host,
            subscribed_topic_names=sorted(self.topic_names),
            subscribed_topic_regex=self.topic_regex,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            server_assignor=self.server_assignor,
            classic_member_metadata=(
                None
                if classic is None
                else ClassicMemberMetadata(
                    session_timeout_ms=classic.session_timeout_ms,
                    supported_protocols=[
                        ClassicProtocol(name=name, metadata=metadata) for name, metadata in classic.protocols
                    ],
                )
            ),
        )

    def with_assignment(self, value: ConsumerGroupCurrentMemberAssignmentValue) -> "ConsumerMember":
        """With what a record says that it owns."""
        known = value.state in MemberState._value2member_map_
        return self._replace(
            member_epoch=value.member_epoch,
            previous_member_epoch=value.previous_member_epoch,
            state=MemberState(value.state) if known else MemberState.UNKNOWN,
            assigned=_owned(value.assigned_partitions, value.member_epoch),
            revoking=_owned(value.partitions_pending_revocation, value.member_epoch),
        )

    def assignment(self) -> ConsumerGroupCurrentMemberAssignmentValue:
        """The record that describes what it owns."""
        return ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=self.member_epoch,
            previous_member_epoch=self.previous_member_epoch,
            state=self.state,
            assigned_partitions=_stored(self.assigned),
            partitions_pending_revocation=_stored(self.revoking),
        )


def _owned(
    stored: Iterable[ConsumerGroupCurrentMemberAssignmentTopicPartitions], member_epoch: int
) -> OwnedPartitions:
    owned: dict[bytes, dict[int, int]] = {}
    for topic in stored:
        # Brokers before 4.3 did not write epochs: the member's own is the latest that it can be.
        epochs = topic.assignment_epochs
        if epochs is None or len(epochs) != len(topic.partitions):
            epochs = [member_epoch] * len(topic.partitions)
        owned[topic.topic_id] = dict(zip(topic.partitions, epochs, strict=True))
    return owned


def _stored(owned: OwnedPartitions) -> list[ConsumerGroupCurrentMemberAssignmentTopicPartitions]:
    return [
        ConsumerGroupCurrentMemberAssignmentTopicPartitions(
            topic_id=topic_id,
            partitions=sorted(partitions),
            assignment_epochs=[partitions[partition] for partition in sorted(partitions)],
        )
        for topic_id, partitions in owned.items()
    ]
