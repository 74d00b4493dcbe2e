"""ControllerRegistration (70): a controller joins the cluster."""

from protocol.primitives import BOOL, INT16, INT32, STRING, UINT16, UUID, Array
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


class ControllerRegistrationRequest(Message, api_key=70, versions="0", flexible="0+"):
    controller_id: int = wire(INT32, "0+", default=0)
    incarnation_id: bytes = wire(UUID, "0+", default=ZERO_UUID)
    zk_migration_ready: bool = wire(BOOL, "0+", default=False)
    listeners: list[Listener] = wire(Array(Listener), "0+", factory=list)
    features: list[Feature] = wire(Array(Feature), "0+", factory=list)


class ControllerRegistrationResponse(Message, api_key=70, versions="0", flexible="0+"):
    throttle_time_ms: int = wire(INT32, "0+", default=0)
    error_code: int = wire(INT16, "0+", default=0)
    error_message: str | None = wire(STRING, "0+", default="", nullable="0+")
