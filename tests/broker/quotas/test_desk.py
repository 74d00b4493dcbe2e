"""What a request uses, and how long its client waits.  How clients see it stands in the oracle."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import cast

import pytest
import trio
from trio.testing import MockClock

from broker.clock import BrokerClock
from broker.config.broker_config import BrokerConfig
from broker.metadata import replay
from broker.metadata.image import MetadataImage, QuotaEntity, empty_image
from broker.network.call import Address, ConnectionState, Listener
from broker.quotas.desk import ClientQuotas, Meter
from broker.quotas.mutations import MutationQuota
from protocol.api_keys import ApiKey
from protocol.messages.produce import ProduceResponse
from protocol.stored.metadata_records import ClientQuotaRecord, EntityData

CLIENT: QuotaEntity = (("client-id", "c"),)


def image_with(quotas: Mapping[str, float], entity: QuotaEntity = CLIENT) -> MetadataImage:
    parts = [EntityData(entity_type=kind, entity_name=name) for kind, name in entity]
    records = [ClientQuotaRecord(entity=parts, key=key, value=value) for key, value in quotas.items()]
    image, _ = replay.apply(empty_image("cluster"), records, offset=len(records), epoch=1)
    return image


class Desk:
    """Quotas on a clock that says how long work took."""

    def __init__(self, settings: Mapping[str, str] | None = None, **quotas: float) -> None:
        self.worked_ns = 0
        clock = cast(BrokerClock, SimpleNamespace(work_ns=lambda: self.worked_ns))
        self.quotas = ClientQuotas(BrokerConfig({"node.id": "1", **(settings or {})}), clock)
        self.quotas.load(image_with(quotas))
        self.connection = ConnectionState(1, Listener("TEST"), Address("h", 1), Address("h", 2))

    def meter(self, client_id: str | None = "c", size_bytes: int = 0) -> Meter:
        return self.quotas.meter(client_id, size_bytes, self.connection)

    def work(self, *, milliseconds: int) -> None:
        self.worked_ns += milliseconds * 1_000_000


def test_nothing_counts_until_somebody_has_a_quota() -> None:
    desk = Desk()
    seen = [desk.quotas.is_active]
    for image in (image_with({"request_percentage": 5.0}), empty_image("cluster")):
        desk.quotas.load(image)
        seen.append(desk.quotas.is_active)
    assert seen == [False, True, False]


def test_addresses_are_not_clients() -> None:
    desk = Desk()
    desk.quotas.load(image_with({"connection_creation_rate": 5.0}, (("ip", None),)))
    assert not desk.quotas.is_active


@pytest.mark.acts("producer_byte_rate")
async def test_produced_bytes_are_throttled_and_make_the_connection_deaf(autojump_clock: MockClock) -> None:
    desk = Desk(producer_byte_rate=100.0)
    assert desk.meter(size_bytes=1000).settle(ApiKey.PRODUCE, ProduceResponse()) == 0
    assert desk.connection.deaf_until == 0
    assert desk.meter("other", 10**9).settle(ApiKey.PRODUCE, ProduceResponse()) == 0
    assert desk.meter(size_bytes=50).settle(ApiKey.HEARTBEAT, object()) == 0
    assert desk.meter(size_bytes=100).settle(ApiKey.PRODUCE, ProduceResponse()) == 1000
    assert desk.connection.deaf_until == trio.current_time() + 1


async def test_a_request_is_settled_once(autojump_clock: MockClock) -> None:
    desk = Desk(producer_byte_rate=100.0)
    meter = desk.meter(size_bytes=1100)
    assert [meter.settle(ApiKey.PRODUCE, ProduceResponse()) for _ in range(3)] == [1000] * 3


@pytest.mark.acts("quota.window.size.seconds", "request_percentage")
async def test_the_time_of_requests_is_throttled_for_a_window_at_most(autojump_clock: MockClock) -> None:
    desk = Desk({"quota.window.size.seconds": "2"}, request_percentage=1.0)
    meter = desk.meter()
    desk.work(milliseconds=200)  # 1% of 20 seconds
    assert meter.settle(ApiKey.HEARTBEAT, object()) == 0
    meter = desk.meter()
    desk.work(milliseconds=10)
    assert meter.settle(ApiKey.HEARTBEAT, object()) == 1000
    meter = desk.meter()
    desk.work(milliseconds=100_000)
    assert meter.settle(ApiKey.HEARTBEAT, object()) == 2000


async def test_waiting_and_markers_and_unanswered_batches_take_nobody_s_time(
    autojump_clock: MockClock,
) -> None:
    desk = Desk(request_percentage=0.001)
    meter = desk.meter()
    meter.pause()
    desk.work(milliseconds=1000)
    meter.resume()
    assert meter.settle(ApiKey.HEARTBEAT, object()) == 0
    for key, answer in ((ApiKey.WRITE_TXN_MARKERS, object()), (ApiKey.PRODUCE, None)):
        meter = desk.meter()
        desk.work(milliseconds=1000)
        assert meter.settle(key, answer) == 0
        meter.has_answered()
    meter = desk.meter()
    desk.work(milliseconds=1000)
    meter.settle_exempt()
    assert meter.settle(ApiKey.FETCH, object()) == 0
    assert desk.meter().settle(ApiKey.HEARTBEAT, object()) == 0


async def test_making_the_answer_counts_for_the_next_request(autojump_clock: MockClock) -> None:
    desk = Desk(request_percentage=1.0)
    meter = desk.meter()
    assert meter.settle(ApiKey.HEARTBEAT, object()) == 0
    desk.work(milliseconds=200)
    meter.has_answered()
    assert desk.meter().settle(ApiKey.HEARTBEAT, object()) == 1000


@pytest.mark.acts("quota.window.num", "consumer_byte_rate")
async def test_a_client_may_fetch_at_once_what_comes_in_during_all_windows_but_one(
    autojump_clock: MockClock,
) -> None:
    desk = Desk({"quota.window.num": "4"}, consumer_byte_rate=100.0)
    assert desk.meter().fetch_bytes_max == 300
    assert desk.meter().settle_fetch(300) == 0
    assert desk.meter().settle_fetch(1) == 10


@pytest.mark.acts("controller.quota.window.num", "controller.quota.window.size.seconds")
@pytest.mark.acts("controller_mutation_rate")
async def test_a_client_may_change_at_once_what_comes_in_during_all_windows(
    autojump_clock: MockClock,
) -> None:
    windows = {"controller.quota.window.num": "3", "controller.quota.window.size.seconds": "4"}
    desk = Desk(windows, controller_mutation_rate=2.0)
    assert desk.meter("other").mutations() is None
    meter = desk.meter()
    quota = MutationQuota(meter, meter.mutations(), is_strict=False)
    quota.take(24)
    assert quota.throttle_ms == 0
    quota.take(1)
    quota.charge()
    assert meter.settle(ApiKey.CREATE_TOPICS, object()) == 500


async def test_what_is_fetched_too_much_is_not_sent_and_does_not_count(autojump_clock: MockClock) -> None:
    desk = Desk(consumer_byte_rate=100.0)
    assert desk.meter().fetch_bytes_max == 1000
    assert desk.meter("other").fetch_bytes_max == 2**31 - 1
    assert desk.meter().settle_fetch(2000) == 10_000
    assert desk.meter().settle_fetch(1000) == 0


@pytest.mark.parametrize("quota", ["producer_byte_rate", "consumer_byte_rate"])
async def test_a_client_that_does_as_it_is_told_keeps_to_its_rate(
    quota: str, autojump_clock: MockClock
) -> None:
    """Ten minutes of one that asks for more than it may have."""
    desk = Desk({}, **{quota: 100_000.0})
    passed = 0
    began = trio.current_time()
    while trio.current_time() - began < 600:
        meter = desk.meter(size_bytes=150_000)
        if quota == "producer_byte_rate":
            meter.settle(ApiKey.PRODUCE, ProduceResponse())
            passed += 150_000
        elif not meter.settle_fetch(150_000):
            passed += 150_000
        await trio.sleep_until(max(desk.connection.deaf_until, trio.current_time() + 0.01))
    seconds = trio.current_time() - began
    assert 0.8 * 100_000 < passed / seconds < 1.03 * 100_000
