"""A broker keeps its clients to their rates: real sockets, and a clock that flies while one has to wait."""

from collections.abc import Callable
from typing import TypeVar

import pytest
import trio

from broker.clock import BrokerClock
from broker.network.call import ConnectionState
from protocol.error_codes import ErrorCode
from protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntryData,
    AlterClientQuotasResponse,
    EntityData,
    OpData,
)
from protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from protocol.messages.metadata import MetadataRequest, MetadataResponse
from protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
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


def produce_request(acks: int) -> ProduceRequest:
    parts = [PartitionProduceData(index=0, records=BATCH)]
    topic = TopicProduceData(name="t", partition_data=parts)
    return ProduceRequest(acks=acks, timeout_ms=5000, topic_data=[topic])


def produce(client: RawClient) -> int:
    """How long the client is to wait."""
    answer = client.ask(produce_request(-1), ProduceResponse, 9)
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


async def test_a_wait_that_has_begun_outlasts_its_quota(clock: BrokerClock, deaf_until: list[float]) -> None:
    """As in Kafka; and what was sent meanwhile, without asking for an answer, is written then."""
    count = 9
    async with running(MemoryFileSystem()) as broker:
        with RawClient(("127.0.0.1", broker.ready.brokers[0][1].port)) as hasty:

            def send(client: RawClient) -> None:
                assert create_topic(client) == 0
                give(client, "producer_byte_rate", RATE)
                for _ in range(count):
                    hasty.send(produce_request(0), 9)

            await broker.ask(send)
            while deaf_until[-1] <= clock.current_time():
                await trio.lowlevel.checkpoint()
            until = deaf_until[-1]
            await broker.ask(lambda client: give(client, "producer_byte_rate", None))
            answer = await hasten(
                broker, clock, deaf_until, lambda _: hasty.ask(produce_request(-1), ProduceResponse, 9)
            )
        assert clock.current_time() >= until
        assert deaf_until[-1] == until
        (reply,) = answer.responses[0].partition_responses
        assert (reply.error_code, reply.base_offset, answer.throttle_time_ms) == (0, count, 0)


def join_classic(client: RawClient) -> Callable[[], int]:
    """Become the only member of a group; what is returned sends a heartbeat."""
    while client.ask(FIND_GROUP, FindCoordinatorResponse, 4).coordinators[0].error_code:
        pass  # until the topic of offsets is there
    protocols = [JoinGroupRequestProtocol(name="range", metadata=b"")]
    request = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=6000,
        rebalance_timeout_ms=6000,
        protocol_type="consumer",
        protocols=protocols,
    )
    joined = JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED)
    while joined.error_code:
        request.member_id = joined.member_id
        joined = client.ask(request, JoinGroupResponse, 5)
    own = SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"all")
    sync = SyncGroupRequest(
        group_id="g", generation_id=joined.generation_id, member_id=joined.member_id, assignments=[own]
    )
    assert client.ask(sync, SyncGroupResponse, 3).error_code == 0
    beat = HeartbeatRequest(group_id="g", generation_id=joined.generation_id, member_id=joined.member_id)
    return lambda: client.ask(beat, HeartbeatResponse, 3).error_code


def join_consumer(client: RawClient) -> Callable[[], int]:
    """The same with the protocol of KIP-848."""
    while client.ask(FIND_GROUP, FindCoordinatorResponse, 4).coordinators[0].error_code:
        pass
    request = ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="AAAAAAAAAAAAAAAAAAAAAQ",
        rebalance_timeout_ms=6000,
        subscribed_topic_names=["t"],
        topic_partitions=[],
    )

    def beat() -> int:
        answer = client.ask(request, ConsumerGroupHeartbeatResponse, 1)
        request.member_epoch = answer.member_epoch
        return answer.error_code

    while beat():
        request.member_epoch = 0
    return beat


FIND_GROUP = FindCoordinatorRequest(key_type=0, coordinator_keys=["g"])


@pytest.mark.parametrize("join", [join_classic, join_consumer])
async def test_a_member_that_is_deaf_for_longer_than_its_session_has_left(
    clock: BrokerClock, deaf_until: list[float], join: Callable[[RawClient], Callable[[], int]]
) -> None:
    """As in Kafka, nobody is spared: the default window of one second is what keeps members alive."""
    settings = {
        "quota.window.size.seconds": "100",
        "offsets.topic.num.partitions": "1",
        "group.initial.rebalance.delay.ms": "0",
    }
    async with running(MemoryFileSystem(), settings) as broker:
        broker.services.clock = clock  # by which sessions end

        def talk(client: RawClient) -> list[int]:
            beat = join(client)
            codes = [beat()]
            give(client, "request_percentage", 1e-9)
            return [*codes, beat(), beat()]  # the second of these is heard when the wait is over

        assert await hasten(broker, clock, deaf_until, talk) == [0, 0, ErrorCode.UNKNOWN_MEMBER_ID]
