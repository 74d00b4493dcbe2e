"""Answers become values that two brokers can have in common."""

from compat.oracle.brief import brief_answer
from compat.oracle.names import Names, Origin
from protocol.messages.create_topics import CreatableTopicResult, CreateTopicsResponse
from protocol.messages.describe_log_dirs import DescribeLogDirsResponse, DescribeLogDirsResult
from protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from protocol.messages.find_coordinator import FindCoordinatorResponse
from protocol.messages.heartbeat import HeartbeatResponse
from protocol.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from protocol.messages.list_groups import ListedGroup, ListGroupsResponse
from protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from protocol.messages.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse
from protocol.messages.streams_group_heartbeat import Status, StreamsGroupHeartbeatResponse
from protocol.records.builder import build_batch
from protocol.records.compression import Compression
from protocol.uuids import uuid_to_text

BEGAN_MS = 1_800_000_000_000
ORIGIN = Origin("127.0.0.1:9092", "the-cluster-id", "/somewhere/data", BEGAN_MS)
PREFIX = "o0123abcd-"

FIRST = "aaaaaaaa-0000-4000-8000-000000000001"
SECOND = "bbbbbbbb-0000-4000-8000-000000000002"


def names() -> Names:
    return Names(PREFIX, ORIGIN)


def test_defaults_are_left_out_and_errors_have_names() -> None:
    assert brief_answer(HeartbeatResponse(), names()) == {}
    assert brief_answer(HeartbeatResponse(error_code=25), names()) == {"error_code": "UNKNOWN_MEMBER_ID"}
    assert brief_answer(HeartbeatResponse(error_code=9999), names()) == {"error_code": "error 9999"}


def test_null_and_empty_are_told_apart() -> None:
    partition = PartitionData(aborted_transactions=None, records=b"")
    answer = FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[partition])])
    (told,) = brief_answer(answer, names())["responses"][0]["partitions"]
    assert told == {"aborted_transactions": None, "records": []}


def test_ids_are_named_in_the_order_of_their_appearance() -> None:
    given = names()
    joined = JoinGroupResponse(leader=f"me-{SECOND}", member_id=f"me-{FIRST}")
    assert brief_answer(joined, given) == {"leader": "me-<uuid 1>", "member_id": "me-<uuid 2>"}
    assert brief_answer(JoinGroupResponse(member_id=f"me-{SECOND}"), given) == {"member_id": "me-<uuid 1>"}


def test_a_topic_s_id_is_called_after_it_wherever_it_stands() -> None:
    given = names()
    topic_id = bytes(range(16))
    given.know_topic(f"{PREFIX}t", topic_id)
    answer = CreateTopicsResponse(
        topics=[
            CreatableTopicResult(
                name=f"{PREFIX}t", topic_id=topic_id, error_message=f"{uuid_to_text(topic_id)} is known"
            )
        ]
    )
    (told,) = brief_answer(answer, given)["topics"]
    assert told == {"name": "t", "topic_id": "<id of t>", "error_message": "<id of t> is known"}


def test_rows_in_hash_order_are_sorted_whatever_ids_they_hold() -> None:
    members = [
        JoinGroupResponseMember(member_id=f"b-{FIRST}"),
        JoinGroupResponseMember(member_id=f"a-{SECOND}"),
    ]
    told = brief_answer(JoinGroupResponse(members=members), names())
    assert told == brief_answer(JoinGroupResponse(members=members[::-1]), names())
    assert told["members"] == [{"member_id": "a-<uuid 1>"}, {"member_id": "b-<uuid 2>"}]


def test_names_in_hash_order_are_sorted_where_a_text_lists_them() -> None:
    def told(detail: str) -> str:
        answer = StreamsGroupHeartbeatResponse(status=[Status(status_code=3, status_detail=detail)])
        return str(brief_answer(answer, names())["status"][0]["status_detail"])

    assert told("Topics are missing: c, a-1, b; it failed: a-1 (no c, no b).") == (
        "Topics are missing: a-1, b, c; it failed: a-1 (no c, no b)."
    )
    assert told("Missing: c, a and 2 additional topics") == "Missing: c, a and 2 additional topics"


def test_rows_of_other_conversations_are_left_out() -> None:
    groups = [ListedGroup(group_id=name) for name in (f"{PREFIX}mine", "o99999999-theirs", "common")]
    assert brief_answer(ListGroupsResponse(groups=groups), names()) == {
        "groups": [{"group_id": "common"}, {"group_id": "mine"}]
    }


def test_addresses_are_compared_with_where_the_broker_was_reached() -> None:
    right = FindCoordinatorResponse(host="127.0.0.1", port=9092)
    assert brief_answer(right, names()) == {"host": "<host>", "port": "<port>"}
    wrong = FindCoordinatorResponse(host="localhost", port=9093)
    assert brief_answer(wrong, names()) == {"host": "localhost", "port": 9093}


def test_what_belongs_to_a_place_is_named_or_left_out() -> None:
    directory = DescribeLogDirsResult(log_dir="/somewhere/data", total_bytes=5, usable_bytes=3)
    told = brief_answer(DescribeLogDirsResponse(results=[directory]), names())
    assert told == {"results": [{"log_dir": "<log dir>"}]}


def test_times_of_the_recording_are_now_and_others_themselves() -> None:
    def told(timestamp: int) -> object:
        partition = ListOffsetsPartitionResponse(timestamp=timestamp)
        answer = ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="t", partitions=[partition])])
        return brief_answer(answer, names())["topics"][0]["partitions"][0]["timestamp"]

    assert told(BEGAN_MS + 5000) == "<now>"
    assert told(1_600_000_000_000) == 1_600_000_000_000


def test_moments_in_messages() -> None:
    text = f"not within [{BEGAN_MS - 2**63 + 1}, {BEGAN_MS + 3_600_000}], but 4000000000000"
    topic = TopicProduceResponse(partition_responses=[PartitionProduceResponse(error_message=text)])
    (told,) = brief_answer(ProduceResponse(responses=[topic]), names())["responses"]
    assert told["partition_responses"] == [
        {"error_message": "not within [<about now, less all of time>, <about now>], but 4000000000000"}
    ]


def test_records_are_told_batch_by_batch() -> None:
    plain = build_batch([(1000, b"k", b"v", [(b"h", b"\x01")]), (1001, None, b"w", [])])
    packed = build_batch([(1002, b"k", None, [])], base_offset=2, compression=Compression.LZ4)
    partition = PartitionData(records=bytes(plain + packed + plain[:20]))
    answer = FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[partition])])
    told = brief_answer(answer, names())["responses"][0]["partitions"][0]["records"]
    crc = int.from_bytes(plain[17:21], "big")
    size_and_crc = f"{len(plain)} bytes, crc {crc:08x}"
    assert told == [
        f"0-1, epoch -1, {size_and_crc}, until 1001: [0 at 1000 k=v h:\\x01] [1 at 1001 null=w]",
        "2-2, epoch -1, lz4, until 1002: [2 at 1002 k=null]",
        "20 bytes of a batch",
    ]
