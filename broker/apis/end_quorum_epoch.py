"""EndQuorumEpoch (54): the leader of the metadata quorum resigns (KIP-595)."""

from broker.metadata.topic_names import CLUSTER_METADATA
from broker.network.call import Call
from broker.raft.elections import end_epoch, find_partition, find_top_fault
from broker.raft.replicas import ReplicaKey
from broker.raft.serving import METADATA_PARTITION
from protocol.error_codes import ErrorCode
from protocol.messages.end_quorum_epoch import (
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    EndQuorumEpochResponsePartitionData,
    EndQuorumEpochResponseTopicData,
    NodeEndpoint,
)


def handle(request: EndQuorumEpochRequest, call: Call) -> EndQuorumEpochResponse:
    fault = find_top_fault(call.services, request.cluster_id, request.topics)
    if fault is not None:
        return EndQuorumEpochResponse(error_code=fault)
    asked = find_partition(request.topics)
    preferred = [
        ReplicaKey(wanted.candidate_id, wanted.candidate_directory_id)
        for wanted in asked.preferred_candidates
    ] or [ReplicaKey(node_id) for node_id in asked.preferred_successors]
    reply = end_epoch(call, asked, request.leader_endpoints, preferred)
    partition = EndQuorumEpochResponsePartitionData(
        partition_index=METADATA_PARTITION,
        error_code=reply.error_code,
        leader_id=reply.leader_id,
        leader_epoch=reply.leader_epoch,
    )
    response = EndQuorumEpochResponse(
        topics=[EndQuorumEpochResponseTopicData(topic_name=CLUSTER_METADATA, partitions=[partition])]
    )
    if call.version >= 1 and reply.address is not None:  # KIP-853
        host, port = reply.address
        response.node_endpoints = [NodeEndpoint(node_id=reply.leader_id, host=host, port=port)]
    return response


def error_response(request: EndQuorumEpochRequest, code: ErrorCode) -> EndQuorumEpochResponse:
    return EndQuorumEpochResponse(error_code=code)
