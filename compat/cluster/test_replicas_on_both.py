"""Partitions with a replica on Ottla and one on Apache Kafka: leaders move while clients write and read."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import KafkaError, KafkaException, NewTopic
from kafka import TopicPartition as Partition
from kafka.admin import KafkaAdminClient

from compat.cluster.lengthy import LENGTHY
from compat.cluster.nodes import OTTLA_ID, SMALL_CLUSTER, OttlaBroker, OttlaNode, kafka_in
from compat.librdkafka import IDEMPOTENT
from compat.oracle.java import run_tool
from compat.oracle.kafka import KafkaNode
from compat.python_kafka_python.sockets import close_forgotten_sockets
from compat.waiting import wait_until

close_forgotten_sockets()

KAFKA_ID = 2
BOTH = {OTTLA_ID, KAFKA_ID}
PARTITIONS = 4
BATCH_RECORDS = 20


class Cluster:
    """One node of each kind, of which one is the controller."""

    def __init__(self, ottla: OttlaNode | OttlaBroker, kafka: KafkaNode) -> None:
        self.ottla = ottla
        self.kafka = kafka
        self.bootstrap = f"{ottla.bootstrap},{kafka.bootstrap}"
        self.steady: OttlaNode | OttlaBroker | KafkaNode = ottla if isinstance(ottla, OttlaNode) else kafka
        """The one with the controller."""
        self.other: OttlaNode | OttlaBroker | KafkaNode = kafka if self.steady is ottla else ottla
        self.admin = AdminClient({"bootstrap.servers": self.steady.bootstrap})
        self.mover = KafkaAdminClient(bootstrap_servers=self.steady.bootstrap)

    @property
    def steady_id(self) -> int:
        return OTTLA_ID if self.steady is self.ottla else KAFKA_ID

    @property
    def other_id(self) -> int:
        return KAFKA_ID if self.steady is self.ottla else OTTLA_ID

    def create(self, topic: str, **settings: str) -> None:
        config = {name.replace("_", "."): value for name, value in settings.items()}
        self.admin.create_topics([NewTopic(topic, PARTITIONS, 2, config=config)])[topic].result(30)

    def states(self, topic: str) -> list[tuple[int, set[int]]]:
        """Leader and in-sync set of each partition."""
        found = self.admin.list_topics(topic, timeout=10).topics[topic].partitions
        return [(found[index].leader, set(found[index].isrs)) for index in sorted(found)]

    def wait_until_in_sync(self, topic: str) -> None:
        wait_until(
            lambda: all(in_sync == BOTH for _, in_sync in self.states(topic)), f"both are in sync in {topic}"
        )

    def lead(self, topic: str, leaders: dict[int, int]) -> None:
        """Let these brokers lead, by partition, as an operator would; both must be in sync."""
        orders = {Partition(topic, index): [leader, *(BOTH - {leader})] for index, leader in leaders.items()}
        assert not any(self.mover.alter_partition_reassignments(orders).values())

        def they_lead() -> bool:
            states = self.states(topic)
            if all(states[index][0] == leader for index, leader in leaders.items()):
                return True
            self.mover.elect_leaders(0, {topic: list(leaders)}, raise_errors=False)
            return False

        wait_until(they_lead, f"the leaders of {topic} are {leaders}")

    def files(self, topic: str, index: int) -> tuple[bytes, bytes]:
        """All records of a partition, as they lie on both disks."""

        def content(data: Path) -> bytes:
            folder = data / f"{topic}-{index}"
            return b"".join(path.read_bytes() for path in sorted(folder.glob("*.log")))

        return content(self.ottla.data), content(self.kafka.data)

    def check_same(self, topic: str) -> None:
        """All replicas have the same batches, byte for byte, once nothing is written any more."""
        self.wait_until_in_sync(topic)
        for index in range(PARTITIONS):
            wait_until(
                lambda index=index: len(set(self.files(topic, index))) == 1,  # type: ignore[misc]
                f"both replicas of {topic}-{index} are the same",
                patience_seconds=15,
            )


SETTINGS = {"replica.lag.time.max.ms": "3000", "leader.imbalance.check.interval.seconds": "3600"}


@pytest.fixture(scope="module", params=["Ottla", "Kafka"])
def cluster(
    kafka_jars: Path, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Cluster]:
    """Ottla's node is the controller, or Kafka's."""
    folder = tmp_path_factory.mktemp("cluster")
    ottla: OttlaNode | OttlaBroker
    if request.param == "Ottla":
        ottla = OttlaNode(folder / "ottla", SETTINGS)
        ottla.start()
        kafka = kafka_in(ottla, folder / "kafka", node_id=KAFKA_ID, roles="broker", settings=SETTINGS)
        kafka.start()
    else:
        security = {"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT"}
        kafka = KafkaNode(folder / "kafka", {**security, **SMALL_CLUSTER, **SETTINGS}, node_id=KAFKA_ID)
        kafka.format()
        kafka.start()
        ottla = OttlaBroker(folder / "ottla", kafka.controller, SETTINGS, node_id=OTTLA_ID)
        ottla.start()
    try:
        made = Cluster(ottla, kafka)
        wait_until(lambda: set(made.admin.list_topics(timeout=10).brokers) == BOTH, "both are unfenced")
        yield made
        made.mover.close()
    finally:
        kafka.kill()
        ottla.kill()


class Traffic:
    """A producer that never stops, and what it was told."""

    def __init__(self, bootstrap: str, topic: str, **settings: str) -> None:
        self.topic = topic
        self.acknowledged: list[set[bytes]] = [set() for _ in range(PARTITIONS)]
        self.failed: list[KafkaError] = []
        self._bootstrap = bootstrap
        self._settings = {name.replace("_", "."): value for name, value in settings.items()}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        producer = Producer(
            {
                **IDEMPOTENT,
                "bootstrap.servers": self._bootstrap,
                "linger.ms": 1000,
                "batch.num.messages": BATCH_RECORDS,
                "topic.metadata.refresh.interval.ms": 1000,
                "retry.backoff.ms": 20,
                "reconnect.backoff.max.ms": 200,
                **self._settings,
            }
        )

        def note(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                self.failed.append(error)
                return
            index, value = message.partition(), message.value()
            assert index is not None
            assert isinstance(value, bytes)
            self.acknowledged[index].add(value)

        for first in count(0, BATCH_RECORDS):
            for index in range(PARTITIONS):
                for number in range(first, first + BATCH_RECORDS):
                    value = b"%d-%d " % (index, number) + b"x" * (number % 300)
                    producer.produce(self.topic, value, str(number % 50), partition=index, on_delivery=note)
            while producer.flush(1):  # for librdkafka's sake: see IDEMPOTENT
                pass
            if self._stop.is_set():
                break

    def acknowledged_count(self) -> int:
        return sum(map(len, self.acknowledged))

    def wait_for_more(self, count: int) -> None:
        wanted = self.acknowledged_count() + count
        wait_until(lambda: self.acknowledged_count() >= wanted, f"{count} more records are acknowledged")

    @contextmanager
    def running(self) -> Iterator["Traffic"]:
        self._thread.start()
        try:
            yield self
        finally:
            self._stop.set()
            self._thread.join()


def consumed(bootstrap: str, topic: str, **settings: str) -> list[list[bytes]]:
    """Every value of each partition, in order of offset."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "all",
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
            **{name.replace("_", "."): value for name, value in settings.items()},
        }
    )
    consumer.assign([TopicPartition(topic, index, 0) for index in range(PARTITIONS)])
    found: list[list[bytes]] = [[] for _ in range(PARTITIONS)]
    ended: set[int] = set()
    deadline = time.monotonic() + 60
    while len(ended) < PARTITIONS:
        assert time.monotonic() < deadline
        for message in consumer.consume(1000, timeout=1):
            index, error, value = message.partition(), message.error(), message.value()
            assert index is not None
            if error is not None:
                assert error.code() == KafkaError._PARTITION_EOF, error
                ended.add(index)
            else:
                assert isinstance(value, bytes)
                found[index].append(value)
    consumer.close()
    return found


def check_all_there(traffic: Traffic, found: list[list[bytes]]) -> None:
    """Nothing acknowledged is missing, nothing is there twice, and the order is that of the producer."""
    for index in range(PARTITIONS):
        assert traffic.acknowledged[index] <= set(found[index])
        assert len(found[index]) == len(set(found[index]))
        numbers = [int(value.split()[0].partition(b"-")[2]) for value in found[index]]
        assert numbers == sorted(numbers)


@pytest.mark.slow
class TestReplicasOnBoth:
    @pytest.mark.parametrize("codec", ["none", "lz4"])
    def test_leaders_move_under_traffic(self, cluster: Cluster, codec: str) -> None:
        topic = f"moving-{codec}"
        cluster.create(topic, min_insync_replicas="2", segment_bytes="1048576")
        with Traffic(cluster.bootstrap, topic, compression_type=codec).running() as traffic:
            for turn in range(8):
                traffic.wait_for_more(1000)
                cluster.wait_until_in_sync(topic)
                cluster.lead(
                    topic,
                    {index: KAFKA_ID if (index + turn) % 2 else OTTLA_ID for index in range(PARTITIONS)},
                )
        assert traffic.failed == []
        cluster.check_same(topic)
        check_all_there(traffic, consumed(cluster.bootstrap, topic))
        for data in (cluster.ottla.data, cluster.kafka.data):
            files = [str(path) for path in sorted(data.glob(f"{topic}-*/*.log"))]
            dumped = run_tool("kafka-dump-log", "--deep-iteration", "--files", ",".join(files))
            assert dumped.exit_code == 0
            assert "isvalid: false" not in dumped.output

    @LENGTHY
    def test_transactions_of_leaders_that_move(self, cluster: Cluster) -> None:
        topic = "transactions"
        cluster.create(topic, min_insync_replicas="2")
        cluster.wait_until_in_sync(topic)
        producer = Producer(
            {"bootstrap.servers": cluster.bootstrap, "transactional.id": "mover", "retry.backoff.ms": 20}
        )
        producer.init_transactions(30)
        committed: list[set[bytes]] = [set() for _ in range(PARTITIONS)]
        for turn in range(30):
            producer.begin_transaction()
            for index in range(PARTITIONS):
                for each in range(3):
                    producer.produce(topic, b"%d-%d" % (index, 3 * turn + each), partition=index)
            if turn % 5 == 4:
                cluster.wait_until_in_sync(topic)
                leader = KAFKA_ID if turn % 2 else OTTLA_ID
                cluster.lead(topic, dict.fromkeys(range(PARTITIONS), leader))
            if turn % 3:
                producer.commit_transaction(30)
                for index in range(PARTITIONS):
                    committed[index] |= {b"%d-%d" % (index, 3 * turn + each) for each in range(3)}
            else:
                producer.flush(30)
                producer.abort_transaction(30)
        cluster.check_same(topic)
        for leader in (OTTLA_ID, KAFKA_ID):
            cluster.lead(topic, dict.fromkeys(range(PARTITIONS), leader))
            found = consumed(cluster.bootstrap, topic, isolation_level="read_committed")
            assert [set(values) for values in found] == committed
        cluster.check_same(topic)

    @LENGTHY
    def test_one_dies_and_comes_back_under_traffic(self, cluster: Cluster) -> None:
        topic = "dying"
        cluster.create(topic, min_insync_replicas="1")
        cluster.wait_until_in_sync(topic)
        with Traffic(cluster.bootstrap, topic).running() as traffic:
            for _ in range(2):
                traffic.wait_for_more(500)
                cluster.other.kill()
                traffic.wait_for_more(500)
                cluster.other.start()
                cluster.wait_until_in_sync(topic)
                cluster.lead(topic, dict.fromkeys(range(PARTITIONS), cluster.other_id))
        cluster.check_same(topic)
        check_all_there(traffic, consumed(cluster.bootstrap, topic))

    @LENGTHY
    def test_what_only_a_dead_leader_had_goes_from_its_log(self, cluster: Cluster) -> None:
        """With acks=1 it has acknowledged more than its follower got: KIP-101."""
        topic = "diverging"
        cluster.create(topic, min_insync_replicas="1")
        cluster.wait_until_in_sync(topic)
        cluster.lead(topic, dict.fromkeys(range(PARTITIONS), cluster.other_id))
        settings = {"acks": "1", "enable_idempotence": "false"}
        with Traffic(cluster.bootstrap, topic, **settings).running() as traffic:
            traffic.wait_for_more(2000)
            cluster.other.kill()
            wait_until(
                lambda: all(leader == cluster.steady_id for leader, _ in cluster.states(topic)),
                "the other one leads",
            )
            traffic.wait_for_more(500)
            cluster.other.start()
            cluster.wait_until_in_sync(topic)
        cluster.check_same(topic)

    @LENGTHY
    def test_the_controller_dies_and_comes_back_under_traffic(self, cluster: Cluster) -> None:
        """Nobody else leads meanwhile, and what the other one leads goes on."""
        topic = "dying-controller"
        cluster.create(topic, min_insync_replicas="1")
        cluster.wait_until_in_sync(topic)
        leaders = {index: KAFKA_ID if index % 2 else OTTLA_ID for index in range(PARTITIONS)}
        with Traffic(cluster.bootstrap, topic).running() as traffic:
            for _ in range(2):
                cluster.lead(topic, leaders)
                traffic.wait_for_more(500)
                cluster.steady.kill()
                cluster.steady.start()
                cluster.wait_until_in_sync(topic)
        cluster.check_same(topic)
        check_all_there(traffic, consumed(cluster.bootstrap, topic))

    def test_deleted_records_go_from_both(self, cluster: Cluster) -> None:
        topic = "deleting"
        cluster.create(topic, min_insync_replicas="2")
        with Traffic(cluster.bootstrap, topic).running() as traffic:
            traffic.wait_for_more(1000)
        cluster.check_same(topic)
        for leader, offset in ((OTTLA_ID, 50), (KAFKA_ID, 101)):
            cluster.lead(topic, dict.fromkeys(range(PARTITIONS), leader))
            admin = AdminClient({"bootstrap.servers": cluster.bootstrap})  # that of before may still be shy
            for index in range(PARTITIONS):
                wanted = TopicPartition(topic, index, offset)
                try:
                    assert admin.delete_records([wanted])[wanted].result(30).low_watermark == offset
                except (KafkaException, TimeoutError) as error:
                    raise AssertionError(f"{leader} leads partition {index}: {error}") from error
