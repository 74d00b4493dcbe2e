"""ListConfigResources (74): the resources that have settings of their own."""

from protocol.primitives import INT8, INT16, INT32, STRING, Array
from protocol.schema import Message, Struct, wire


class ListConfigResourcesRequest(Message, api_key=74, versions="0-1", flexible="0+"):
    resource_types: list[int] = wire(Array(INT8), "1+", factory=list)


class ConfigResource(Struct):
    resource_name: str = wire(STRING, "0+", default="")
    resource_type: int = wire(INT8, "1+", default=16, ignorable=True)


class ListConfigResourcesResponse(Message, api_key=74, versions="0-1", flexible="0+"):
    throttle_time_ms: int = wire(INT32, "0+", default=0)
    error_code: int = wire(INT16, "0+", default=0)
    config_resources: list[ConfigResource] = wire(Array(ConfigResource), "0+", factory=list)
