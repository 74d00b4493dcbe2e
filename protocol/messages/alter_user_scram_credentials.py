"""AlterUserScramCredentials (51): set or remove SCRAM credentials."""

from protocol.primitives import BYTES, INT8, INT16, INT32, STRING, Array
from protocol.schema import Message, Struct, wire


class ScramCredentialDeletion(Struct):
    name: str = wire(STRING, "0+", default="")
    mechanism: int = wire(INT8, "0+", default=0)


class ScramCredentialUpsertion(Struct):
    name: str = wire(STRING, "0+", default="")
    mechanism: int = wire(INT8, "0+", default=0)
    iterations: int = wire(INT32, "0+", default=0)
    salt: bytes = wire(BYTES, "0+", default=b"")
    salted_password: bytes = wire(BYTES, "0+", default=b"")


class AlterUserScramCredentialsRequest(Message, api_key=51, versions="0", flexible="0+"):
    deletions: list[ScramCredentialDeletion] = wire(Array(ScramCredentialDeletion), "0+", factory=list)
    upsertions: list[ScramCredentialUpsertion] = wire(Array(ScramCredentialUpsertion), "0+", factory=list)


class AlterUserScramCredentialsResult(Struct):
    user: str = wire(STRING, "0+", default="")
    error_code: int = wire(INT16, "0+", default=0)
    error_message: str | None = wire(STRING, "0+", default="", nullable="0+")


class AlterUserScramCredentialsResponse(Message, api_key=51, versions="0", flexible="0+"):
    throttle_time_ms: int = wire(INT32, "0+", default=0)
    results: list[AlterUserScramCredentialsResult] = wire(
        Array(AlterUserScramCredentialsResult), "0+", factory=list
    )
