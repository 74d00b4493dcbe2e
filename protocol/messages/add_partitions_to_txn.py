"""AddPartitionsToTxn (24): announce the partitions that a transaction writes to, or check that it did."""

from protocol.primitives import BOOL, INT16, INT32, INT64, STRING, Array
from protocol.schema import Message, Struct, wire


class AddPartitionsToTxnTopic(Struct):
    name: str = wire(STRING, "0+", default="")
    partitions: list[int] = wire(Array(INT32), "0+", factory=list)


class AddPartitionsToTxnTransaction(Struct):
    transactional_id: str = wire(STRING, "4+", default="")
    producer_id: int = wire(INT64, "4+", default=0)
    producer_epoch: int = wire(INT16, "4+", default=0)
    verify_only: bool = wire(BOOL, "4+", default=False)
    topics: list[AddPartitionsToTxnTopic] = wire(Array(AddPartitionsToTxnTopic), "4+", factory=list)


class AddPartitionsToTxnRequest(Message, api_key=24, versions="0-5", flexible="3+"):
    transactions: list[AddPartitionsToTxnTransaction] = wire(
        Array(AddPartitionsToTxnTransaction), "4+", factory=list
    )
    v3_and_below_transactional_id: str = wire(STRING, "0-3", default="")
    v3_and_below_producer_id: int = wire(INT64, "0-3", default=0)
    v3_and_below_producer_epoch: int = wire(INT16, "0-3", default=0)
    v3_and_below_topics: list[AddPartitionsToTxnTopic] = wire(
        Array(AddPartitionsToTxnTopic), "0-3", factory=list
    )


class AddPartitionsToTxnPartitionResult(Struct):
    partition_index: int = wire(INT32, "0+", default=0)
    partition_error_code: int = wire(INT16, "0+", default=0)


class AddPartitionsToTxnTopicResult(Struct):
    name: str = wire(STRING, "0+", default="")
    results_by_partition: list[AddPartitionsToTxnPartitionResult] = wire(
        Array(AddPartitionsToTxnPartitionResult), "0+", factory=list
    )


class AddPartitionsToTxnResult(Struct):
    transactional_id: str = wire(STRING, "4+", default="")
    topic_results: list[AddPartitionsToTxnTopicResult] = wire(
        Array(AddPartitionsToTxnTopicResult), "4+", factory=list
    )


class AddPartitionsToTxnResponse(Message, api_key=24, versions="0-5", flexible="3+"):
    throttle_time_ms: int = wire(INT32, "0+", default=0)
    error_code: int = wire(INT16, "4+", default=0, ignorable=True)
    results_by_transaction: list[AddPartitionsToTxnResult] = wire(
        Array(AddPartitionsToTxnResult), "4+", factory=list
    )
    results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = wire(
        Array(AddPartitionsToTxnTopicResult), "0-3", factory=list
    )
