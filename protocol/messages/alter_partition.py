"""AlterPartition (56): a partition's leader proposes a new in-sync replica set to the controller."""

from protocol.primitives import INT8, INT16, INT32, INT64, UUID, Array
from protocol.schema import Message, Struct, wire
from protocol.uuids import ZERO_UUID


class BrokerState(Struct):
    broker_id: int = wire(INT32, "3+", default=0)
    broker_epoch: int = wire(INT64, "3+", default=-1)


class AlterPartitionRequestPartitionData(Struct):
    partition_index: int = wire(INT32, "0+", default=0)
    leader_epoch: int = wire(INT32, "0+", default=0)
    new_isr: list[int] = wire(Array(INT32), "0-2", factory=list)
    new_isr_with_epochs: list[BrokerState] = wire(Array(BrokerState), "3+", factory=list)
    leader_recovery_state: int = wire(INT8, "1+", default=0)
    partition_epoch: int = wire(INT32, "0+", default=0)


class AlterPartitionRequestTopicData(Struct):
    topic_id: bytes = wire(UUID, "2+", default=ZERO_UUID, ignorable=True)
    partitions: list[AlterPartitionRequestPartitionData] = wire(
        Array(AlterPartitionRequestPartitionData), "0+", factory=list
    )


class AlterPartitionRequest(Message, api_key=56, versions="2-3", flexible="0+"):
    broker_id: int = wire(INT32, "0+", default=0)
    broker_epoch: int = wire(INT64, "0+", default=-1)
    topics: list[AlterPartitionRequestTopicData] = wire(
        Array(AlterPartitionRequestTopicData), "0+", factory=list
    )


class AlterPartitionResponsePartitionData(Struct):
    partition_index: int = wire(INT32, "0+", default=0)
    error_code: int = wire(INT16, "0+", default=0)
    leader_id: int = wire(INT32, "0+", default=0)
    leader_epoch: int = wire(INT32, "0+", default=0)
    isr: list[int] = wire(Array(INT32), "0+", factory=list)
    leader_recovery_state: int = wire(INT8, "1+", default=0, ignorable=True)
    partition_epoch: int = wire(INT32, "0+", default=0)


class AlterPartitionResponseTopicData(Struct):
    topic_id: bytes = wire(UUID, "2+", default=ZERO_UUID, ignorable=True)
    partitions: list[AlterPartitionResponsePartitionData] = wire(
        Array(AlterPartitionResponsePartitionData), "0+", factory=list
    )


class AlterPartitionResponse(Message, api_key=56, versions="2-3", flexible="0+"):
    throttle_time_ms: int = wire(INT32, "0+", default=0)
    error_code: int = wire(INT16, "0+", default=0)
    topics: list[AlterPartitionResponseTopicData] = wire(
        Array(AlterPartitionResponseTopicData), "0+", factory=list
    )
