"""ListTransactions (66): the transactional ids that a broker looks after."""

from protocol.primitives import INT16, INT32, INT64, STRING, Array
from protocol.schema import Message, Struct, wire


class ListTransactionsRequest(Message, api_key=66, versions="0-2", flexible="0+"):
    state_filters: list[str] = wire(Array(STRING), "0+", factory=list)
    producer_id_filters: list[int] = wire(Array(INT64), "0+", factory=list)
    duration_filter: int = wire(INT64, "1+", default=-1)
    transactional_id_pattern: str | None = wire(STRING, "2+", default=None, nullable="2+")


class TransactionState(Struct):
    transactional_id: str = wire(STRING, "0+", default="")
    producer_id: int = wire(INT64, "0+", default=0)
    transaction_state: str = wire(STRING, "0+", default="")


class ListTransactionsResponse(Message, api_key=66, versions="0-2", flexible="0+"):
    throttle_time_ms: int = wire(INT32, "0+", default=0)
    error_code: int = wire(INT16, "0+", default=0)
    unknown_state_filters: list[str] = wire(Array(STRING), "0+", factory=list)
    transaction_states: list[TransactionState] = wire(Array(TransactionState), "0+", factory=list)
