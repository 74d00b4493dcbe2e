"""CreateAcls (30): add access rules."""

from protocol.primitives import INT8, INT16, INT32, STRING, Array
from protocol.schema import Message, Struct, wire


class AclCreation(Struct):
    resource_type: int = wire(INT8, "0+", default=0)
    resource_name: str = wire(STRING, "0+", default="")
    resource_pattern_type: int = wire(INT8, "1+", default=3)
    principal: str = wire(STRING, "0+", default="")
    host: str = wire(STRING, "0+", default="")
    operation: int = wire(INT8, "0+", default=0)
    permission_type: int = wire(INT8, "0+", default=0)


class CreateAclsRequest(Message, api_key=30, versions="1-3", flexible="2+"):
    creations: list[AclCreation] = wire(Array(AclCreation), "0+", factory=list)


class AclCreationResult(Struct):
    error_code: int = wire(INT16, "0+", default=0)
    error_message: str | None = wire(STRING, "0+", default="", nullable="0+")


class CreateAclsResponse(Message, api_key=30, versions="1-3", flexible="2+"):
    throttle_time_ms: int = wire(INT32, "0+", default=0)
    results: list[AclCreationResult] = wire(Array(AclCreationResult), "0+", factory=list)
