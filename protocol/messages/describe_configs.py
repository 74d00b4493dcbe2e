"""DescribeConfigs (32): settings of topics, brokers, groups and loggers, and where their values come from."""

from protocol.primitives import BOOL, INT8, INT16, INT32, STRING, Array
from protocol.schema import Message, Struct, wire


class DescribeConfigsResource(Struct):
    resource_type: int = wire(INT8, "0+", default=0)
    resource_name: str = wire(STRING, "0+", default="")
    configuration_keys: list[str] | None = wire(Array(STRING), "0+", factory=list, nullable="0+")


class DescribeConfigsRequest(Message, api_key=32, versions="1-4", flexible="4+"):
    resources: list[DescribeConfigsResource] = wire(Array(DescribeConfigsResource), "0+", factory=list)
    include_synonyms: bool = wire(BOOL, "1+", default=False)
    include_documentation: bool = wire(BOOL, "3+", default=False)


class DescribeConfigsSynonym(Struct):
    name: str = wire(STRING, "1+", default="")
    value: str | None = wire(STRING, "1+", default="", nullable="0+")
    source: int = wire(INT8, "1+", default=0)


class DescribeConfigsResourceResult(Struct):
    name: str = wire(STRING, "0+", default="")
    value: str | None = wire(STRING, "0+", default="", nullable="0+")
    read_only: bool = wire(BOOL, "0+", default=False)
    config_source: int = wire(INT8, "1+", default=-1, ignorable=True)
    is_sensitive: bool = wire(BOOL, "0+", default=False)
    synonyms: list[DescribeConfigsSynonym] = wire(
        Array(DescribeConfigsSynonym), "1+", factory=list, ignorable=True
    )
    config_type: int = wire(INT8, "3+", default=0, ignorable=True)
    documentation: str | None = wire(STRING, "3+", default="", nullable="0+", ignorable=True)


class DescribeConfigsResult(Struct):
    error_code: int = wire(INT16, "0+", default=0)
    error_message: str | None = wire(STRING, "0+", default="", nullable="0+")
    resource_type: int = wire(INT8, "0+", default=0)
    resource_name: str = wire(STRING, "0+", default="")
    configs: list[DescribeConfigsResourceResult] = wire(
        Array(DescribeConfigsResourceResult), "0+", factory=list
    )


class DescribeConfigsResponse(Message, api_key=32, versions="1-4", flexible="4+"):
    throttle_time_ms: int = wire(INT32, "0+", default=0)
    results: list[DescribeConfigsResult] = wire(Array(DescribeConfigsResult), "0+", factory=list)
