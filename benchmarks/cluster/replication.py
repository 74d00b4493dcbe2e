"""Records that three replicas must have: throughput, latency, processor time, and what a crash costs."""

import threading
import time
import uuid
from typing import Final

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from benchmarks import librdkafka
from benchmarks.cluster.nodes import ADMIN, NODES, ThreeNodes, seconds_until
from benchmarks.figures import percentile

TIMEOUT_SECONDS: Final = 120
VICTIM: Final = NODES
"""The node that is killed: a broker, not the controller."""

LOADS: Final = (
    ("1 KB", librdkafka.Load(1000, 200_000, "none", partitions=6)),
    ("1 KB, lz4", librdkafka.Load(1000, 200_000, "lz4", partitions=6)),
    ("100 B", librdkafka.Load(100, 500_000, "none", partitions=6)),
)

RECORD_P50: Final = "synchronous record of three replicas, p50"
RECORD_P99: Final = "synchronous record of three replicas, p99"
FAILOVER: Final = "from kill -9 of a leader to the next acknowledged record"
CATCH_UP: Final = "from the start of a broker that missed 100 MB until it is in sync"

SYNCHRONOUS_COUNT: Final = 2000
MISSED_RECORDS: Final = 100_000
MISSED_BYTES: Final = 1000


def produce(label: str) -> str:
    return f"produce {label} to three replicas"


def processor(label: str) -> str:
    return f"all brokers' CPU, {label}"


def new_topic(cluster: ThreeNodes, partitions: int = 1, leader: int | None = None) -> str:
    """A topic of three replicas, all in sync; ``leader`` is preferred for every partition."""
    topic = f"bench-{uuid.uuid4()}"
    replicas = list(range(1, NODES + 1))
    if leader is not None:
        replicas = [leader, *(each for each in replicas if each != leader)]
        wanted = NewTopic(topic, partitions, replica_assignment=[replicas] * partitions)
    else:
        wanted = NewTopic(topic, partitions, NODES)
    admin = AdminClient({**ADMIN, "bootstrap.servers": cluster.address})
    admin.create_topics([wanted])[topic].result(TIMEOUT_SECONDS)
    cluster.wait_in_sync(topic)
    return topic


def throughput_round(cluster: ThreeNodes, share: float) -> dict[str, float]:
    cluster.launch()
    cluster.wait_alive()
    found = {}
    warm_up = librdkafka.Load(1000, 50_000, "none", partitions=6)
    librdkafka.produce(cluster.address, new_topic(cluster, 6), warm_up)
    for label, load in LOADS:
        scaled = load._replace(record_count=max(1000, int(load.record_count * share) // 1000 * 1000))
        topic = new_topic(cluster, load.partitions)
        before = cluster.cpu_seconds()
        found[produce(label)] = scaled.megabytes / librdkafka.produce(cluster.address, topic, scaled)
        found[processor(label)] = (cluster.cpu_seconds() - before) * 1000 / scaled.megabytes
    taken = librdkafka.synchronous(
        cluster.address, new_topic(cluster), max(100, int(SYNCHRONOUS_COUNT * share)), 1000
    )
    found[RECORD_P50] = percentile(taken, 0.5)
    found[RECORD_P99] = percentile(taken, 0.99)
    return found


class Beat(threading.Thread):
    """Writes a record a few hundred times a second, and knows when the last one was acknowledged."""

    def __init__(self, cluster: ThreeNodes, topic: str) -> None:
        super().__init__(daemon=True)
        self.last = 0.0
        self._topic = topic
        self._ended = threading.Event()
        self._client: Producer = librdkafka.producer(
            cluster.address,
            settings={
                **ADMIN,
                "linger.ms": 0,
                "enable.idempotence": True,
                "retry.backoff.ms": 20,
                "retry.backoff.max.ms": 50,
                "topic.metadata.refresh.fast.interval.ms": 20,
            },
        )

    def run(self) -> None:
        while not self._ended.wait(0.005):
            self._client.produce(self._topic, b"beat", partition=0, on_delivery=self._note)
            self._client.poll(0)

    def end(self) -> None:
        self._ended.set()
        self.join()
        self._client.flush(TIMEOUT_SECONDS)

    def wait_beyond(self, moment: float) -> None:
        """Wait until a record has been acknowledged after ``moment``."""
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while self.last <= moment:
            if time.monotonic() > deadline:
                raise RuntimeError(f"no record was acknowledged for {TIMEOUT_SECONDS} s")
            time.sleep(0.001)

    def _note(self, error: object, _: object) -> None:
        if error is None:
            self.last = time.perf_counter()


def failover_round(cluster: ThreeNodes, share: float) -> dict[str, float]:
    cluster.launch()
    cluster.wait_alive()
    topic = new_topic(cluster, leader=VICTIM)
    beat = Beat(cluster, topic)
    beat.start()
    beat.wait_beyond(0)
    cluster.kill_node(VICTIM)
    killed = time.perf_counter()
    beat.wait_beyond(killed + 0.05)  # what was on its way does not count
    failover = beat.last - killed
    beat.end()
    missed = librdkafka.Load(MISSED_BYTES, max(1000, int(MISSED_RECORDS * share) // 1000 * 1000), "none")
    librdkafka.produce(cluster.address, topic, missed)
    cluster.start_node(VICTIM)
    return {FAILOVER: failover, CATCH_UP: seconds_until(lambda: cluster.wait_in_sync(topic))}
