"""Static members of consumer groups: they may go for a while, and their heirs get what they had."""

import pytest

from broker.groups.consumer import ConsumerGroupState
from broker.groups.settings import GroupSettings
from protocol.error_codes import ErrorCode
from tests.broker.groups.consumer_rooms import INTERVAL_MS, SESSION_MS, ConsumerRoom


@pytest.fixture
def room() -> ConsumerRoom:
    room = ConsumerRoom()
    room.create_topic("t", 4)
    return room


def go(room: ConsumerRoom, member_id: str, instance_id: str = "i") -> ErrorCode:
    return room.beat(member_id, -2, instance_id=instance_id).error


def test_who_goes_for_a_while_keeps_its_place(room: ConsumerRoom) -> None:
    room.entered("a", instance_id="i")
    assert go(room, "a") is ErrorCode.NONE
    assert room.member("a").member_epoch == -2
    assert room.owned("a") == [{"t": [0, 1, 2, 3]}]
    assert room.state_of_consumers() is ConsumerGroupState.RECONCILING
    heir = room.entered("b", instance_id="i")
    assert (heir.member_epoch, room.named(heir.assignment)) == (2, {"t": [0, 1, 2, 3]})
    assert room.consumers.group_epoch == 2, "nobody else is troubled"
    assert list(room.consumers.members) == ["b"]
    assert room.state_of_consumers() is ConsumerGroupState.STABLE


def test_others_keep_what_they_have_meanwhile(room: ConsumerRoom) -> None:
    room.entered("a", instance_id="i")
    room.pass_ms(INTERVAL_MS)
    room.entered("other")
    room.settle("a", "other")
    before = room.owned("a", "other")
    go(room, "a")
    assert room.beat("other", 3).assignment is None
    room.entered("b", instance_id="i")
    assert room.owned("b", "other") == before


def test_a_place_that_is_taken_is_not_given_away(room: ConsumerRoom) -> None:
    room.entered("a", instance_id="i")
    refused = room.enter("b", instance_id="i")
    assert (refused.error, refused.message) == (
        ErrorCode.UNRELEASED_INSTANCE_ID,
        (
            "Static member b with instance id i cannot join the group because "
            "the instance id is owned by a member."
        ),
    )
    fenced = room.beat("b", 2, instance_id="i")
    assert (fenced.error, fenced.message) == (
        ErrorCode.FENCED_INSTANCE_ID,
        "Static member b with instance id i was fenced by member a.",
    )
    unknown = room.beat("a", 2, instance_id="j")
    assert (unknown.error, unknown.message) == (ErrorCode.UNKNOWN_MEMBER_ID, "Instance id j is unknown.")
    assert go(room, "b") is ErrorCode.FENCED_INSTANCE_ID
    assert go(room, "a", "j") is ErrorCode.UNKNOWN_MEMBER_ID


def test_who_was_replaced_is_fenced(room: ConsumerRoom) -> None:
    room.entered("a", instance_id="i")
    go(room, "a")
    room.entered("b", instance_id="i")
    assert room.beat("a", 2, instance_id="i").error is ErrorCode.FENCED_INSTANCE_ID
    assert room.beat("a", 2).error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_place_is_kept_until_the_session_ends(room: ConsumerRoom) -> None:
    room.entered("a", instance_id="i")
    go(room, "a")
    room.pass_ms(SESSION_MS - 1)
    assert "a" in room.consumers.members
    room.pass_ms(1)
    assert room.consumers.members == {}


def test_who_comes_back_under_the_same_id_is_watched_again(room: ConsumerRoom) -> None:
    """A consumer keeps its id when it subscribes anew."""
    room.entered("a", instance_id="i")
    go(room, "a")
    assert room.entered("a", instance_id="i").member_epoch == 2
    room.pass_ms(SESSION_MS - 1)
    assert "a" in room.consumers.members
    room.pass_ms(1)
    assert room.consumers.members == {}


def test_an_heir_that_reads_something_else_brings_about_a_new_assignment(room: ConsumerRoom) -> None:
    room.create_topic("u", 1)
    room.entered("a", instance_id="i")
    room.pass_ms(INTERVAL_MS)
    go(room, "a")
    heir = room.entered("b", ("u",), instance_id="i")
    assert (heir.member_epoch, room.named(heir.assignment)) == (3, {"u": [0]})


def test_a_full_group_takes_heirs() -> None:
    room = ConsumerRoom(GroupSettings(consumer_max_size=1))
    room.create_topic("t", 1)
    room.entered("a", instance_id="i")
    go(room, "a")
    assert room.enter("b", instance_id="i").error is ErrorCode.NONE
    assert room.enter("c").error is ErrorCode.GROUP_MAX_SIZE_REACHED


def test_a_static_member_may_leave_for_good(room: ConsumerRoom) -> None:
    room.entered("a", instance_id="i")
    assert room.beat("a", -1, instance_id="i").error is ErrorCode.NONE
    assert (room.consumers.members, room.consumers.static_ids) == ({}, {})


async def test_an_heir_is_found_after_loading(room: ConsumerRoom) -> None:
    room.entered("a", instance_id="i")
    go(room, "a")
    again = await room.restarted()
    assert again.named(again.entered("b", instance_id="i").assignment) == {"t": [0, 1, 2, 3]}
