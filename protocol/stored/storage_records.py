"""Files beside a log, and records about tiered segments."""

from protocol.primitives import BOOL, BYTES, INT8, INT16, INT32, INT64, STRING, UINT32, UUID, Array
from protocol.schema import Message, Struct, wire
from protocol.uuids import ZERO_UUID


class AbortedTxn(Message, versions="0", flexible="none"):
    producer_id: int = wire(INT64, "0+", default=0)
    first_offset: int = wire(INT64, "0+", default=0)
    last_offset: int = wire(INT64, "0+", default=0)
    last_stable_offset: int = wire(INT64, "0+", default=0)


class ProducerEntry(Struct):
    producer_id: int = wire(INT64, "1", default=0)
    epoch: int = wire(INT16, "1", default=0)
    last_sequence: int = wire(INT32, "1", default=0)
    last_offset: int = wire(INT64, "1", default=0)
    offset_delta: int = wire(INT32, "1", default=0)
    timestamp: int = wire(INT64, "1", default=0)
    coordinator_epoch: int = wire(INT32, "1", default=0)
    current_txn_first_offset: int = wire(INT64, "1", default=0)


class ProducerSnapshot(Message, versions="1", flexible="none"):
    crc: int = wire(UINT32, "1", default=0)
    producer_entries: list[ProducerEntry] = wire(Array(ProducerEntry), "1", factory=list)


class TopicIdPartitionEntry(Struct):
    name: str = wire(STRING, "0+", default="")
    id: bytes = wire(UUID, "0+", default=ZERO_UUID)
    partition: int = wire(INT32, "0+", default=0)


class RemoteLogSegmentIdEntry(Struct):
    topic_id_partition: TopicIdPartitionEntry = wire(
        TopicIdPartitionEntry, "0+", factory=TopicIdPartitionEntry
    )
    id: bytes = wire(UUID, "0+", default=ZERO_UUID)


class SegmentLeaderEpochEntry(Struct):
    leader_epoch: int = wire(INT32, "0+", default=0)
    offset: int = wire(INT64, "0+", default=0)


class RemoteLogSegmentMetadataRecord(Message, api_key=0, versions="0", flexible="0+"):
    remote_log_segment_id: RemoteLogSegmentIdEntry = wire(
        RemoteLogSegmentIdEntry, "0+", factory=RemoteLogSegmentIdEntry
    )
    start_offset: int = wire(INT64, "0+", default=0)
    end_offset: int = wire(INT64, "0+", default=0)
    broker_id: int = wire(INT32, "0+", default=0)
    max_timestamp_ms: int = wire(INT64, "0+", default=0)
    event_timestamp_ms: int = wire(INT64, "0+", default=0)
    segment_leader_epochs: list[SegmentLeaderEpochEntry] = wire(
        Array(SegmentLeaderEpochEntry), "0+", factory=list
    )
    segment_size_in_bytes: int = wire(INT32, "0+", default=0)
    custom_metadata: bytes | None = wire(BYTES, "0+", default=None, nullable="0+")
    remote_log_segment_state: int = wire(INT8, "0+", default=0)
    txn_index_empty: bool = wire(BOOL, "0+", default=False, tag=0, tagged="0+")


class RemoteLogSegmentMetadataSnapshotRecord(Message, api_key=3, versions="0", flexible="0+"):
    segment_id: bytes = wire(UUID, "0+", default=ZERO_UUID)
    start_offset: int = wire(INT64, "0+", default=0)
    end_offset: int = wire(INT64, "0+", default=0)
    broker_id: int = wire(INT32, "0+", default=0)
    max_timestamp_ms: int = wire(INT64, "0+", default=0)
    event_timestamp_ms: int = wire(INT64, "0+", default=0)
    segment_leader_epochs: list[SegmentLeaderEpochEntry] = wire(
        Array(SegmentLeaderEpochEntry), "0+", factory=list
    )
    segment_size_in_bytes: int = wire(INT32, "0+", default=0)
    custom_metadata: bytes | None = wire(BYTES, "0+", default=None, nullable="0+")
    remote_log_segment_state: int = wire(INT8, "0+", default=0)
    txn_index_empty: bool = wire(BOOL, "0+", default=False, tag=0, tagged="0+")


class RemoteLogSegmentMetadataUpdateRecord(Message, api_key=1, versions="0", flexible="0+"):
    remote_log_segment_id: RemoteLogSegmentIdEntry = wire(
        RemoteLogSegmentIdEntry, "0+", factory=RemoteLogSegmentIdEntry
    )
    broker_id: int = wire(INT32, "0+", default=0)
    event_timestamp_ms: int = wire(INT64, "0+", default=0)
    custom_metadata: bytes | None = wire(BYTES, "0+", default=None, nullable="0+")
    remote_log_segment_state: int = wire(INT8, "0+", default=0)


class RemotePartitionDeleteMetadataRecord(Message, api_key=2, versions="0", flexible="0+"):
    topic_id_partition: TopicIdPartitionEntry = wire(
        TopicIdPartitionEntry, "0+", factory=TopicIdPartitionEntry
    )
    broker_id: int = wire(INT32, "0+", default=0)
    event_timestamp_ms: int = wire(INT64, "0+", default=0)
    remote_partition_delete_state: int = wire(INT8, "0+", default=0)


class Voter(Struct):
    voter_id: int = wire(INT32, "0", default=0)


class QuorumStateData(Message, versions="0-1", flexible="0+"):
    cluster_id: str = wire(STRING, "0", default="")
    leader_id: int = wire(INT32, "0+", default=-1)
    leader_epoch: int = wire(INT32, "0+", default=-1)
    voted_id: int = wire(INT32, "0+", default=-1)
    voted_directory_id: bytes = wire(UUID, "1+", default=ZERO_UUID)
    applied_offset: int = wire(INT64, "0", default=0)
    current_voters: list[Voter] | None = wire(Array(Voter), "0", factory=list, nullable="0")
