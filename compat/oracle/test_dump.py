"""Kafka's dump tool reads every file that we write: of all clients, transactions, groups, compacted logs."""

import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition

from compat.oracle import test_group_directories, test_share_directories
from compat.oracle.batches import batch
from compat.oracle.conversations.produce import produce
from compat.oracle.conversations.transactions import Writer, end
from compat.oracle.java import run_tool
from compat.oracle.kafka import KafkaNode, kafka_node
from compat.oracle.run import STARTING
from compat.oracle.test_directories import create, ottla_on
from compat.oracle.test_group_directories import Client, client_of
from compat.oracle.test_share_directories import sharer_of
from compat.oracle.test_transactions_in_directories import CALL_SECONDS, TOPIC, Transactions, consumer
from compat.python_clients import CLIENTS
from compat.scenarios.python.client import CODECS
from compat.scenarios.python.records import sample_records
from compat.scenarios.python.stage import Stage
from compat.verification import damages
from compat.waiting import wait_until
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from protocol.messages.init_producer_id import InitProducerIdRequest
from protocol.records.compression import Compression

pytestmark = pytest.mark.slow

SETTINGS = {
    "log.cleaner.backoff.ms": "50",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
}
OFFSETS = "__consumer_offsets"
SMALL_SEGMENTS = {"internal.segment.bytes": "3000", "index.interval.bytes": "200"}
SOON_COMPACTED = {"min.cleanable.dirty.ratio": "0.01", "delete.retention.ms": "0"}
TABLE = {"cleanup.policy": "compact", **SMALL_SEGMENTS, **SOON_COMPACTED}
TOPIC_RESOURCE = 2

COMPLAINTS = (
    "isvalid: false",
    "mismatch",
    "Mismatch",
    "not found in",
    "out of order",
    "Out of order",
    "Found non-monotonic",
    "Unexpected",
    "xception",
)
"""What the tool says of files that it does not like; gaps between offsets are what compaction is for."""

CODEC_OF = dict(zip(CODECS, Compression, strict=True))


def change(client: Client, topic: str, settings: dict[str, str]) -> None:
    configs = [AlterableConfig(name=name, value=value) for name, value in settings.items()]
    resource = AlterConfigsResource(resource_type=TOPIC_RESOURCE, resource_name=topic, configs=configs)
    (answer,) = client.quietly(IncrementalAlterConfigsRequest(resources=[resource])).responses
    assert not answer.error_code, answer
    client.settle()


def send_with_all_clients(address: str) -> None:
    for number, client in enumerate(CLIENTS.values()):
        with Stage(client, address) as stage:
            stage.topic(name=f"sent-{number}", settings=SMALL_SEGMENTS)
            for codec in CODECS:
                stage.send(f"sent-{number}", sample_records(40, random.Random(number)), codec=codec)


def write_transactions_by_hand(client: Client) -> None:
    """Two producers in turn, batches of every codec, committed and aborted; and tombstones."""
    with Stage(CLIENTS["confluent-kafka"], client.origin.address) as stage:
        stage.topic(2, SMALL_SEGMENTS, name="made")
        stage.topic(1, TABLE, name="table")
    plain, table = client.known_topic("made"), client.known_topic("table")
    client.until(
        FindCoordinatorRequest(key_type=1, coordinator_keys=["any"]),
        lambda answer: answer.coordinators[0].error_code not in STARTING,
    )
    writers = [
        Writer(name, -1, -1).after(
            client.until(
                InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000),
                lambda answer: not answer.error_code,
            )
        )
        for name in ("one", "other")
    ]
    for turn in range(12):
        for sent, codec in enumerate(CODECS):
            for writer in writers:
                places = [
                    (topic, partition, by_hand(writer, before, f"k{(turn + sent) % 7}", codec))
                    for topic, partition, before in ((plain, sent % 2, sent // 2), (table, 0, sent))
                ]
                answer = client.quietly(produce(*places, transactional_id=writer.id))
                codes = [part.error_code for topic in answer.responses for part in topic.partition_responses]
                assert codes == [0, 0], answer
        writers = [
            writer.after(
                client.until(end(writer, (turn + number) % 2 == 0), lambda answer: not answer.error_code)
            )
            for number, writer in enumerate(writers)
        ]


def by_hand(writer: Writer, batches_before: int, key: str, codec: str) -> bytes:
    """A batch of eight records, some of them tombstones."""
    values = ["value" * number if number % 3 else None for number in range(8)]
    return batch(
        *values,
        key=key,
        compression=CODEC_OF[codec],
        producer=(writer.producer_id, writer.epoch, 8 * batches_before),
        transactional=True,
    )


def commit_and_abort(address: str, places: int) -> None:
    """Transactions with offsets of so many partitions."""
    transactions = Transactions(address)
    for _ in range(3):
        transactions.begin()
        with consumer(address, "two-places") as member:
            offsets = [TopicPartition("made", number, transactions.begun) for number in range(places)]
            transactions.producer.send_offsets_to_transaction(
                offsets, member.consumer_group_metadata(), CALL_SECONDS
            )
        transactions.commit()
        transactions.begin()
        transactions.producer.abort_transaction(CALL_SECONDS)


def dump(files: Sequence[Path], *arguments: str) -> str:
    done = run_tool("kafka-dump-log", "--files", ",".join(map(str, files)), *arguments)
    assert done.exit_code == 0, done.output + done.errors
    assert [line for line in done.output.splitlines() if any(each in line for each in COMPLAINTS)] == []
    assert "xception" not in done.errors
    assert done.output.count("Dumping ") == len(files)
    return done.output


def cleaned_to(data: Path, topic: str) -> int:
    """Up to which offset a topic of one partition has been compacted."""
    checkpoint = data / "cleaner-offset-checkpoint"
    lines = checkpoint.read_text().splitlines()[2:] if checkpoint.exists() else []
    return next((int(line.split()[2]) for line in lines if line.split()[0] == topic), -1)


def test_all_that_we_write_is_read_and_compacted_further(kafka_jars: Path, tmp_path: Path) -> None:
    node = KafkaNode(tmp_path / "node", SETTINGS)
    ours = ottla_on(node)
    ours.start()
    try:
        with client_of(ours.address) as client:
            change(client, OFFSETS, {**SMALL_SEGMENTS, **SOON_COMPACTED})
            test_group_directories.form_groups(client)
            write_transactions_by_hand(client)
        with sharer_of(ours.address) as sharer:
            test_share_directories.form_groups(sharer)
        send_with_all_clients(ours.address)
        create(ours.address, TOPIC, 1)
        commit_and_abort(ours.address, 2)
        wait_until(
            lambda: min(cleaned_to(ours.data, topic) for topic in ("table", OFFSETS)) > 0,
            "both logs are compacted",
        )
    finally:
        assert ours.stop() == 0
    assert damages(ours.data) == []

    def files(*suffixes: str, topic: str = "*") -> list[Path]:
        found = sorted(ours.data.glob(f"{topic}-[0-9]*/*"))
        return [path for path in found if path.suffix in suffixes]

    users = [path for path in files(".log") if not path.parent.name.startswith("__")]
    assert len({path.parent for path in users}) > 10
    printed = dump(users, "--deep-iteration", "--print-data-log")
    for codec in CODECS:
        assert f"compresscodec: {codec}" in printed
    assert "isTransactional: true isControl: true" in printed
    assert "endTxnMarker: ABORT" in printed
    assert "deleteHorizonMs: OptionalLong[" in printed
    indexes = files(".index", ".timeindex")
    dump(indexes, "--verify-index-only")
    sane = dump(indexes, "--index-sanity-check")
    empty = sane.count("is empty")
    assert 0 < empty == sum(path.suffix == ".index" and not path.stat().st_size for path in indexes)
    assert sane.count("passed sanity check") == len(indexes) - empty
    states = dump([*files(".snapshot"), *files(".txnindex")])
    assert "producerId:" in states
    assert "lastStableOffset: " in states

    offsets = dump(files(".log", topic=OFFSETS), "--offsets-decoder", "--deep-iteration")
    assert "endTxnMarker: COMMIT" in offsets
    transactions = dump(
        files(".log", topic="__transaction_state"), "--transaction-log-decoder", "--deep-iteration"
    )
    assert "CompleteAbort" in transactions
    shared = dump(
        files(".log", topic="__share_group_state"), "--share-group-state-decoder", "--deep-iteration"
    )
    assert '"snapshotEpoch"' in shared
    metadata = dump(
        files(".log", ".checkpoint", topic="__cluster_metadata"),
        "--cluster-metadata-decoder",
        "--deep-iteration",
    )
    assert '"type":"TOPIC_RECORD"' in metadata

    end = max(int(path.stem) for path in files(".snapshot", topic=OFFSETS))
    with kafka_node(tmp_path / "node", SETTINGS) as node:
        while (base := max(int(path.stem) for path in files(".log", topic=OFFSETS))) < end + 5:
            commit_and_abort(node.bootstrap, 1)  # which takes one of two records out of a batch of ours
        wait_until(lambda: cleaned_to(node.data, OFFSETS) >= base, "Kafka compacts it", patience_seconds=60)
    assert damages(node.data) == []
