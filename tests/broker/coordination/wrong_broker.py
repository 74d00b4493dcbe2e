"""Questions for a broker that is not the one to ask, and what Apache Kafka answers to them.

As a command it records what a cluster of two Kafka brokers says: ``python -m
tests.broker.coordination.wrong_broker`` (Java and Kafka's jars needed).
"""

import json
import re
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import trio

from broker.network.call import Address
from broker.network.node_client import NodeClient, response_class
from broker.network.transport import SocketTransport
from compat.oracle.kafka import KafkaNode
from protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
)
from protocol.messages.delete_groups import DeleteGroupsRequest
from protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
)
from protocol.messages.delete_share_group_state import DeleteShareGroupStateRequest, DeleteStateData
from protocol.messages.delete_share_group_state import PartitionData as DeletedState
from protocol.messages.describe_groups import DescribeGroupsRequest
from protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
)
from protocol.messages.describe_transactions import DescribeTransactionsRequest
from protocol.messages.end_txn import EndTxnRequest
from protocol.messages.heartbeat import HeartbeatRequest
from protocol.messages.init_producer_id import InitProducerIdRequest
from protocol.messages.initialize_share_group_state import (
    InitializeShareGroupStateRequest,
    InitializeStateData,
)
from protocol.messages.initialize_share_group_state import PartitionData as InitializedState
from protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from protocol.messages.list_groups import ListGroupsRequest
from protocol.messages.list_transactions import ListTransactionsRequest
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from protocol.messages.read_share_group_state import PartitionData as ReadStatePartition
from protocol.messages.read_share_group_state import ReadShareGroupStateRequest, ReadStateData
from protocol.messages.read_share_group_state_summary import PartitionData as SummaryPartition
from protocol.messages.read_share_group_state_summary import (
    ReadShareGroupStateSummaryRequest,
    ReadStateSummaryData,
)
from protocol.messages.share_acknowledge import AcknowledgementBatch as Acknowledgement
from protocol.messages.share_acknowledge import (
    AcknowledgePartition,
    AcknowledgeTopic,
    ShareAcknowledgeRequest,
)
from protocol.messages.share_fetch import FetchPartition, FetchTopic, ShareFetchRequest
from protocol.messages.share_group_describe import ShareGroupDescribeRequest
from protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from protocol.messages.streams_group_describe import StreamsGroupDescribeRequest
from protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest, Topology
from protocol.messages.sync_group import SyncGroupRequest
from protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from protocol.messages.write_share_group_state import PartitionData as WrittenState
from protocol.messages.write_share_group_state import WriteShareGroupStateRequest, WriteStateData
from protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from protocol.schema import Message
from protocol.uuids import ZERO_UUID, uuid_to_text
from tests import golden

RECORDED: Final = Path(golden.__file__).parent / "wrong_broker.json"

TOPICS: Final[Mapping[str, list[list[int]]]] = {
    "__consumer_offsets": [[2]],
    "__transaction_state": [[2]],
    "__share_group_state": [[2]],
    "t": [[1], [2]],
    "u": [[2, 1]],
}
"""Broker 1 is asked.  It leads a partition of ``t``, has nothing of the other, and follows that of ``u``."""

MEMBER: Final = "8-vUH7MsQnWgvo0lNY0LyA"


def questions(topic_id: bytes) -> Iterator[tuple[str, Message, int]]:
    """What to ask broker 1: a name, the request and its version."""
    yield from group_questions(topic_id)
    yield from transaction_questions()
    yield from share_questions(topic_id)
    yield "list groups", ListGroupsRequest(), 5
    yield "list transactions", ListTransactionsRequest(), 1


def group_questions(topic_id: bytes) -> Iterator[tuple[str, Message, int]]:
    protocols = [JoinGroupRequestProtocol(name="range", metadata=b"")]
    for version in (0, 4, 9):
        yield (
            f"join {version}",
            JoinGroupRequest(
                group_id="g", session_timeout_ms=30_000, protocol_type="consumer", protocols=protocols
            ),
            version,
        )
    for version in (0, 5):
        yield (
            f"sync {version}",
            SyncGroupRequest(group_id="g", member_id="m", protocol_type="consumer", protocol_name="range"),
            version,
        )
    yield "heartbeat", HeartbeatRequest(group_id="g", member_id="m"), 4
    yield "leave", LeaveGroupRequest(group_id="g", members=[MemberIdentity(member_id="m")]), 5
    for version in (2, 9):
        committed = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
        yield (
            f"commit {version}",
            OffsetCommitRequest(
                group_id="g", topics=[OffsetCommitRequestTopic(name="t", partitions=[committed])]
            ),
            version,
        )
    yield (
        "fetch offsets 2",
        OffsetFetchRequest(group_id="g", topics=[OffsetFetchRequestTopic(name="t", partition_indexes=[0])]),
        2,
    )
    for version in (8, 9):
        asked = OffsetFetchRequestGroup(
            group_id="g", topics=[OffsetFetchRequestTopics(name="t", partition_indexes=[0])]
        )
        yield f"fetch offsets {version}", OffsetFetchRequest(groups=[asked]), version
        every = OffsetFetchRequestGroup(group_id="g", topics=None)
        yield f"fetch all offsets {version}", OffsetFetchRequest(groups=[every]), version
    deleted = OffsetDeleteRequestTopic(name="t", partitions=[OffsetDeleteRequestPartition(partition_index=0)])
    yield "delete offsets", OffsetDeleteRequest(group_id="g", topics=[deleted]), 0
    for version in (4, 6):
        yield f"describe groups {version}", DescribeGroupsRequest(groups=["g", "h"]), version
    yield "delete groups", DeleteGroupsRequest(groups_names=["g"]), 2
    yield (
        "consumer heartbeat",
        ConsumerGroupHeartbeatRequest(
            group_id="g",
            member_id=MEMBER,
            rebalance_timeout_ms=1000,
            subscribed_topic_names=["t"],
            topic_partitions=[],
        ),
        1,
    )
    yield "describe consumer groups", ConsumerGroupDescribeRequest(group_ids=["g"]), 1
    yield (
        "streams heartbeat",
        StreamsGroupHeartbeatRequest(
            group_id="g",
            member_id=MEMBER,
            rebalance_timeout_ms=1000,
            topology=Topology(),
            active_tasks=[],
            standby_tasks=[],
            warmup_tasks=[],
            process_id="p",
        ),
        0,
    )
    yield "describe streams groups", StreamsGroupDescribeRequest(group_ids=["g"]), 0


def transaction_questions() -> Iterator[tuple[str, Message, int]]:
    for version in (0, 5):
        yield (
            f"initialize a producer {version}",
            InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=1000),
            version,
        )
    topics = [AddPartitionsToTxnTopic(name="t", partitions=[0])]
    yield (
        "add partitions",
        AddPartitionsToTxnRequest(
            v3_and_below_transactional_id="x",
            v3_and_below_producer_id=7,
            v3_and_below_topics=topics,
        ),
        3,
    )
    for verify_only in (False, True):
        transaction = AddPartitionsToTxnTransaction(
            transactional_id="x", producer_id=7, verify_only=verify_only, topics=topics
        )
        yield (
            f"add partitions as a broker, {verify_only}",
            AddPartitionsToTxnRequest(transactions=[transaction]),
            5,
        )
    yield "add offsets", AddOffsetsToTxnRequest(transactional_id="x", producer_id=7, group_id="g"), 4
    for version in (0, 5):
        yield f"end {version}", EndTxnRequest(transactional_id="x", producer_id=7, committed=True), version
    for version in (0, 5):
        committed = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=1)
        yield (
            f"commit in a transaction {version}",
            TxnOffsetCommitRequest(
                transactional_id="x",
                group_id="g",
                producer_id=7,
                topics=[TxnOffsetCommitRequestTopic(name="t", partitions=[committed])],
            ),
            version,
        )
    yield "describe transactions", DescribeTransactionsRequest(transactional_ids=["x"]), 0
    yield (
        "describe producers",
        DescribeProducersRequest(
            topics=[
                TopicRequest(name="t", partition_indexes=[0, 1, 2]),
                TopicRequest(name="u", partition_indexes=[0]),
            ]
        ),
        0,
    )
    for topic, partition in (("t", 0), ("t", 1), ("t", 2), ("u", 0), ("__consumer_offsets", 0)):
        marker = WritableTxnMarker(
            producer_id=7,
            transaction_result=True,
            topics=[WritableTxnMarkerTopic(name=topic, partition_indexes=[partition])],
        )
        yield f"write markers {topic} {partition}", WriteTxnMarkersRequest(markers=[marker]), 2


def share_questions(topic_id: bytes) -> Iterator[tuple[str, Message, int]]:
    yield (
        "share heartbeat",
        ShareGroupHeartbeatRequest(group_id="s", member_id=MEMBER, subscribed_topic_names=["t"]),
        1,
    )
    yield "describe share groups", ShareGroupDescribeRequest(group_ids=["s"]), 1
    altered = AlterShareGroupOffsetsRequestTopic(
        topic_name="t", partitions=[AlterShareGroupOffsetsRequestPartition(partition_index=0)]
    )
    yield "alter share offsets", AlterShareGroupOffsetsRequest(group_id="s", topics=[altered]), 0
    yield (
        "delete share offsets",
        DeleteShareGroupOffsetsRequest(
            group_id="s", topics=[DeleteShareGroupOffsetsRequestTopic(topic_name="t")]
        ),
        0,
    )
    described = DescribeShareGroupOffsetsRequestTopic(topic_name="t", partitions=[0])
    for topics in ([described], None):
        yield (
            f"describe share offsets, {'all' if topics is None else 'one'}",
            DescribeShareGroupOffsetsRequest(
                groups=[DescribeShareGroupOffsetsRequestGroup(group_id="s", topics=topics)]
            ),
            1,
        )
    yield (
        "initialize state",
        InitializeShareGroupStateRequest(
            group_id="s",
            topics=[InitializeStateData(topic_id=topic_id, partitions=[InitializedState(partition=0)])],
        ),
        0,
    )
    yield (
        "read state",
        ReadShareGroupStateRequest(
            group_id="s",
            topics=[ReadStateData(topic_id=topic_id, partitions=[ReadStatePartition(partition=0)])],
        ),
        0,
    )
    yield (
        "read the summary of state",
        ReadShareGroupStateSummaryRequest(
            group_id="s",
            topics=[ReadStateSummaryData(topic_id=topic_id, partitions=[SummaryPartition(partition=0)])],
        ),
        1,
    )
    yield (
        "write state",
        WriteShareGroupStateRequest(
            group_id="s",
            topics=[WriteStateData(topic_id=topic_id, partitions=[WrittenState(partition=0)])],
        ),
        1,
    )
    yield (
        "delete state",
        DeleteShareGroupStateRequest(
            group_id="s",
            topics=[DeleteStateData(topic_id=topic_id, partitions=[DeletedState(partition=0)])],
        ),
        0,
    )
    for partition in (1, 2):
        yield (
            f"share fetch {partition}",
            ShareFetchRequest(
                group_id="s",
                member_id=MEMBER[partition:],
                max_wait_ms=100,
                min_bytes=1,
                max_bytes=1000,
                max_records=10,
                batch_size=10,
                topics=[
                    FetchTopic(topic_id=topic_id, partitions=[FetchPartition(partition_index=partition)])
                ],
            ),
            2,
        )
    acknowledged = Acknowledgement(first_offset=0, last_offset=0, acknowledge_types=[1])
    yield (
        "share acknowledge",
        ShareAcknowledgeRequest(
            group_id="s",
            member_id=MEMBER[1:],
            share_session_epoch=1,
            topics=[
                AcknowledgeTopic(
                    topic_id=topic_id,
                    partitions=[
                        AcknowledgePartition(partition_index=1, acknowledgement_batches=[acknowledged])
                    ],
                )
            ],
        ),
        2,
    )


def written(answer: Message, topic_id: bytes) -> str:
    """An answer as it is compared: ids and addresses differ between clusters."""
    text = repr(answer).replace(repr(topic_id), "TOPIC").replace(uuid_to_text(topic_id), "TOPIC")
    text = re.sub(r"<memory at \w+>", "RECORDS", text).replace(repr(ZERO_UUID), "NOTHING")
    return re.sub(r"host='[^']*', port=\d+", "host=HOST, port=PORT", text)


def recorded() -> dict[str, str]:
    """What Kafka says, by the question's name."""
    found: dict[str, str] = json.loads(RECORDED.read_text("utf-8"))
    return found


async def ask_kafka(folder: Path) -> dict[str, str]:
    """Start the cluster, make the topics, and ask.  Raises KafkaMissing."""
    settings = {f"{topic}.topic.num.partitions": "1" for topic in ("offsets", "share.coordinator.state")}
    settings |= {"transaction.state.log.num.partitions": "1", "auto.create.topics.enable": "false"}
    first = KafkaNode(folder / "1", settings)
    first.format()
    second = KafkaNode(folder / "2", settings, node_id=2, roles="broker", controllers=first.controller)
    cluster_id = next(
        line.partition("=")[2].strip()
        for line in (first.data / "meta.properties").read_text().splitlines()
        if line.startswith("cluster.id=")
    )
    second.format(cluster_id=cluster_id)
    try:
        first.start()
        second.start()
        return await _ask(first)
    finally:
        for node in (second, first):
            node.kill()


async def _ask(node: KafkaNode) -> dict[str, str]:
    host, _, port = node.bootstrap.partition(":")
    address = Address(host, int(port))
    client = NodeClient(SocketTransport(), lambda: address, client_id="client")
    missing = dict(TOPICS)
    topic_id = b""
    with trio.fail_after(60):
        while missing:
            await trio.sleep(0.5)
            created: Any = await client.ask(creation(missing), timeout_seconds=30)
            missing = {
                topic.name: TOPICS[topic.name] for topic in created.topics if topic.error_code not in (0, 36)
            }
        while not topic_id:
            await trio.sleep(0.5)
            about = MetadataRequest(topics=[MetadataRequestTopic(name="t")])
            topic: Any = (await client.ask(about, timeout_seconds=30)).topics[0]
            leaders = {each.partition_index: each.leader_id for each in topic.partitions}
            if leaders == {index: replicas[0] for index, replicas in enumerate(TOPICS["t"])}:
                topic_id = topic.topic_id
    found = {}
    for name, request, version in questions(topic_id):
        answer = await client.ask(request, version=version, timeout_seconds=30)
        assert isinstance(answer, response_class(type(request)))
        found[name] = written(answer, topic_id)
    client.close()
    return found


def creation(topics: Mapping[str, list[list[int]]]) -> CreateTopicsRequest:
    return CreateTopicsRequest(
        topics=[
            CreatableTopic(
                name=name,
                num_partitions=-1,
                replication_factor=-1,
                assignments=[
                    CreatableReplicaAssignment(partition_index=index, broker_ids=replicas)
                    for index, replicas in enumerate(partitions)
                ],
            )
            for name, partitions in topics.items()
        ]
    )


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        RECORDED.write_text(json.dumps(trio.run(ask_kafka, Path(folder)), indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
