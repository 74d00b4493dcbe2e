"""DeleteGroups (42): remove groups that have no members."""

from protocol.primitives import INT16, INT32, STRING, Array
from protocol.schema import Message, Struct, wire


class DeleteGroupsRequest(Message, api_key=42, versions="0-3", flexible="2+"):
    groups_names: list[str] = wire(Array(STRING), "0+", factory=list)


class DeletableGroupResult(Struct):
    group_id: str = wire(STRING, "0+", default="")
    error_code: int = wire(INT16, "0+", default=0)
    error_message: str | None = wire(STRING, "3+", default=None, nullable="3+", ignorable=True)


class DeleteGroupsResponse(Message, api_key=42, versions="0-3", flexible="2+"):
    throttle_time_ms: int = wire(INT32, "0+", default=0)
    results: list[DeletableGroupResult] = wire(Array(DeletableGroupResult), "0+", factory=list)
