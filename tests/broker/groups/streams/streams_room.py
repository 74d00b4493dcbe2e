"""Streams groups in one partition, in a cluster whose topics come and go when a test says so."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from broker.coordination.tickets import Ticket
from broker.groups.streams import commands
from broker.groups.streams.group import StreamsGroup
from broker.groups.streams.member import StreamsMember
from broker.groups.streams.requests import StreamsBeat, StreamsBeaten
from broker.groups.streams.tasks import told_tasks
from protocol.error_codes import ErrorCode
from protocol.messages.streams_group_describe import DescribedGroup
from protocol.messages.streams_group_heartbeat import (
    Endpoint,
    KeyValue,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    Subtopology,
    TaskIds,
    TaskOffset,
    TopicInfo,
    Topology,
)
from tests.broker.groups.consumer_rooms import ConsumerRoom

REBALANCE_MS = 60_000
DELAY_MS = 3_000
SESSION_MS = 45_000

Tasks = Mapping[str, Iterable[int]]


def reading(*topics: str, epoch: int = 0) -> Topology:
    """A topology of one part that keeps no state."""
    return Topology(epoch=epoch, subtopologies=[Subtopology(subtopology_id="0", source_topics=list(topics))])


def counting(source: str, *, epoch: int = 0) -> Topology:
    """Two parts with a repartition topic between them; both keep state."""
    return Topology(
        epoch=epoch,
        subtopologies=[
            Subtopology(
                subtopology_id="0",
                source_topics=[source],
                repartition_sink_topics=[f"{source}-by-word"],
                state_changelog_topics=[TopicInfo(name=f"{source}-seen-log")],
            ),
            Subtopology(
                subtopology_id="1",
                repartition_source_topics=[TopicInfo(name=f"{source}-by-word")],
                state_changelog_topics=[TopicInfo(name=f"{source}-counts-log")],
            ),
        ],
    )


def task_ids(tasks: Tasks) -> list[TaskIds]:
    return [TaskIds(subtopology_id=name, partitions=sorted(of)) for name, of in sorted(tasks.items())]


class StreamsRoom(ConsumerRoom):
    """What members do with streams groups.  ``app`` is the group that most tests are about."""

    @property
    def app(self) -> StreamsGroup:
        return self.streams_group("group")

    def streams_group(self, group_id: str) -> StreamsGroup:
        group = self.machine.groups[group_id]
        assert isinstance(group, StreamsGroup)
        return group

    def worker(self, member_id: str) -> StreamsMember:
        return self.app.members[member_id]

    def report_later(
        self,
        member_id: str,
        epoch: int,
        *,
        group_id: str = "group",
        topology: Topology | None = None,
        owned: Tasks | list[TaskIds] | None = None,
        standby: Tasks | None = None,
        process_id: str | None = None,
        instance_id: str | None = None,
        rebalance_ms: int = -1,
        endpoint: tuple[str, int] | None = None,
        tags: Mapping[str, str] | None = None,
        offsets: Sequence[tuple[str, int, int]] | None = None,
        shutdown: bool = False,
        endpoint_epoch: int = 0,
        version: int = 1,
    ) -> Ticket[StreamsBeaten]:
        says = owned is not None or standby is not None
        told = StreamsGroupHeartbeatRequest(
            group_id=group_id,
            member_id=member_id,
            member_epoch=epoch,
            endpoint_information_epoch=endpoint_epoch,
            instance_id=instance_id,
            rebalance_timeout_ms=rebalance_ms,
            topology=topology,
            active_tasks=(owned if isinstance(owned, list) else task_ids(owned or {})) if says else None,
            standby_tasks=task_ids(standby or {}) if says else None,
            warmup_tasks=[] if says else None,
            process_id=process_id,
            user_endpoint=None if endpoint is None else Endpoint(host=endpoint[0], port=endpoint[1]),
            client_tags=(
                None if tags is None else [KeyValue(key=key, value=value) for key, value in tags.items()]
            ),
            task_offsets=(
                None
                if offsets is None
                else [TaskOffset(subtopology_id=of, partition=each, offset=at) for of, each, at in offsets]
            ),
            shutdown_application=shutdown,
        )
        asked = StreamsBeat(told, "client", "/10.0.0.1", version >= 1)
        ticket = Ticket(lambda code: StreamsBeaten(StreamsGroupHeartbeatResponse(error_code=code)))
        self.ask(ticket, lambda machine, now: commands.beat(machine, group_id, asked, ticket, now))
        return ticket

    def report(self, member_id: str, epoch: int, **how: Any) -> StreamsGroupHeartbeatResponse:
        return self.report_later(member_id, epoch, **how).outcome.response

    def enrol(
        self, member_id: str, topology: Topology | None = None, **how: Any
    ) -> StreamsGroupHeartbeatResponse:
        """Join; what is wrong with it is the test's business."""
        how = {
            "topology": reading("t") if topology is None else topology,
            "owned": {},
            "process_id": f"process of {member_id}",
            "rebalance_ms": REBALANCE_MS,
            **how,
        }
        return self.report(member_id, 0, **how)

    def enrolled(
        self, member_id: str, topology: Topology | None = None, **how: Any
    ) -> StreamsGroupHeartbeatResponse:
        response = self.enrol(member_id, topology, **how)
        assert response.error_code == ErrorCode.NONE, response
        return response

    def work(self, member_id: str, **how: Any) -> StreamsGroupHeartbeatResponse:
        """A heartbeat of a member that has done all that it was told."""
        member = self.streams_group(how.get("group_id", "group")).members[member_id]
        owned = {name: list(of) for name, of in member.assigned.active.items()}
        how = {"owned": owned, "standby": member.assigned.standby, **how}
        response = self.report(member_id, member.member_epoch, **how)
        assert response.error_code == ErrorCode.NONE, response
        return response

    def settle_workers(self, *member_ids: str, group_id: str = "group", rounds: int = 20) -> None:
        """Let members send heartbeats until nothing moves any more."""
        for _ in range(rounds):
            self.pass_ms(1_000)
            before = self.log.log_end
            for member_id in member_ids:
                self.work(member_id, group_id=group_id)
            if self.log.log_end == before:
                return
        raise AssertionError("the group does not come to rest")

    def make_missing_topics(self, beaten: StreamsBeaten) -> None:
        """What the broker does behind a heartbeat."""
        for topic in beaten.missing_topics.values():
            if topic.name not in self.cluster.image.topics:
                self.create_topic(topic.name, topic.partition_count)

    def active(self, member_id: str) -> dict[str, list[int]]:
        return {name: sorted(of) for name, of in self.worker(member_id).assigned.active.items()}

    def describe_app(self, group_id: str = "group") -> DescribedGroup:
        ticket = Ticket(lambda code: DescribedGroup(group_id=group_id, error_code=code))
        self.ask(ticket, lambda machine, _: commands.describe(machine, group_id, ticket))
        return ticket.outcome


def told(ids: Iterable[TaskIds] | None) -> dict[str, list[int]] | None:
    """Tasks of an answer, to compare them."""
    return None if ids is None else {name: sorted(of) for name, of in told_tasks(ids).items()}
