"""PushTelemetry (72): a client delivers its metrics (KIP-714)."""

from protocol.primitives import BOOL, BYTES, INT8, INT16, INT32, UUID
from protocol.schema import Message, wire
from protocol.uuids import ZERO_UUID


class PushTelemetryRequest(Message, api_key=72, versions="0", flexible="0+"):
    client_instance_id: bytes = wire(UUID, "0+", default=ZERO_UUID)
    subscription_id: int = wire(INT32, "0+", default=0)
    terminating: bool = wire(BOOL, "0+", default=False)
    compression_type: int = wire(INT8, "0+", default=0)
    metrics: bytes = wire(BYTES, "0+", default=b"")


class PushTelemetryResponse(Message, api_key=72, versions="0", flexible="0+"):
    throttle_time_ms: int = wire(INT32, "0+", default=0)
    error_code: int = wire(INT16, "0+", default=0)
