"""ExpireDelegationToken (40): shorten the life of a delegation token."""

from protocol.primitives import BYTES, INT16, INT32, INT64
from protocol.schema import Message, wire


class ExpireDelegationTokenRequest(Message, api_key=40, versions="1-2", flexible="2+"):
    hmac: bytes = wire(BYTES, "0+", default=b"")
    expiry_time_period_ms: int = wire(INT64, "0+", default=0)


class ExpireDelegationTokenResponse(Message, api_key=40, versions="1-2", flexible="2+"):
    error_code: int = wire(INT16, "0+", default=0)
    expiry_timestamp_ms: int = wire(INT64, "0+", default=0)
    throttle_time_ms: int = wire(INT32, "0+", default=0)
