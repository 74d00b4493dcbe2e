"""GetTelemetrySubscriptions (71): a client asks which of its metrics are wanted (KIP-714)."""

from protocol.primitives import BOOL, INT8, INT16, INT32, STRING, UUID, Array
from protocol.schema import Message, wire
from protocol.uuids import ZERO_UUID


class GetTelemetrySubscriptionsRequest(Message, api_key=71, versions="0", flexible="0+"):
    client_instance_id: bytes = wire(UUID, "0+", default=ZERO_UUID)


class GetTelemetrySubscriptionsResponse(Message, api_key=71, versions="0", flexible="0+"):
    throttle_time_ms: int = wire(INT32, "0+", default=0)
    error_code: int = wire(INT16, "0+", default=0)
    client_instance_id: bytes = wire(UUID, "0+", default=ZERO_UUID)
    subscription_id: int = wire(INT32, "0+", default=0)
    accepted_compression_types: list[int] = wire(Array(INT8), "0+", factory=list)
    push_interval_ms: int = wire(INT32, "0+", default=0)
    telemetry_max_bytes: int = wire(INT32, "0+", default=0)
    delta_temporality: bool = wire(BOOL, "0+", default=False)
    requested_metrics: list[str] = wire(Array(STRING), "0+", factory=list)
