"""Consumers that read from the replica in their rack (KIP-392)."""

from typing import Any

import pytest

from broker.partitions.closest_replica import RACK_AWARE
from protocol.error_codes import ErrorCode
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from protocol.stored.metadata_records import BrokerEndpoint, RegisterBrokerRecord
from tests.broker.partitions.one_broker import answer_of
from tests.broker.partitions.replicated import Replicated, replicated

SELECTING = {"replica.selector.class": RACK_AWARE}


def register(cluster: Replicated, broker_id: int, rack: str | None, **options: Any) -> None:
    broker = cluster.broker
    endpoint = BrokerEndpoint(name="PLAINTEXT", host=f"broker{broker_id}.example", port=9092)
    broker.apply(
        RegisterBrokerRecord(
            broker_id=broker_id,
            broker_epoch=broker.image.offset + 1,
            fenced=options.get("fenced", False),
            end_points=[endpoint] if options.get("listens", True) else [],
            rack=rack,
        )
    )


def ask(
    cluster: Replicated,
    offset: int = 0,
    *,
    rack: str = "b",
    version: int = 12,
    max_wait_ms: int = 0,
    **of: Any,
) -> Any:
    wanted = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20, **of)
    request = FetchRequest(
        rack_id=rack if version >= 11 else "",
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        topics=[FetchTopic(topic="t", partitions=[wanted])],
    )
    return cluster.broker.ask(request, version)


def fetched(cluster: Replicated, offset: int = 0, **options: Any) -> PartitionData:
    data = ask(cluster, offset, **options).responses[0].partitions[0]
    assert isinstance(data, PartitionData)
    return data


def preferred(cluster: Replicated, offset: int = 0, **options: Any) -> int:
    return fetched(cluster, offset, **options).preferred_read_replica


def spread(cluster: Replicated) -> None:
    """Racks a, b and b, and all have one record."""
    for broker_id, rack in ((1, "a"), (2, "b"), (3, "b")):
        register(cluster, broker_id, rack)
    cluster.produce(acks=1)
    for follower in (2, 3):
        cluster.fetched(follower, 1)


@pytest.mark.acts("replica.selector.class")
async def test_a_consumer_is_sent_to_a_replica_in_its_rack() -> None:
    async with replicated(of_broker=SELECTING) as cluster:
        spread(cluster)
        data = fetched(cluster)
        assert (data.error_code, data.records, data.high_watermark) == (0, b"", 1)
        assert data.preferred_read_replica == 3  # of those that are alike, the one with the highest id
        assert preferred(cluster, rack="a") == -1
        assert fetched(cluster, rack="a").records != b""
        assert preferred(cluster, rack="elsewhere") == -1
        assert preferred(cluster, rack="") == -1
        assert preferred(cluster, version=10) == -1
    async with replicated() as cluster:
        spread(cluster)
        assert preferred(cluster) == -1


async def test_it_does_not_wait_there() -> None:
    async with replicated(of_broker=SELECTING) as cluster:
        spread(cluster)
        answer = ask(cluster, 1, max_wait_ms=500)
        assert answer.responses[0].partitions[0].preferred_read_replica == 3


async def test_which_replicas_count() -> None:
    async with replicated(of_broker=SELECTING) as cluster:
        spread(cluster)
        cluster.broker.clock.wall_ms += 1
        cluster.fetched(2, 1)
        assert preferred(cluster) == 2  # it has caught up more lately
        cluster.change(isr=[1, 3])
        assert preferred(cluster) == 3
        cluster.change(isr=[1, 2, 3])
        register(cluster, 2, "b", fenced=True)
        assert preferred(cluster) == 3
        register(cluster, 3, "b", listens=False)
        assert preferred(cluster) == -1
        register(cluster, 3, "b")
        cluster.produce(acks=1)
        assert preferred(cluster, 2) == -1  # it does not have that yet


async def test_a_wrong_epoch_is_told_all_the_same() -> None:
    async with replicated(of_broker=SELECTING) as cluster:
        spread(cluster)
        data = fetched(cluster, current_leader_epoch=4)
        assert (data.error_code, data.preferred_read_replica) == (ErrorCode.FENCED_LEADER_EPOCH, -1)


async def test_a_class_that_is_not_here_is_told_of() -> None:
    async with replicated(of_broker={"replica.selector.class": "com.example.Mine"}) as cluster:
        spread(cluster)
        assert preferred(cluster) == -1
        assert "com.example.Mine" in cluster.broker.lines.getvalue()


async def test_a_follower_serves_consumers_up_to_what_it_knows_to_be_committed() -> None:
    async with replicated() as cluster:
        cluster.produce(acks=1)
        for follower in (2, 3):
            cluster.fetched(follower, 1)
        cluster.produce(acks=1)
        cluster.change(leader=2)
        data = fetched(cluster)
        assert (data.error_code, data.high_watermark) == (0, 1)
        assert data.records != b""
        assert fetched(cluster, 1).records == b""
        assert fetched(cluster, 3).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        assert fetched(cluster, version=10).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        waiting = ask(cluster, 1, max_wait_ms=500)
        cluster.change(leader=1)
        assert (await answer_of(waiting)).responses[0].partitions[0].error_code == 0
