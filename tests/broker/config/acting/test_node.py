"""Settings that say who a node is, where it keeps things and where it can be reached."""

import pytest
import trio

from broker.clock import BrokerClock
from broker.config.broker_config import BrokerConfig
from broker.config.checks import check_is_served
from broker.config.value_types import ConfigError
from protocol.error_codes import ErrorCode
from protocol.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse, Listener
from protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from protocol.messages.metadata import MetadataRequest, MetadataResponse, MetadataResponseBroker
from storage.memory_filesystem import MemoryFileSystem
from tests.broker.config.acting.whole_broker import WholeBroker, whole_broker


async def node(broker: WholeBroker) -> MetadataResponseBroker:
    """How the broker presents itself to clients."""
    (found,) = (await broker.ask(MetadataRequest(topics=[]), MetadataResponse)).brokers
    return found


@pytest.mark.acts("node.id", "broker.id")
@pytest.mark.parametrize("name", ["node.id", "broker.id"])
async def test_a_node_has_the_id_it_is_given(clock: BrokerClock, name: str) -> None:
    async with whole_broker(clock, {name: "7"}) as broker:
        assert (await node(broker)).node_id == 7


@pytest.mark.acts("broker.rack")
async def test_a_broker_stands_in_a_rack(clock: BrokerClock) -> None:
    async with whole_broker(clock, {"broker.rack": "here"}) as broker:
        assert (await node(broker)).rack == "here"


@pytest.mark.acts("advertised.listeners")
async def test_clients_are_told_another_address(clock: BrokerClock) -> None:
    settings = {"advertised.listeners": "PLAINTEXT://kafka.example:9999"}
    async with whole_broker(clock, settings) as broker:
        found = await node(broker)
        assert (found.host, found.port) == ("kafka.example", 9999)


@pytest.mark.acts(
    "listeners",
    "listener.security.protocol.map",
    "inter.broker.listener.name",
    "controller.listener.names",
)
async def test_listeners_have_names_of_their_own(clock: BrokerClock) -> None:
    settings = {
        "listeners": "IN://127.0.0.1:0,OUT://127.0.0.1:0,BOSS://127.0.0.1:0",
        "listener.security.protocol.map": "IN:PLAINTEXT,OUT:PLAINTEXT,BOSS:PLAINTEXT",
        "inter.broker.listener.name": "IN",
        "controller.listener.names": "BOSS",
    }
    async with whole_broker(clock, settings) as broker:
        assert [listener.name for listener, _ in broker.ready.brokers] == ["IN", "OUT"]
        assert [listener.name for listener, _ in broker.ready.controllers] == ["BOSS"]
        assert (await node(broker)).port == broker.port


@pytest.mark.parametrize("setting", ["inter.broker.listener.name", "security.inter.broker.protocol"])
@pytest.mark.acts("security.inter.broker.protocol")
def test_brokers_cannot_meet_at_a_listener_that_is_not_there(setting: str) -> None:
    from broker.config.checks import check

    with pytest.raises(ConfigError):
        check(BrokerConfig({setting: "SSL"}))


@pytest.mark.acts("process.roles")
async def test_a_controller_alone_serves_no_clients(clock: BrokerClock) -> None:
    settings = {"process.roles": "controller", "listeners": "CONTROLLER://127.0.0.1:0"}
    async with whole_broker(clock, settings) as broker:
        assert broker.ready.brokers == []
        assert [listener.name for listener, _ in broker.ready.controllers] == ["CONTROLLER"]
        assert broker.services.controller.is_active
        assert broker.services.image.brokers == {}
        assert list(broker.services.image.controllers) == [1]


@pytest.mark.acts("controller.quorum.voters")
async def test_a_quorum_of_voters_that_are_named(clock: BrokerClock) -> None:
    """As old directories have it: the quorum's state holds no directory ids."""
    settings = {"controller.quorum.voters": "1@127.0.0.1:9093"}
    async with whole_broker(clock, settings) as broker:
        assert broker.services.controller.raft.voters
    with pytest.raises(ConfigError, match="several controllers"):
        check_is_served(BrokerConfig({"controller.quorum.voters": "1@a:1,2@b:2"}))


@pytest.mark.acts("log.dirs", "log.dir", "metadata.log.dir")
@pytest.mark.parametrize(
    ("settings", "partitions", "metadata"),
    [
        ({"log.dirs": "/a"}, "/a", "/a"),
        ({"log.dirs": "/a", "metadata.log.dir": "/b"}, "/a", "/b"),
        ({"log.dir": "/c"}, "/c", "/c"),
    ],
)
async def test_directories(
    clock: BrokerClock, settings: dict[str, str], partitions: str, metadata: str
) -> None:
    async with whole_broker(clock, settings) as broker:
        await broker.create()
        await broker.produce()
        assert broker.file_system.exists(f"{partitions}/t-0/00000000000000000000.log")
        assert broker.file_system.exists(f"{metadata}/__cluster_metadata-0/00000000000000000000.log")


# The metadata log.


def metadata_files(broker: WholeBroker, ending: str) -> list[str]:
    names = broker.file_system.list_names("/data/__cluster_metadata-0")
    return sorted(name for name in names if name.endswith(ending))


@pytest.mark.acts("internal.metadata.log.segment.bytes", "metadata.log.segment.ms")
@pytest.mark.parametrize(
    "settings",
    [{"internal.metadata.log.segment.bytes": "2000"}, {"metadata.log.segment.ms": "1000"}],
)
async def test_segments_of_the_metadata_log(clock: BrokerClock, settings: dict[str, str]) -> None:
    async with whole_broker(clock, settings) as broker:
        for number in range(5):
            clock.advance(2000)
            await broker.create(f"t{number}", partitions=10)
        assert len(metadata_files(broker, ".log")) > 2


@pytest.mark.acts("metadata.log.segment.bytes")
async def test_a_segment_of_the_metadata_log_is_as_large_as_it_says(clock: BrokerClock) -> None:
    async with whole_broker(clock, {"metadata.log.segment.bytes": "8388608"}) as broker:
        assert broker.services.controller.raft.log.log.config.segment_bytes == 8_388_608


@pytest.mark.acts("internal.metadata.max.batch.size.in.bytes")
async def test_a_batch_of_the_metadata_log_may_be_too_large(clock: BrokerClock) -> None:
    async with whole_broker(clock, {"internal.metadata.max.batch.size.in.bytes": "5000"}) as broker:
        await broker.create(partitions=10)
        topic = CreatableTopic(name="u", num_partitions=200, replication_factor=1)
        answer = await broker.ask(CreateTopicsRequest(topics=[topic], timeout_ms=1000), CreateTopicsResponse)
        assert answer.topics[0].error_code == ErrorCode.POLICY_VIOLATION


SNAPSHOTS = {
    "metadata.log.max.record.bytes.between.snapshots": "2000",
    "metadata.log.max.snapshot.interval.ms": "0",
}


@pytest.mark.acts("metadata.log.max.record.bytes.between.snapshots", "metadata.log.max.snapshot.interval.ms")
@pytest.mark.parametrize(
    "settings",
    [SNAPSHOTS, {"metadata.log.max.snapshot.interval.ms": "60000"}],
)
async def test_snapshots_come_by_size_and_by_time(clock: BrokerClock, settings: dict[str, str]) -> None:
    async with whole_broker(clock, settings) as broker:
        before = len(metadata_files(broker, ".checkpoint"))
        await broker.create(partitions=50)
        await broker.pass_time(61_000)
        await broker.create("u", partitions=50)
        await broker.pass_time_until(lambda: len(metadata_files(broker, ".checkpoint")) > before)


@pytest.mark.acts(
    "metadata.max.retention.bytes", "metadata.max.retention.ms", "internal.metadata.delete.delay.millis"
)
@pytest.mark.parametrize("limit", [{"metadata.max.retention.bytes": "1"}, {"metadata.max.retention.ms": "1"}])
async def test_old_snapshots_go(clock: BrokerClock, limit: dict[str, str]) -> None:
    settings = {**SNAPSHOTS, **limit, "internal.metadata.delete.delay.millis": "3000"}
    async with whole_broker(clock, settings, file_system=MemoryFileSystem(now_ms=clock.now_ms)) as broker:
        for number in range(4):
            await broker.create(f"t{number}", partitions=50)
            await broker.pass_time(1000)
        await broker.pass_time_until(lambda: metadata_files(broker, ".deleted"))
        began_ms = clock.advanced_ms
        await broker.pass_time_until(lambda: not metadata_files(broker, ".deleted"))
        assert clock.advanced_ms - began_ms < 15_000  # and not the minute that Kafka leaves them


# Other nodes that may vote.


async def add_voter(broker: WholeBroker, port: int) -> str | None:
    request = AddRaftVoterRequest(
        cluster_id=None,
        voter_id=2,
        voter_directory_id=bytes(range(16)),
        listeners=[Listener(name="CONTROLLER", host="127.0.0.1", port=port)],
    )
    return (await broker.ask(request, AddRaftVoterResponse)).error_message


@pytest.mark.acts("controller.quorum.request.timeout.ms")
async def test_a_node_that_does_not_answer_is_not_waited_for_for_ever(clock: BrokerClock) -> None:
    (silent,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    answers: list[str | None] = []

    async with whole_broker(clock, {"controller.quorum.request.timeout.ms": "9000"}) as broker, silent:
        async with trio.open_nursery() as nursery:

            async def add() -> None:
                answers.append(await add_voter(broker, silent.socket.getsockname()[1]))

            nursery.start_soon(add)
            await broker.pass_time(0)
            await broker.pass_time(8000)
            assert answers == []
            await broker.pass_time(2000)
        assert answers == ["The request timed out."]


@pytest.mark.acts("controller.quorum.retry.backoff.ms")
async def test_a_node_that_is_not_there_is_left_alone_for_a_while(clock: BrokerClock) -> None:
    async with whole_broker(clock, {"controller.quorum.retry.backoff.ms": "60000"}) as broker:
        first = await add_voter(broker, 1)
        assert await add_voter(broker, 1) != first
        await broker.pass_time(61_000)
        assert await add_voter(broker, 1) == first
