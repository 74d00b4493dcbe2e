"""AssignReplicasToDirs (73): a broker tells the controller in which directories its replicas live."""

from protocol.primitives import INT16, INT32, INT64, UUID, Array
from protocol.schema import Message, Struct, wire
from protocol.uuids import ZERO_UUID


class AssignReplicasToDirsRequestPartitionData(Struct):
    partition_index: int = wire(INT32, "0+", default=0)


class AssignReplicasToDirsRequestTopicData(Struct):
    topic_id: bytes = wire(UUID, "0+", default=ZERO_UUID)
    partitions: list[AssignReplicasToDirsRequestPartitionData] = wire(
        Array(AssignReplicasToDirsRequestPartitionData), "0+", factory=list
    )


class AssignReplicasToDirsRequestDirectoryData(Struct):
    id: bytes = wire(UUID, "0+", default=ZERO_UUID)
    topics: list[AssignReplicasToDirsRequestTopicData] = wire(
        Array(AssignReplicasToDirsRequestTopicData), "0+", factory=list
    )


class AssignReplicasToDirsRequest(Message, api_key=73, versions="0", flexible="0+"):
    broker_id: int = wire(INT32, "0+", default=0)
    broker_epoch: int = wire(INT64, "0+", default=-1)
    directories: list[AssignReplicasToDirsRequestDirectoryData] = wire(
        Array(AssignReplicasToDirsRequestDirectoryData), "0+", factory=list
    )


class AssignReplicasToDirsResponsePartitionData(Struct):
    partition_index: int = wire(INT32, "0+", default=0)
    error_code: int = wire(INT16, "0+", default=0)


class AssignReplicasToDirsResponseTopicData(Struct):
    topic_id: bytes = wire(UUID, "0+", default=ZERO_UUID)
    partitions: list[AssignReplicasToDirsResponsePartitionData] = wire(
        Array(AssignReplicasToDirsResponsePartitionData), "0+", factory=list
    )


class AssignReplicasToDirsResponseDirectoryData(Struct):
    id: bytes = wire(UUID, "0+", default=ZERO_UUID)
    topics: list[AssignReplicasToDirsResponseTopicData] = wire(
        Array(AssignReplicasToDirsResponseTopicData), "0+", factory=list
    )


class AssignReplicasToDirsResponse(Message, api_key=73, versions="0", flexible="0+"):
    throttle_time_ms: int = wire(INT32, "0+", default=0)
    error_code: int = wire(INT16, "0+", default=0)
    directories: list[AssignReplicasToDirsResponseDirectoryData] = wire(
        Array(AssignReplicasToDirsResponseDirectoryData), "0+", factory=list
    )
