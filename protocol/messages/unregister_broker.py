"""UnregisterBroker (64): remove a broker from the cluster for good."""

from protocol.primitives import INT16, INT32, STRING
from protocol.schema import Message, wire


class UnregisterBrokerRequest(Message, api_key=64, versions="0", flexible="0+"):
    broker_id: int = wire(INT32, "0+", default=0)


class UnregisterBrokerResponse(Message, api_key=64, versions="0", flexible="0+"):
    throttle_time_ms: int = wire(INT32, "0+", default=0)
    error_code: int = wire(INT16, "0+", default=0)
    error_message: str | None = wire(STRING, "0+", default="", nullable="0+")
