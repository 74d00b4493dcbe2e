"""Who may become a member, under which id, and what a member learns when it joins again."""

import pytest

from broker.groups import classic
from broker.groups.requests import Joined, JoinedMember
from broker.groups.settings import NEW_MEMBER_JOIN_TIMEOUT_MS, GroupSettings
from broker.groups.states import GroupState
from protocol.error_codes import ErrorCode
from tests.broker.groups.rooms import SESSION_MS, Room


@pytest.fixture
def room() -> Room:
    return Room()


# Ids (KIP-394)


def test_a_new_member_is_only_told_its_id(room: Room) -> None:
    assert room.join().outcome == Joined("client-1", ErrorCode.MEMBER_ID_REQUIRED)
    assert room.state() is GroupState.EMPTY
    assert list(room.group.pending) == ["client-1"]


def test_with_that_id_it_becomes_a_member(room: Room) -> None:
    member_id = room.join().outcome.member_id
    assert room.join(member_id).outcome == Joined(
        member_id,
        generation=1,
        protocol_type="consumer",
        protocol_name="range",
        leader=member_id,
        members=(JoinedMember(member_id, None, b"about range"),),
    )
    assert not room.group.pending


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_clients_of_old_versions_become_members_at_once(room: Room, version: int) -> None:
    assert room.join(version=version).outcome.generation == 1


def test_a_static_member_becomes_one_at_once(room: Room) -> None:
    joined = room.join(instance_id="i").outcome
    assert joined.member_id == "i-1"
    assert joined.members == (JoinedMember("i-1", "i", b"about range"),)


def test_an_id_that_nobody_gave_out_is_unknown(room: Room) -> None:
    assert room.join("nobody").outcome == Joined("nobody", ErrorCode.UNKNOWN_MEMBER_ID)
    assert room.machine.groups == {}
    room.stable()
    assert room.join("nobody").outcome == Joined("nobody", ErrorCode.UNKNOWN_MEMBER_ID)


def test_an_id_given_to_a_dynamic_member_is_not_for_a_static_one(room: Room) -> None:
    member_id = room.join().outcome.member_id
    assert room.join(member_id, instance_id="i").outcome == Joined("", ErrorCode.UNKNOWN_SERVER_ERROR)


def test_an_id_that_is_not_used_in_time_is_forgotten(room: Room) -> None:
    member_id = room.join().outcome.member_id
    room.pass_ms(SESSION_MS - 1)
    assert room.group.pending
    room.pass_ms(1)
    assert not room.group.pending
    assert room.join(member_id).outcome == Joined(member_id, ErrorCode.UNKNOWN_MEMBER_ID)


def test_there_is_a_limit_to_ids_given_out(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(classic, "PENDING_MEMBERS_MAX", 2)
    codes = [room.join().outcome.error for _ in range(3)]
    assert codes == [
        ErrorCode.MEMBER_ID_REQUIRED,
        ErrorCode.MEMBER_ID_REQUIRED,
        ErrorCode.GROUP_MAX_SIZE_REACHED,
    ]


# Protocols


@pytest.mark.parametrize(("kind", "offers"), [("", ("range",)), ("consumer", ())])
def test_the_first_member_must_name_a_type_and_a_protocol(
    room: Room, kind: str, offers: tuple[str, ...]
) -> None:
    assert room.join(kind=kind, offers=offers).outcome == Joined("", ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    assert room.state() is GroupState.EMPTY


@pytest.mark.parametrize(("kind", "offers"), [("connect", ("range",)), ("consumer", ("other",))])
def test_the_next_must_share_the_type_and_a_protocol(room: Room, kind: str, offers: tuple[str, ...]) -> None:
    (member_id,) = room.stable()
    refused = Joined("", ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    assert room.join(kind=kind, offers=offers, version=3).outcome == refused
    assert room.join(kind=kind, offers=offers).outcome == refused
    mine = Joined(member_id, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    assert room.join(member_id, kind=kind, offers=offers).outcome == mine
    assert room.state() is GroupState.STABLE


def test_a_protocol_counts_only_if_all_members_have_it(room: Room) -> None:
    first = room.join_alone(offers=("a", "b"))
    second = room.join(offers=("b", "c"), version=3)
    room.join(first.member_id, offers=("a", "b"))
    assert second.outcome.protocol_name == "b"
    assert room.join(offers=("a",), version=3).outcome.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert room.join(offers=("c",), version=3).outcome.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert not room.join(offers=("b",), version=3).is_settled


def test_an_emptied_group_may_take_another_type(room: Room) -> None:
    room.leave(*room.stable())
    assert room.join_alone(kind="connect", offers=("x",)).protocol_type == "connect"


def test_the_leader_learns_everybody_s_metadata_for_the_chosen_protocol(room: Room) -> None:
    first = room.join_alone(offers=(("a", b"1a"), ("b", b"1b")))
    second = room.join(offers=(("b", b"2b"),), version=3)
    leading = room.join(first.member_id, offers=(("a", b"1a"), ("b", b"1b"))).outcome
    assert leading.members == (
        JoinedMember(first.member_id, None, b"1b"),
        JoinedMember(second.outcome.member_id, None, b"2b"),
    )
    assert second.outcome.members == ()


# Joining again


def test_a_follower_with_nothing_new_is_told_the_present_generation(room: Room) -> None:
    leader, follower = room.stable(2)
    joined = room.join(follower, version=3).outcome
    assert (joined.generation, joined.leader, joined.members) == (2, leader, ())
    assert room.state() is GroupState.STABLE


def test_a_follower_with_something_new_begins_a_rebalance(room: Room) -> None:
    leader, follower = room.stable(2)
    assert not room.join(follower, offers=(("range", b"changed"),)).is_settled
    assert room.state() is GroupState.PREPARING_REBALANCE
    assert room.heartbeat(leader, 2) is ErrorCode.REBALANCE_IN_PROGRESS


def test_the_leader_begins_a_rebalance_by_joining_again(room: Room) -> None:
    leader, follower = room.stable(2)
    assert not room.join(leader).is_settled
    assert room.heartbeat(follower, 2) is ErrorCode.REBALANCE_IN_PROGRESS


def test_while_the_assignment_is_awaited_the_last_answer_is_repeated(room: Room) -> None:
    joined = room.join_alone()
    assert room.join(joined.member_id).outcome == joined
    assert room.join(joined.member_id, offers=(("range", b"changed"),)).outcome.generation == 2


def test_whoever_asked_before_under_the_same_id_is_sent_away(room: Room) -> None:
    """Kafka never answers it."""
    _, follower = room.stable(2)
    earlier = room.join(follower, offers=(("range", b"changed"),))
    later = room.join(follower, offers=(("range", b"changed"),))
    assert earlier.outcome == Joined("", ErrorCode.UNKNOWN_MEMBER_ID)
    assert not later.is_settled


def test_a_new_member_does_not_wait_for_ever(room: Room) -> None:
    (leader,) = room.stable(rebalance_ms=2 * NEW_MEMBER_JOIN_TIMEOUT_MS)
    newcomer = room.join(version=3, session_ms=1000)
    for _ in range(NEW_MEMBER_JOIN_TIMEOUT_MS // 5000):
        assert not newcomer.is_settled
        room.pass_ms(5000)
        room.heartbeat(leader, 1)
    assert newcomer.outcome == Joined("", ErrorCode.UNKNOWN_MEMBER_ID)


# The size of a group


def test_a_full_group_takes_nobody_else() -> None:
    room = Room(GroupSettings(group_max_size=2))
    leader, follower = room.stable(2)
    assert room.join().outcome == Joined("", ErrorCode.GROUP_MAX_SIZE_REACHED)
    assert room.join(follower).outcome.error is ErrorCode.NONE
    assert room.leave(follower) == [ErrorCode.NONE]
    assert room.join(version=3).is_settled is False
    room.join(leader)
    assert len(room.group.members) == 2


def test_during_a_rebalance_the_first_to_come_are_those_who_stay() -> None:
    room = Room(GroupSettings(group_max_size=3))
    leader, second, third = room.stable(3)
    room.settings = room.group.settings = GroupSettings(group_max_size=2)
    waiting = [room.join(third, offers=(("range", b"new"),)), room.join(leader)]
    assert room.join(second).outcome == Joined("", ErrorCode.GROUP_MAX_SIZE_REACHED)
    assert [ticket.outcome.generation for ticket in waiting] == [3, 3]
    assert set(room.group.members.by_id) == {leader, third}


def test_who_waits_already_may_ask_again_in_a_full_group() -> None:
    room = Room(GroupSettings(group_max_size=2))
    _, follower = room.stable(2)
    room.join(follower, offers=(("range", b"1"),))
    assert not room.join(follower, offers=(("range", b"2"),)).is_settled


# The first rebalance


def test_by_default_the_first_member_need_not_wait_for_more(room: Room) -> None:
    assert room.join(version=3).is_settled


def test_with_a_delay_the_members_of_the_first_moments_form_one_generation() -> None:
    room = Room(GroupSettings(initial_rebalance_delay_ms=3000))
    first = room.join(version=3)
    room.pass_ms(2000)
    second = room.join(version=3)
    room.pass_ms(1000)  # the first delay is over, but somebody came
    assert not first.is_settled
    room.pass_ms(2999)
    assert not first.is_settled
    room.pass_ms(1)
    assert (first.outcome.generation, second.outcome.generation) == (1, 1)


def test_the_delay_is_extended_up_to_the_rebalance_timeout_only() -> None:
    room = Room(GroupSettings(initial_rebalance_delay_ms=3000))
    start_ms = room.steady_ms
    first = room.join(version=3, rebalance_ms=7000)
    while not first.is_settled:
        room.pass_ms(500)
        room.join(version=3, rebalance_ms=7000)
    assert room.steady_ms - start_ms == 7000


def test_a_group_whose_first_members_leave_within_the_delay_is_empty_again() -> None:
    room = Room(GroupSettings(initial_rebalance_delay_ms=3000))
    first = room.join(version=3)
    assert room.leave(next(iter(room.group.members.by_id))) == [ErrorCode.NONE]
    assert first.outcome.error is ErrorCode.UNKNOWN_MEMBER_ID
    assert room.state() is GroupState.PREPARING_REBALANCE
    room.pass_ms(3000)
    assert room.state() is GroupState.EMPTY
    assert room.group.generation == 1


def test_an_empty_group_gathers_no_longer_when_an_id_that_was_given_out_expires() -> None:
    """There is no sense in it, but Kafka does not look at what the group is waiting for."""
    room = Room(GroupSettings(initial_rebalance_delay_ms=SESSION_MS + 5000))
    assert room.join().outcome.error is ErrorCode.MEMBER_ID_REQUIRED
    room.pass_ms(1000)
    first = room.join(version=3)
    room.pass_ms(SESSION_MS - 1001)
    assert not first.is_settled
    room.pass_ms(1)
    assert first.outcome.error is ErrorCode.NONE
    room.pass_ms(5000)
    assert (room.state(), room.group.generation) == (GroupState.COMPLETING_REBALANCE, 1)
