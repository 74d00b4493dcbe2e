"""DeleteAcls (31): remove access rules."""

from protocol.primitives import INT8, INT16, INT32, STRING, Array
from protocol.schema import Message, Struct, wire


class DeleteAclsFilter(Struct):
    resource_type_filter: int = wire(INT8, "0+", default=0)
    resource_name_filter: str | None = wire(STRING, "0+", default="", nullable="0+")
    pattern_type_filter: int = wire(INT8, "1+", default=3)
    principal_filter: str | None = wire(STRING, "0+", default="", nullable="0+")
    host_filter: str | None = wire(STRING, "0+", default="", nullable="0+")
    operation: int = wire(INT8, "0+", default=0)
    permission_type: int = wire(INT8, "0+", default=0)


class DeleteAclsRequest(Message, api_key=31, versions="1-3", flexible="2+"):
    filters: list[DeleteAclsFilter] = wire(Array(DeleteAclsFilter), "0+", factory=list)


class DeleteAclsMatchingAcl(Struct):
    error_code: int = wire(INT16, "0+", default=0)
    error_message: str | None = wire(STRING, "0+", default="", nullable="0+")
    resource_type: int = wire(INT8, "0+", default=0)
    resource_name: str = wire(STRING, "0+", default="")
    pattern_type: int = wire(INT8, "1+", default=3)
    principal: str = wire(STRING, "0+", default="")
    host: str = wire(STRING, "0+", default="")
    operation: int = wire(INT8, "0+", default=0)
    permission_type: int = wire(INT8, "0+", default=0)


class DeleteAclsFilterResult(Struct):
    error_code: int = wire(INT16, "0+", default=0)
    error_message: str | None = wire(STRING, "0+", default="", nullable="0+")
    matching_acls: list[DeleteAclsMatchingAcl] = wire(Array(DeleteAclsMatchingAcl), "0+", factory=list)


class DeleteAclsResponse(Message, api_key=31, versions="1-3", flexible="2+"):
    throttle_time_ms: int = wire(INT32, "0+", default=0)
    filter_results: list[DeleteAclsFilterResult] = wire(Array(DeleteAclsFilterResult), "0+", factory=list)
