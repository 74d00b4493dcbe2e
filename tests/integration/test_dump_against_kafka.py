"""``ottla dump`` and Kafka's own ``kafka-dump-log`` say the same of the same files."""

import json
import random
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from compat.oracle.jars import KafkaMissing, find_jars
from compat.oracle.java import run_tool
from protocol.primitives import STRING
from protocol.records.builder import build_batch
from protocol.schema import Message
from protocol.stored import group_records, share_records, transaction_records
from protocol.stored.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscription,
    ConsumerProtocolSubscriptionTopicPartition,
)
from protocol.stored.coordinator_records import encode_key, encode_value
from protocol.stored.group_records import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from protocol.stored.metadata_records import RECORD_TYPES, encode_metadata_record
from storage.filesystem import RealFileSystem
from tests.protocol.random_messages import RandomMessages
from tests.storage.verification.directories import TIME, Directory

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
Item = dict[str, Any]


@pytest.fixture(scope="module", autouse=True)
def kafka_jars() -> Path:
    """The folder of Kafka's jars."""
    try:
        return find_jars()
    except KafkaMissing as missing:
        pytest.skip(f"Apache Kafka is not to be had: {missing}")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log directory with some of everything."""
    folder = tmp_path_factory.mktemp("dumped") / "data"
    Directory(RealFileSystem(), str(folder)).fill()
    return folder


def by_ottla(*words: str | Path) -> list[Item]:
    command = [sys.executable, "-m", "ottla", "dump", "--json", *map(str, words)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout[-2000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


def by_kafka(files: Iterable[Path], *options: str) -> list[str]:
    """The lines that Kafka's tool prints of the files' content."""
    done = run_tool("kafka-dump-log", "--files", ",".join(map(str, files)), *options)
    assert done.exit_code == 0, done.output + done.errors
    # The tool repeats at the end what it found wrong.
    assert "Found " not in done.output, done.output[-2000:]
    assert "isvalid: false" not in done.output
    heading = ("Dumping ", "Log starting")
    return [line for line in done.output.splitlines() if line and not line.startswith(heading)]


def fields(line: str) -> dict[str, str]:
    return dict(re.findall(r"(\w+): (\S+)", line))


def files_of(data: Path, suffix: str) -> list[Path]:
    return sorted(path for path in data.glob(f"*-0/*{suffix}") if "__cluster_metadata" not in str(path))


# Logs

RECORD = re.compile(
    r"\| offset: (?P<offset>\d+) (?P<type>CreateTime|LogAppendTime): (?P<timestamp>-?\d+) "
    r"keySize: (?P<keySize>-?\d+) valueSize: (?P<valueSize>-?\d+) sequence: (?P<sequence>-?\d+) "
    r"headerKeys: \[(?P<headers>.*?)\](?P<rest>.*)"
)
MARKER = re.compile(r" endTxnMarker: (?P<type>\w+) coordinatorEpoch: (?P<epoch>-?\d+)")


def check_batch(line: str, item: Item) -> None:
    said = fields(line)
    for name in (
        "baseOffset", "lastOffset", "count", "baseSequence", "lastSequence", "producerId", "producerEpoch",
        "partitionLeaderEpoch", "position", "size", "magic", "crc",
    ):  # fmt: skip
        assert int(said[name]) == item[name], (name, line, item)
    assert said["isTransactional"] == str(item["isTransactional"]).lower()
    assert said["isControl"] == str(item["isControl"]).lower()
    horizon = re.search(r"deleteHorizonMs: OptionalLong(?:\.empty|\[(\d+)\])", line)
    assert horizon is not None
    assert item["deleteHorizonMs"] == (int(horizon[1]) if horizon[1] else None)
    assert int(said[item["timestampType"]]) == item["maxTimestamp"]
    assert said["compresscodec"] == item["compression"]


def check_record(line: str, item: Item) -> str:
    """Compare all but the key and the value; what Kafka says of these is the answer."""
    said = RECORD.fullmatch(line)
    assert said is not None, line
    for name in ("offset", "timestamp", "keySize", "valueSize", "sequence"):
        assert int(said[name]) == item[name], (name, line, item)
    assert said["headers"] == ",".join(name for name, _ in item["headers"])
    return said["rest"]


def test_logs_of_every_codec_with_transactions_and_compaction(data: Path) -> None:
    logs = files_of(data, ".log")
    said = by_kafka(logs, "--print-data-log", "--deep-iteration")
    items = by_ottla("--records", *logs)
    assert len(said) == len(items) > 150
    for line, item in zip(said, items, strict=True):
        if item["kind"] == "batch":
            check_batch(line, item)
            continue
        rest = check_record(line, item)
        marker = MARKER.fullmatch(rest)
        if marker is not None:
            assert marker["type"] == item["controlType"]
            assert int(marker["epoch"]) == item["value"]["data"]["coordinatorEpoch"]
            continue
        key = "" if item["key"] is None else f" key: {item['key']}"
        assert rest == f"{key} payload: {item['value']}"


def test_indexes_and_producer_snapshots(data: Path) -> None:
    names = {
        ".index": ("offset", "position"),
        ".timeindex": ("timestamp", "offset"),
        ".txnindex": ("version", "producerId", "firstOffset", "lastOffset", "lastStableOffset"),
        ".snapshot": (
            "producerId", "producerEpoch", "coordinatorEpoch", "currentTxnFirstOffset", "lastTimestamp",
            "firstSequence", "lastSequence", "lastOffset", "offsetDelta",
        ),
    }  # fmt: skip
    for suffix, wanted in names.items():
        files = files_of(data, suffix)
        items = by_ottla(*files)
        assert items
        said = [line for line in by_kafka(files) if ": " in line]
        for line, item in zip(said, items, strict=True):
            words = fields(line)
            numbers = {name: int(word) for name, word in words.items() if word.lstrip("-").isdigit()}
            start = re.search(r"currentTxnFirstOffset: OptionalLong\[(\d+)\]", line)
            if start is not None:
                numbers["currentTxnFirstOffset"] = int(start[1])
            if suffix == ".snapshot":
                del numbers["timestamp"]  # the same as the last one
            expected = {name: item[name] for name in wanted if item[name] is not None}
            assert numbers == expected, (line, item)


def test_kafka_finds_our_indexes_sound(data: Path) -> None:
    by_kafka([*files_of(data, ".index"), *files_of(data, ".timeindex")], "--verify-index-only")


# Internal topics


def assert_same(said: Any, shown: Any, where: str) -> None:
    """Kafka's JSON may leave out tagged fields, and writes some kinds in another way."""
    if isinstance(said, dict):
        assert isinstance(shown, dict), where
        assert said.keys() == shown.keys(), where
        for name, value in said.items():
            assert_same(value, shown[name], f"{where}.{name}")
    elif isinstance(said, list):
        assert len(said) == len(shown), where
        for number, value in enumerate(said):
            assert_same(value, shown[number], f"{where}[{number}]")
    else:
        assert said == shown, where


class PlainMessages(RandomMessages):
    """Random messages that come through a tool that prints lines: without control characters."""

    def sized(self, kind: Any) -> Any:
        if kind is STRING:
            return "".join(self.chance.choices('abcé漢-._ {}"\\', k=self.chance.randrange(12)))
        return self.chance.randbytes(self.chance.randrange(12))


def write_log(folder: Path, records: list[tuple[bytes | None, bytes | None]]) -> Path:
    folder.mkdir()
    path = folder / "00000000000000000000.log"
    batches = [
        build_batch([(TIME, key, value, ())], base_offset=number, partition_leader_epoch=0)
        for number, (key, value) in enumerate(records)
    ]
    path.write_bytes(b"".join(batches))
    return path


Classes = Mapping[int, type[Message]]

TOPICS: dict[str, tuple[str, Classes, Classes]] = {
    "__consumer_offsets": ("--offsets-decoder", group_records.KEY_TYPES, group_records.VALUE_TYPES),
    "__transaction_state": (
        "--transaction-log-decoder",
        {0: transaction_records.TransactionLogKey},
        {0: transaction_records.TransactionLogValue},
    ),
    "__share_group_state": (
        "--share-group-state-decoder",
        share_records.KEY_TYPES,
        share_records.VALUE_TYPES,
    ),
}


def test_what_consumers_of_a_classic_group_wrote(tmp_path: Path) -> None:
    topics = ["orders", "é"]
    owned = [ConsumerProtocolSubscriptionTopicPartition(topic="orders", partitions=[1, 2])]
    subscription = ConsumerProtocolSubscription(
        topics=topics, user_data=b"\xff", owned_partitions=owned, generation_id=4, rack_id="r"
    )
    assignment = ConsumerProtocolAssignment(
        assigned_partitions=[ConsumerProtocolAssignmentTopicPartition(topic="orders", partitions=[0])]
    )
    members = [
        MemberMetadata(
            member_id="m",
            client_id="c",
            client_host="/127.0.0.1",
            subscription=version.to_bytes(2) + subscription.encode(min(version, 3)),
            assignment=version.to_bytes(2) + assignment.encode(min(version, 3)),
        )
        for version in (0, 1, 2, 3, 5)
    ]
    members.append(MemberMetadata(member_id="m", subscription=b"\xff\xff", assignment=b""))
    key = encode_key(GroupMetadataKey(group="g"))
    value = GroupMetadataValue(protocol_type="consumer", protocol="range", leader="m", members=members)
    other = GroupMetadataValue(protocol_type="connect", protocol="range", leader="m", members=members)
    log = write_log(
        tmp_path / "__consumer_offsets-0", [(key, encode_value(each, 3)) for each in (value, other)]
    )
    said = [line for line in by_kafka([log], "--offsets-decoder") if line.startswith("|")]
    items = [item for item in by_ottla("--records", log) if item["kind"] == "record"]
    for line, item in zip(said, items, strict=True):
        payload = json.loads(line.partition(" payload: ")[2])
        assert_same(payload["data"], item["value"]["data"], "")


def test_states_of_transactions(tmp_path: Path) -> None:
    key = encode_key(transaction_records.TransactionLogKey(transactional_id="x"))
    values = [
        encode_value(transaction_records.TransactionLogValue(transaction_status=status), 1)
        for status in range(10)
    ]
    log = write_log(tmp_path / "__transaction_state-0", [(key, value) for value in values])
    said = [line for line in by_kafka([log], "--transaction-log-decoder") if line.startswith("|")]
    items = [item for item in by_ottla("--records", log) if item["kind"] == "record"]
    states = [re.findall(r'"transactionStatus":"(\w+)"', line)[0] for line in said]
    assert [item["value"]["data"]["transactionStatus"] for item in items] == states


@pytest.mark.parametrize("topic", TOPICS)
def test_records_of_coordinators(topic: str, tmp_path: Path, chance: random.Random) -> None:
    option, keys, values = TOPICS[topic]
    made = PlainMessages(chance)
    records: list[tuple[bytes | None, bytes | None]] = []
    for record_type, key_class in keys.items():
        for version in values[record_type].versions:
            key = encode_key(made.message(key_class, 0))
            records.append((key, encode_value(made.message(values[record_type], version), version)))
        records.append((encode_key(made.message(key_class, 0)), None))
    log = write_log(tmp_path / f"{topic}-0", records)
    said = [line for line in by_kafka([log], option) if line.startswith("|")]
    items = [item for item in by_ottla("--records", log) if item["kind"] == "record"]
    for line, item in zip(said, items, strict=True):
        rest = check_record(line, item)
        key_said, end = json.JSONDecoder().raw_decode(rest.removeprefix(" key: "))
        value_text = rest.removeprefix(" key: ")[end:].removeprefix(" payload: ")
        assert int(key_said["type"]) == item["key"]["type"]
        assert_same(key_said["data"], item["key"]["data"], f"{item['key']['name']} {line}")
        if item["value"] is None:
            assert value_text in ("null", "<DELETE>")
            continue
        value_said = json.loads(value_text)
        assert int(value_said["version"]) == item["value"]["version"]
        assert_same(value_said["data"], item["value"]["data"], f"{item['value']['name']} {line}")


def test_records_of_the_metadata_log(tmp_path: Path, chance: random.Random) -> None:
    made = PlainMessages(chance)
    records: list[tuple[bytes | None, bytes | None]] = [
        (None, encode_metadata_record(made.message(kind, version), version))
        for kind in RECORD_TYPES.values()
        for version in kind.versions
    ]
    log = write_log(tmp_path / "__cluster_metadata-0", records)
    said = [line for line in by_kafka([log], "--cluster-metadata-decoder") if line.startswith("|")]
    items = [item for item in by_ottla("--records", log) if item["kind"] == "record"]
    for line, item in zip(said, items, strict=True):
        rest = check_record(line, item)
        value_said = json.loads(rest.removeprefix(" payload: "))
        name = value_said["type"].title().replace("_", "")
        assert name.lower() == item["value"]["name"].lower()
        assert int(value_said["version"]) == item["value"]["version"]
        assert_same(value_said["data"], item["value"]["data"], line)


def test_the_metadata_log_and_its_snapshot(data: Path) -> None:
    folder = data / "__cluster_metadata-0"
    files = [folder / "00000000000000000000.log", *folder.glob("*.checkpoint")]
    lines = by_kafka(files, "--cluster-metadata-decoder")
    said = [line for line in lines if line.startswith(("|", "baseOffset: "))]
    items = by_ottla("--records", *files)
    for line, item in zip(said, items, strict=True):
        if item["kind"] == "batch":
            check_batch(line, item)
            continue
        rest = check_record(line, item)
        if "controlType" in item:
            name, _, text = rest.strip().partition(" ")
            assert name.lower().rstrip(":") == item["controlType"].replace("_", "").lower()
            assert_same(json.loads(text), item["value"]["data"], line)
        else:
            assert_same(json.loads(rest.removeprefix(" payload: "))["data"], item["value"]["data"], line)
