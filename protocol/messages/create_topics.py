"""CreateTopics (19): make new topics."""

from protocol.primitives import BOOL, INT8, INT16, INT32, STRING, UUID, Array
from protocol.schema import Message, Struct, wire
from protocol.uuids import ZERO_UUID


class CreatableReplicaAssignment(Struct):
    partition_index: int = wire(INT32, "0+", default=0)
    broker_ids: list[int] = wire(Array(INT32), "0+", factory=list)


class CreatableTopicConfig(Struct):
    name: str = wire(STRING, "0+", default="")
    value: str | None = wire(STRING, "0+", default="", nullable="0+")


class CreatableTopic(Struct):
    name: str = wire(STRING, "0+", default="")
    num_partitions: int = wire(INT32, "0+", default=0)
    replication_factor: int = wire(INT16, "0+", default=0)
    assignments: list[CreatableReplicaAssignment] = wire(
        Array(CreatableReplicaAssignment), "0+", factory=list
    )
    configs: list[CreatableTopicConfig] = wire(Array(CreatableTopicConfig), "0+", factory=list)


class CreateTopicsRequest(Message, api_key=19, versions="2-7", flexible="5+"):
    topics: list[CreatableTopic] = wire(Array(CreatableTopic), "0+", factory=list)
    timeout_ms: int = wire(INT32, "0+", default=60000)
    validate_only: bool = wire(BOOL, "1+", default=False)


class CreatableTopicConfigs(Struct):
    name: str = wire(STRING, "5+", default="")
    value: str | None = wire(STRING, "5+", default="", nullable="5+")
    read_only: bool = wire(BOOL, "5+", default=False)
    config_source: int = wire(INT8, "5+", default=-1, ignorable=True)
    is_sensitive: bool = wire(BOOL, "5+", default=False)


class CreatableTopicResult(Struct):
    name: str = wire(STRING, "0+", default="")
    topic_id: bytes = wire(UUID, "7+", default=ZERO_UUID, ignorable=True)
    error_code: int = wire(INT16, "0+", default=0)
    error_message: str | None = wire(STRING, "1+", default="", nullable="0+", ignorable=True)
    topic_config_error_code: int = wire(INT16, "5+", default=0, tag=0, tagged="5+", ignorable=True)
    num_partitions: int = wire(INT32, "5+", default=-1, ignorable=True)
    replication_factor: int = wire(INT16, "5+", default=-1, ignorable=True)
    configs: list[CreatableTopicConfigs] | None = wire(
        Array(CreatableTopicConfigs), "5+", factory=list, nullable="5+", ignorable=True
    )


class CreateTopicsResponse(Message, api_key=19, versions="2-7", flexible="5+"):
    throttle_time_ms: int = wire(INT32, "2+", default=0, ignorable=True)
    topics: list[CreatableTopicResult] = wire(Array(CreatableTopicResult), "0+", factory=list)
