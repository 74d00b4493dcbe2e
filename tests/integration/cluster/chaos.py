"""A cluster of three nodes to which bad things happen, while clients write, commit and read.

``python -m tests.integration.cluster.chaos [--minutes M] [--with kill,pause,cut] [--seed S]`` does it for
some time, and tells how long failovers took, and what is broken in the end.
"""

import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from confluent_kafka import ElectionType, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from compat.waiting import wait_until
from ottla.cluster import Cluster, Node
from tests.integration.cluster.command import conclude, new_parser, say
from tests.integration.cluster.doors import Door
from tests.integration.cluster.promises import broken_promises, differing_replicas
from tests.integration.cluster.traffic import (
    PATIENCE_SECONDS,
    QUICK,
    NumberedRecords,
    Pairs,
    Reader,
    write_last_words,
)

TOPIC: Final = "chaos"
PARTITIONS: Final = 6
REPLICAS: Final = 3
WRITERS: Final = 2

SETTINGS: Final = {
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "log.segment.bytes": str(1 << 20),
}

KINDS: Final = ("kill", "pause", "cut")


class Chaos:
    """One cluster, its clients, and the chance that decides what happens next."""

    def __init__(
        self,
        cluster: Cluster,
        chance: random.Random,
        doors: Mapping[str, Sequence[Door]],
        say: Callable[[str], None],
    ) -> None:
        """``doors`` are those through which a node is reached."""
        self._cluster = cluster
        self._chance = chance
        self._doors = doors
        self._say = say
        self._admin = AdminClient({**QUICK, "bootstrap.servers": cluster.bootstrap_servers})
        self.failovers: dict[str, list[float]] = {"controller": [], "others": []}
        """Seconds from a kill to the next acknowledged record of a partition that the victim had led."""
        self._make_topic()
        servers = cluster.bootstrap_servers
        self.writers = [
            NumberedRecords(servers, TOPIC, PARTITIONS, f"writer-{number}") for number in range(WRITERS)
        ]
        self.pairs = [Pairs(servers, TOPIC, PARTITIONS, "pairs-1", random.Random(chance.random()))]
        self.live = Reader(servers, TOPIC, PARTITIONS)

    def run(self, kinds: Sequence[str], *, is_over: Callable[[int], bool]) -> list[str]:
        """Let things happen until ``is_over``, which is given their number; what is broken then."""
        clients = [*self.writers, *self.pairs, self.live]
        for client in clients:
            client.start()
        wait_until(
            lambda: all(len(writer.acknowledged) == PARTITIONS for writer in self.writers),
            "each partition is written to",
        )
        happened = 0
        while not is_over(happened):
            time.sleep(self._chance.uniform(0.2, 2.0))
            if self._chance.random() < 0.5:
                self._balance()
            node = self._chance.choice(list(self._cluster.nodes.values()))
            kind = self._chance.choice(kinds)
            getattr(self, f"_{kind}")(node)
            happened += 1
            if self._chance.random() < 0.7:
                self.wait_in_sync()
        self.wait_in_sync()
        self._say("everybody comes to an end")
        for writer in self.writers:
            writer.end()
        for pair in self.pairs:
            pair.end()
        write_last_words(self._cluster.bootstrap_servers, TOPIC, PARTITIONS)
        self._say("what is there is read")
        final = Reader(self._cluster.bootstrap_servers, TOPIC, PARTITIONS)
        final.start()
        final.end()
        self.live.end()
        broken = broken_promises(self.writers, self.pairs, self.live, final)
        self.wait_in_sync()
        self._cluster.stop_all()
        data = [node.data for node in self._cluster.nodes.values()]
        return broken + differing_replicas(data, TOPIC, PARTITIONS)

    def told(self) -> str:
        """How much was written, for who reads along."""
        records = sum(len(each) for writer in self.writers for each in writer.acknowledged.values())
        committed = sum(len(pair.committed) for pair in self.pairs)
        aborted = sum(len(pair.aborted) for pair in self.pairs)
        doubtful = sum(len(pair.doubtful) for pair in self.pairs)
        return (
            f"{records} records acknowledged, {committed} transactions committed, {aborted} given up, "
            f"{doubtful} in doubt"
        )

    def leaders(self) -> dict[int, int]:
        """The leader of each partition, by what a broker says that answers."""
        topic = self._admin.list_topics(TOPIC, timeout=PATIENCE_SECONDS).topics[TOPIC]
        return {partition.id: partition.leader for partition in topic.partitions.values()}

    def wait_in_sync(self) -> None:
        """Wait until every replica is in sync."""
        wait_until(self._is_in_sync, "all replicas are in sync", patience_seconds=PATIENCE_SECONDS)

    def _is_in_sync(self) -> bool:
        try:
            topic = self._admin.list_topics(TOPIC, timeout=10).topics[TOPIC]
        except KafkaException:
            return False
        partitions = topic.partitions.values()
        return len(partitions) == PARTITIONS and all(
            len(partition.isrs) == REPLICAS and partition.leader >= 0 for partition in partitions
        )

    def _make_topic(self) -> None:
        topic = NewTopic(TOPIC, PARTITIONS, REPLICAS, config={"min.insync.replicas": "2"})
        self._admin.create_topics([topic])[TOPIC].result(PATIENCE_SECONDS)
        self.wait_in_sync()

    # What happens

    def _balance(self) -> None:
        """Let preferred replicas lead again: who has come back last leads nothing until then."""
        wanted = [TopicPartition(TOPIC, partition) for partition in range(PARTITIONS)]
        try:
            self._admin.elect_leaders(ElectionType.PREFERRED, wanted).result(PATIENCE_SECONDS)
        except KafkaException as error:
            self._say(f"leaders stay where they are: {error}")

    def _kill(self, node: Node) -> None:
        led = [partition for partition, leader in self.leaders().items() if leader == node.id]
        node.kill()
        begun = time.monotonic()
        away_seconds = self._chance.uniform(0.0, 15.0)
        is_controller = node.name == "node-1"
        if is_controller or away_seconds < 8.0:
            time.sleep(min(away_seconds, 3.0))
            self._cluster.start(node.name).wait_ready()
        self._wait_written(led, begun)
        if node.pid is None:
            self._cluster.start(node.name).wait_ready()
        told = f"killed {node.name}"
        if led:
            seconds = self._note(is_controller, led, begun)
            told += f", leader of {len(led)}: acknowledged again after {seconds:.2f} s"
        self._say(told)

    def _wait_written(self, partitions: Sequence[int], since: float) -> None:
        def is_written() -> bool:
            return all(
                any(writer.last_seconds.get(partition, 0.0) > since for writer in self.writers)
                for partition in partitions
            )

        wait_until(is_written, f"partitions {partitions} are written to", patience_seconds=PATIENCE_SECONDS)

    def _note(self, is_controller: bool, led: Sequence[int], begun: float) -> float:
        seconds = max(
            min(
                writer.last_seconds[partition]
                for writer in self.writers
                if writer.last_seconds.get(partition, 0.0) > begun
            )
            for partition in led
        )
        self.failovers["controller" if is_controller else "others"].append(seconds - begun)
        return seconds - begun

    def _pause(self, node: Node) -> None:
        seconds = self._chance.choice((1.0, 4.0, 12.0))
        node.pause()
        time.sleep(seconds)
        node.resume()
        self._say(f"paused {node.name} for {seconds:.0f} s")

    def _cut(self, node: Node) -> None:
        seconds = self._chance.choice((0.0, 2.0, 12.0))
        for door in self._doors[node.name]:
            door.shut()
        time.sleep(seconds)
        for door in self._doors[node.name]:
            door.open()
        self._say(f"cut {node.name} off for {seconds:.0f} s")


def run_chaos(
    folder: Path,
    chance: random.Random,
    kinds: Sequence[str],
    *,
    is_over: Callable[[int], bool],
    settings: Mapping[str, str] | None = None,
    say: Callable[[str], None],
) -> list[str]:
    """A cluster in ``folder``, and what is broken after all that happens to it."""
    plan = Cluster(folder, REPLICAS)
    doors = {node.name: [Door(node.port)] for node in plan.nodes.values()}
    doors["node-1"].append(Door(plan.controller_port))
    cluster = Cluster(
        folder,
        REPLICAS,
        settings={**SETTINGS, **(settings or {})},
        advertised={door.target: door.port for of_node in doors.values() for door in of_node},
    )
    try:
        with cluster:
            chaos = Chaos(cluster, chance, doors, say)
            broken = chaos.run(kinds, is_over=is_over)
            say(chaos.told())
            for who, seconds in chaos.failovers.items():
                if seconds:
                    say(
                        f"failover, {who}: median {statistics.median(seconds):.2f} s, "
                        f"{min(seconds):.2f} to {max(seconds):.2f} s, {len(seconds)} kills"
                    )
            return broken
    finally:
        for of_node in doors.values():
            for door in of_node:
                door.close()


def main() -> int:
    parser = new_parser("tests.integration.cluster.chaos")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--with", dest="kinds", default="kill", help="of kill, pause, cut; with commas")
    options = parser.parse_args()
    say(f"seed {options.seed}")
    end = time.monotonic() + options.minutes * 60
    with tempfile.TemporaryDirectory() as temporary:
        broken = run_chaos(
            options.folder or Path(temporary) / "cluster",
            random.Random(options.seed),
            options.kinds.split(","),
            is_over=lambda _: time.monotonic() > end,
            say=say,
        )
    return conclude(broken)


if __name__ == "__main__":
    sys.exit(main())
