"""DescribeGroups (15): state and members of classic groups."""

from protocol.primitives import BOOL, BYTES, INT16, INT32, STRING, Array
from protocol.schema import Message, Struct, wire


class DescribeGroupsRequest(Message, api_key=15, versions="0-6", flexible="5+"):
    groups: list[str] = wire(Array(STRING), "0+", factory=list)
    include_authorized_operations: bool = wire(BOOL, "3+", default=False)


class DescribedGroupMember(Struct):
    member_id: str = wire(STRING, "0+", default="")
    group_instance_id: str | None = wire(STRING, "4+", default=None, nullable="4+", ignorable=True)
    client_id: str = wire(STRING, "0+", default="")
    client_host: str = wire(STRING, "0+", default="")
    member_metadata: bytes = wire(BYTES, "0+", default=b"")
    member_assignment: bytes = wire(BYTES, "0+", default=b"")


class DescribedGroup(Struct):
    error_code: int = wire(INT16, "0+", default=0)
    error_message: str | None = wire(STRING, "6+", default=None, nullable="6+")
    group_id: str = wire(STRING, "0+", default="")
    group_state: str = wire(STRING, "0+", default="")
    protocol_type: str = wire(STRING, "0+", default="")
    protocol_data: str = wire(STRING, "0+", default="")
    members: list[DescribedGroupMember] = wire(Array(DescribedGroupMember), "0+", factory=list)
    authorized_operations: int = wire(INT32, "3+", default=-2147483648)


class DescribeGroupsResponse(Message, api_key=15, versions="0-6", flexible="5+"):
    throttle_time_ms: int = wire(INT32, "1+", default=0, ignorable=True)
    groups: list[DescribedGroup] = wire(Array(DescribedGroup), "0+", factory=list)
