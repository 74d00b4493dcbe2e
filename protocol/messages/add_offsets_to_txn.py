"""AddOffsetsToTxn (25): announce that a transaction commits offsets of a group."""

from protocol.primitives import INT16, INT32, INT64, STRING
from protocol.schema import Message, wire


class AddOffsetsToTxnRequest(Message, api_key=25, versions="0-4", flexible="3+"):
    transactional_id: str = wire(STRING, "0+", default="")
    producer_id: int = wire(INT64, "0+", default=0)
    producer_epoch: int = wire(INT16, "0+", default=0)
    group_id: str = wire(STRING, "0+", default="")


class AddOffsetsToTxnResponse(Message, api_key=25, versions="0-4", flexible="3+"):
    throttle_time_ms: int = wire(INT32, "0+", default=0)
    error_code: int = wire(INT16, "0+", default=0)
