"""BeginQuorumEpoch (53): a new leader of the metadata quorum makes itself known (KIP-595)."""

from broker.metadata.topic_names import CLUSTER_METADATA
from broker.network.call import Call
from broker.raft.elections import begin_epoch, find_partition, find_top_fault
from broker.raft.serving import METADATA_PARTITION
from protocol.error_codes import ErrorCode
from protocol.messages.begin_quorum_epoch import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    BeginQuorumEpochResponsePartitionData,
    BeginQuorumEpochResponseTopicData,
    NodeEndpoint,
)


def handle(request: BeginQuorumEpochRequest, call: Call) -> BeginQuorumEpochResponse:
    fault = find_top_fault(call.services, request.cluster_id, request.topics)
    if fault is not None:
        return BeginQuorumEpochResponse(error_code=fault)
    reply = begin_epoch(
        call, find_partition(request.topics), request.leader_endpoints, voter_id=request.voter_id
    )
    partition = BeginQuorumEpochResponsePartitionData(
        partition_index=METADATA_PARTITION,
        error_code=reply.error_code,
        leader_id=reply.leader_id,
        leader_epoch=reply.leader_epoch,
    )
    response = BeginQuorumEpochResponse(
        topics=[BeginQuorumEpochResponseTopicData(topic_name=CLUSTER_METADATA, partitions=[partition])]
    )
    if call.version >= 1 and reply.address is not None:  # KIP-853
        host, port = reply.address
        response.node_endpoints = [NodeEndpoint(node_id=reply.leader_id, host=host, port=port)]
    return response


def error_response(request: BeginQuorumEpochRequest, code: ErrorCode) -> BeginQuorumEpochResponse:
    return BeginQuorumEpochResponse(error_code=code)
