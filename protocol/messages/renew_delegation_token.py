"""RenewDelegationToken (39): prolong a delegation token."""

from protocol.primitives import BYTES, INT16, INT32, INT64
from protocol.schema import Message, wire


class RenewDelegationTokenRequest(Message, api_key=39, versions="1-2", flexible="2+"):
    hmac: bytes = wire(BYTES, "0+", default=b"")
    renew_period_ms: int = wire(INT64, "0+", default=0)


class RenewDelegationTokenResponse(Message, api_key=39, versions="1-2", flexible="2+"):
    error_code: int = wire(INT16, "0+", default=0)
    expiry_timestamp_ms: int = wire(INT64, "0+", default=0)
    throttle_time_ms: int = wire(INT32, "0+", default=0)
