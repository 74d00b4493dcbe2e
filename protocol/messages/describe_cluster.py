"""DescribeCluster (60): id, controller and nodes of the cluster."""

from protocol.primitives import BOOL, INT8, INT16, INT32, STRING, Array
from protocol.schema import Message, Struct, wire


class DescribeClusterRequest(Message, api_key=60, versions="0-2", flexible="0+"):
    include_cluster_authorized_operations: bool = wire(BOOL, "0+", default=False)
    endpoint_type: int = wire(INT8, "1+", default=1)
    include_fenced_brokers: bool = wire(BOOL, "2+", default=False)


class DescribeClusterBroker(Struct):
    broker_id: int = wire(INT32, "0+", default=0)
    host: str = wire(STRING, "0+", default="")
    port: int = wire(INT32, "0+", default=0)
    rack: str | None = wire(STRING, "0+", default=None, nullable="0+")
    is_fenced: bool = wire(BOOL, "2+", default=False)


class DescribeClusterResponse(Message, api_key=60, versions="0-2", flexible="0+"):
    throttle_time_ms: int = wire(INT32, "0+", default=0)
    error_code: int = wire(INT16, "0+", default=0)
    error_message: str | None = wire(STRING, "0+", default=None, nullable="0+")
    endpoint_type: int = wire(INT8, "1+", default=1)
    cluster_id: str = wire(STRING, "0+", default="")
    controller_id: int = wire(INT32, "0+", default=-1)
    brokers: list[DescribeClusterBroker] = wire(Array(DescribeClusterBroker), "0+", factory=list)
    cluster_authorized_operations: int = wire(INT32, "0+", default=-2147483648)
