"""Random histories of three replicas: nothing acknowledged is lost, and in the end all have the same."""

import os
from collections.abc import Callable
from random import Random

import pytest
import trio
from trio.testing import MockClock

from protocol.records.batch import read_batches
from protocol.records.builder import build_batch
from storage.partition_log import PartitionLog
from tests.broker.partitions.machines import Replicated, replicated
from tests.broker.partitions.one_broker import START_MS

TOPIC = "t"
PARTITIONS = 2
HISTORIES = int(os.environ.get("OTTLA_TEST_HISTORIES", "4"))
SETTINGS = {
    "replica.lag.time.max.ms": "1000",
    "segment.bytes": "3000",
    "replica.fetch.backoff.ms": "200",
    "replica.fetch.max.bytes": "1500",
    "log.flush.offset.checkpoint.interval.ms": "700",
    "replica.high.watermark.checkpoint.interval.ms": "500",
    "file.delete.delay.ms": "1000",
}


class History:
    def __init__(self, cluster: Replicated, chance: Random) -> None:
        self.cluster = cluster
        self.chance = chance
        self.acknowledged: list[dict[int, bytes]] = [{} for _ in range(PARTITIONS)]
        self.is_over = False
        self.events: list[str] = []

    async def produce(self, index: int) -> None:
        number = 0
        while not self.is_over:
            count = self.chance.randrange(1, 4)
            values = [b"%d/%d" % (index, number + each) for each in range(count)]
            number += count
            batch = build_batch(
                [(START_MS, None, value + bytes(self.chance.randrange(200)), ()) for value in values]
            )
            base_offset = await self.cluster.produce(TOPIC, index, batch)
            if base_offset is not None:
                for each, value in enumerate(values):
                    assert base_offset + each not in self.acknowledged[index]
                    self.acknowledged[index][base_offset + each] = value
            await trio.sleep(self.chance.random() * 0.03)

    async def disturb(self) -> None:
        cluster, chance = self.cluster, self.chance
        for _ in range(chance.randrange(5, 25)):
            await trio.sleep(chance.random() * chance.choice((0.05, 0.5, 2.0)))
            broker_id = chance.choice(list(cluster.machines))
            event = chance.choice(("kill", "lose power", "restart", "elect", "elect", "cut", "heal"))
            if event in ("kill", "lose power"):
                alive = [each for each in cluster.machines if cluster.is_alive(each)]
                if broker_id not in alive or len(alive) < 2:
                    continue
                loses_power = event == "lose power" and self.may_lose_power(broker_id)
                self.events.append(f"{event} {broker_id} {loses_power}")
                await cluster.kill(broker_id, loses_power=loses_power)
            elif event == "restart":
                await self.restart_all()
            elif event == "elect":
                index = chance.randrange(PARTITIONS)
                partition = cluster.image.topics[TOPIC].partitions[index]
                candidates = [each for each in partition.isr if cluster.is_alive(each)]
                if candidates:
                    leader = chance.choice(candidates)
                    self.events.append(f"{leader} leads {index}")
                    cluster.elect(TOPIC, index, leader)
            elif event == "cut":
                pair = (broker_id, chance.choice(list(cluster.machines)))
                self.events.append(f"cut {pair}")
                cluster.cut.add(pair)
            else:
                cluster.cut.clear()
        cluster.cut.clear()
        await self.restart_all()

    def may_lose_power(self, broker_id: int) -> bool:
        """Whether others in sync are there for every partition: else what only this one has would be lost."""
        return all(
            any(each != broker_id and self.cluster.is_alive(each) for each in partition.isr)
            for partition in self.cluster.image.topics[TOPIC].partitions
        )

    async def restart_all(self) -> None:
        for broker_id in list(self.cluster.machines):
            if not self.cluster.is_alive(broker_id):
                self.events.append(f"start {broker_id}")
                await self.cluster.start(broker_id)

    async def wait_until(self, is_so: Callable[[], bool]) -> None:
        for _ in range(2000):
            if is_so():
                return
            await trio.sleep(0.05)
        raise AssertionError(f"never so; {self.events}\n{self.describe()}")

    def describe(self) -> str:
        cluster = self.cluster
        lines = []
        for index, partition in enumerate(cluster.image.topics[TOPIC].partitions):
            lines.append(f"{index}: {partition}")
            for broker_id, machine in cluster.machines.items():
                broker = machine.broker
                assert broker is not None
                log = cluster.log(broker_id, TOPIC, index)
                role = broker.partitions.open_leader((TOPIC, index)) or broker.partitions.follower_at(
                    (TOPIC, index)
                )
                lines.append(f"  {broker_id}: {role} {log} {log.high_watermark} {log.leader_epochs.entries}")
        for broker_id, machine in cluster.machines.items():
            assert machine.broker is not None
            lines += [f"{broker_id}: {line}" for line in machine.broker.lines.getvalue().splitlines()[-15:]]
        return "\n".join(lines)

    def is_settled(self) -> bool:
        cluster = self.cluster
        for index, partition in enumerate(cluster.image.topics[TOPIC].partitions):
            if partition.leader < 0 or len(partition.isr) < len(cluster.machines):
                return False
            logs = [cluster.log(broker_id, TOPIC, index) for broker_id in cluster.machines]
            if len({(log.log_end, log.high_watermark) for log in logs}) > 1:
                return False
            if logs[0].log_end != logs[0].high_watermark:
                return False
        return True

    def check(self) -> None:
        cluster = self.cluster
        for index in range(PARTITIONS):
            logs = [cluster.log(broker_id, TOPIC, index) for broker_id in cluster.machines]
            contents = [content(log) for log in logs]
            assert contents[0] == contents[1] == contents[2]
            epochs = [log.leader_epochs.entries for log in logs]
            written = {
                record.offset: bytes(record.value or b"").rstrip(b"\0")
                for batch in read_batches(contents[0])
                for record in batch.records()
            }
            for offset, value in self.acknowledged[index].items():
                assert written.get(offset) == value, (offset, value, epochs)


def content(log: PartitionLog) -> bytes:
    found = []
    offset = log.log_start
    while (piece := log.read(offset, 1 << 20)) is not None:
        found.append(piece.read())
        for batch in read_batches(found[-1]):
            batch.check_crc()
            offset = batch.next_offset
    return b"".join(found)


async def play(seed: int) -> History:
    chance = Random(seed)
    async with replicated(chance, settings=SETTINGS) as cluster:
        cluster.create_topic(TOPIC, [1, 2, 3], PARTITIONS)
        history = History(cluster, chance)
        async with trio.open_nursery() as producers:
            for index in range(PARTITIONS):
                producers.start_soon(history.produce, index)
            await history.disturb()
            await trio.sleep(1)
            history.is_over = True
        await history.wait_until(history.is_settled)
        history.check()
        return history


@pytest.mark.parametrize("number", range(HISTORIES))
async def test_nothing_acknowledged_is_lost(autojump_clock: MockClock, chance: Random, number: int) -> None:
    history = await play(chance.getrandbits(32) + number)
    assert sum(map(len, history.acknowledged)) > 20
