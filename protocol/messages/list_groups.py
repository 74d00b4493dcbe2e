"""ListGroups (16): the groups that a broker looks after."""

from protocol.primitives import INT16, INT32, STRING, Array
from protocol.schema import Message, Struct, wire


class ListGroupsRequest(Message, api_key=16, versions="0-5", flexible="3+"):
    states_filter: list[str] = wire(Array(STRING), "4+", factory=list)
    types_filter: list[str] = wire(Array(STRING), "5+", factory=list)


class ListedGroup(Struct):
    group_id: str = wire(STRING, "0+", default="")
    protocol_type: str = wire(STRING, "0+", default="")
    group_state: str = wire(STRING, "4+", default="", ignorable=True)
    group_type: str = wire(STRING, "5+", default="", ignorable=True)


class ListGroupsResponse(Message, api_key=16, versions="0-5", flexible="3+"):
    throttle_time_ms: int = wire(INT32, "1+", default=0, ignorable=True)
    error_code: int = wire(INT16, "0+", default=0)
    groups: list[ListedGroup] = wire(Array(ListedGroup), "0+", factory=list)
