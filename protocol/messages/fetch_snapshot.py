"""FetchSnapshot (59): read a snapshot of the cluster metadata."""

from typing import Any

from protocol.primitives import INT16, INT32, INT64, RECORDS, STRING, UINT16, UUID, Array
from protocol.schema import Message, Struct, wire
from protocol.uuids import ZERO_UUID


class SnapshotId(Struct):
    end_offset: int = wire(INT64, "0+", default=0)
    epoch: int = wire(INT32, "0+", default=0)


class FetchSnapshotRequestPartitionSnapshot(Struct):
    partition: int = wire(INT32, "0+", default=0)
    current_leader_epoch: int = wire(INT32, "0+", default=0)
    snapshot_id: SnapshotId = wire(SnapshotId, "0+", factory=SnapshotId)
    position: int = wire(INT64, "0+", default=0)
    replica_directory_id: bytes = wire(UUID, "1+", default=ZERO_UUID, tag=0, tagged="1+", ignorable=True)


class FetchSnapshotRequestTopicSnapshot(Struct):
    name: str = wire(STRING, "0+", default="")
    partitions: list[FetchSnapshotRequestPartitionSnapshot] = wire(
        Array(FetchSnapshotRequestPartitionSnapshot), "0+", factory=list
    )


class FetchSnapshotRequest(Message, api_key=59, versions="0-1", flexible="0+"):
    cluster_id: str | None = wire(STRING, "0+", default=None, nullable="0+", tag=0, tagged="0+")
    replica_id: int = wire(INT32, "0+", default=-1)
    max_bytes: int = wire(INT32, "0+", default=2147483647)
    topics: list[FetchSnapshotRequestTopicSnapshot] = wire(
        Array(FetchSnapshotRequestTopicSnapshot), "0+", factory=list
    )


class LeaderIdAndEpoch(Struct):
    leader_id: int = wire(INT32, "0+", default=0)
    leader_epoch: int = wire(INT32, "0+", default=0)


class FetchSnapshotResponsePartitionSnapshot(Struct):
    index: int = wire(INT32, "0+", default=0)
    error_code: int = wire(INT16, "0+", default=0)
    snapshot_id: SnapshotId = wire(SnapshotId, "0+", factory=SnapshotId)
    current_leader: LeaderIdAndEpoch = wire(
        LeaderIdAndEpoch, "0+", factory=LeaderIdAndEpoch, tag=0, tagged="0+"
    )
    size: int = wire(INT64, "0+", default=0)
    position: int = wire(INT64, "0+", default=0)
    unaligned_records: Any = wire(RECORDS, "0+", default=None)


class FetchSnapshotResponseTopicSnapshot(Struct):
    name: str = wire(STRING, "0+", default="")
    partitions: list[FetchSnapshotResponsePartitionSnapshot] = wire(
        Array(FetchSnapshotResponsePartitionSnapshot), "0+", factory=list
    )


class NodeEndpoint(Struct):
    node_id: int = wire(INT32, "1+", default=0)
    host: str = wire(STRING, "1+", default="")
    port: int = wire(UINT16, "1+", default=0)


class FetchSnapshotResponse(Message, api_key=59, versions="0-1", flexible="0+"):
    throttle_time_ms: int = wire(INT32, "0+", default=0, ignorable=True)
    error_code: int = wire(INT16, "0+", default=0)
    topics: list[FetchSnapshotResponseTopicSnapshot] = wire(
        Array(FetchSnapshotResponseTopicSnapshot), "0+", factory=list
    )
    node_endpoints: list[NodeEndpoint] = wire(Array(NodeEndpoint), "1+", factory=list, tag=0, tagged="1+")
