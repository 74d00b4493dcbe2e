"""One data directory, opened by Kafka and by us in turn."""

import random
from pathlib import Path

import pytest

from compat.broker_process import BrokerProcess
from compat.clients import LIBRARIES, make_samples
from compat.clients.library import Place, Sample
from compat.oracle.java import run_tool
from compat.oracle.kafka import KafkaNode, kafka_node

pytestmark = pytest.mark.slow

CLUSTER_LOG = "__cluster_metadata-0"


def produce(address: str, topic: str, codec: str, seed: int) -> dict[Place, Sample]:
    """Some records in an existing topic, by place."""
    samples = make_samples(200, random.Random(seed))
    places = LIBRARIES["confluent-kafka"].produce(address, topic, samples, codec=codec, idempotent=True)
    return dict(zip(places, samples, strict=True))


def check(address: str, topic: str, expected: dict[Place, Sample]) -> None:
    taken = LIBRARIES["confluent-kafka"].consume(address, topic, len(expected))
    assert {record.place: record[1:] for record in taken} == {
        place: sample[1:] for place, sample in expected.items()
    }


def ottla_on(node: KafkaNode) -> BrokerProcess:
    """Our broker, with a Kafka node's identity, addresses and directory."""
    broker = BrokerProcess(node.folder / "ottla", node.settings)
    broker.data = node.data
    broker.address = node.bootstrap
    return broker


def test_we_open_what_kafka_closed_and_kafka_what_we_closed(kafka_jars: Path, tmp_path: Path) -> None:
    library = LIBRARIES["confluent-kafka"]
    with kafka_node(tmp_path / "node") as node:
        library.create_topic(node.bootstrap, "shared", 3)
        expected = produce(node.bootstrap, "shared", "none", 1)
    ours = ottla_on(node)
    for turn, codec in enumerate(("lz4", "zstd")):
        ours.start()
        try:
            check(ours.address, "shared", expected)
            expected |= produce(ours.address, "shared", codec, 10 + turn)
            library.create_topic(ours.address, f"ours-{turn}", 2)
            made_by_us = produce(ours.address, f"ours-{turn}", "gzip", 20 + turn)
        finally:
            assert ours.stop() == 0
        with kafka_node(tmp_path / "node") as node:
            check(node.bootstrap, "shared", expected)
            check(node.bootstrap, f"ours-{turn}", made_by_us)
            expected |= produce(node.bootstrap, "shared", "snappy", 30 + turn)


def test_kafka_opens_what_we_formatted_and_killed(kafka_jars: Path, tmp_path: Path) -> None:
    node = KafkaNode(tmp_path / "node")
    ours = ottla_on(node)
    ours.start()
    LIBRARIES["confluent-kafka"].create_topic(ours.address, "shared", 2)
    expected = produce(ours.address, "shared", "none", 1)
    ours.kill()
    with kafka_node(tmp_path / "node") as node:
        check(node.bootstrap, "shared", expected)
        expected |= produce(node.bootstrap, "shared", "none", 2)
        check(node.bootstrap, "shared", expected)


def test_kafka_s_dump_reads_our_logs(kafka_jars: Path, tmp_path: Path) -> None:
    ours = BrokerProcess(tmp_path / "ottla")
    ours.start()
    library = LIBRARIES["confluent-kafka"]
    library.create_topic(ours.address, "dumped", 1)
    samples = make_samples(100, random.Random(1))
    for codec in ("lz4", "none", "none", "none"):  # several batches, so that the indexes have entries
        library.produce(ours.address, "dumped", samples, codec=codec, idempotent=True)
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
