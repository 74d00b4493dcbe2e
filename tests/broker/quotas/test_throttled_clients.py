"""A broker keeps its clients to their rates: real sockets, and a clock that flies while one has to wait."""

from collections.abc import Callable
from typing import TypeVar

import pytest
import trio

from broker.clock import BrokerClock
from broker.network.call import ConnectionState
from protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntryData,
    AlterClientQuotasResponse,
    EntityData,
    OpData,
)
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from protocol.messages.metadata import MetadataRequest, MetadataResponse
from protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from protocol.records.builder import build_batch
from storage.memory_filesystem import MemoryFileSystem
from tests.broker.test_app import Broker, create_topic, running
from tests.support.raw_client import RawClient

Result = TypeVar("Result")

RATE = 100_000
"""Bytes a second."""

BATCH = build_batch([(BrokerClock().now_ms(), None, bytes(150_000), ())])
"""Not so old that it is deleted when time flies."""

STEP_MS = 5

BURST = 11 * RATE
"""What may come at once after a time without any."""


@pytest.fixture
def clock() -> BrokerClock:
    """Trio's clock while the test runs."""
    return BrokerClock()


@pytest.fixture(autouse=True)
def deaf_until(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Every time, of Trio's, up to which a connection was made deaf."""
    times = [0.0]
    mute = ConnectionState.mute

    def note_and_mute(connection: ConnectionState, until: float) -> None:
        times.append(until)
        mute(connection, until)

    monkeypatch.setattr(ConnectionState, "mute", note_and_mute)
    return times


async def hasten(
    broker: Broker,
    clock: BrokerClock,
    deaf_until: list[float],
    conversation: Callable[[RawClient], Result],
) -> Result:
    """Hold a conversation while the broker's time flies, whenever the client has to wait."""
    async with trio.open_nursery() as nursery:

        async def fly() -> None:
            while True:
                if trio.current_time() <= deaf_until[-1]:
                    clock.advance(STEP_MS)
                await trio.lowlevel.checkpoint()

        nursery.start_soon(fly)
        result = await broker.ask(conversation)
        nursery.cancel_scope.cancel()
    return result


def give(client: RawClient, key: str, value: float | None) -> None:
    entry = AlterClientQuotasRequestEntryData(
        entity=[EntityData(entity_type="user", entity_name=None)],
        ops=[OpData(key=key, value=value or 0.0, remove=value is None)],
    )
    answer = client.ask(AlterClientQuotasRequest(entries=[entry]), AlterClientQuotasResponse, 1)
    assert answer.entries[0].error_code == 0


def produce(client: RawClient) -> int:
    """How long the client is to wait."""
    parts = [PartitionProduceData(index=0, records=BATCH)]
    request = ProduceRequest(
        acks=-1, timeout_ms=5000, topic_data=[TopicProduceData(name="t", partition_data=parts)]
    )
    answer = client.ask(request, ProduceResponse, 9)
    assert answer.responses[0].partition_responses[0].error_code == 0
    return answer.throttle_time_ms


def fetch(client: RawClient, offset: int) -> tuple[int, int]:
    """How long the client is to wait, and the bytes that it gets."""
    wanted = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1)
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=1 << 30,
        session_epoch=-1,
        topics=[FetchTopic(topic="t", partitions=[wanted])],
    )
    answer = client.ask(request, FetchResponse, 12)
    records = answer.responses[0].partitions[0].records if answer.responses else b""
    return answer.throttle_time_ms, len(records)


async def test_a_producer_that_does_not_wait_is_made_to(clock: BrokerClock, deaf_until: list[float]) -> None:
    async with running(MemoryFileSystem()) as broker:

        def talk(client: RawClient) -> tuple[list[int], float]:
            assert create_topic(client) == 0
            give(client, "producer_byte_rate", RATE)
            began = clock.current_time()
            throttles = [produce(client) for _ in range(20)]
            client.ask(MetadataRequest(topics=[]), MetadataResponse, 9)  # heard when the last wait is over
            return throttles, clock.current_time() - began

        throttles, seconds = await hasten(broker, clock, deaf_until, talk)
        assert throttles[0] == 0
        assert sum(throttle_ms > 0 for throttle_ms in throttles) > 5
        assert (20 * len(BATCH) - BURST) / seconds < RATE

        def without(client: RawClient) -> list[int]:
            give(client, "producer_byte_rate", None)
            return [produce(client) for _ in range(20)]

        assert await broker.ask(without) == [0] * 20


async def test_a_consumer_that_does_not_wait_is_made_to(clock: BrokerClock, deaf_until: list[float]) -> None:
    async with running(MemoryFileSystem()) as broker:

        def talk(client: RawClient) -> tuple[int, int, float]:
            assert create_topic(client) == 0
            for _ in range(20):
                produce(client)
            give(client, "consumer_byte_rate", RATE)
            began = clock.current_time()
            offset = empty = 0
            while offset < 20:
                throttle_ms, size = fetch(client, offset)
                assert (throttle_ms > 0) is (size == 0)
                offset += size > 0
                empty += size == 0
            return offset, empty, clock.current_time() - began

        offset, empty, seconds = await hasten(broker, clock, deaf_until, talk)
        assert empty > 5
        assert (offset * len(BATCH) - BURST) / seconds < RATE
