"""BrokerRegistration (62): a broker joins the cluster."""

from protocol.primitives import BOOL, INT16, INT32, INT64, STRING, UINT16, UUID, Array
from protocol.schema import Message, Struct, wire
from protocol.uuids import ZERO_UUID


class Listener(Struct):
    name: str = wire(STRING, "0+", default="")
    host: str = wire(STRING, "0+", default="")
    port: int = wire(UINT16, "0+", default=0)
    security_protocol: int = wire(INT16, "0+", default=0)


class Feature(Struct):
    name: str = wire(STRING, "0+", default="")
    min_supported_version: int = wire(INT16, "0+", default=0)
    max_supported_version: int = wire(INT16, "0+", default=0)


class BrokerRegistrationRequest(Message, api_key=62, versions="0-4", flexible="0+"):
    broker_id: int = wire(INT32, "0+", default=0)
    cluster_id: str = wire(STRING, "0+", default="")
    incarnation_id: bytes = wire(UUID, "0+", default=ZERO_UUID)
    listeners: list[Listener] = wire(Array(Listener), "0+", factory=list)
    features: list[Feature] = wire(Array(Feature), "0+", factory=list)
    rack: str | None = wire(STRING, "0+", default="", nullable="0+")
    is_migrating_zk_broker: bool = wire(BOOL, "1+", default=False)
    log_dirs: list[bytes] = wire(Array(UUID), "2+", factory=list, ignorable=True)
    previous_broker_epoch: int = wire(INT64, "3+", default=-1, ignorable=True)


class BrokerRegistrationResponse(Message, api_key=62, versions="0-4", flexible="0+"):
    throttle_time_ms: int = wire(INT32, "0+", default=0)
    error_code: int = wire(INT16, "0+", default=0)
    broker_epoch: int = wire(INT64, "0+", default=-1)
