"""Fetch (1): read record batches from partitions, waiting for them if need be."""

from typing import Any

from protocol.primitives import INT8, INT16, INT32, INT64, RECORDS, STRING, UUID, Array
from protocol.schema import Message, Struct, wire
from protocol.uuids import ZERO_UUID


class ReplicaState(Struct):
    replica_id: int = wire(INT32, "15+", default=-1)
    replica_epoch: int = wire(INT64, "15+", default=-1)


class FetchPartition(Struct):
    partition: int = wire(INT32, "0+", default=0)
    current_leader_epoch: int = wire(INT32, "9+", default=-1, ignorable=True)
    fetch_offset: int = wire(INT64, "0+", default=0)
    last_fetched_epoch: int = wire(INT32, "12+", default=-1)
    log_start_offset: int = wire(INT64, "5+", default=-1, ignorable=True)
    partition_max_bytes: int = wire(INT32, "0+", default=0)
    replica_directory_id: bytes = wire(UUID, "17+", default=ZERO_UUID, tag=0, tagged="17+", ignorable=True)
    high_watermark: int = wire(INT64, "18+", default=9223372036854775807, tag=1, tagged="18+", ignorable=True)


class FetchTopic(Struct):
    topic: str = wire(STRING, "0-12", default="", ignorable=True)
    topic_id: bytes = wire(UUID, "13+", default=ZERO_UUID, ignorable=True)
    partitions: list[FetchPartition] = wire(Array(FetchPartition), "0+", factory=list)


class ForgottenTopic(Struct):
    topic: str = wire(STRING, "7-12", default="", ignorable=True)
    topic_id: bytes = wire(UUID, "13+", default=ZERO_UUID, ignorable=True)
    partitions: list[int] = wire(Array(INT32), "7+", factory=list)


class FetchRequest(Message, api_key=1, versions="4-18", flexible="12+"):
    cluster_id: str | None = wire(
        STRING, "12+", default=None, nullable="12+", tag=0, tagged="12+", ignorable=True
    )
    replica_id: int = wire(INT32, "0-14", default=-1)
    replica_state: ReplicaState = wire(ReplicaState, "15+", factory=ReplicaState, tag=1, tagged="15+")
    max_wait_ms: int = wire(INT32, "0+", default=0)
    min_bytes: int = wire(INT32, "0+", default=0)
    max_bytes: int = wire(INT32, "3+", default=2147483647, ignorable=True)
    isolation_level: int = wire(INT8, "4+", default=0, ignorable=True)
    session_id: int = wire(INT32, "7+", default=0, ignorable=True)
    session_epoch: int = wire(INT32, "7+", default=-1, ignorable=True)
    topics: list[FetchTopic] = wire(Array(FetchTopic), "0+", factory=list)
    forgotten_topics_data: list[ForgottenTopic] = wire(Array(ForgottenTopic), "7+", factory=list)
    rack_id: str = wire(STRING, "11+", default="", ignorable=True)


class EpochEndOffset(Struct):
    epoch: int = wire(INT32, "12+", default=-1)
    end_offset: int = wire(INT64, "12+", default=-1)


class LeaderIdAndEpoch(Struct):
    leader_id: int = wire(INT32, "12+", default=-1)
    leader_epoch: int = wire(INT32, "12+", default=-1)


class SnapshotId(Struct):
    end_offset: int = wire(INT64, "0+", default=-1)
    epoch: int = wire(INT32, "0+", default=-1)


class AbortedTransaction(Struct):
    producer_id: int = wire(INT64, "4+", default=0)
    first_offset: int = wire(INT64, "4+", default=0)


class PartitionData(Struct):
    partition_index: int = wire(INT32, "0+", default=0)
    error_code: int = wire(INT16, "0+", default=0)
    high_watermark: int = wire(INT64, "0+", default=0)
    last_stable_offset: int = wire(INT64, "4+", default=-1, ignorable=True)
    log_start_offset: int = wire(INT64, "5+", default=-1, ignorable=True)
    diverging_epoch: EpochEndOffset = wire(EpochEndOffset, "12+", factory=EpochEndOffset, tag=0, tagged="12+")
    current_leader: LeaderIdAndEpoch = wire(
        LeaderIdAndEpoch, "12+", factory=LeaderIdAndEpoch, tag=1, tagged="12+"
    )
    snapshot_id: SnapshotId = wire(SnapshotId, "12+", factory=SnapshotId, tag=2, tagged="12+")
    aborted_transactions: list[AbortedTransaction] | None = wire(
        Array(AbortedTransaction), "4+", factory=list, nullable="4+", ignorable=True
    )
    preferred_read_replica: int = wire(INT32, "11+", default=-1)
    records: Any = wire(RECORDS, "0+", default=None, nullable="0+")


class FetchableTopicResponse(Struct):
    topic: str = wire(STRING, "0-12", default="", ignorable=True)
    topic_id: bytes = wire(UUID, "13+", default=ZERO_UUID, ignorable=True)
    partitions: list[PartitionData] = wire(Array(PartitionData), "0+", factory=list)


class NodeEndpoint(Struct):
    node_id: int = wire(INT32, "16+", default=0)
    host: str = wire(STRING, "16+", default="")
    port: int = wire(INT32, "16+", default=0)
    rack: str | None = wire(STRING, "16+", default=None, nullable="16+")


class FetchResponse(Message, api_key=1, versions="4-18", flexible="12+"):
    throttle_time_ms: int = wire(INT32, "1+", default=0, ignorable=True)
    error_code: int = wire(INT16, "7+", default=0, ignorable=True)
    session_id: int = wire(INT32, "7+", default=0)
    responses: list[FetchableTopicResponse] = wire(Array(FetchableTopicResponse), "0+", factory=list)
    node_endpoints: list[NodeEndpoint] = wire(Array(NodeEndpoint), "16+", factory=list, tag=0, tagged="16+")
