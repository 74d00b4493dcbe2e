"""FetchSnapshot (59): nodes copy a snapshot of the metadata log, piece by piece (KIP-630).

The pieces are cut without regard to records: a node puts the file together before it reads it.
"""

import os
from typing import Final

from broker.network.call import Call
from broker.raft.replicas import ReplicaKey
from broker.raft.serving import Standing, is_metadata, is_this_cluster, standing
from broker.raft.snapshots import SnapshotId as StoredSnapshot
from protocol.error_codes import ErrorCode
from protocol.messages.fetch_snapshot import (
    FetchSnapshotRequest,
    FetchSnapshotRequestPartitionSnapshot,
    FetchSnapshotResponse,
    FetchSnapshotResponsePartitionSnapshot,
    FetchSnapshotResponseTopicSnapshot,
    LeaderIdAndEpoch,
    NodeEndpoint,
    SnapshotId,
)
from storage.file_range import FileRange

NODE_ENDPOINTS_VERSION: Final = 1
"""The version since which the leader's address is told (KIP-853)."""


def handle(request: FetchSnapshotRequest, call: Call) -> FetchSnapshotResponse:
    if not is_this_cluster(call.services, request.cluster_id):
        return FetchSnapshotResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
    if len(request.topics) != 1 or len(request.topics[0].partitions) != 1:
        return FetchSnapshotResponse(error_code=ErrorCode.INVALID_REQUEST)
    (topic,) = request.topics
    (asked,) = topic.partitions
    now = standing(call.services)
    if is_metadata(topic.name, asked.partition):
        told = read_piece(now, asked, request.max_bytes)
        if not told.error_code and now.raft is not None:
            now.raft.note_sign(ReplicaKey(request.replica_id, asked.replica_directory_id))
    else:
        told = FetchSnapshotResponsePartitionSnapshot(
            index=asked.partition,
            error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            unaligned_records=b"",
        )
    response = FetchSnapshotResponse(
        topics=[FetchSnapshotResponseTopicSnapshot(name=topic.name, partitions=[told])]
    )
    if call.version >= NODE_ENDPOINTS_VERSION:
        address = now.address(call.listener.name)
        if address is not None:
            response.node_endpoints = [
                NodeEndpoint(node_id=now.leader_id, host=address.host, port=address.port)
            ]
    return response


def read_piece(
    now: Standing, asked: FetchSnapshotRequestPartitionSnapshot, max_bytes: int
) -> FetchSnapshotResponsePartitionSnapshot:
    """The bytes from the position that is asked for on; raises OSError if they cannot be read."""
    told = FetchSnapshotResponsePartitionSnapshot(
        index=asked.partition,
        current_leader=LeaderIdAndEpoch(leader_id=now.leader_id, leader_epoch=now.epoch),
        unaligned_records=b"",
    )
    fault = now.find_fault(asked.current_leader_epoch)
    if fault is not None:
        told.error_code = fault
        return told
    assert now.raft is not None
    wanted = StoredSnapshot(asked.snapshot_id.end_offset, asked.snapshot_id.epoch)
    if wanted not in now.raft.snapshotting.snapshots:
        told.error_code = ErrorCode.SNAPSHOT_NOT_FOUND
        return told
    file = now.log.file_system.open(os.path.join(now.log.directory, wanted.name))
    size = file.size()
    if not 0 <= asked.position < size:
        told.error_code = ErrorCode.POSITION_OUT_OF_RANGE
        return told
    told.snapshot_id = SnapshotId(end_offset=wanted.end_offset, epoch=wanted.epoch)
    told.size = size
    told.position = asked.position
    piece = min(max(max_bytes, 0), size - asked.position)
    if piece:
        told.unaligned_records = FileRange(file, asked.position, piece, base_offset=0)
    return told


def error_response(request: FetchSnapshotRequest, code: ErrorCode) -> FetchSnapshotResponse:
    return FetchSnapshotResponse(error_code=code)
