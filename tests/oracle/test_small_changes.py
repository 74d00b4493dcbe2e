"""The judge notices small things: Ottla's real answers are changed a little before they are compared."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from compat.oracle.compare import judge
from compat.oracle.conversations import CONVERSATIONS
from compat.oracle.recording import Recording
from compat.oracle.run import hold
from compat.oracle.talk import Alter
from protocol.messages.api_versions import ApiVersionsResponse
from protocol.messages.create_topics import CreateTopicsResponse
from protocol.messages.describe_groups import DescribeGroupsResponse
from protocol.messages.describe_log_dirs import DescribeLogDirsResponse
from protocol.messages.fetch import FetchResponse, PartitionData
from protocol.messages.find_coordinator import FindCoordinatorResponse
from protocol.messages.heartbeat import HeartbeatResponse
from protocol.messages.init_producer_id import InitProducerIdResponse
from protocol.messages.join_group import JoinGroupResponse
from protocol.messages.list_offsets import ListOffsetsPartitionResponse, ListOffsetsResponse
from protocol.messages.metadata import MetadataResponse, MetadataResponseTopic
from protocol.messages.offset_fetch import OffsetFetchResponse
from protocol.messages.produce import PartitionProduceResponse, ProduceResponse
from protocol.messages.sync_group import SyncGroupResponse
from protocol.schema import Message

pytestmark = pytest.mark.slow


ROUNDS = 2
"""Of the conversation's, the last ones: a change that shows in none of them would be a strange one."""


def judged(address: str, recording: Recording, name: str, alter: Alter) -> list[str]:
    """What the judge has to say about one conversation.  That it has nothing to say otherwise is another
    test's subject."""
    (held,) = [each for each in CONVERSATIONS if f"{each.subject}: {each.name}".replace("_", " ") == name]
    held = held._replace(rounds=held.rounds[-ROUNDS:])
    expected = {
        place: told
        for place, told in recording.items()
        if (place.subject, place.conversation) == (held.subject, held.name) and place.round in held.rounds
    }
    return list(judge(expected, hold(address, [held], alter=alter)).lines())


def produced(answer: Message) -> Iterator[PartitionProduceResponse]:
    if isinstance(answer, ProduceResponse):
        for topic in answer.responses:
            yield from topic.partition_responses


def fetched(answer: Message) -> Iterator[PartitionData]:
    if isinstance(answer, FetchResponse):
        for topic in answer.responses:
            yield from topic.partitions


def looked_up(answer: Message) -> Iterator[ListOffsetsPartitionResponse]:
    if isinstance(answer, ListOffsetsResponse):
        for topic in answer.topics:
            yield from topic.partitions


def described(answer: Message) -> Iterator[MetadataResponseTopic]:
    if isinstance(answer, MetadataResponse):
        yield from answer.topics


# The changes: an error, a text, a number, an order, a row too few or too many, a null, a name.


def another_error(answer: Message) -> None:
    if isinstance(answer, HeartbeatResponse) and answer.error_code == 25:
        answer.error_code = 22


def no_error(answer: Message) -> None:
    for reply in produced(answer):
        reply.error_code = 0


def a_reworded_message(answer: Message) -> None:
    if isinstance(answer, CreateTopicsResponse):
        for topic in answer.topics:
            topic.error_message = (topic.error_message or "").replace("already exists", "is there already")


def no_message(answer: Message) -> None:
    if isinstance(answer, CreateTopicsResponse):
        for topic in answer.topics:
            topic.error_message = topic.error_message or ""


def an_offset_too_far(answer: Message) -> None:
    for reply in produced(answer):
        reply.base_offset += 1


def the_log_start_where_none_is_told(answer: Message) -> None:
    for reply in produced(answer):
        reply.log_start_offset = 0


def a_partition_too_few(answer: Message) -> None:
    if isinstance(answer, FetchResponse) and len(answer.responses) > 1:
        answer.responses.pop()


def a_partition_twice(answer: Message) -> None:
    if isinstance(answer, FetchResponse):
        answer.responses += answer.responses[-1:]


def another_order(answer: Message) -> None:
    if isinstance(answer, FetchResponse):
        answer.responses.reverse()


def a_high_watermark_too_low(answer: Message) -> None:
    for data in fetched(answer):
        data.high_watermark -= data.high_watermark > 0


def an_empty_list_for_null(answer: Message) -> None:
    for data in fetched(answer):
        if data.aborted_transactions is None:
            data.aborted_transactions = []


def a_flipped_bit_in_a_record(answer: Message) -> None:
    for data in fetched(answer):
        if data.records:
            data.records = bytes(data.records)[:-1] + bytes((data.records[-1] ^ 1,))


def a_batch_cut_off(answer: Message) -> None:
    for data in fetched(answer):
        data.records = bytes(data.records)[:-1]


def no_session(answer: Message) -> None:
    if isinstance(answer, FetchResponse):
        answer.session_id = 0


def a_leader_epoch_too_new(answer: Message) -> None:
    for found in looked_up(answer):
        found.leader_epoch += found.leader_epoch >= 0


def a_time_of_zero(answer: Message) -> None:
    for found in looked_up(answer):
        found.timestamp = max(found.timestamp, 0)


def another_topic_id(answer: Message) -> None:
    for topic in described(answer):
        topic.topic_id = topic.topic_id[::-1]


def an_internal_topic(answer: Message) -> None:
    for topic in described(answer):
        topic.is_internal = not topic.is_internal


def another_port(answer: Message) -> None:
    if isinstance(answer, MetadataResponse):
        for broker in answer.brokers:
            broker.port += 1


def another_cluster(answer: Message) -> None:
    if isinstance(answer, MetadataResponse):
        answer.cluster_id = "another"


def another_node(answer: Message) -> None:
    if isinstance(answer, FindCoordinatorResponse):
        answer.node_id += 1
        for found in answer.coordinators:
            found.node_id += 1


def somebody_else_leads(answer: Message) -> None:
    if isinstance(answer, JoinGroupResponse) and answer.leader:
        answer.leader = f"oracle-{'0' * 8}-0000-4000-8000-{'0' * 12}"


def another_assignment(answer: Message) -> None:
    if isinstance(answer, SyncGroupResponse) and answer.assignment:
        answer.assignment += b"!"


def a_member_too_few(answer: Message) -> None:
    if isinstance(answer, DescribeGroupsResponse):
        for group in answer.groups:
            group.members = group.members[1:]


def a_state_in_capitals(answer: Message) -> None:
    if isinstance(answer, DescribeGroupsResponse):
        for group in answer.groups:
            group.group_state = group.group_state.upper()


def forgotten_metadata(answer: Message) -> None:
    if isinstance(answer, OffsetFetchResponse):
        for topic in answer.topics:
            for partition in topic.partitions:
                partition.metadata = ""
        for group in answer.groups:
            for found in group.topics:
                for each in found.partitions:
                    each.metadata = ""


def the_same_producer_id_each_time(answer: Message) -> None:
    if isinstance(answer, InitProducerIdResponse) and answer.producer_id > 0:
        answer.producer_id = 1


def a_byte_more_on_disk(answer: Message) -> None:
    if isinstance(answer, DescribeLogDirsResponse):
        for directory in answer.results:
            for topic in directory.topics:
                topic.partitions[0].partition_size += 1


def a_setting_too_few(answer: Message) -> None:
    if isinstance(answer, CreateTopicsResponse):
        for topic in answer.topics:
            topic.configs = (topic.configs or [])[1:]


def a_version_too_few(answer: Message) -> None:
    if isinstance(answer, ApiVersionsResponse) and len(answer.api_keys) > 1:
        answer.api_keys[0].max_version -= 1


def a_known_difference_that_is_gone(answer: Message) -> None:
    """Old levels are supported as by Kafka, and the list of differences still says that they are not."""
    if isinstance(answer, ApiVersionsResponse):
        for feature in answer.supported_features:
            if feature.name == "metadata.version":
                feature.min_version = 7


def a_throttled_client(answer: Message) -> None:
    if hasattr(answer, "throttle_time_ms"):
        answer.throttle_time_ms = 1


CHANGES: list[tuple[str, Callable[[Any], None]]] = [
    ("groups: one member", another_error),
    ("produce: wrong batches", no_error),
    ("topics: creating", a_reworded_message),
    ("topics: creating", no_message),
    ("produce: acknowledgements", an_offset_too_far),
    ("produce: wrong batches", the_log_start_where_none_is_told),
    ("fetch: places", a_partition_too_few),
    ("fetch: places", a_partition_twice),
    ("fetch: places", another_order),
    ("fetch: offsets", a_high_watermark_too_low),
    ("fetch: offsets", an_empty_list_for_null),
    ("fetch: what comes back", a_flipped_bit_in_a_record),
    ("fetch: offsets", a_batch_cut_off),
    ("fetch sessions: a session", no_session),
    ("list offsets: positions", a_leader_epoch_too_new),
    ("list offsets: positions", a_time_of_zero),
    ("metadata: topics by id", another_topic_id),
    ("metadata: unknown topics", an_internal_topic),
    ("metadata: unknown topics", another_port),
    ("metadata: unknown topics", another_cluster),
    ("groups: coordinators", another_node),
    ("groups: two members", somebody_else_leads),
    ("groups: two members", another_assignment),
    ("groups: two members", a_member_too_few),
    ("group admin: describing", a_state_in_capitals),
    ("offsets: without members", forgotten_metadata),
    ("producers: identities", the_same_producer_id_each_time),
    ("log dirs: directories", a_byte_more_on_disk),
    ("topics: creating", a_setting_too_few),
    ("cluster: versions", a_version_too_few),
    ("cluster: versions", a_known_difference_that_is_gone),
    ("delete records: offsets", a_throttled_client),
]


@pytest.mark.parametrize(("name", "alter"), CHANGES, ids=[alter.__name__ for _, alter in CHANGES])
def test_a_small_change_is_noticed(
    compared_address: str, recording: Recording, name: str, alter: Callable[[Any], None]
) -> None:
    assert judged(compared_address, recording, name, alter) != []
