"""DescribeDelegationToken (41): list delegation tokens."""

from protocol.primitives import BYTES, INT16, INT32, INT64, STRING, Array
from protocol.schema import Message, Struct, wire


class DescribeDelegationTokenOwner(Struct):
    principal_type: str = wire(STRING, "0+", default="")
    principal_name: str = wire(STRING, "0+", default="")


class DescribeDelegationTokenRequest(Message, api_key=41, versions="1-3", flexible="2+"):
    owners: list[DescribeDelegationTokenOwner] | None = wire(
        Array(DescribeDelegationTokenOwner), "0+", factory=list, nullable="0+"
    )


class DescribedDelegationTokenRenewer(Struct):
    principal_type: str = wire(STRING, "0+", default="")
    principal_name: str = wire(STRING, "0+", default="")


class DescribedDelegationToken(Struct):
    principal_type: str = wire(STRING, "0+", default="")
    principal_name: str = wire(STRING, "0+", default="")
    token_requester_principal_type: str = wire(STRING, "3+", default="")
    token_requester_principal_name: str = wire(STRING, "3+", default="")
    issue_timestamp: int = wire(INT64, "0+", default=0)
    expiry_timestamp: int = wire(INT64, "0+", default=0)
    max_timestamp: int = wire(INT64, "0+", default=0)
    token_id: str = wire(STRING, "0+", default="")
    hmac: bytes = wire(BYTES, "0+", default=b"")
    renewers: list[DescribedDelegationTokenRenewer] = wire(
        Array(DescribedDelegationTokenRenewer), "0+", factory=list
    )


class DescribeDelegationTokenResponse(Message, api_key=41, versions="1-3", flexible="2+"):
    error_code: int = wire(INT16, "0+", default=0)
    tokens: list[DescribedDelegationToken] = wire(Array(DescribedDelegationToken), "0+", factory=list)
    throttle_time_ms: int = wire(INT32, "0+", default=0)
