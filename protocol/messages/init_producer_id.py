"""InitProducerId (22): get an identity for an idempotent or transactional producer."""

from protocol.primitives import BOOL, INT16, INT32, INT64, STRING
from protocol.schema import Message, wire


class InitProducerIdRequest(Message, api_key=22, versions="0-6", flexible="2+"):
    transactional_id: str | None = wire(STRING, "0+", default="", nullable="0+")
    transaction_timeout_ms: int = wire(INT32, "0+", default=0)
    producer_id: int = wire(INT64, "3+", default=-1)
    producer_epoch: int = wire(INT16, "3+", default=-1)
    enable2_pc: bool = wire(BOOL, "6+", default=False)
    keep_prepared_txn: bool = wire(BOOL, "6+", default=False)


class InitProducerIdResponse(Message, api_key=22, versions="0-6", flexible="2+"):
    throttle_time_ms: int = wire(INT32, "0+", default=0, ignorable=True)
    error_code: int = wire(INT16, "0+", default=0)
    producer_id: int = wire(INT64, "0+", default=-1)
    producer_epoch: int = wire(INT16, "0+", default=0)
    ongoing_txn_producer_id: int = wire(INT64, "6+", default=-1)
    ongoing_txn_producer_epoch: int = wire(INT16, "6+", default=-1)
