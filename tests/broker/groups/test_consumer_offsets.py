"""Offsets of consumer groups: who may commit and fetch them, and how long they stay."""

import pytest

from broker.coordination.tickets import Ticket
from broker.groups import offset_requests
from broker.groups.requests import Fetched
from broker.groups.settings import GroupSettings
from protocol.error_codes import ErrorCode
from tests.broker.groups.consumer_rooms import INTERVAL_MS, ConsumerRoom
from tests.broker.groups.rooms import TOPIC_ID

RETENTION_MS = 100_000


@pytest.fixture
def room() -> ConsumerRoom:
    room = ConsumerRoom(
        GroupSettings(offsets_retention_ms=RETENTION_MS, offsets_retention_check_interval_ms=1000)
    )
    room.create_topic("t", 4)
    return room


def committed(room: ConsumerRoom, epoch: int, *, member_id: str = "a", version: int = 9) -> ErrorCode:
    (code,) = room.commit({("t", 0): 5}, member_id=member_id, generation=epoch, version=version).outcome
    return code


def fetched(room: ConsumerRoom, member_id: str | None, epoch: int) -> ErrorCode:
    ticket = Ticket(Fetched)
    room.ask(
        ticket,
        lambda machine, _: offset_requests.fetch(
            machine, "group", None, False, ticket, member_id=member_id, member_epoch=epoch
        ),
    )
    return ticket.outcome.error


def test_members_commit_in_their_epoch(room: ConsumerRoom) -> None:
    room.entered("a")
    assert committed(room, 2) is ErrorCode.NONE
    assert committed(room, 3) is ErrorCode.STALE_MEMBER_EPOCH
    assert committed(room, 1) is ErrorCode.STALE_MEMBER_EPOCH
    assert committed(room, -1) is ErrorCode.STALE_MEMBER_EPOCH
    assert committed(room, 2, member_id="b") is ErrorCode.UNKNOWN_MEMBER_ID
    assert committed(room, -1, member_id="") is ErrorCode.UNKNOWN_MEMBER_ID
    assert committed(room, 2, version=8) is ErrorCode.UNSUPPORTED_VERSION


def test_a_member_may_commit_what_it_had_before_its_epoch_went_on(room: ConsumerRoom) -> None:
    """KIP-1251: it has not heard of the new epoch yet."""
    room.change_cluster()
    room.delete_topic("t")
    room.ids = int.from_bytes(TOPIC_ID, "big") - 1
    room.create_topic("t", 4)
    room.entered("a")
    room.pass_ms(INTERVAL_MS)
    room.add_partitions("t", 1)
    room.beat("a", 2)
    assert room.member("a").member_epoch == 3
    assert committed(room, 2) is ErrorCode.NONE
    (new,) = room.commit({("t", 4): 1}, member_id="a", generation=2).outcome
    assert new is ErrorCode.STALE_MEMBER_EPOCH, "that one it has not heard of"
    both = room.commit({("t", 0): 1, ("t", 4): 1}, member_id="a", generation=2).outcome
    assert both == [ErrorCode.STALE_MEMBER_EPOCH] * 2


def test_anybody_commits_for_a_group_without_members(room: ConsumerRoom) -> None:
    room.entered("a")
    room.beat("a", -1)
    assert committed(room, -1, member_id="") is ErrorCode.NONE
    assert committed(room, 2) is ErrorCode.UNKNOWN_MEMBER_ID


def test_members_fetch_in_their_epoch_and_anybody_without_a_name(room: ConsumerRoom) -> None:
    room.entered("a")
    assert fetched(room, "a", 2) is ErrorCode.NONE
    assert fetched(room, None, -1) is ErrorCode.NONE
    assert fetched(room, "a", 1) is ErrorCode.STALE_MEMBER_EPOCH
    assert fetched(room, "b", 2) is ErrorCode.UNKNOWN_MEMBER_ID


def test_offsets_of_what_is_read_stay_and_others_age_from_their_commit(room: ConsumerRoom) -> None:
    room.entered("a")
    room.commit({("t", 0): 5, ("other", 0): 6}, member_id="a", generation=2)
    for _ in range(4):
        room.pass_ms(RETENTION_MS // 4 - 500)
        room.beat("a", 2)
    assert room.fetch() == {("t", 0): 5, ("other", 0): 6}
    room.pass_ms(5000)
    assert room.fetch() == {("t", 0): 5}


def test_an_empty_group_goes_with_its_last_offset(room: ConsumerRoom) -> None:
    room.entered("a")
    room.commit({("t", 0): 5}, member_id="a", generation=2)
    room.beat("a", -1)
    room.pass_ms(RETENTION_MS - 2000)
    assert room.list_groups(kinds=["consumer"]) == ["group"]
    room.pass_ms(5000)
    assert room.list_groups() == []
    assert room.fetch() == {}


def test_offsets_of_what_is_read_are_not_deleted(room: ConsumerRoom) -> None:
    room.entered("a")
    room.commit({("t", 0): 5, ("other", 0): 6}, member_id="a", generation=2)
    deleted = room.delete_offsets(("t", 0), ("other", 0))
    assert deleted.codes == (ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, ErrorCode.NONE)
    assert room.fetch() == {("t", 0): 5}


def test_a_group_is_deleted_when_nobody_is_in_it(room: ConsumerRoom) -> None:
    room.entered("a")
    assert room.delete() is ErrorCode.NON_EMPTY_GROUP
    room.beat("a", -1)
    assert room.delete() is ErrorCode.NONE
    assert room.delete() is ErrorCode.GROUP_ID_NOT_FOUND


async def test_a_deleted_group_does_not_come_back(room: ConsumerRoom) -> None:
    room.entered("a", ["t"], regex="t.*")
    room.commit({("t", 0): 5}, member_id="a", generation=2)
    room.beat("a", -1)
    room.delete()
    assert (await room.restarted()).machine.groups == {}


def test_it_is_no_classic_group(room: ConsumerRoom) -> None:
    room.entered("a")
    described = room.describe()
    assert (described.error, described.state, described.message) == (
        ErrorCode.GROUP_ID_NOT_FOUND,
        "Dead",
        "Group group is not a classic group.",
    )
    assert room.list_groups(["stable"], ["consumer"]) == ["group"]
    assert room.list_groups(kinds=["classic"]) == []
