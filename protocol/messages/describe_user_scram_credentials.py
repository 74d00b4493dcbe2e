"""DescribeUserScramCredentials (50): which SCRAM credentials users have."""

from protocol.primitives import INT8, INT16, INT32, STRING, Array
from protocol.schema import Message, Struct, wire


class UserName(Struct):
    name: str = wire(STRING, "0+", default="")


class DescribeUserScramCredentialsRequest(Message, api_key=50, versions="0", flexible="0+"):
    users: list[UserName] | None = wire(Array(UserName), "0+", factory=list, nullable="0+")


class CredentialInfo(Struct):
    mechanism: int = wire(INT8, "0+", default=0)
    iterations: int = wire(INT32, "0+", default=0)


class DescribeUserScramCredentialsResult(Struct):
    user: str = wire(STRING, "0+", default="")
    error_code: int = wire(INT16, "0+", default=0)
    error_message: str | None = wire(STRING, "0+", default="", nullable="0+")
    credential_infos: list[CredentialInfo] = wire(Array(CredentialInfo), "0+", factory=list)


class DescribeUserScramCredentialsResponse(Message, api_key=50, versions="0", flexible="0+"):
    throttle_time_ms: int = wire(INT32, "0+", default=0)
    error_code: int = wire(INT16, "0+", default=0)
    error_message: str | None = wire(STRING, "0+", default="", nullable="0+")
    results: list[DescribeUserScramCredentialsResult] = wire(
        Array(DescribeUserScramCredentialsResult), "0+", factory=list
    )
