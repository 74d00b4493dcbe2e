"""CreateDelegationToken (38): get a token that stands for a principal."""

from protocol.primitives import BYTES, INT16, INT32, INT64, STRING, Array
from protocol.schema import Message, Struct, wire


class CreatableRenewers(Struct):
    principal_type: str = wire(STRING, "0+", default="")
    principal_name: str = wire(STRING, "0+", default="")


class CreateDelegationTokenRequest(Message, api_key=38, versions="1-3", flexible="2+"):
    owner_principal_type: str | None = wire(STRING, "3+", default="", nullable="3+")
    owner_principal_name: str | None = wire(STRING, "3+", default="", nullable="3+")
    renewers: list[CreatableRenewers] = wire(Array(CreatableRenewers), "0+", factory=list)
    max_lifetime_ms: int = wire(INT64, "0+", default=0)


class CreateDelegationTokenResponse(Message, api_key=38, versions="1-3", flexible="2+"):
    error_code: int = wire(INT16, "0+", default=0)
    principal_type: str = wire(STRING, "0+", default="")
    principal_name: str = wire(STRING, "0+", default="")
    token_requester_principal_type: str = wire(STRING, "3+", default="")
    token_requester_principal_name: str = wire(STRING, "3+", default="")
    issue_timestamp_ms: int = wire(INT64, "0+", default=0)
    expiry_timestamp_ms: int = wire(INT64, "0+", default=0)
    max_timestamp_ms: int = wire(INT64, "0+", default=0)
    token_id: str = wire(STRING, "0+", default="")
    hmac: bytes = wire(BYTES, "0+", default=b"")
    throttle_time_ms: int = wire(INT32, "0+", default=0)
