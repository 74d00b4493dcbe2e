"""The pipeline of ``tests.integration.exactly_once`` on a cluster whose nodes are killed at random.

``python -m tests.integration.cluster.exactly_once [--kills N] [--seed S]`` tells what became of it.
"""

import argparse
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import KafkaException, NewTopic

from compat.waiting import wait_until
from ottla.cluster import Cluster, Node
from tests.integration.exactly_once import PARTITION_COUNT, QUICK, SOURCE, TARGET, run_through, tell

NODES: Final = 3
PATIENCE_SECONDS: Final = 60.0

SETTINGS: Final = {
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    # What is dead is soon known to be.
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
}


class Killer:
    """Kills one node after the other; each comes back, and is in sync again, before the next one goes."""

    def __init__(self, cluster: Cluster, chance: random.Random, say: Callable[[str], None]) -> None:
        self._cluster = cluster
        self._chance = chance
        self._say = say
        self._admin = AdminClient({**QUICK, "bootstrap.servers": cluster.bootstrap_servers})

    def make_topics(self) -> None:
        make_topics(self._admin)

    def kill(self) -> None:
        node = self._chance.choice(list(self._cluster.nodes.values()))
        away_seconds = self._chance.choice((0.0, self._chance.uniform(0, 6)))
        is_stop = self._chance.random() < 0.25
        self._say(f"{'stop' if is_stop else 'kill'} {node.name}, back after {away_seconds:.1f} s")
        if is_stop:
            node.stop()
        else:
            node.kill()
        let_pass(away_seconds)
        self._start(node)
        wait_in_sync(self._admin)

    def _start(self, node: Node) -> None:
        self._cluster.start(node.name)
        node.wait_ready()


def let_pass(seconds: float) -> None:
    """Leave clients alone with what has happened: this decides when the next thing does, and no more."""
    time.sleep(seconds)


def wait_in_sync(admin: AdminClient) -> None:
    """Return when every replica of every partition is in sync."""

    def is_in_sync() -> bool:
        try:
            topics = admin.list_topics(timeout=5).topics.values()
        except KafkaException:
            return False
        return all(
            len(partition.isrs) == len(partition.replicas)
            for topic in topics
            for partition in topic.partitions.values()
        )

    wait_until(is_in_sync, "all replicas are in sync", patience_seconds=PATIENCE_SECONDS)


def make_topics(admin: AdminClient) -> None:
    """Those of the pipeline, with a replica on each node."""
    for topic in (SOURCE, TARGET):
        for done in admin.create_topics([NewTopic(topic, PARTITION_COUNT, NODES)]).values():
            done.result()
    wait_in_sync(admin)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.integration.cluster.exactly_once")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(32))
    parser.add_argument("--folder", type=Path, help="where to leave everything")
    arguments = parser.parse_args()
    tell(f"{arguments.kills} kills from seed {arguments.seed}")
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        wrong = run_with_kills(arguments.folder or Path(folder), arguments.kills, arguments.seed, tell)
    tell(*wrong or ["each record is there exactly once"])
    tell(f"{time.monotonic() - began:.0f} s")
    return 1 if wrong else 0


def run_with_kills(folder: Path, kills: int, seed: int, say: Callable[[str], None]) -> list[str]:
    """What is wrong with the output."""
    chance = random.Random(seed)
    with Cluster(folder, NODES, settings=SETTINGS) as cluster:
        killer = Killer(cluster, chance, say)
        killer.make_topics()
        return run_through(cluster.bootstrap_servers, kills, chance, killer.kill)


if __name__ == "__main__":
    raise SystemExit(main())
