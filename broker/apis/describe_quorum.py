"""DescribeQuorum (55): who votes for the leader of the metadata log, and how far each has it (KIP-595)."""

from collections.abc import Sequence

from broker.metadata.topic_names import CLUSTER_METADATA
from broker.network.call import Call
from broker.raft.replicas import ReplicaProgress
from protocol.error_codes import ErrorCode
from protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestTopicData,
    DescribeQuorumResponse,
    DescribeQuorumResponsePartitionData,
    DescribeQuorumResponseTopicData,
    Listener,
    Node,
    ReplicaState,
)

FIRST_WITH_NODES = 2
"""The version since which answers name directories, nodes and texts of errors (KIP-853)."""


def handle(request: DescribeQuorumRequest, call: Call) -> DescribeQuorumResponse:
    """The metadata log's only partition can be asked for, alone; everything else is not hosted."""
    if not request.topics:
        return DescribeQuorumResponse()
    if not is_about_metadata(request.topics):
        return DescribeQuorumResponse(topics=[not_hosted(topic) for topic in request.topics])
    (asked,) = request.topics
    if not call.services.quorum.is_leader:
        return DescribeQuorumResponse(topics=[refused(asked, ErrorCode.NOT_LEADER_OR_FOLLOWER)])
    topic = DescribeQuorumResponseTopicData(topic_name=asked.topic_name, partitions=[describe(call)])
    response = DescribeQuorumResponse(topics=[topic])
    if call.version >= FIRST_WITH_NODES:
        response.nodes = nodes(call)
    return response


def nodes(call: Call) -> list[Node]:
    """Where the voters' controllers listen; without KIP-853 only the registered ones are known."""
    voters = call.services.controller.raft.voters
    found = [(voter.id, [endpoint[:3] for endpoint in voter.endpoints]) for voter in voters] or [
        (controller.id, [endpoint[:3] for endpoint in controller.endpoints])
        for controller in call.services.image.controllers.values()
    ]
    return [
        Node(
            node_id=node_id,
            listeners=[Listener(name=name, host=host, port=port) for name, host, port in endpoints],
        )
        for node_id, endpoints in found
    ]


def is_about_metadata(topics: Sequence[DescribeQuorumRequestTopicData]) -> bool:
    return [
        (topic.topic_name, [partition.partition_index for partition in topic.partitions]) for topic in topics
    ] == [(CLUSTER_METADATA, [0])]


def not_hosted(topic: DescribeQuorumRequestTopicData) -> DescribeQuorumResponseTopicData:
    told = refused(topic, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    for partition in told.partitions:
        partition.error_message = "This server does not host this topic-partition."
    return told


def refused(topic: DescribeQuorumRequestTopicData, code: ErrorCode) -> DescribeQuorumResponseTopicData:
    return DescribeQuorumResponseTopicData(
        topic_name=topic.topic_name,
        partitions=[
            DescribeQuorumResponsePartitionData(partition_index=partition.partition_index, error_code=code)
            for partition in topic.partitions
        ],
    )


def describe(call: Call) -> DescribeQuorumResponsePartitionData:
    """The leader has everything now; the others have told in their fetches how far they are."""
    raft, now_ms = call.services.controller.raft, call.services.clock.now_ms()
    leader = ReplicaState(
        replica_id=raft.node_id,
        log_end_offset=raft.log.end_offset,
        last_fetch_timestamp=now_ms,
        last_caught_up_timestamp=now_ms,
    )
    if call.version >= FIRST_WITH_NODES and raft.voters:  # without KIP-853 directories do not vote
        leader.replica_directory_id = raft.replicas.leader.directory_id
    voters = [state_of(progress, call.version) for progress in raft.replicas.voters]
    observers = [state_of(progress, call.version) for progress in raft.replicas.observers(now_ms)]
    (voters if raft.replicas.leader_votes else observers).append(leader)
    return DescribeQuorumResponsePartitionData(
        leader_id=raft.node_id,
        leader_epoch=raft.epoch,
        high_watermark=raft.high_watermark,
        current_voters=sorted(voters, key=lambda state: state.replica_id),
        observers=sorted(observers, key=lambda state: state.replica_id),
    )


def state_of(progress: ReplicaProgress, version: int) -> ReplicaState:
    state = ReplicaState(
        replica_id=progress.key.id,
        log_end_offset=progress.end_offset,
        last_fetch_timestamp=progress.last_fetch_ms,
        last_caught_up_timestamp=progress.last_caught_up_ms,
    )
    if version >= FIRST_WITH_NODES:
        state.replica_directory_id = progress.key.directory_id
    return state
