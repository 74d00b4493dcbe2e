"""Vote (52): a node that wants to lead the metadata quorum asks for this node's vote (KIP-595)."""

from broker.metadata.topic_names import CLUSTER_METADATA
from broker.network.call import Call
from broker.raft.elections import find_partition, find_top_fault, vote
from broker.raft.serving import METADATA_PARTITION
from protocol.error_codes import ErrorCode
from protocol.messages.vote import (
    NodeEndpoint,
    VoteRequest,
    VoteResponse,
    VoteResponsePartitionData,
    VoteResponseTopicData,
)


def handle(request: VoteRequest, call: Call) -> VoteResponse:
    fault = find_top_fault(call.services, request.cluster_id, request.topics)
    if fault is not None:
        return VoteResponse(error_code=fault)
    reply = vote(call, find_partition(request.topics), voter_id=request.voter_id)
    partition = VoteResponsePartitionData(
        partition_index=METADATA_PARTITION,
        error_code=reply.error_code,
        leader_id=reply.leader_id,
        leader_epoch=reply.leader_epoch,
        vote_granted=reply.vote_granted,
    )
    response = VoteResponse(
        topics=[VoteResponseTopicData(topic_name=CLUSTER_METADATA, partitions=[partition])]
    )
    if call.version >= 1 and reply.address is not None:  # KIP-853
        host, port = reply.address
        response.node_endpoints = [NodeEndpoint(node_id=reply.leader_id, host=host, port=port)]
    return response


def error_response(request: VoteRequest, code: ErrorCode) -> VoteResponse:
    return VoteResponse(error_code=code)
