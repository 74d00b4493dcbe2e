"""Consumer groups in one partition, in a cluster whose topics come and go when a test says so."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from broker.config.broker_config import BrokerConfig
from broker.coordination.tickets import Ticket
from broker.groups import consumer_requests
from broker.groups.cluster import Cluster
from broker.groups.consumer import ConsumerGroup, ConsumerGroupState
from broker.groups.consumer_member import ConsumerMember
from broker.groups.requests import Beat, Beaten, ConsumerGroupDescription
from broker.groups.settings import GroupSettings
from broker.metadata.image import ResourceType, empty_image
from broker.metadata.replay import apply
from protocol.error_codes import ErrorCode
from protocol.schema import Message
from protocol.stored.metadata_records import (
    ConfigRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from tests.broker.coordination.fake_log import FakeLog
from tests.broker.groups.rooms import Room

SESSION_MS = 45_000
HEARTBEAT_MS = 5_000
REBALANCE_MS = 60_000
INTERVAL_MS = 1_000

Owned = Mapping[str, Collection[int]]
"""Partitions by topic name."""


class ConsumerRoom(Room):
    """What clients do with consumer groups.  ``consumers`` is the group that most tests are about."""

    def __init__(
        self,
        settings: GroupSettings | None = None,
        log: FakeLog | None = None,
        cluster: Cluster | None = None,
    ) -> None:
        if cluster is None:
            cluster = Cluster(empty_image("cluster"), BrokerConfig({}))
        super().__init__(settings, log, cluster)

    # Topics

    def change_cluster(self, *records: Message) -> None:
        image, changes = apply(
            self.cluster.image, records, offset=self.cluster.image.offset + len(records), epoch=1
        )
        self.cluster.follow(image, changes)

    def create_topic(self, name: str, partitions: int = 3, *, replicas: Sequence[int] = (1,)) -> bytes:
        self.ids += 1
        topic_id = self.ids.to_bytes(16, "big")
        self.change_cluster(
            TopicRecord(name=name, topic_id=topic_id),
            *(_partition(topic_id, number, replicas) for number in range(partitions)),
        )
        return topic_id

    def add_partitions(self, name: str, count: int) -> None:
        topic = self.cluster.image.topics[name]
        first = len(topic.partitions)
        self.change_cluster(*(_partition(topic.id, number, (1,)) for number in range(first, first + count)))

    def delete_topic(self, name: str) -> None:
        self.change_cluster(RemoveTopicRecord(topic_id=self.cluster.image.topics[name].id))

    def register_broker(self, broker_id: int, rack: str | None) -> None:
        self.change_cluster(RegisterBrokerRecord(broker_id=broker_id, rack=rack))

    def configure(self, name: str, value: str | None, group_id: str = "group") -> None:
        self.change_cluster(
            ConfigRecord(resource_type=ResourceType.GROUP, resource_name=group_id, name=name, value=value)
        )

    def named(self, owned: Mapping[bytes, Collection[int]] | None) -> dict[str, list[int]] | None:
        """An assignment by the names of its topics; those that are gone under their ids."""
        if owned is None:
            return None
        return {self._name(topic_id): sorted(partitions) for topic_id, partitions in owned.items()}

    def _name(self, topic_id: bytes) -> str:
        topic = self.cluster.topic_of(topic_id)
        return topic_id.hex() if topic is None else topic.name

    # Members

    @property
    def consumers(self) -> ConsumerGroup:
        return self.consumer_group("group")

    def state_of_consumers(self) -> ConsumerGroupState:
        return self.consumers.state

    def consumer_group(self, group_id: str) -> ConsumerGroup:
        group = self.machine.groups[group_id]
        assert isinstance(group, ConsumerGroup)
        return group

    def member(self, member_id: str) -> ConsumerMember:
        return self.consumers.members[member_id]

    def beat_later(
        self,
        member_id: str,
        epoch: int,
        *,
        group_id: str = "group",
        topics: Sequence[str] | None = None,
        regex: str | None = None,
        owned: Owned | None = None,
        rebalance_ms: int = -1,
        instance_id: str | None = None,
        rack_id: str | None = None,
        assignor: str | None = None,
        client_id: str = "client",
    ) -> Ticket[Beaten]:
        self.ids += 1
        claimed = None
        if owned is not None:
            topics_now = self.cluster.image.topics
            claimed = [
                (topics_now[name].id if name in topics_now else bytes.fromhex(name), sorted(partitions))
                for name, partitions in owned.items()
            ]
        asked = Beat(
            member_id,
            epoch,
            instance_id,
            rack_id,
            client_id,
            "/10.0.0.1",
            rebalance_ms,
            topics,
            regex,
            assignor,
            claimed,
            f"made-{self.ids}",
        )
        ticket = Ticket(Beaten)
        self.ask(ticket, lambda machine, now: consumer_requests.beat(machine, group_id, asked, ticket, now))
        return ticket

    def beat(self, member_id: str, epoch: int, **how: Any) -> Beaten:
        return self.beat_later(member_id, epoch, **how).outcome

    def enter(self, member_id: str, topics: Sequence[str] | None = ("t",), **how: Any) -> Beaten:
        """Join; what is wrong with it is the test's business."""
        how = {"rebalance_ms": REBALANCE_MS, "owned": {}, "topics": topics, **how}
        return self.beat(member_id, 0, **how)

    def entered(self, member_id: str, topics: Sequence[str] | None = ("t",), **how: Any) -> Beaten:
        beaten = self.enter(member_id, topics, **how)
        assert beaten.error is ErrorCode.NONE, beaten
        return beaten

    def settle(self, *member_ids: str, group_id: str = "group", rounds: int = 20) -> None:
        """Let members beat as good consumers do until nothing moves any more."""
        for _ in range(rounds):
            self.pass_ms(INTERVAL_MS)
            before = self.log.log_end
            for member_id in member_ids:
                member = self.consumer_group(group_id).members[member_id]
                owned = self.named(member.assigned) or {}
                beaten = self.beat(member_id, member.member_epoch, owned=owned, group_id=group_id)
                assert beaten.error is ErrorCode.NONE, beaten
            if self.log.log_end == before:
                return
        raise AssertionError("the group does not come to rest")

    def owned(self, *member_ids: str) -> list[dict[str, list[int]] | None]:
        return [self.named(self.member(member_id).assigned) for member_id in member_ids]

    def describe_consumers(self, group_id: str = "group") -> ConsumerGroupDescription:
        ticket = Ticket(lambda code: ConsumerGroupDescription(group_id, code))
        self.ask(ticket, lambda machine, _: consumer_requests.describe(machine, group_id, ticket))
        return ticket.outcome


def _partition(topic_id: bytes, number: int, replicas: Sequence[int]) -> PartitionRecord:
    return PartitionRecord(
        partition_id=number,
        topic_id=topic_id,
        replicas=list(replicas),
        isr=list(replicas),
        leader=replicas[0],
        leader_epoch=0,
        partition_epoch=0,
        directories=[bytes(15) + b"\x63"] * len(replicas),
    )
