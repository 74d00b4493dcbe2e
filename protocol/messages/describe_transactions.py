"""DescribeTransactions (65): state of transactional ids."""

from protocol.primitives import INT16, INT32, INT64, STRING, Array
from protocol.schema import Message, Struct, wire


class DescribeTransactionsRequest(Message, api_key=65, versions="0", flexible="0+"):
    transactional_ids: list[str] = wire(Array(STRING), "0+", factory=list)


class TopicData(Struct):
    topic: str = wire(STRING, "0+", default="")
    partitions: list[int] = wire(Array(INT32), "0+", factory=list)


class TransactionState(Struct):
    error_code: int = wire(INT16, "0+", default=0)
    transactional_id: str = wire(STRING, "0+", default="")
    transaction_state: str = wire(STRING, "0+", default="")
    transaction_timeout_ms: int = wire(INT32, "0+", default=0)
    transaction_start_time_ms: int = wire(INT64, "0+", default=0)
    producer_id: int = wire(INT64, "0+", default=0)
    producer_epoch: int = wire(INT16, "0+", default=0)
    topics: list[TopicData] = wire(Array(TopicData), "0+", factory=list)


class DescribeTransactionsResponse(Message, api_key=65, versions="0", flexible="0+"):
    throttle_time_ms: int = wire(INT32, "0+", default=0)
    transaction_states: list[TransactionState] = wire(Array(TransactionState), "0+", factory=list)
