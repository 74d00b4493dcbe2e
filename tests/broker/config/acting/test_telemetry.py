"""Settings of client metrics (KIP-714)."""

import pytest

from broker.clock import BrokerClock
from protocol.error_codes import ErrorCode
from protocol.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from protocol.messages.push_telemetry import PushTelemetryRequest, PushTelemetryResponse
from tests.broker.config.acting.whole_broker import WholeBroker, whole_broker

CLIENT_METRICS = 16
CLIENT = bytes(range(16))


async def wanted(broker: WholeBroker, client: bytes = CLIENT) -> GetTelemetrySubscriptionsResponse:
    request = GetTelemetrySubscriptionsRequest(client_instance_id=client)
    return await broker.ask(request, GetTelemetrySubscriptionsResponse)


@pytest.mark.acts("interval.ms", "match", "metrics")
async def test_a_subscription_says_what_is_wanted_of_whom(clock: BrokerClock) -> None:
    async with whole_broker(clock) as broker:
        for name, client in (("ours", "acting"), ("theirs", "another")):
            settings = {"interval.ms": "7000", "metrics": f"org.{name}", "match": f"client_id={client}"}
            await broker.alter(CLIENT_METRICS, name, settings)
        told = await wanted(broker)
        assert (told.push_interval_ms, told.requested_metrics) == (7000, ["org.ours"])


@pytest.mark.acts("match")
async def test_a_client_without_an_id_is_one_whose_id_is_empty(clock: BrokerClock) -> None:
    async with whole_broker(clock) as broker:
        await broker.alter(CLIENT_METRICS, "all", {"metrics": "m", "match": "client_id=.*"})
        broker.client.client_id = None
        assert (await wanted(broker)).requested_metrics == ["m"]


@pytest.mark.acts("telemetry.max.bytes")
async def test_so_much_may_be_pushed(clock: BrokerClock) -> None:
    async with whole_broker(clock, {"telemetry.max.bytes": "50"}) as broker:
        told = await wanted(broker)
        assert told.telemetry_max_bytes == 50
        push = PushTelemetryRequest(
            client_instance_id=CLIENT, subscription_id=told.subscription_id, metrics=bytes(51)
        )
        assert (await broker.ask(push, PushTelemetryResponse)).error_code == ErrorCode.TELEMETRY_TOO_LARGE
