"""AlterReplicaLogDirs (34): move replicas between the log directories of a broker."""

from protocol.primitives import INT16, INT32, STRING, Array
from protocol.schema import Message, Struct, wire


class AlterReplicaLogDirTopic(Struct):
    name: str = wire(STRING, "0+", default="")
    partitions: list[int] = wire(Array(INT32), "0+", factory=list)


class AlterReplicaLogDir(Struct):
    path: str = wire(STRING, "0+", default="")
    topics: list[AlterReplicaLogDirTopic] = wire(Array(AlterReplicaLogDirTopic), "0+", factory=list)


class AlterReplicaLogDirsRequest(Message, api_key=34, versions="1-2", flexible="2+"):
    dirs: list[AlterReplicaLogDir] = wire(Array(AlterReplicaLogDir), "0+", factory=list)


class AlterReplicaLogDirPartitionResult(Struct):
    partition_index: int = wire(INT32, "0+", default=0)
    error_code: int = wire(INT16, "0+", default=0)


class AlterReplicaLogDirTopicResult(Struct):
    topic_name: str = wire(STRING, "0+", default="")
    partitions: list[AlterReplicaLogDirPartitionResult] = wire(
        Array(AlterReplicaLogDirPartitionResult), "0+", factory=list
    )


class AlterReplicaLogDirsResponse(Message, api_key=34, versions="1-2", flexible="2+"):
    throttle_time_ms: int = wire(INT32, "0+", default=0)
    results: list[AlterReplicaLogDirTopicResult] = wire(
        Array(AlterReplicaLogDirTopicResult), "0+", factory=list
    )
