"""AlterConfigs (33): replace all dynamic settings of a resource."""

from protocol.primitives import BOOL, INT8, INT16, INT32, STRING, Array
from protocol.schema import Message, Struct, wire


class AlterableConfig(Struct):
    name: str = wire(STRING, "0+", default="")
    value: str | None = wire(STRING, "0+", default="", nullable="0+")


class AlterConfigsResource(Struct):
    resource_type: int = wire(INT8, "0+", default=0)
    resource_name: str = wire(STRING, "0+", default="")
    configs: list[AlterableConfig] = wire(Array(AlterableConfig), "0+", factory=list)


class AlterConfigsRequest(Message, api_key=33, versions="0-2", flexible="2+"):
    resources: list[AlterConfigsResource] = wire(Array(AlterConfigsResource), "0+", factory=list)
    validate_only: bool = wire(BOOL, "0+", default=False)


class AlterConfigsResourceResponse(Struct):
    error_code: int = wire(INT16, "0+", default=0)
    error_message: str | None = wire(STRING, "0+", default="", nullable="0+")
    resource_type: int = wire(INT8, "0+", default=0)
    resource_name: str = wire(STRING, "0+", default="")


class AlterConfigsResponse(Message, api_key=33, versions="0-2", flexible="2+"):
    throttle_time_ms: int = wire(INT32, "0+", default=0)
    responses: list[AlterConfigsResourceResponse] = wire(
        Array(AlterConfigsResourceResponse), "0+", factory=list
    )
