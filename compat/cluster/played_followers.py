"""Brokers that a test plays, to see how a real leader treats its followers: Ottla's and Apache Kafka's alike.

Each registers with the controller and is unfenced; from then on it fetches what it is told to, and when.
"""

import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from compat.oracle.connection import Connection, Silence, read_answer
from compat.waiting import wait_until
from protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from protocol.messages.broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    Feature,
    Listener,
)
from protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    TopicPartitions,
)
from protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
    ReplicaState,
)
from protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from protocol.records.builder import build_batch
from protocol.schema import Message

M = TypeVar("M", bound=Message)

LEADER: Final = 1
FOLLOWERS: Final = (7, 8)
STRANGER: Final = 9
"""A broker that is registered and has no replica."""

LAG_MAX_MS: Final = 3000
SETTINGS: Final = {
    "replica.lag.time.max.ms": str(LAG_MAX_MS),
    "broker.session.timeout.ms": "600000",
    "broker.rack": "near-the-leader",
    "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
}
"""The node's whose followers are played."""

ANY_OFFSET: Final = 1 << 40
"""A metadata offset that is far enough for every broker that has just been registered."""

FETCH_VERSION: Final = 17
PRODUCE_VERSION: Final = 9
OLD_FETCH_VERSION: Final = 12
PATIENT_MS: Final = 3000
"""How long a fetch waits that is expected to be answered before that, or not."""


class Node:
    """A connection to a node."""

    def __init__(self, address: str) -> None:
        self._connection = Connection(address, "played")

    def close(self) -> None:
        self._connection.close()

    def ask(self, request: Message, response: type[M], version: int) -> M:
        return self.answer_to(self.send(request, version), response, version)

    def send(self, request: Message, version: int) -> int:
        """Send a request whose answer is read later; returns its correlation id."""
        return self._connection.send(request, version)

    def answer_to(self, correlation_id: int, response: type[M], version: int) -> M:
        frame = self._connection.receive(correlation_id)
        assert not isinstance(frame, Silence), f"no {response.__name__} v{version}: {frame}"
        return read_answer(frame, response, version)


class PlayedBroker:
    """One broker that a test plays."""

    def __init__(self, cluster: "Played", broker_id: int, rack: str | None) -> None:
        self._cluster = cluster
        self._controller = Node(cluster.controller_address)
        self._leader = Node(cluster.leader_address)
        self.id = broker_id
        self.rack = rack
        self.directory = uuid.uuid4().bytes
        self.epoch = -1
        self.register()

    def close(self) -> None:
        self._controller.close()
        self._leader.close()

    def register(self) -> None:
        """Join the cluster."""
        features = self._leader.ask(
            ApiVersionsRequest(client_software_name="played", client_software_version="1"),
            ApiVersionsResponse,
            4,
        ).supported_features
        answer = self._controller.ask(
            BrokerRegistrationRequest(
                broker_id=self.id,
                cluster_id=self._cluster.cluster_id,
                incarnation_id=uuid.uuid4().bytes,
                listeners=[Listener(name="PLAINTEXT", host="127.0.0.1", port=self.id)],
                features=[
                    Feature(
                        name=feature.name,
                        min_supported_version=feature.min_version,
                        max_supported_version=feature.max_version,
                    )
                    for feature in features
                ],
                rack=self.rack,
                log_dirs=[self.directory],
            ),
            BrokerRegistrationResponse,
            4,
        )
        assert answer.error_code == 0, answer
        self.epoch = answer.broker_epoch
        self.heartbeat()

    def heartbeat(self) -> None:
        """Be up to date, and so not fenced."""
        answer = self._controller.ask(
            BrokerHeartbeatRequest(
                broker_id=self.id,
                broker_epoch=self.epoch,
                current_metadata_offset=ANY_OFFSET,
            ),
            BrokerHeartbeatResponse,
            1,
        )
        assert (answer.error_code, answer.is_fenced) == (0, False), answer

    def register_again(self) -> None:
        """The same when the cluster has forgotten this broker."""
        answer = self._leader.ask(UnregisterBrokerRequest(broker_id=self.id), UnregisterBrokerResponse, 0)
        assert answer.error_code == 0, answer
        self.register()

    def fetch(
        self,
        topic: str,
        offset: int,
        *,
        leader_epoch: int = 0,
        last_epoch: int = -1,
        log_start: int = 0,
        broker_epoch: int | None = None,
        wait_ms: int = 0,
        session: tuple[int, int] = (0, -1),
        version: int = FETCH_VERSION,
    ) -> FetchResponse:
        wanted = FetchPartition(
            partition=0,
            current_leader_epoch=leader_epoch,
            fetch_offset=offset,
            last_fetched_epoch=last_epoch,
            log_start_offset=log_start,
            partition_max_bytes=1 << 20,
        )
        topics = [FetchTopic(partitions=[wanted], **self._cluster.names(topic, version))]
        request = FetchRequest(
            max_wait_ms=wait_ms,
            min_bytes=1,
            max_bytes=1 << 20,
            session_id=session[0],
            session_epoch=session[1],
            topics=topics if offset >= 0 else [],
        )
        if version >= 15:
            request.replica_state = ReplicaState(
                replica_id=self.id, replica_epoch=self.epoch if broker_epoch is None else broker_epoch
            )
        else:
            request.replica_id = self.id
        return self._leader.ask(request, FetchResponse, version)


class Played:
    """A node that leads, with followers that are played."""

    def __init__(self, leader_address: str, controller_address: str) -> None:
        self.leader_address = leader_address
        self.controller_address = controller_address
        self._leader = Node(leader_address)
        self._topic_ids: dict[str, bytes] = {}
        self.cluster_id = self.metadata().cluster_id or ""
        self.brokers = {
            broker_id: PlayedBroker(self, broker_id, "far-away") for broker_id in (*FOLLOWERS, STRANGER)
        }
        wait_until(lambda: len(self.metadata().brokers) == len(self.brokers) + 1, "all are alive")

    def close(self) -> None:
        self._leader.close()
        for broker in self.brokers.values():
            broker.close()

    def metadata(self, *topics: str) -> MetadataResponse:
        request = MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in topics])
        return self._leader.ask(request, MetadataResponse, 12)

    def topic_id(self, topic: str) -> bytes:
        if topic not in self._topic_ids:
            self._topic_ids[topic] = self.metadata(topic).topics[0].topic_id
        return self._topic_ids[topic]

    def in_sync(self, topic: str) -> list[int]:
        return sorted(self.metadata(topic).topics[0].partitions[0].isr_nodes)

    def wait_for_isr(self, topic: str, isr: Sequence[int], meanwhile: Callable[[], object]) -> None:
        """Do ``meanwhile`` until the image says so."""
        seen: list[list[int]] = []
        done: list[object] = []

        def holds() -> bool:
            done[:] = [meanwhile()]
            found = self.in_sync(topic)
            if found not in seen[-1:]:
                seen.append(found)
            return found == sorted(isr)

        try:
            wait_until(holds, f"{list(isr)} are in sync in {topic}", patience_seconds=20)
        except AssertionError as error:
            raise AssertionError(f"{error}; seen {seen}; last {done}") from error

    def create(self, topic: str, replicas: Sequence[int] = (LEADER, *FOLLOWERS), **settings: str) -> None:
        answer = self._leader.ask(
            CreateTopicsRequest(
                topics=[
                    CreatableTopic(
                        name=topic,
                        num_partitions=-1,
                        replication_factor=-1,
                        assignments=[
                            CreatableReplicaAssignment(partition_index=0, broker_ids=list(replicas))
                        ],
                        configs=[
                            CreatableTopicConfig(name=name.replace("_", "."), value=value)
                            for name, value in settings.items()
                        ],
                    )
                ],
                timeout_ms=10_000,
            ),
            CreateTopicsResponse,
            7,
        )
        assert answer.topics[0].error_code == 0, answer
        wait_until(lambda: self.list_offsets(topic, -2) == (0, 0), f"{topic} is led")

    def produce(self, topic: str, *, acks: int = 1, timeout_ms: int = 300) -> tuple[int, int]:
        """Error code and base offset."""
        answer = self._leader.ask(_produce_request(topic, acks, timeout_ms), ProduceResponse, PRODUCE_VERSION)
        return _outcome(answer)

    def produce_while(self, topic: str, meanwhile: Callable[[], object]) -> tuple[int, int]:
        """The same with acks=all and much time, which is answered after ``meanwhile``."""
        producer = Node(self.leader_address)
        try:
            sent = producer.send(_produce_request(topic, -1, 60_000), PRODUCE_VERSION)
            wait_until(lambda: self.list_offsets(topic, -1, 7)[1] > 0, f"it is written to {topic}")
            meanwhile()
            return _outcome(producer.answer_to(sent, ProduceResponse, PRODUCE_VERSION))
        finally:
            producer.close()

    def let_lead(self, topic: str, broker_id: int) -> None:
        """Let a replica that is in sync be the preferred one, and elect it."""
        replicas = self.metadata(topic).topics[0].partitions[0].replica_nodes
        replicas = [broker_id, *(each for each in replicas if each != broker_id)]
        altered = self._leader.ask(
            AlterPartitionReassignmentsRequest(
                topics=[
                    ReassignableTopic(
                        name=topic, partitions=[ReassignablePartition(partition_index=0, replicas=replicas)]
                    )
                ]
            ),
            AlterPartitionReassignmentsResponse,
            0,
        )
        assert altered.responses[0].partitions[0].error_code == 0, altered
        elected = self._leader.ask(
            ElectLeadersRequest(
                election_type=0, topic_partitions=[TopicPartitions(topic=topic, partitions=[0])]
            ),
            ElectLeadersResponse,
            2,
        )
        assert elected.replica_election_results[0].partition_result[0].error_code == 0, elected
        wait_until(
            lambda: self.metadata(topic).topics[0].partitions[0].leader_id == broker_id,
            f"{broker_id} leads {topic}",
        )

    def consume(
        self, topic: str, offset: int, *, rack: str = "", epoch: int = -1, version: int = FETCH_VERSION
    ) -> PartitionData:
        wanted = FetchPartition(
            partition=0, current_leader_epoch=epoch, fetch_offset=offset, partition_max_bytes=1 << 20
        )
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=1,
            session_epoch=-1,
            rack_id=rack,
            topics=[FetchTopic(partitions=[wanted], **self.names(topic, version))],
        )
        return self._leader.ask(request, FetchResponse, version).responses[0].partitions[0]

    def names(self, topic: str, version: int) -> dict[str, Any]:
        """How Fetch names the topic."""
        return {"topic_id": self.topic_id(topic)} if version >= 13 else {"topic": topic}

    def list_offsets(
        self, topic: str, timestamp: int, replica_id: int = -1, *, epoch: int = -1, version: int = 7
    ) -> tuple[int, int]:
        wanted = ListOffsetsPartition(partition_index=0, timestamp=timestamp, current_leader_epoch=epoch)
        request = ListOffsetsRequest(
            replica_id=replica_id, topics=[ListOffsetsTopic(name=topic, partitions=[wanted])]
        )
        found = self._leader.ask(request, ListOffsetsResponse, version).topics[0].partitions[0]
        return found.error_code, found.offset

    def end_of_epoch(self, topic: str, epoch: int, current_epoch: int = -1) -> tuple[int, int, int]:
        wanted = OffsetForLeaderPartition(partition=0, current_leader_epoch=current_epoch, leader_epoch=epoch)
        request = OffsetForLeaderEpochRequest(
            replica_id=7, topics=[OffsetForLeaderTopic(topic=topic, partitions=[wanted])]
        )
        found = self._leader.ask(request, OffsetForLeaderEpochResponse, 4).topics[0].partitions[0]
        return found.error_code, found.leader_epoch, found.end_offset

    def delete_records(self, topic: str, offset: int, timeout_ms: int) -> tuple[int, int]:
        request = DeleteRecordsRequest(
            topics=[
                DeleteRecordsTopic(
                    name=topic, partitions=[DeleteRecordsPartition(partition_index=0, offset=offset)]
                )
            ],
            timeout_ms=timeout_ms,
        )
        found = self._leader.ask(request, DeleteRecordsResponse, 2).topics[0].partitions[0]
        return found.error_code, found.low_watermark


@contextmanager
def played(leader_address: str, controller_address: str) -> Iterator[Played]:
    """The followers of a node."""
    cluster = Played(leader_address, controller_address)
    try:
        yield cluster
    finally:
        cluster.close()


def _produce_request(topic: str, acks: int, timeout_ms: int) -> ProduceRequest:
    batch = build_batch([(int(time.time() * 1000), b"key", b"value", ())])
    return ProduceRequest(
        acks=acks,
        timeout_ms=timeout_ms,
        topic_data=[
            TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=0, records=batch)])
        ],
    )


def _outcome(answer: ProduceResponse) -> tuple[int, int]:
    reply = answer.responses[0].partition_responses[0]
    return reply.error_code, reply.base_offset


def told(data: PartitionData) -> dict[str, Any]:
    """What a reader is told of a partition, as far as it is the same in every cluster."""
    return {
        "error": data.error_code,
        "high watermark": data.high_watermark,
        "last stable": data.last_stable_offset,
        "log start": data.log_start_offset,
        "diverging": (data.diverging_epoch.epoch, data.diverging_epoch.end_offset),
        "leader": (data.current_leader.leader_id, data.current_leader.leader_epoch),
        "aborted": data.aborted_transactions,
        "preferred": data.preferred_read_replica,
        "bytes": len(data.records or b""),
    }


def all_told(answer: FetchResponse) -> list[Any]:
    return [answer.error_code, [told(data) for topic in answer.responses for data in topic.partitions]]


# The conversations: each returns what was said, in order.

Line = tuple[str, Any]


def who_may_fetch(cluster: Played) -> list[Line]:
    topic = "fetching"
    cluster.create(topic)
    cluster.produce(topic)
    seven, stranger = cluster.brokers[7], cluster.brokers[STRANGER]
    lines: list[Line] = []
    for label, broker, options in (
        ("as it should be", seven, {}),
        ("no leader epoch", seven, {"leader_epoch": -1}),
        ("a lower leader epoch", seven, {"leader_epoch": -2}),
        ("a higher leader epoch", seven, {"leader_epoch": 1}),
        ("no broker epoch", seven, {"broker_epoch": -1}),
        ("a lower broker epoch", seven, {"broker_epoch": 0}),
        ("a higher broker epoch", seven, {"broker_epoch": ANY_OFFSET}),
        ("no replica", stranger, {}),
        ("no replica and no leader epoch", stranger, {"leader_epoch": -1}),
        ("no replica and a higher leader epoch", stranger, {"leader_epoch": 1}),
        ("no replica and a lower broker epoch", stranger, {"broker_epoch": 0}),
        ("an old version", seven, {"version": OLD_FETCH_VERSION}),
        ("an old version without a replica", stranger, {"version": OLD_FETCH_VERSION}),
    ):
        lines.append((label, all_told(broker.fetch(topic, 0, **options))))  # type: ignore[arg-type]
    for offset, epoch in ((0, 0), (1, 0), (2, 0), (5, 0), (1, 1), (0, 3), (2, -1), (9, -1)):
        lines.append(
            (f"from {offset}, last epoch {epoch}", all_told(seven.fetch(topic, offset, last_epoch=epoch)))
        )
    for epoch, current in ((0, 0), (0, -1), (0, 1), (1, 0), (5, -1), (-1, -1)):
        lines.append((f"end of epoch {epoch} in {current}", cluster.end_of_epoch(topic, epoch, current)))
    return lines


def what_is_committed(cluster: Played) -> list[Line]:
    topic = "committing"
    cluster.create(topic, min_insync_replicas="2")
    seven, eight = (cluster.brokers[each] for each in FOLLOWERS)
    lines: list[Line] = [("nobody has it", cluster.produce(topic, acks=-1))]

    def look(label: str) -> None:
        lines.append((label, told(cluster.consume(topic, 0))))
        lines.append((f"{label}: latest", [cluster.list_offsets(topic, -1, each) for each in (-1, 7, -2)]))
        lines.append((f"{label}: by time", [cluster.list_offsets(topic, 0, each) for each in (-1, 7, -2)]))
        lines.append((f"{label}: by largest time", cluster.list_offsets(topic, -3)))

    look("in the beginning")
    lines.append(("seven fetches", all_told(seven.fetch(topic, 0))))
    lines.append(("seven has it", all_told(seven.fetch(topic, 1))))
    look("one has it")
    lines.append(("eight has it", all_told(eight.fetch(topic, 1))))
    look("all have it")
    lines.append(("seven hears of that", all_told(seven.fetch(topic, 1))))
    lines.append(("not waited for", cluster.produce(topic, acks=1)))
    lines.append(("no time to wait", cluster.produce(topic, acks=-1, timeout_ms=0)))
    lines.append(("seven goes back", all_told(seven.fetch(topic, 0))))
    look("one went back")
    return lines


def who_is_in_sync(cluster: Played) -> list[Line]:
    topic = "in-sync"
    cluster.create(topic, min_insync_replicas="2")
    seven, eight = (cluster.brokers[each] for each in FOLLOWERS)
    lines: list[Line] = []
    cluster.produce(topic)
    cluster.produce(topic)
    cluster.wait_for_isr(topic, [1, 7], lambda: seven.fetch(topic, 2))
    lines.append(("eight is let go", told(cluster.consume(topic, 0))))
    lines.append(("all of two have it", cluster.list_offsets(topic, -1)))
    eight.fetch(topic, 1)
    lines.append(("eight is not there yet", cluster.in_sync(topic)))
    cluster.wait_for_isr(topic, [1, 7, 8], lambda: (seven.fetch(topic, 2), eight.fetch(topic, 2)))
    lines.append(("eight is back", cluster.in_sync(topic)))
    cluster.produce(topic)
    cluster.wait_for_isr(topic, [1], lambda: None)
    for acks in (-1, 1, 0):
        if acks:
            lines.append((f"too few are left: acks {acks}", cluster.produce(topic, acks=acks)))
    lines.append(("too few: nothing is committed", told(cluster.consume(topic, 0))))
    seven.fetch(topic, 4, broker_epoch=ANY_OFFSET)
    lines.append(("of another registration", cluster.in_sync(topic)))
    cluster.wait_for_isr(topic, [1, 7], lambda: seven.fetch(topic, 4))
    lines.append(("enough again", told(cluster.consume(topic, 0))))
    epoch = seven.epoch
    seven.register_again()
    wait_until(
        lambda: seven.fetch(topic, 4, broker_epoch=epoch).responses[0].partitions[0].error_code,
        "the leader knows of the registration",
    )
    lines.append(("the registration before", all_told(seven.fetch(topic, 4, broker_epoch=epoch))))
    return lines


def what_sessions_tell(cluster: Played) -> list[Line]:
    topic = "sessions"
    cluster.create(topic)
    seven, eight = (cluster.brokers[each] for each in FOLLOWERS)
    cluster.produce(topic)
    first = seven.fetch(topic, 0, session=(0, 0))
    session = first.session_id
    lines: list[Line] = [("a session", (session != 0, all_told(first)))]
    number = 0

    def go_on(label: str, offset: int = -1, wait_ms: int = 0) -> None:
        nonlocal number
        number += 1
        began = time.monotonic()
        answer = seven.fetch(topic, offset, session=(session, number), wait_ms=wait_ms)
        in_time = time.monotonic() - began < PATIENT_MS / 2 / 1000
        lines.append((label, (in_time, all_told(answer))))

    go_on("to the end", 1)
    go_on("nothing new")
    eight.fetch(topic, 1)
    go_on("the high watermark has moved")
    go_on("that was told")
    go_on("it waits", wait_ms=PATIENT_MS)
    cluster.produce(topic)
    go_on("records", wait_ms=PATIENT_MS)
    go_on("to the end again", 2)
    eight.fetch(topic, 2)
    go_on("the high watermark has moved, and it waits", wait_ms=PATIENT_MS)
    go_on("an offset that is not there", 7)
    go_on("still not", 7)
    go_on("back", 2)
    return lines


def how_records_are_deleted(cluster: Played) -> list[Line]:
    topic = "deleting"
    cluster.create(topic)
    seven, eight = (cluster.brokers[each] for each in FOLLOWERS)
    for _ in range(3):
        cluster.produce(topic)
    lines: list[Line] = [("above the high watermark", cluster.delete_records(topic, 1, 200))]
    for broker in (seven, eight):
        broker.fetch(topic, 3)
    lines.append(("followers do not follow", cluster.delete_records(topic, 2, 200)))
    lines.append(("a follower hears of it", all_told(seven.fetch(topic, 3))))
    seven.fetch(topic, 3, log_start=2)
    lines.append(("one has followed", cluster.delete_records(topic, 2, 200)))
    eight.fetch(topic, 3, log_start=2)
    lines.append(("both have", cluster.delete_records(topic, 2, 10_000)))
    lines.append(("all of it", cluster.delete_records(topic, -1, 200)))
    lines.append(("too far", cluster.delete_records(topic, 4, 200)))
    lines.append(("below the start", all_told(seven.fetch(topic, 1, last_epoch=0))))
    return lines


def who_is_preferred(cluster: Played) -> list[Line]:
    topic = "preferring"
    cluster.create(topic)
    seven, eight = (cluster.brokers[each] for each in FOLLOWERS)
    lines: list[Line] = []

    def look(label: str) -> None:
        for rack in ("far-away", "near-the-leader", "nowhere", ""):
            lines.append((f"{label}, from {rack or 'no rack'}", told(cluster.consume(topic, 0, rack=rack))))

    cluster.produce(topic)
    look("nobody has anything")
    seven.fetch(topic, 1)
    look("seven has it")
    eight.fetch(topic, 1)
    time.sleep(0.01)  # so that one is later than the other for both clocks
    seven.fetch(topic, 1)
    look("both have it")
    lines.append(("behind the end", told(cluster.consume(topic, 2, rack="far-away"))))
    lines.append(("another epoch", told(cluster.consume(topic, 0, rack="far-away", epoch=3))))
    return lines


def who_leads_no_longer(cluster: Played) -> list[Line]:
    topic = "losing"
    cluster.create(topic)
    eight = cluster.brokers[8]
    lines: list[Line] = [
        ("what waits is answered", cluster.produce_while(topic, lambda: cluster.let_lead(topic, 7)))
    ]
    for epoch in (-1, 0, 1, 2):
        for version in (OLD_FETCH_VERSION - 2, OLD_FETCH_VERSION, FETCH_VERSION):
            data = cluster.consume(topic, 0, epoch=epoch, version=version)
            lines.append((f"a consumer in {epoch} with v{version}", told(data)))
        lines.append((f"a follower in {epoch}", all_told(eight.fetch(topic, 0, leader_epoch=epoch))))
        lines.append((f"the end of epoch 0 in {epoch}", cluster.end_of_epoch(topic, 0, epoch)))
        for replica_id in (-1, 8, -2):
            found = cluster.list_offsets(topic, -1, replica_id, epoch=epoch)
            lines.append((f"the latest offset in {epoch} for {replica_id}", found))
    lines.append(("behind the end", told(cluster.consume(topic, 5))))
    for acks in (-1, 1):
        lines.append((f"nothing is written with acks {acks}", cluster.produce(topic, acks=acks)))
    lines.append(("nothing is deleted", cluster.delete_records(topic, 0, 200)))
    return lines


def how_a_leader_begins(cluster: Played) -> list[Line]:
    topic = "beginning"
    cluster.create(topic)
    seven, eight = (cluster.brokers[each] for each in FOLLOWERS)
    cluster.produce(topic)
    for broker in (seven, eight, seven, eight):
        broker.fetch(topic, 1)
    cluster.produce(topic)
    cluster.let_lead(topic, 7)
    cluster.let_lead(topic, LEADER)
    lines: list[Line] = []

    def look(label: str) -> None:
        lines.append((label, told(cluster.consume(topic, 0))))
        lines.append((f"{label}: between", told(cluster.consume(topic, 2))))
        for timestamp in (-1, -2, -3, 0):
            for version in (4, 5, 7):
                if timestamp != -3 or version == 7:
                    found = cluster.list_offsets(topic, timestamp, version=version)
                    lines.append((f"{label}: {timestamp} with v{version}", found))
        lines.append((f"{label}: latest of replicas", cluster.list_offsets(topic, -1, 7)))

    look("nothing is known")
    for epoch in (0, 1, 2, 3):
        lines.append((f"the end of epoch {epoch}", cluster.end_of_epoch(topic, epoch, 2)))
    for offset, epoch in ((2, 0), (2, 1), (1, 0), (3, 1)):
        label = f"from {offset} after epoch {epoch}"
        lines.append((label, all_told(seven.fetch(topic, offset, leader_epoch=2, last_epoch=epoch))))
    eight.fetch(topic, 1, leader_epoch=2)
    look("one is behind")
    for broker in (seven, eight):
        broker.fetch(topic, 2, leader_epoch=2)
    look("all are there")
    lines.append(("it goes on", cluster.produce(topic)))
    lines.append(("its end", cluster.end_of_epoch(topic, 2, 2)))
    return lines


CONVERSATIONS: Final[Sequence[Callable[[Played], list[Line]]]] = (
    who_may_fetch,
    what_is_committed,
    who_is_in_sync,
    what_sessions_tell,
    how_records_are_deleted,
    who_is_preferred,
    who_leads_no_longer,
    how_a_leader_begins,
)
