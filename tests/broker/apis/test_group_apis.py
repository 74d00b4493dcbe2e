"""What the transcript cannot show: broken coordinators, and requests that Kafka leaves unanswered."""

from collections.abc import Callable
from importlib import import_module

import pytest

from broker.apis.table import APIS
from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from protocol.messages.describe_groups import DescribeGroupsResponse
from protocol.messages.heartbeat import HeartbeatResponse
from protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from protocol.messages.offset_commit import OffsetCommitResponse
from protocol.messages.offset_delete import OffsetDeleteResponse
from protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from protocol.messages.sync_group import SyncGroupResponse
from protocol.schema import Message
from tests.broker.groups.group_broker import GroupBroker, group_broker
from tests.golden.groups import steps

PROTOCOL = JoinGroupRequestProtocol(name="range", metadata=b"")

Codes = list[int]


def join_codes(broker: GroupBroker, version: int) -> Codes:
    return [broker.ask(steps.join("g"), JoinGroupResponse, version).error_code]


def sync_codes(broker: GroupBroker, version: int) -> Codes:
    request = steps.sync("g", 1, "m", protocol=("consumer", "range") if version >= 5 else (None, None))
    return [broker.ask(request, SyncGroupResponse, version).error_code]


def heartbeat_codes(broker: GroupBroker, version: int) -> Codes:
    return [broker.ask(steps.heartbeat("g", 1, "m"), HeartbeatResponse, version).error_code]


def leave_codes(broker: GroupBroker, version: int) -> Codes:
    request = LeaveGroupRequest(group_id="g", member_id="m")
    if version >= 3:
        request = LeaveGroupRequest(group_id="g", members=[MemberIdentity(member_id="m")])
    left = broker.ask(request, LeaveGroupResponse, version)
    assert left.members == []
    return [left.error_code]


def commit_codes(broker: GroupBroker, version: int) -> Codes:
    request = steps.commit("g", ("t", 0, 1, ""), ("t", 1, 1, ""))
    if version >= 10:
        for topic in request.topics:
            topic.name, topic.topic_id = "", broker.image.topics["t"].id
    committed = broker.ask(request, OffsetCommitResponse, version)
    return [partition.error_code for topic in committed.topics for partition in topic.partitions]


def fetch_codes(broker: GroupBroker, version: int) -> Codes:
    request = steps.fetch(version, "g", ("t", [0, 1]))
    if version >= 10:
        for group in request.groups:
            for topic in group.topics or ():
                topic.name, topic.topic_id = "", broker.image.topics["t"].id
    fetched = broker.ask(request, OffsetFetchResponse, version)
    if version >= 8:
        return [group.error_code for group in fetched.groups]
    if version >= 2:
        return [fetched.error_code]
    return [partition.error_code for topic in fetched.topics for partition in topic.partitions]


def delete_offsets_codes(broker: GroupBroker, version: int) -> Codes:
    return [broker.ask(steps.delete_offsets("g", ("t", [0])), OffsetDeleteResponse, version).error_code]


def describe_codes(broker: GroupBroker, version: int) -> Codes:
    described = broker.ask(steps.describe("g"), DescribeGroupsResponse, version)
    return [group.error_code for group in described.groups]


def delete_codes(broker: GroupBroker, version: int) -> Codes:
    deleted = broker.ask(DeleteGroupsRequest(groups_names=["g"]), DeleteGroupsResponse, version)
    return [result.error_code for result in deleted.results]


ASK: dict[ApiKey, Callable[[GroupBroker, int], Codes]] = {
    ApiKey.JOIN_GROUP: join_codes,
    ApiKey.SYNC_GROUP: sync_codes,
    ApiKey.HEARTBEAT: heartbeat_codes,
    ApiKey.LEAVE_GROUP: leave_codes,
    ApiKey.OFFSET_COMMIT: commit_codes,
    ApiKey.OFFSET_FETCH: fetch_codes,
    ApiKey.OFFSET_DELETE: delete_offsets_codes,
    ApiKey.DESCRIBE_GROUPS: describe_codes,
    ApiKey.DELETE_GROUPS: delete_codes,
}

EVERY_VERSION = [(key, version) for key in ASK for version in range(APIS[key].first, APIS[key].last + 1)]


@pytest.mark.parametrize(("key", "version"), EVERY_VERSION)
async def test_who_is_not_the_coordinator_says_so(key: ApiKey, version: int) -> None:
    async with group_broker() as broker:
        broker.broker.create_topic("t", partitions=2)
        codes = ASK[key](broker, version)
        assert codes
        assert set(codes) == {ErrorCode.NOT_COORDINATOR}


async def test_who_coordinates_nothing_lists_nothing() -> None:
    async with group_broker() as broker:
        for version in range(6):
            listed = broker.ask(ListGroupsRequest(), ListGroupsResponse, version)
            assert (listed.error_code, listed.groups) == (0, [])


@pytest.mark.parametrize("version", range(10))
async def test_protocols_named_twice_are_refused(version: int) -> None:
    """Kafka never answers that, but for the id that it hands out first since version 4."""
    async with group_broker() as broker:
        broker.make_offsets_topic()
        request = JoinGroupRequest(
            group_id="g", session_timeout_ms=10_000, protocol_type="consumer", protocols=[PROTOCOL, PROTOCOL]
        )
        joined = broker.ask(request, JoinGroupResponse, version)
        if version >= 4:
            assert joined.error_code == ErrorCode.MEMBER_ID_REQUIRED
            request.member_id = joined.member_id
            joined = broker.ask(request, JoinGroupResponse, version)
        assert joined.error_code == ErrorCode.INVALID_REQUEST


async def test_names_that_no_record_could_hold_are_refused() -> None:
    """Bytes that are not UTF-8 are replaced by longer ones, and ids are made of other ids."""
    async with group_broker() as broker:
        broker.make_offsets_topic()
        broker.broker.create_topic("t", partitions=2)
        long = "\ufffd" * 20_000

        def code(**names: str) -> int:
            # Decoded, such names are legal; they cannot be sent like this.
            request = steps.join("g")
            for name, value in names.items():
                setattr(request, name, value)
            handle = import_module("broker.apis.join_group").handle
            return int(handle(request, _call(broker)).error_code)

        assert code() == ErrorCode.MEMBER_ID_REQUIRED
        assert code(group_id=long) == ErrorCode.INVALID_REQUEST
        assert code(group_instance_id=long) == ErrorCode.INVALID_REQUEST
        assert code(protocol_type=long) == ErrorCode.INVALID_REQUEST
        committing = steps.commit(long, ("t", 0, 1, ""))
        committed = import_module("broker.apis.offset_commit").handle(committing, _call(broker))
        assert committed.topics[0].partitions[0].error_code == ErrorCode.INVALID_REQUEST


def _call(broker: GroupBroker) -> object:
    from broker.network.call import Address, Call, ConnectionState, Listener

    connection = ConnectionState(1, Listener("PLAINTEXT"), Address("::1", 1), Address("::1", 9092))
    return Call(broker.broker.services, connection, 11, 9, 1, "client", 0)


async def test_a_member_s_address_is_written_as_java_does() -> None:
    async with group_broker() as broker:
        broker.make_offsets_topic()
        handle = import_module("broker.apis.join_group").handle
        handle(steps.join("g", instance="i"), _call(broker))
        described = broker.ask(steps.describe("g"), DescribeGroupsResponse, 6)
        assert described.groups[0].members[0].client_host == "/0:0:0:0:0:0:0:1"


@pytest.mark.parametrize(
    "request_message",
    [
        steps.commit("g", ("t", 0, 1, ""), ("u", 1, 1, "")),
        steps.fetch(9, "g", ("t", [0])),
        steps.fetch(5, "g", ("t", [0])),
        steps.describe("g", "h"),
        DeleteGroupsRequest(groups_names=["g", "h", "g"]),
    ],
    ids=lambda request: type(request).__name__,
)
def test_an_unexpected_error_reaches_every_part_of_an_answer(request_message: Message) -> None:
    module = import_module(f"broker.apis.{APIS[request_message.api_key].module}")
    response = module.error_response(request_message, ErrorCode.UNKNOWN_SERVER_ERROR)
    assert repr(response).count("error_code=<ErrorCode.UNKNOWN_SERVER_ERROR: -1>") == (
        1 if isinstance(request_message, OffsetFetchRequest) else 2
    )


def test_every_api_of_groups_is_asked_here_or_in_the_transcript() -> None:
    asked = {step.request.api_key for step in steps.STEPS if step.request is not None}
    groups = {
        *ASK,
        ApiKey.FIND_COORDINATOR,
        ApiKey.LIST_GROUPS,
    }
    assert asked == groups


@pytest.mark.parametrize("key", sorted({step.request.api_key for step in steps.STEPS if step.request}))
def test_the_transcript_has_every_version(key: int) -> None:
    versions = {step.version for step in steps.STEPS if step.request and step.request.api_key == key}
    assert versions == set(range(APIS[key].first, APIS[key].last + 1))
