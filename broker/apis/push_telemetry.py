"""PushTelemetry (72): a client delivers metrics of itself (KIP-714)."""

from broker.network.call import Call
from broker.telemetry.clients import Delivery
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.messages.push_telemetry import PushTelemetryRequest, PushTelemetryResponse
from protocol.uuids import ONE_UUID, ZERO_UUID


def handle(request: PushTelemetryRequest, call: Call) -> PushTelemetryResponse:
    telemetry = call.services.telemetry
    if request.client_instance_id in (ZERO_UUID, ONE_UUID):
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    client = telemetry.hear_of(request.client_instance_id, call)
    delivery = Delivery(
        request.subscription_id, request.compression_type, request.metrics, request.terminating
    )
    telemetry.clients.deliver(client, delivery, call.received_ms)
    return PushTelemetryResponse()
