"""GetTelemetrySubscriptions (71): which metrics of itself a client is to deliver (KIP-714)."""

from typing import Final

from broker.network.call import Call
from protocol.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from protocol.records.compression import Compression
from protocol.uuids import ZERO_UUID

ACCEPTED: Final = (Compression.ZSTD, Compression.LZ4, Compression.GZIP, Compression.SNAPPY)
"""The one that the broker likes best comes first."""


def handle(request: GetTelemetrySubscriptionsRequest, call: Call) -> GetTelemetrySubscriptionsResponse:
    """A client that has no id yet is given one."""
    telemetry = call.services.telemetry
    client_id = request.client_instance_id
    if client_id == ZERO_UUID:
        client_id = call.services.identifiers.uuid()
    client = telemetry.hear_of(client_id, call)
    telemetry.clients.ask(client, call.received_ms)
    return GetTelemetrySubscriptionsResponse(
        client_instance_id=client_id,
        subscription_id=client.subscription_id,
        accepted_compression_types=[int(codec) for codec in ACCEPTED],
        push_interval_ms=client.interval_ms,
        telemetry_max_bytes=telemetry.clients.metrics_bytes_max,
        delta_temporality=True,
        requested_metrics=client.metrics,
    )
