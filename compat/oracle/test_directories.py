"""One data directory, opened by Kafka and by us in turn."""

import random
from pathlib import Path

import pytest

from compat.broker_process import BrokerProcess
from compat.oracle.conversations.quotas import ANY, PRODUCE, USER, describe, give
from compat.oracle.java import run_tool
from compat.oracle.kafka import KafkaNode, kafka_node
from compat.oracle.names import Names, Origin
from compat.oracle.preparing import Preparing
from compat.python_clients import CLIENTS
from compat.scenarios.python.client import Place, Record
from compat.scenarios.python.records import differences, sample_records
from compat.scenarios.python.stage import Stage
from compat.verification import damages
from compat.waiting import wait_until
from protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

pytestmark = pytest.mark.slow

CLUSTER_LOG = "__cluster_metadata-0"


def create(address: str, topic: str, partition_count: int) -> None:
    with Stage(CLIENTS["confluent-kafka"], address) as stage:
        stage.topic(partition_count, name=topic)


def produce(address: str, topic: str, codec: str, seed: int) -> dict[Place, Record]:
    """Some records in an existing topic, by place."""
    records = sample_records(200, random.Random(seed))
    with Stage(CLIENTS["confluent-kafka"], address) as stage:
        places = stage.send(topic, records, codec=codec, idempotent=True)
    return dict(zip(places, records, strict=True))


def check(address: str, topic: str, partition_count: int, expected: dict[Place, Record]) -> None:
    with Stage(CLIENTS["confluent-kafka"], address) as stage:
        taken = stage.take(topic, len(expected), partition_count=partition_count)
    assert differences(list(expected.values()), list(expected), taken) == []


class Asking:
    """Requests to whoever serves the directories just now."""

    def __init__(self, address: str) -> None:
        nobody = Origin(address, cluster_id="", log_dir="", began_ms=0)
        self._preparing = Preparing(nobody, "", Names("", nobody))

    def __enter__(self) -> "Asking":
        return self

    def __exit__(self, *_: object) -> None:
        self._preparing.close()

    def homes(self, topic: str) -> dict[int, str]:
        """The name of the directory in which each partition lies; copies under way count as well."""
        answer = self._preparing.quietly(DescribeLogDirsRequest(topics=None))
        assert [result.error_code for result in answer.results] == [0, 0]
        return {
            part.partition_index: Path(result.log_dir).name + (" soon" if part.is_future_key else "")
            for result in answer.results
            for told in result.topics
            for part in told.partitions
            if told.name == topic
        }

    def limit_moves(self, bytes_per_second: int) -> None:
        """For all brokers, and for whoever serves these directories later."""
        rate = AlterableConfig(
            name="replica.alter.log.dirs.io.max.bytes.per.second", value=str(bytes_per_second)
        )
        cluster = AlterConfigsResource(resource_type=4, resource_name="", configs=[rate])
        (answer,) = self._preparing.quietly(IncrementalAlterConfigsRequest(resources=[cluster])).responses
        assert answer.error_code == 0

    def give_quota(self, user: str, bytes_per_second: float) -> None:
        """Let a user produce so much, and return when it is seen."""
        request = give({USER: user}, {PRODUCE: bytes_per_second})
        (answer,) = self._preparing.quietly(request).entries
        assert answer.error_code == 0
        wait_until(lambda: self.quotas().get(user) == bytes_per_second, f"{user} has a quota")

    def quotas(self) -> dict[str | None, float]:
        """What each user may produce."""
        entries = self._preparing.quietly(describe((USER, ANY, None))).entries
        return {entry.entity[0].entity_name: entry.values[0].value for entry in entries}

    def move(self, topic: str, directory: Path, partition_count: int) -> None:
        """Move all partitions of a topic, and return when they are there."""
        self.begin_move(topic, directory, partition_count)
        there = dict.fromkeys(range(partition_count), directory.name)
        wait_until(lambda: self.homes(topic) == there, f"{topic} lies in {directory.name}")

    def begin_move(self, topic: str, directory: Path, partition_count: int) -> None:
        """The same without waiting."""
        partitions = list(range(partition_count))
        wanted = AlterReplicaLogDirTopic(name=topic, partitions=partitions)
        request = AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=str(directory), topics=[wanted])])
        (answer,) = self._preparing.quietly(request).results
        assert [result.error_code for result in answer.partitions] == [0] * partition_count


def ottla_on(node: KafkaNode) -> BrokerProcess:
    """Our broker, with a Kafka node's identity, addresses and directory."""
    broker = BrokerProcess(node.folder / "ottla", node.settings)
    broker.data = node.data
    broker.address = node.bootstrap
    return broker


def test_we_open_what_kafka_closed_and_kafka_what_we_closed(kafka_jars: Path, tmp_path: Path) -> None:
    with kafka_node(tmp_path / "node") as node:
        create(node.bootstrap, "shared", 3)
        expected = produce(node.bootstrap, "shared", "none", 1)
        with Asking(node.bootstrap) as asking:
            asking.give_quota("theirs", 1e9)
    ours = ottla_on(node)
    quotas: dict[str | None, float] = {"theirs": 1e9}
    for turn, codec in enumerate(("lz4", "zstd")):
        ours.start()
        try:
            check(ours.address, "shared", 3, expected)
            expected |= produce(ours.address, "shared", codec, 10 + turn)
            create(ours.address, f"ours-{turn}", 2)
            made_by_us = produce(ours.address, f"ours-{turn}", "gzip", 20 + turn)
            with Asking(ours.address) as asking:
                assert asking.quotas() == quotas
                quotas["ours"] = 1e9 + turn
                asking.give_quota("ours", quotas["ours"])
        finally:
            assert ours.stop() == 0
        assert damages(node.data) == []
        with kafka_node(tmp_path / "node") as node:
            check(node.bootstrap, "shared", 3, expected)
            check(node.bootstrap, f"ours-{turn}", 2, made_by_us)
            with Asking(node.bootstrap) as asking:
                assert asking.quotas() == quotas
                quotas["theirs"] = 2e9 + turn
                asking.give_quota("theirs", quotas["theirs"])
            expected |= produce(node.bootstrap, "shared", "snappy", 30 + turn)
        assert damages(node.data) == []


def test_kafka_opens_what_we_formatted_and_killed(kafka_jars: Path, tmp_path: Path) -> None:
    node = KafkaNode(tmp_path / "node")
    ours = ottla_on(node)
    ours.start()
    create(ours.address, "shared", 2)
    expected = produce(ours.address, "shared", "none", 1)
    ours.kill()
    assert damages(node.data) == []
    with kafka_node(tmp_path / "node") as node:
        check(node.bootstrap, "shared", 2, expected)
        expected |= produce(node.bootstrap, "shared", "none", 2)
        check(node.bootstrap, "shared", 2, expected)


def test_two_log_directories_and_moves_between_them_in_turn(kafka_jars: Path, tmp_path: Path) -> None:
    """Whoever starts finds every partition where the other has put it, and moves none."""
    folder = tmp_path / "node"
    first, second = folder / "data", folder / "data2"
    settings = {"log.dirs": f"{first},{second}"}
    with kafka_node(folder, settings) as node:
        create(node.bootstrap, "shared", 4)
        expected = produce(node.bootstrap, "shared", "lz4", 1)
        with Asking(node.bootstrap) as asking:
            homes = asking.homes("shared")
    assert sorted(homes.values()) == ["data", "data", "data2", "data2"]
    ours = ottla_on(node)
    ours.start()
    try:
        with Asking(ours.address) as asking:
            assert asking.homes("shared") == homes
            asking.move("shared", second, 4)
            create(ours.address, "ours", 4)
            assert set(asking.homes("ours").values()) == {"data"}, "where fewer lie"
        expected |= produce(ours.address, "shared", "none", 2)
        check(ours.address, "shared", 4, expected)
        made_by_us = produce(ours.address, "ours", "gzip", 3)
    finally:
        assert ours.stop() == 0
    assert damages(first, second) == []
    with kafka_node(folder, settings) as node:
        with Asking(node.bootstrap) as asking:
            assert set(asking.homes("shared").values()) == {"data2"}
            assert set(asking.homes("ours").values()) == {"data"}
            asking.move("ours", second, 4)
            asking.move("shared", first, 4)
        check(node.bootstrap, "shared", 4, expected)
        expected |= produce(node.bootstrap, "shared", "zstd", 4)
    assert damages(first, second) == []
    ours.start()
    try:
        with Asking(ours.address) as asking:
            assert set(asking.homes("shared").values()) == {"data"}
            assert set(asking.homes("ours").values()) == {"data2"}
        check(ours.address, "shared", 4, expected)
        check(ours.address, "ours", 4, made_by_us)
    finally:
        assert ours.stop() == 0
    assert damages(first, second) == []
    records = dump(first / CLUSTER_LOG / f"{0:020d}.log", "--cluster-metadata-decoder")
    assert '"directories"' in records


def test_a_move_that_one_has_begun_is_finished_by_the_other(kafka_jars: Path, tmp_path: Path) -> None:
    folder = tmp_path / "node"
    first, second = folder / "data", folder / "data2"
    node = KafkaNode(folder, {"log.dirs": f"{first},{second}"})
    ours = ottla_on(node)
    records = [Record(value=bytes([number]) * 100_000) for number in range(40)]
    ours.start()
    create(ours.address, "large", 1)
    with Asking(ours.address) as asking:
        asking.move("large", first, 1)
        with Stage(CLIENTS["confluent-kafka"], ours.address) as stage:
            places = stage.send("large", records, codec="none")
        asking.limit_moves(1)
        asking.begin_move("large", second, 1)
        wait_until(lambda: is_begun(second), "something is copied")
    assert ours.stop() == 0
    expected = dict(zip(places, records, strict=True))
    with kafka_node(folder, node.settings) as node, Asking(node.bootstrap) as asking:
        asking.limit_moves(1 << 40)
        wait_until(lambda: asking.homes("large") == {0: "data2"}, "Kafka has finished our move")
        check(node.bootstrap, "large", 1, expected)
        asking.limit_moves(1)
        asking.begin_move("large", first, 1)
        wait_until(lambda: is_begun(first), "something is copied")
    ours.start()
    with Asking(ours.address) as asking:
        asking.limit_moves(1 << 40)
        wait_until(lambda: asking.homes("large") == {0: "data"}, "we have finished Kafka's move")
    check(ours.address, "large", 1, expected)
    assert ours.stop() == 0


def is_begun(directory: Path) -> bool:
    """Whether a copy in that directory has records."""
    return any(log.stat().st_size for log in directory.glob("large-0.*-future/*.log"))


def test_kafka_s_dump_reads_our_logs(kafka_jars: Path, tmp_path: Path) -> None:
    ours = BrokerProcess(tmp_path / "ottla")
    ours.start()
    with Stage(CLIENTS["confluent-kafka"], ours.address) as stage:
        stage.topic(name="dumped")
        for codec in ("lz4", "none", "none", "none"):  # several batches, so that the indexes have entries
            stage.send("dumped", sample_records(100), codec=codec, idempotent=True)
    assert ours.stop() == 0
    segment = "00000000000000000000"
    data = dump(ours.data / "dumped-0" / f"{segment}.log", "--print-data-log", "--deep-iteration")
    assert len([line for line in data.splitlines() if line.startswith("| offset:")]) == 400
    assert "isvalid: false" not in data
    for suffix in ("index", "timeindex"):
        printed = dump(ours.data / "dumped-0" / f"{segment}.{suffix}", "--index-sanity-check")
        assert "passed sanity check" in printed
    records = dump(ours.data / CLUSTER_LOG / f"{segment}.log", "--cluster-metadata-decoder")
    assert '"type":"TOPIC_RECORD"' in records
    assert '"name":"dumped"' in records
    assert '"type":"REGISTER_BROKER_RECORD"' in records


def dump(file: Path, *arguments: str) -> str:
    done = run_tool("kafka-dump-log", "--files", str(file), *arguments)
    assert done.exit_code == 0, done.output + done.errors
    return done.output
