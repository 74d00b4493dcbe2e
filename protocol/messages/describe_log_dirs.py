"""DescribeLogDirs (35): what the log directories of a broker hold."""

from protocol.primitives import BOOL, INT16, INT32, INT64, STRING, Array
from protocol.schema import Message, Struct, wire


class DescribableLogDirTopic(Struct):
    topic: str = wire(STRING, "0+", default="")
    partitions: list[int] = wire(Array(INT32), "0+", factory=list)


class DescribeLogDirsRequest(Message, api_key=35, versions="1-5", flexible="2+"):
    topics: list[DescribableLogDirTopic] | None = wire(
        Array(DescribableLogDirTopic), "0+", factory=list, nullable="0+"
    )


class DescribeLogDirsPartition(Struct):
    partition_index: int = wire(INT32, "0+", default=0)
    partition_size: int = wire(INT64, "0+", default=0)
    offset_lag: int = wire(INT64, "0+", default=0)
    is_future_key: bool = wire(BOOL, "0+", default=False)


class DescribeLogDirsTopic(Struct):
    name: str = wire(STRING, "0+", default="")
    partitions: list[DescribeLogDirsPartition] = wire(Array(DescribeLogDirsPartition), "0+", factory=list)


class DescribeLogDirsResult(Struct):
    error_code: int = wire(INT16, "0+", default=0)
    log_dir: str = wire(STRING, "0+", default="")
    topics: list[DescribeLogDirsTopic] = wire(Array(DescribeLogDirsTopic), "0+", factory=list)
    total_bytes: int = wire(INT64, "4+", default=-1, ignorable=True)
    usable_bytes: int = wire(INT64, "4+", default=-1, ignorable=True)
    is_cordoned: bool = wire(BOOL, "5+", default=False, ignorable=True)


class DescribeLogDirsResponse(Message, api_key=35, versions="1-5", flexible="2+"):
    throttle_time_ms: int = wire(INT32, "0+", default=0)
    error_code: int = wire(INT16, "3+", default=0, ignorable=True)
    results: list[DescribeLogDirsResult] = wire(Array(DescribeLogDirsResult), "0+", factory=list)
