"""EndTxn (26): commit or abort a transaction."""

from protocol.primitives import BOOL, INT16, INT32, INT64, STRING
from protocol.schema import Message, wire


class EndTxnRequest(Message, api_key=26, versions="0-5", flexible="3+"):
    transactional_id: str = wire(STRING, "0+", default="")
    producer_id: int = wire(INT64, "0+", default=0)
    producer_epoch: int = wire(INT16, "0+", default=0)
    committed: bool = wire(BOOL, "0+", default=False)


class EndTxnResponse(Message, api_key=26, versions="0-5", flexible="3+"):
    throttle_time_ms: int = wire(INT32, "0+", default=0)
    error_code: int = wire(INT16, "0+", default=0)
    producer_id: int = wire(INT64, "5+", default=-1, ignorable=True)
    producer_epoch: int = wire(INT16, "5+", default=-1, ignorable=True)
