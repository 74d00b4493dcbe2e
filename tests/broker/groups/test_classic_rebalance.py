"""How a generation comes about, how assignments reach the members, and what happens to the slow."""

import pytest

from broker.groups.requests import Joined, Synced
from broker.groups.states import GroupState
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from storage.errors import BatchTooLarge
from tests.broker.groups.rooms import REBALANCE_MS, SESSION_MS, Room

NEW = (("range", b"new"),)


@pytest.fixture
def room() -> Room:
    return Room()


# Joining


def test_a_rebalance_waits_until_everybody_has_joined(room: Room) -> None:
    leader, follower = room.stable(2)
    newcomer = room.join(version=3)
    assert room.state() is GroupState.PREPARING_REBALANCE
    returned = room.join(leader)
    assert not newcomer.is_settled
    last = room.join(follower)
    generations = {ticket.outcome.generation for ticket in (newcomer, returned, last)}
    assert generations == {3}
    assert {ticket.outcome.leader for ticket in (newcomer, returned, last)} == {leader}


def test_it_waits_for_those_who_were_only_given_an_id_too(room: Room) -> None:
    (leader,) = room.stable()
    room.join()
    returned = room.join(leader)
    assert not returned.is_settled
    room.pass_ms(SESSION_MS)
    assert returned.outcome.generation == 2


def test_who_does_not_come_back_in_time_is_a_member_no_longer(room: Room) -> None:
    leader, follower = room.stable(2, rebalance_ms=5000)
    returned = room.join(follower, offers=NEW, rebalance_ms=5000)
    room.pass_ms(4999)
    assert not returned.is_settled
    room.pass_ms(1)
    assert returned.outcome.leader == follower
    assert room.heartbeat(leader, 3) is ErrorCode.UNKNOWN_MEMBER_ID


def test_the_most_patient_member_decides_how_long_to_wait(room: Room) -> None:
    _, follower = room.stable(2, rebalance_ms=5000)
    newcomer = room.join(version=3, rebalance_ms=8000)
    room.join(follower, rebalance_ms=5000)
    room.pass_ms(5000)
    # The deadline was set when the rebalance began, with the newcomer's timeout known already.
    assert not newcomer.is_settled
    room.pass_ms(3000)
    assert newcomer.is_settled


def test_members_that_wait_to_join_need_no_heartbeats(room: Room) -> None:
    leader, follower = room.stable(2)
    waiting = room.join(follower, offers=NEW)
    for _ in range(10):
        room.pass_ms(SESSION_MS // 2)
        assert room.heartbeat(leader, 2) is ErrorCode.REBALANCE_IN_PROGRESS
    assert not waiting.is_settled
    room.join(leader)
    assert waiting.outcome.error is ErrorCode.NONE


def test_a_silent_member_is_not_waited_for_longer_than_its_session(room: Room) -> None:
    _, follower = room.stable(2)
    waiting = room.join(follower, offers=NEW)
    room.pass_ms(SESSION_MS)
    assert waiting.outcome.leader == follower


def test_a_change_during_the_rebalance_joins_it(room: Room) -> None:
    leader, follower = room.stable(2)
    room.join(follower, offers=NEW)
    newcomer = room.join(version=3)
    leading = room.join(leader)
    assert len(leading.outcome.members) == 3
    assert newcomer.outcome.generation == 3


def test_leaving_completes_a_rebalance_that_waited_for_nobody_else(room: Room) -> None:
    leader, follower = room.stable(2)
    waiting = room.join(follower, offers=NEW)
    assert room.leave(leader) == [ErrorCode.NONE]
    assert waiting.outcome.leader == follower


def test_when_the_last_member_leaves_the_group_is_empty(room: Room) -> None:
    (member_id,) = room.stable()
    room.leave(member_id)
    assert room.state() is GroupState.EMPTY
    assert (room.group.generation, room.group.leader, room.group.protocol_name) == (2, None, None)
    assert room.group.protocol_type == "consumer"


def test_a_group_of_ids_only_does_not_stay_in_rebalance(room: Room) -> None:
    (member_id,) = room.stable()
    room.join()
    room.leave(member_id)
    room.pass_ms(0)
    assert room.state() is GroupState.EMPTY


def test_leaving_ends_a_wait_to_join(room: Room) -> None:
    _, follower = room.stable(2)
    waiting = room.join(follower, offers=NEW)
    room.leave(follower)
    assert waiting.outcome == Joined("", ErrorCode.UNKNOWN_MEMBER_ID)


def test_giving_an_id_back_makes_a_stable_group_rebalance(room: Room) -> None:
    """As seen in Kafka: any member that leaves does, also one that never was in."""
    (leader,) = room.stable()
    member_id = room.join().outcome.member_id
    assert room.leave(member_id) == [ErrorCode.NONE]
    assert room.heartbeat(leader, 1) is ErrorCode.REBALANCE_IN_PROGRESS


# Assignments


def test_followers_wait_for_the_leader_s_assignment(room: Room) -> None:
    first = room.join_alone()
    second = room.join(version=3)
    leading = room.join(first.member_id).outcome
    follower = second.outcome.member_id
    waiting = room.sync(follower, 2)
    assert not waiting.is_settled
    told = Synced(ErrorCode.NONE, "consumer", "range", b"for the leader")
    assignments = {leading.member_id: b"for the leader", follower: b"for the follower"}
    assert room.sync(leading.member_id, 2, assignments).outcome == told
    assert waiting.outcome.assignment == b"for the follower"
    assert room.state() is GroupState.STABLE


def test_who_asks_late_or_again_is_told_the_same(room: Room) -> None:
    leader, follower = room.stable(2)
    for _ in range(2):
        assert room.sync(follower, 2).outcome.assignment == f"for {follower}".encode()
        assert room.sync(leader, 2, {leader: b"too late"}).outcome.assignment == f"for {leader}".encode()


def test_whom_the_leader_forgot_is_assigned_nothing(room: Room) -> None:
    first = room.join_alone()
    second = room.join(version=3)
    room.join(first.member_id)
    waiting = room.sync(second.outcome.member_id, 2)
    room.sync(first.member_id, 2, {first.member_id: b"all", "a stranger": b"none of its business"})
    assert waiting.outcome == Synced(ErrorCode.NONE, "consumer", "range", b"")


def test_a_follower_s_assignments_are_ignored(room: Room) -> None:
    first = room.join_alone()
    second = room.join(version=3)
    room.join(first.member_id)
    follower = second.outcome.member_id
    assert not room.sync(follower, 2, {follower: b"everything"}).is_settled
    assert room.state() is GroupState.COMPLETING_REBALANCE


def test_a_rebalance_sends_those_back_who_wait_for_assignments(room: Room) -> None:
    first = room.join_alone()
    second = room.join(version=3)
    room.join(first.member_id)
    waiting = room.sync(second.outcome.member_id, 2)
    room.join(version=3)
    assert waiting.outcome == Synced(ErrorCode.REBALANCE_IN_PROGRESS)


def test_leaving_ends_a_wait_for_an_assignment(room: Room) -> None:
    """Kafka never answers it."""
    first = room.join_alone()
    second = room.join(version=3)
    room.join(first.member_id)
    waiting = room.sync(second.outcome.member_id, 2)
    room.leave(second.outcome.member_id)
    assert waiting.outcome == Synced(ErrorCode.UNKNOWN_MEMBER_ID)


def test_whoever_asked_for_an_assignment_before_under_the_same_id_is_sent_away(room: Room) -> None:
    """Kafka never answers it."""
    first = room.join_alone()
    second = room.join(version=3)
    room.join(first.member_id)
    earlier = room.sync(second.outcome.member_id, 2)
    later = room.sync(second.outcome.member_id, 2)
    assert earlier.outcome == Synced(ErrorCode.UNKNOWN_MEMBER_ID)
    assert not later.is_settled


@pytest.mark.parametrize(
    ("protocol_type", "protocol_name", "code"),
    [
        (None, None, ErrorCode.NONE),
        ("consumer", "range", ErrorCode.NONE),
        ("connect", "range", ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ("consumer", "rr", ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
    ],
)
def test_a_member_must_believe_in_the_group_s_protocol(
    room: Room, protocol_type: str | None, protocol_name: str | None, code: ErrorCode
) -> None:
    """KIP-559, for those who say what they believe in."""
    member_id = room.join_alone().member_id
    synced = room.sync(member_id, 1, protocol_type=protocol_type, protocol_name=protocol_name)
    assert synced.outcome.error is code


def test_a_member_that_never_asks_for_its_assignment_is_removed(room: Room) -> None:
    """KIP-793's companion: a member that died between JoinGroup and SyncGroup."""
    first = room.join_alone()
    second = room.join(version=3)
    room.join(first.member_id)
    room.sync(first.member_id, 2)
    for _ in range(REBALANCE_MS // 5000):
        assert room.heartbeat(first.member_id, 2) is ErrorCode.NONE
        assert room.heartbeat(second.outcome.member_id, 2) is ErrorCode.NONE
        room.pass_ms(5000)
    assert room.heartbeat(first.member_id, 2) is ErrorCode.REBALANCE_IN_PROGRESS
    assert room.heartbeat(second.outcome.member_id, 2) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_leader_that_never_assigns_is_removed_and_the_others_try_again(room: Room) -> None:
    first = room.join_alone(rebalance_ms=5000)
    second = room.join(version=3, rebalance_ms=5000)
    room.join(first.member_id, rebalance_ms=5000)
    follower = second.outcome.member_id
    waiting = room.sync(follower, 2)
    room.pass_ms(5000)
    assert waiting.outcome == Synced(ErrorCode.REBALANCE_IN_PROGRESS)
    assert room.heartbeat(first.member_id, 2) is ErrorCode.UNKNOWN_MEMBER_ID
    assert room.join(follower).outcome.leader == follower


def test_a_group_whose_members_all_asked_is_left_in_peace(room: Room) -> None:
    leader, follower = room.stable(2)
    for _ in range(3 * REBALANCE_MS // 5000):
        room.pass_ms(5000)
        assert room.heartbeat(leader, 2) is ErrorCode.NONE
        assert room.heartbeat(follower, 2) is ErrorCode.NONE


# An assignment that the log refuses


@pytest.mark.parametrize(
    ("refusal", "code"),
    [
        (BatchTooLarge(2, 1), ErrorCode.UNKNOWN_SERVER_ERROR),
        (KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS), ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER), ErrorCode.NOT_COORDINATOR),
    ],
)
def test_an_assignment_that_cannot_be_stored_is_given_to_nobody(
    room: Room, refusal: Exception, code: ErrorCode
) -> None:
    first = room.join_alone()
    second = room.join(version=3)
    room.join(first.member_id)
    waiting = room.sync(second.outcome.member_id, 2)
    room.log.refusal = refusal
    assert room.sync(first.member_id, 2, {first.member_id: b"x"}).outcome == Synced(code)
    assert waiting.outcome == Synced(code)
    assert room.state() is GroupState.PREPARING_REBALANCE
    assert room.reloads == 0
    room.log.refusal = None
    room.join(first.member_id)
    assert room.join(second.outcome.member_id).outcome.generation == 3


# Sessions


def test_a_silent_member_is_removed_and_the_others_rebalance(room: Room) -> None:
    leader, follower = room.stable(2)
    room.pass_ms(SESSION_MS - 1)
    assert room.heartbeat(leader, 2) is ErrorCode.NONE
    room.pass_ms(1)
    assert room.heartbeat(leader, 2) is ErrorCode.REBALANCE_IN_PROGRESS
    assert room.heartbeat(follower, 2) is ErrorCode.UNKNOWN_MEMBER_ID


def test_when_all_are_silent_the_group_is_empty(room: Room) -> None:
    room.stable(3)
    room.pass_ms(SESSION_MS)
    assert room.state() is GroupState.EMPTY
    assert room.group.generation == 3


def test_a_commit_is_as_good_as_a_heartbeat(room: Room) -> None:
    (leader,) = room.stable()
    for offset in range(5):
        room.pass_ms(SESSION_MS - 1)
        room.commit({("t", 0): offset}, member_id=leader, generation=1)
    assert room.state() is GroupState.STABLE


def test_a_heartbeat_with_the_wrong_generation_is_none(room: Room) -> None:
    (leader,) = room.stable()
    room.pass_ms(SESSION_MS - 1)
    assert room.heartbeat(leader, 7) is ErrorCode.ILLEGAL_GENERATION
    room.pass_ms(1)
    assert room.state() is GroupState.EMPTY


def test_a_new_session_timeout_counts_from_the_next_join(room: Room) -> None:
    (leader,) = room.stable()
    room.join(leader, session_ms=30_000)
    room.sync(leader, 2)
    room.pass_ms(29_999)
    assert room.heartbeat(leader, 2) is ErrorCode.NONE


def test_idle_groups_have_one_deadline_each_and_heartbeats_add_none(room: Room) -> None:
    for number in range(50):
        group_id = f"group-{number}"
        joined = room.join(group_id=group_id, version=3).outcome
        room.sync(joined.member_id, 1, group_id=group_id)
        for _ in range(20):
            room.heartbeat(joined.member_id, 1, group_id=group_id)
    assert len(room.machine._timers) == 50
    assert len(room.machine._timers._heap) <= 100
