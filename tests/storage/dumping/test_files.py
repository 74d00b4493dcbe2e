"""What files of each kind are shown as, sound and damaged."""

import base64

import pytest

from protocol.records.builder import build_batch
from protocol.schema import Message
from protocol.stored.coordinator_records import encode_key, encode_value
from protocol.stored.group_records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    OffsetCommitKey,
    OffsetCommitValue,
)
from protocol.stored.share_records import ShareSnapshotKey, ShareSnapshotValue, StateBatch
from protocol.stored.transaction_records import TransactionLogKey, TransactionLogValue
from storage.dumping.files import AUTO, UnknownFile, Wanted, dump_file, topic_of
from storage.dumping.values import Item
from tests.storage.verification.directories import (
    CLUSTER_ID,
    DATA,
    EVENTS,
    METADATA_LOG,
    TIME,
    TOPICS,
    Directory,
)

FIRST_LOG = f"{EVENTS}/00000000000000000000.log"
LAST_LOG = f"{EVENTS}/00000000000000000075.log"
RECORDS = Wanted(shows_records=True)


@pytest.fixture
def directory() -> Directory:
    directory = Directory()
    directory.fill()
    return directory


def dump(directory: Directory, path: str, wanted: Wanted | None = None) -> list[Item]:
    return list(dump_file(directory.file_system, path, wanted or Wanted(), lambda count: None))


def kinds(items: list[Item]) -> list[str]:
    return [item["kind"] for item in items]


def test_batches_are_shown_with_their_headers(directory: Directory) -> None:
    items = dump(directory, LAST_LOG)
    assert kinds(items) == ["batch", "batch"]
    assert items[1].pop("crc") > 0
    assert items[1] == {
        "kind": "batch", "position": 78, "baseOffset": 76, "lastOffset": 76, "count": 1,
        "baseSequence": 10, "lastSequence": 10, "producerId": 20, "producerEpoch": 0,
        "partitionLeaderEpoch": 3, "isTransactional": True, "isControl": False, "deleteHorizonMs": None,
        "timestampType": "CreateTime", "baseTimestamp": TIME, "maxTimestamp": TIME, "size": 72, "magic": 2,
        "compression": "none", "isValid": True,
    }  # fmt: skip


def test_records_are_shown_when_they_are_wanted(directory: Directory) -> None:
    items = dump(directory, LAST_LOG, RECORDS)
    assert kinds(items) == ["batch", "record", "batch", "record"]
    assert items[1]["controlType"] == "ABORT"
    assert items[1]["value"] == {"name": "EndTxnMarker", "version": 0, "data": {"coordinatorEpoch": 0}}
    assert items[3] == {
        "kind": "record", "offset": 76, "timestamp": TIME, "keySize": -1, "valueSize": 4, "sequence": 10,
        "headers": [], "key": None, "value": "open",
    }  # fmt: skip


def test_every_codec_is_read(directory: Directory) -> None:
    items = dump(directory, FIRST_LOG, RECORDS)
    codecs = {item["compression"] for item in items if item["kind"] == "batch"}
    assert codecs == {"none", "gzip", "snappy", "lz4", "zstd"}
    values = [item["value"] for item in items if item["kind"] == "record"]
    assert values[:3] == [
        "value 0 of many that are alike",
        "value 0 of many that are alike",
        "value 1 of many that are alike",
    ]


def test_a_copy_may_have_a_short_name(directory: Directory) -> None:
    directory.put(f"{DATA}/5.log", bytes(build_batch([(TIME, b"k", b"v", ())], base_offset=5)))
    assert [item["kind"] for item in dump(directory, f"{DATA}/5.log", RECORDS)] == ["batch", "record"]


def test_what_is_no_text_is_shown_as_base64(directory: Directory) -> None:
    path = f"{DATA}/00000000000000000005.log"
    headers = ((b"h", None), (b"i", b"\xff"))
    directory.put(path, bytes(build_batch([(TIME, b"\xff\x00", b"", headers)], base_offset=5)))
    record = dump(directory, path, RECORDS)[1]
    encoded = {"base64": base64.b64encode(b"\xff\x00").decode()}
    assert (record["key"], record["value"]) == (encoded, "")
    assert record["headers"] == [["h", None], ["i", {"base64": "/w=="}]]


def test_indexes_are_shown_with_their_offsets(directory: Directory) -> None:
    first, *rest = dump(directory, f"{EVENTS}/00000000000000000026.index")
    assert first["kind"] == "offsetIndexEntry"
    assert first["offset"] >= 26
    assert all(item["position"] > first["position"] for item in rest)
    entries = dump(directory, f"{EVENTS}/00000000000000000026.timeindex")
    assert entries[-1]["kind"] == "timeIndexEntry"
    assert entries[-1]["timestamp"] == TIME + 1000
    assert dump(directory, f"{EVENTS}/00000000000000000075.txnindex") == [
        {"kind": "abortedTransaction", "version": 0, "producerId": 20, "firstOffset": 70, "lastOffset": 75,
         "lastStableOffset": 76},
    ]  # fmt: skip


def test_the_room_that_kafka_keeps_in_an_index_is_named(directory: Directory) -> None:
    path = f"{EVENTS}/00000000000000000026.index"
    size = len(directory.read(path))
    directory.change(path, lambda content: content + bytes(800))
    assert dump(directory, path)[-1] == {"kind": "padding", "position": size, "size": 800}


def test_producers_are_shown(directory: Directory) -> None:
    items = dump(directory, f"{EVENTS}/00000000000000000077.snapshot")
    assert items[-2] == {
        "kind": "producer", "producerId": 20, "producerEpoch": 0, "coordinatorEpoch": 0,
        "currentTxnFirstOffset": 76, "lastTimestamp": TIME, "firstSequence": 10, "lastSequence": 10,
        "lastOffset": 76, "offsetDelta": 0,
    }  # fmt: skip
    assert items[-1]["currentTxnFirstOffset"] is None


def test_small_files_are_shown(directory: Directory) -> None:
    assert dump(directory, f"{EVENTS}/leader-epoch-checkpoint")[:2] == [
        {"kind": "leaderEpoch", "epoch": 0, "startOffset": 0},
        {"kind": "leaderEpoch", "epoch": 1, "startOffset": 38},
    ]
    assert {"kind": "checkpoint", "topic": "events", "partition": 0, "offset": 77} in dump(
        directory, f"{DATA}/recovery-point-offset-checkpoint"
    )
    (properties,) = dump(directory, f"{DATA}/meta.properties")
    assert (properties["cluster.id"], properties["node.id"]) == (CLUSTER_ID, "1")
    assert dump(directory, f"{EVENTS}/partition.metadata") == [
        {"kind": "partitionMetadata", "topicId": "AAECAwQFBgcICQoLDA0ODw"}
    ]
    (state,) = dump(directory, f"{METADATA_LOG}/quorum-state")
    assert (state["leaderId"], state["leaderEpoch"], state["votedDirectoryId"]) == (1, 1, "A" * 22)
    assert dump(directory, f"{DATA}/.kafka_cleanshutdown") == [{"kind": "cleanShutdown", "brokerEpoch": -1}]


def test_metadata_is_decoded(directory: Directory) -> None:
    items = dump(directory, f"{METADATA_LOG}/00000000000000000000.log", RECORDS)
    records = [item for item in items if item["kind"] == "record"]
    assert records[0]["controlType"] == "LEADER_CHANGE"
    assert records[0]["value"]["data"]["leaderId"] == 1
    topics = [item["value"]["data"]["name"] for item in records if item["value"]["name"] == "TopicRecord"]
    assert topics == list(TOPICS)
    snapshot = dump(directory, f"{METADATA_LOG}/00000000000000000006-0000000001.checkpoint")
    shown = [item for item in snapshot if item["kind"] == "record"]
    assert [item.get("controlType") for item in (shown[0], shown[-1])] == [
        "SNAPSHOT_HEADER",
        "SNAPSHOT_FOOTER",
    ]
    assert shown[1]["value"]["name"] == "RegisterBrokerRecord"
    raw = dump(directory, f"{METADATA_LOG}/00000000000000000000.log", Wanted(True, None))
    assert "name" not in str(raw[3]["value"])[:3]


def coordinator_log(
    directory: Directory, topic: str, key: Message, value: Message | None, version: int
) -> str:
    folder = f"{DATA}/{topic}-3"
    directory.file_system.make_directory(folder)
    path = f"{folder}/00000000000000000000.log"
    data = None if value is None else encode_value(value, version)
    directory.put(path, bytes(build_batch([(TIME, encode_key(key), data, ())])))
    return path


@pytest.mark.parametrize(
    ("topic", "key", "value", "version", "shown_key", "shown_value"),
    [
        (
            "__consumer_offsets",
            OffsetCommitKey(group="g", topic="t", partition=2),
            OffsetCommitValue(offset=5, leader_epoch=1, metadata="m", commit_timestamp=7),
            3,
            {"type": 1, "name": "OffsetCommitKey", "data": {"group": "g", "topic": "t", "partition": 2}},
            {
                "name": "OffsetCommitValue",
                "version": 3,
                "data": {"offset": 5, "leaderEpoch": 1, "metadata": "m", "commitTimestamp": 7},
            },
        ),
        (
            "__consumer_offsets",
            ConsumerGroupCurrentMemberAssignmentKey(group_id="g", member_id="m"),
            None,
            0,
            {
                "type": 8,
                "name": "ConsumerGroupCurrentMemberAssignmentKey",
                "data": {"groupId": "g", "memberId": "m"},
            },
            None,
        ),
        (
            "__transaction_state",
            TransactionLogKey(transactional_id="x"),
            TransactionLogValue(producer_id=4, producer_epoch=1, previous_producer_id=3),
            1,
            {"type": 0, "name": "TransactionLogKey", "data": {"transactionalId": "x"}},
            {
                "name": "TransactionLogValue",
                "version": 1,
                "data": {
                    "producerId": 4,
                    "previousProducerId": 3,
                    "producerEpoch": 1,
                    "transactionTimeoutMs": 0,
                    "transactionStatus": "Empty",
                    "transactionPartitions": [],
                    "transactionLastUpdateTimestampMs": 0,
                    "transactionStartTimestampMs": 0,
                },
            },
        ),
        (
            "__share_group_state",
            ShareSnapshotKey(group_id="g", topic_id=bytes(15) + b"\x09", partition=1),
            ShareSnapshotValue(snapshot_epoch=1, state_batches=[StateBatch(first_offset=2, last_offset=3)]),
            0,
            {
                "type": 0,
                "name": "ShareSnapshotKey",
                "data": {"groupId": "g", "topicId": "AAAAAAAAAAAAAAAAAAAACQ", "partition": 1},
            },
            {
                "name": "ShareSnapshotValue",
                "version": 0,
                "data": {
                    "snapshotEpoch": 1,
                    "stateEpoch": 0,
                    "leaderEpoch": 0,
                    "startOffset": 0,
                    "createTimestamp": 0,
                    "writeTimestamp": 0,
                    "stateBatches": [
                        {"firstOffset": 2, "lastOffset": 3, "deliveryState": 0, "deliveryCount": 0}
                    ],
                },
            },
        ),
    ],
)
def test_coordinators_records_are_decoded(
    directory: Directory,
    topic: str,
    key: Message,
    value: Message | None,
    version: int,
    shown_key: Item,
    shown_value: Item | None,
) -> None:
    path = coordinator_log(directory, topic, key, value, version)
    record = dump(directory, path, RECORDS)[1]
    assert record["key"] == shown_key
    assert record["value"] == shown_value


def test_records_of_unknown_types_are_shown_as_they_are(directory: Directory) -> None:
    path = f"{DATA}/00000000000000000000.log"
    directory.put(path, bytes(build_batch([(TIME, b"\x00\x63new", b"\x00\x00", ())])))
    record = dump(directory, path, Wanted(True, "offsets"))[1]
    assert (record["key"], record["value"]) == ("\x00cnew", "\x00\x00")


def test_records_that_cannot_be_decoded_are_shown_and_named(directory: Directory) -> None:
    path = f"{DATA}/00000000000000000000.log"
    records = [(TIME, b"\x00\x01\x00", b"", ()), (TIME, None, b"", ())]
    directory.put(path, bytes(build_batch(records)))
    items = dump(directory, path, Wanted(True, "offsets"))
    assert kinds(items) == ["batch", "record", "damage", "record", "damage"]
    assert items[4]["text"] == "the record at offset 1: a coordinator's record without a key"


@pytest.mark.parametrize(
    ("path", "decoder", "topic"),
    [
        ("data/__consumer_offsets-7/0.log", AUTO, "__consumer_offsets"),
        ("data/__consumer_offsets-7.0123456789abcdef-stray/0.log", AUTO, "__consumer_offsets"),
        ("data/events-7/0.log", AUTO, None),
        ("data/events-7/0.log", "share", "__share_group_state"),
        ("data/__cluster_metadata-0/0.log", None, None),
        ("0.log", AUTO, None),
    ],
)
def test_the_folder_says_what_records_mean(path: str, decoder: str | None, topic: str | None) -> None:
    assert topic_of(path, decoder) == topic


# Damage


def test_behind_a_damage_the_rest_is_shown(directory: Directory) -> None:
    sound = dump(directory, FIRST_LOG, RECORDS)
    directory.patch(FIRST_LOG, 70, b"?")
    items = dump(directory, FIRST_LOG, RECORDS)
    assert items[0] == {**sound[0], "isValid": False}
    assert items[1]["kind"] == "damage"
    assert items[1]["position"] == 0
    assert items[1]["text"].startswith("the CRC is ")
    assert items[2:] == sound[2:]


def test_a_torn_log_is_shown_up_to_its_end(directory: Directory) -> None:
    sound = dump(directory, FIRST_LOG)
    directory.change(FIRST_LOG, lambda content: content[:-1])
    items = dump(directory, FIRST_LOG)
    assert items[:-1] == sound[:-1]
    assert items[-1]["position"] == sound[-1]["position"]
    assert "passed over" in items[-1]["text"]


@pytest.mark.parametrize(
    ("path", "content", "text"),
    [
        (
            f"{EVENTS}/00000000000000000026.index",
            b"\0\0\0\5\0\0\0\5\0\0\0\4\0\0\0\6",
            "entry 1 does not follow",
        ),
        (f"{EVENTS}/00000000000000000026.timeindex", b"abc", "the last 3 bytes are no whole entry"),
        (f"{EVENTS}/00000000000000000077.snapshot", b"\0\1abcdefgh", "wrong CRC"),
        (f"{EVENTS}/leader-epoch-checkpoint", b"0\n1\n0\n", "malformed line '0'"),
        (f"{DATA}/replication-offset-checkpoint", b"7\n", "unknown version '7'"),
        (f"{DATA}/meta.properties", b"version=1\n", "cluster.id is missing"),
        (f"{DATA}/meta.properties", b"\xff", "not a text file"),
        (f"{EVENTS}/partition.metadata", b"", "malformed: ''"),
        (f"{METADATA_LOG}/quorum-state", b"x", "not a JSON object"),
    ],
)
def test_damaged_files_are_named(directory: Directory, path: str, content: bytes, text: str) -> None:
    directory.put(path, content)
    assert text in dump(directory, path)[-1]["text"]
    assert kinds(dump(directory, path))[-1] == "damage"


@pytest.mark.parametrize("name", ["README.md", "x.log", "00000000000000000000.txt", "recovery-point"])
def test_other_files_are_refused(directory: Directory, name: str) -> None:
    directory.put(f"{DATA}/{name}", b"")
    with pytest.raises(UnknownFile, match="is not named like a file of a log directory"):
        dump(directory, f"{DATA}/{name}")


@pytest.mark.parametrize(
    "name",
    ["00000000000000000000.log", "00000000000000000000.index", "00000000000000000000.snapshot",
     "leader-epoch-checkpoint", "partition.metadata", "quorum-state", "meta.properties",
     "cleaner-offset-checkpoint", ".kafka_cleanshutdown", "00000000000000000000-0000000000.checkpoint"],
)  # fmt: skip
def test_files_that_do_not_exist_are_named(directory: Directory, name: str) -> None:
    directory.file_system.make_directory(f"{DATA}/nowhere")
    assert "No such file" in dump(directory, f"{DATA}/nowhere/{name}")[-1]["text"]


@pytest.mark.parametrize("suffix", [".deleted", ".cleaned", ".swap"])
def test_files_with_a_mark_are_shown_as_what_they_are(directory: Directory, suffix: str) -> None:
    sound = dump(directory, FIRST_LOG)
    directory.file_system.rename(FIRST_LOG, FIRST_LOG + suffix)
    assert dump(directory, FIRST_LOG + suffix) == sound
