"""Settings of listeners and connections."""

import socket
import struct

import pytest
import trio

from broker.clock import BrokerClock
from protocol.api_keys import ApiKey
from protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from protocol.messages.produce import ProduceResponse
from tests.broker.config.acting.whole_broker import (
    BROKER,
    LOGGER,
    NOTHING,
    Client,
    one_record,
    produce_request,
    whole_broker,
)

ASK = ApiVersionsRequest(client_software_name="acting", client_software_version="1")


@pytest.mark.acts("connections.max.idle.ms")
async def test_idle_connections_are_closed(clock: BrokerClock) -> None:
    async with whole_broker(clock, {"connections.max.idle.ms": "60000"}) as broker:
        idle = await broker.connect()
        await idle.ask(ASK, ApiVersionsResponse, 3)
        for seconds in (50, 50, 70):
            await idle.ask(ASK, ApiVersionsResponse, 3)
            for _ in range(seconds // 5):
                await broker.pass_time(5000)
        assert await idle.has_been_closed()


@pytest.mark.acts("socket.request.max.bytes")
async def test_a_request_may_be_too_large(clock: BrokerClock) -> None:
    async with whole_broker(clock, {"socket.request.max.bytes": "1000"}) as broker:
        await broker.ask(ASK, ApiVersionsResponse, 3)
        await broker.client.stream.send_all(struct.pack(">i", 1001))
        assert await broker.client.has_been_closed()


@pytest.mark.acts("queued.max.request.bytes")
async def test_requests_wait_for_memory(clock: BrokerClock) -> None:
    """One that is whole waits for another of which a part is missing."""
    limit = {"queued.max.request.bytes": "500000", "socket.request.max.bytes": "500000"}
    async with whole_broker(clock, limit) as broker:
        await broker.create()
        part = await broker.connect()
        await part.stream.send_all(struct.pack(">i", 450_000) + bytes(400_000))
        await broker.pass_time(0)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(broker.client.send, produce_request(one_record(bytes(300_000))), 9)
            await broker.pass_time(0)
            assert broker.leader().log.log_end == 0
            await trio.aclose_forcefully(part.stream)
        answer = await broker.client.receive(ProduceResponse, 9)
        assert answer.responses[0].partition_responses[0].error_code == 0


async def is_served(client: Client, patience_seconds: float) -> bool:
    with trio.move_on_after(patience_seconds):
        await client.send(ASK, 3)
        try:
            await client.receive(ApiVersionsResponse, 3)
        except Exception:
            return False
        return True
    return False


@pytest.mark.acts("max.connections", "max.connections.per.ip", "max.connections.per.ip.overrides")
@pytest.mark.parametrize(
    "settings",
    [
        {"max.connections": "2"},
        {"max.connections.per.ip": "2"},
        {"max.connections.per.ip.overrides": "127.0.0.1:2"},
    ],
)
async def test_connections_are_counted(clock: BrokerClock, settings: dict[str, str]) -> None:
    """From the start, and from when it is set for a running broker."""
    for at_start, later in ((settings, NOTHING), (NOTHING, settings)):
        async with whole_broker(clock, at_start) as broker:
            await broker.ask(ASK, ApiVersionsResponse, 3)
            if later:
                await broker.alter(BROKER, "", later)
            clients = [await broker.connect() for _ in range(2)]
            assert await is_served(clients[0], 60)
            assert not await is_served(clients[1], 0.05)


@pytest.mark.acts("max.connection.creation.rate")
async def test_connections_come_no_faster_than_they_may(clock: BrokerClock) -> None:
    """Ten at once, as there were none in ten seconds; the next one waits."""
    for at_start in (True, False):
        settings = {"max.connection.creation.rate": "1"}
        async with whole_broker(clock, settings if at_start else NOTHING) as broker:
            if not at_start:
                await broker.alter(BROKER, "", settings)
            before = len([await broker.connect() for _ in range(9 if at_start else 10)])
            late = await broker.connect()
            assert (before, await is_served(late, 0.05)) == (9 if at_start else 10, False)
            await broker.pass_time(1000)
            await late.receive(ApiVersionsResponse, 3)


@pytest.mark.acts("socket.receive.buffer.bytes", "socket.send.buffer.bytes", "socket.listen.backlog.size")
async def test_sockets_are_made_as_they_are_wanted(
    clock: BrokerClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    backlogs: list[int] = []
    options: set[tuple[int, int]] = set()
    listen, setsockopt = socket.socket.listen, socket.socket.setsockopt

    def noted_listen(opened: socket.socket, backlog: int) -> None:
        backlogs.append(backlog)
        listen(opened, backlog)

    def noted_option(opened: socket.socket, level: int, option: int, value: int) -> None:
        options.add((option, value))
        setsockopt(opened, level, option, value)

    monkeypatch.setattr(socket.socket, "listen", noted_listen)
    monkeypatch.setattr(socket.socket, "setsockopt", noted_option)
    settings = {
        "socket.receive.buffer.bytes": "30000",
        "socket.send.buffer.bytes": "40000",
        "socket.listen.backlog.size": "7",
    }
    async with whole_broker(clock, settings):
        assert backlogs == [7, 7]
        assert {(socket.SO_RCVBUF, 30_000), (socket.SO_SNDBUF, 40_000)} <= options


@pytest.mark.acts("replica.socket.receive.buffer.bytes")
@pytest.mark.parametrize(("said", "size"), [(None, None), ("-1", None), ("50000", 50_000)])
async def test_followers_receive_buffer(
    clock: BrokerClock, monkeypatch: pytest.MonkeyPatch, said: str | None, size: int | None
) -> None:
    """Of the connections on which a follower fetches, and of no others."""
    sizes: list[int] = []
    setsockopt = socket.socket.setsockopt

    def noted_option(opened: socket.socket, level: int, option: int, value: int) -> None:
        if option == socket.SO_RCVBUF:
            sizes.append(value)
        setsockopt(opened, level, option, value)

    monkeypatch.setattr(socket.socket, "setsockopt", noted_option)
    settings = {} if said is None else {"replica.socket.receive.buffer.bytes": said}
    async with whole_broker(clock, settings) as broker:
        nodes = broker.services.nodes
        for new_client, expected in (
            (nodes.new_client, []),
            (nodes.new_fetcher_client, [] if size is None else [size]),
        ):
            client = new_client(1, "fetcher-0")
            await client.connect(timeout_seconds=5)
            client.close()
            assert sizes == expected


# How much one request may ask for.


@pytest.mark.acts("fetch.max.bytes")
async def test_a_fetch_gets_no_more_than_the_broker_gives(clock: BrokerClock) -> None:
    async with whole_broker(clock, {"fetch.max.bytes": "1024"}) as broker:
        await broker.create()
        for _ in range(4):
            await broker.produce(one_record(bytes(400)))
        assert len(await broker.batches()) == 2


@pytest.mark.acts("max.incremental.fetch.session.cache.slots")
@pytest.mark.parametrize("slots", [0, 1])
async def test_there_are_so_many_fetch_sessions(clock: BrokerClock, slots: int) -> None:
    async with whole_broker(clock, {"max.incremental.fetch.session.cache.slots": str(slots)}) as broker:
        topic_id = await broker.create()
        topic = FetchTopic(topic_id=topic_id, partitions=[FetchPartition(partition_max_bytes=1)])
        request = FetchRequest(max_wait_ms=0, session_id=0, session_epoch=0, topics=[topic])
        sessions = [(await broker.ask(request, FetchResponse, 13)).session_id for _ in range(2)]
        assert sum(map(bool, sessions)) == slots


@pytest.mark.acts("max.request.partition.size.limit")
async def test_so_many_partitions_are_described_at_once(clock: BrokerClock) -> None:
    async with whole_broker(clock, {"max.request.partition.size.limit": "2"}) as broker:
        await broker.create(partitions=3)
        request = DescribeTopicPartitionsRequest(
            topics=[TopicRequest(name="t")], response_partition_limit=1000
        )
        answer = await broker.ask(request, DescribeTopicPartitionsResponse)
        assert len(answer.topics[0].partitions) == 2


@pytest.mark.acts("unstable.api.versions.enable")
@pytest.mark.parametrize("enabled", ["true", "false"])
async def test_unstable_versions_are_announced_on_demand(clock: BrokerClock, enabled: str) -> None:
    async with whole_broker(clock, {"unstable.api.versions.enable": enabled}) as broker:
        answer = await broker.ask(ASK, ApiVersionsResponse, 3)
        told = {api.api_key: api.max_version for api in answer.api_keys}
        assert told[ApiKey.INIT_PRODUCER_ID] == (6 if enabled == "true" else 5)


async def test_each_request_is_logged_on_demand(clock: BrokerClock) -> None:
    async with whole_broker(clock) as broker:
        await broker.alter(LOGGER, "1", {"kafka.request.logger": "DEBUG"})
        await broker.ask(ASK, ApiVersionsResponse, 3)
        await broker.alter(LOGGER, "1", {"kafka.request.logger": None})
        await broker.ask(ASK, ApiVersionsResponse, 3)
        lines = [line for line in broker.lines.splitlines() if " DEBUG " in line]
        assert [line.split()[3] for line in lines] == ["ApiVersions", "IncrementalAlterConfigs"]
        assert "version 3 from 127.0.0.1:" in lines[0]
        assert ", client acting, number 1: " in lines[0]
