"""Offsets of streams groups, and what becomes of the groups: deleted, expired, turned into other kinds."""

import pytest

from broker.coordination.tickets import Ticket
from broker.groups import offset_requests
from broker.groups.requests import Fetched
from broker.groups.settings import GroupSettings
from protocol.error_codes import ErrorCode
from tests.broker.groups.streams.streams_room import StreamsRoom

RETENTION_MS = 100_000


@pytest.fixture
def room() -> StreamsRoom:
    room = StreamsRoom(
        GroupSettings(offsets_retention_ms=RETENTION_MS, offsets_retention_check_interval_ms=1000)
    )
    room.configure("streams.initial.rebalance.delay.ms", "0")
    room.configure("streams.assignment.interval.ms", "0")
    room.create_topic("t", 2)
    return room


def committed(
    room: StreamsRoom,
    epoch: int,
    *,
    member_id: str = "a",
    place: tuple[str, int] = ("t", 0),
    version: int = 9,
) -> ErrorCode:
    (code,) = room.commit({place: 5}, member_id=member_id, generation=epoch, version=version).outcome
    return code


def fetched(room: StreamsRoom, member_id: str | None, epoch: int) -> ErrorCode:
    ticket = Ticket(Fetched)
    room.ask(
        ticket,
        lambda machine, _: offset_requests.fetch(
            machine, "group", None, False, ticket, member_id=member_id, member_epoch=epoch
        ),
    )
    return ticket.outcome.error


def test_members_commit_in_their_epoch(room: StreamsRoom) -> None:
    room.enrolled("a")
    assert committed(room, 2) is ErrorCode.NONE
    assert committed(room, 3) is ErrorCode.STALE_MEMBER_EPOCH
    assert committed(room, 1) is ErrorCode.STALE_MEMBER_EPOCH
    assert committed(room, 2, member_id="b") is ErrorCode.UNKNOWN_MEMBER_ID
    assert committed(room, -1, member_id="") is ErrorCode.UNKNOWN_MEMBER_ID
    assert committed(room, 2, version=8) is ErrorCode.UNSUPPORTED_VERSION


def test_a_member_may_commit_for_tasks_that_it_had_before_its_epoch_went_on(room: StreamsRoom) -> None:
    room.enrolled("a")
    room.enrolled("b")
    room.report("a", 2, owned={"0": [0, 1]})
    assert committed(room, 2, place=("t", 1)) is ErrorCode.NONE, "it is about to give this task up"
    room.report("a", 2, owned={"0": [0]})
    assert room.worker("a").member_epoch == 3
    assert committed(room, 2) is ErrorCode.NONE
    assert committed(room, 2, place=("t", 1)) is ErrorCode.STALE_MEMBER_EPOCH, "that has gone over"
    assert committed(room, 1) is ErrorCode.STALE_MEMBER_EPOCH
    assert committed(room, 2, place=("u", 0)) is ErrorCode.STALE_MEMBER_EPOCH


def test_members_fetch_in_their_epoch(room: StreamsRoom) -> None:
    room.enrolled("a")
    assert fetched(room, "a", 2) is ErrorCode.NONE
    assert fetched(room, None, -1) is ErrorCode.NONE
    assert fetched(room, "a", 1) is ErrorCode.STALE_MEMBER_EPOCH
    assert fetched(room, "b", 2) is ErrorCode.UNKNOWN_MEMBER_ID
    assert fetched(room, None, 2) is ErrorCode.UNKNOWN_SERVER_ERROR


def test_offsets_of_what_is_read_stay(room: StreamsRoom) -> None:
    room.enrolled("a")
    committed(room, 2)
    committed(room, 2, place=("u", 0))
    assert room.delete_offsets(("t", 0)).codes == (ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,)
    for _ in range(4):
        room.pass_ms(RETENTION_MS // 4)
        room.work("a")
    room.pass_ms(2000)
    assert set(room.fetch()) == {("t", 0)}
    room.report("a", -1)
    assert room.delete_offsets(("t", 0)).codes == (ErrorCode.NONE,)


def test_a_group_that_nobody_is_in_goes_with_its_offsets(room: StreamsRoom) -> None:
    room.enrolled("a")
    committed(room, 2)
    room.report("a", -1)
    room.pass_ms(RETENTION_MS + 2000)
    assert room.machine.groups == {}


async def test_only_an_empty_group_can_be_deleted(room: StreamsRoom) -> None:
    room.enrolled("a")
    committed(room, 2)
    assert room.delete() is ErrorCode.NON_EMPTY_GROUP
    room.report("a", -1)
    assert room.delete() is ErrorCode.NONE
    assert room.machine.groups == {}
    assert (await room.restarted()).machine.groups == {}
    assert room.enrolled("a").member_epoch == 2, "it begins anew"


async def test_an_empty_classic_group_becomes_one_of_streams_and_the_reverse(room: StreamsRoom) -> None:
    room.commit({("t", 0): 7})
    room.enrolled("a")
    assert room.app.kind == "streams"
    assert room.fetch() == {("t", 0): 7}
    joining = room.join(version=3)
    assert joining.outcome.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert room.heartbeat("a", 2) is ErrorCode.UNKNOWN_MEMBER_ID
    assert room.leave("a") == [ErrorCode.UNKNOWN_MEMBER_ID]
    room.report("a", -1)
    room.join_alone(version=3)
    assert room.machine.groups["group"].kind == "classic"
    assert (await room.restarted()).machine.groups["group"].kind == "classic"
    assert room.enrol("a").error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_a_streams_group_is_no_consumer_group(room: StreamsRoom) -> None:
    room.enrolled("a")
    room.report("a", -1)
    assert room.enter("c").message == "Group group is not a consumer group."
    assert room.describe().message == "Group group is not a classic group."
    assert room.describe_consumers().error is ErrorCode.GROUP_ID_NOT_FOUND
    assert room.list_groups(kinds=["streams"]) == ["group"]
    assert room.list_groups(kinds=["consumer"]) == []
