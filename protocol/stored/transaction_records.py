"""Records of ``__transaction_state``: one per transactional id."""

from protocol.primitives import INT8, INT16, INT32, INT64, STRING, Array
from protocol.schema import Message, Struct, wire


class TransactionLogKey(Message, api_key=0, versions="0", flexible="none"):
    transactional_id: str = wire(STRING, "0", default="")


class PartitionsSchema(Struct):
    topic: str = wire(STRING, "0+", default="")
    partition_ids: list[int] = wire(Array(INT32), "0+", factory=list)


class TransactionLogValue(Message, api_key=0, versions="0-1", flexible="1+"):
    producer_id: int = wire(INT64, "0+", default=0)
    previous_producer_id: int = wire(INT64, "1+", default=-1, tag=0, tagged="1+")
    next_producer_id: int = wire(INT64, "1+", default=-1, tag=1, tagged="1+")
    producer_epoch: int = wire(INT16, "0+", default=0)
    next_producer_epoch: int = wire(INT16, "1+", default=-1, tag=3, tagged="1+")
    transaction_timeout_ms: int = wire(INT32, "0+", default=0)
    transaction_status: int = wire(INT8, "0+", default=0)
    transaction_partitions: list[PartitionsSchema] | None = wire(
        Array(PartitionsSchema), "0+", factory=list, nullable="0+"
    )
    transaction_last_update_timestamp_ms: int = wire(INT64, "0+", default=0)
    transaction_start_timestamp_ms: int = wire(INT64, "0+", default=0)
    client_transaction_version: int = wire(INT16, "1+", default=0, tag=2, tagged="1+")
