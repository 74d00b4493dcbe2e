"""Static members (KIP-345): they keep their place while they are away, and inherit it when they return."""

import pytest

from broker.groups.requests import Joined, JoinedMember, Synced
from broker.groups.states import GroupState
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from tests.broker.groups.rooms import REBALANCE_MS, SESSION_MS, Room

NEW = (("range", b"new"),)


class Pair:
    """A stable group of static members A, who leads, and B."""

    def __init__(self) -> None:
        self.room = Room()
        first = self.room.join(instance_id="A").outcome
        second = self.room.join(instance_id="B")
        leading = self.room.join(first.member_id, instance_id="A").outcome
        self.a, self.b = leading.member_id, second.outcome.member_id
        self.room.assign(leading, {self.a: b"aa", self.b: b"bb"})


@pytest.fixture
def pair() -> Pair:
    return Pair()


def test_a_follower_s_heir_has_its_assignment_without_a_rebalance(pair: Pair) -> None:
    heir = pair.room.join(instance_id="B").outcome
    assert heir.member_id not in (pair.a, pair.b)
    assert (heir.generation, heir.leader, heir.members) == (2, pair.a, ())
    assert not heir.skip_assignment
    assert pair.room.sync(heir.member_id, 2, instance_id="B").outcome.assignment == b"bb"
    assert pair.room.heartbeat(pair.a, 2, instance_id="A") is ErrorCode.NONE


def test_a_leader_s_heir_leads_but_need_not_assign(pair: Pair) -> None:
    """KIP-814, JoinGroup 9."""
    heir = pair.room.join(instance_id="A").outcome
    assert heir.leader == heir.member_id
    assert heir.skip_assignment
    assert heir.members == (
        JoinedMember(pair.b, "B", b"about range"),
        JoinedMember(heir.member_id, "A", b"about range"),
    )
    assert pair.room.group.leader == heir.member_id


def test_an_older_leader_s_heir_is_told_that_its_predecessor_leads(pair: Pair) -> None:
    """Otherwise it would assign, and wait for members who do not rejoin."""
    heir = pair.room.join(instance_id="A", version=8).outcome
    assert (heir.leader, heir.members, heir.skip_assignment) == (pair.a, (), False)
    assert pair.room.sync(heir.member_id, 2, instance_id="A").outcome.assignment == b"aa"


def test_the_former_id_is_fenced(pair: Pair) -> None:
    room = pair.room
    heir = room.join(instance_id="A").outcome.member_id
    fenced, unknown = ErrorCode.FENCED_INSTANCE_ID, ErrorCode.UNKNOWN_MEMBER_ID
    assert room.heartbeat(pair.a, 2, instance_id="A") is fenced
    assert room.heartbeat(pair.a, 2) is unknown
    assert room.heartbeat(heir, 2) is ErrorCode.NONE
    assert room.sync(pair.a, 2, instance_id="A").outcome == Synced(fenced)
    assert room.join(pair.a, instance_id="A").outcome == Joined(pair.a, fenced)
    commit = room.commit({("t", 0): 1}, member_id=pair.a, generation=2, instance_id="A")
    assert commit.outcome == [fenced]
    assert room.leave((pair.a, "A"), (pair.a, None)) == [fenced, unknown]


def test_an_instance_id_that_nobody_has_is_unknown(pair: Pair) -> None:
    assert pair.room.heartbeat(pair.a, 2, instance_id="C") is ErrorCode.UNKNOWN_MEMBER_ID
    assert pair.room.join("x", instance_id="C").outcome.error is ErrorCode.UNKNOWN_MEMBER_ID


def test_an_heir_s_metadata_is_stored_with_the_old_assignment(pair: Pair) -> None:
    heir = pair.room.join(instance_id="B", offers=NEW, session_ms=7000).outcome.member_id
    stored = {member.member_id: member for member in pair.room.group.stored().members}
    assert set(stored) == {pair.a, heir}
    assert (stored[heir].subscription, stored[heir].assignment) == (b"new", b"bb")
    assert stored[heir].session_timeout == 7000
    assert stored[heir].client_id == "client"


def test_an_heir_with_other_protocols_only_is_refused_and_nothing_changes(pair: Pair) -> None:
    refused = pair.room.join(instance_id="B", offers=("rr",)).outcome
    assert refused == Joined("", ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    assert pair.room.heartbeat(pair.b, 2, instance_id="B") is ErrorCode.NONE


def test_an_heir_who_changes_the_choice_of_protocol_begins_a_rebalance() -> None:
    room = Room()
    first = room.join(instance_id="A", offers=("range", "rr")).outcome
    room.sync(first.member_id, 1, {first.member_id: b"aa"})
    heir = room.join(instance_id="A", offers=("rr", "range")).outcome
    assert (heir.generation, heir.protocol_name, heir.leader) == (2, "rr", heir.member_id)
    assert room.state() is GroupState.COMPLETING_REBALANCE


def test_while_assignments_are_awaited_an_heir_begins_a_rebalance() -> None:
    """The leader may be assigning to the former id."""
    room = Room()
    first = room.join(instance_id="A").outcome
    second = room.join(instance_id="B")
    room.join(first.member_id, instance_id="A")
    waiting = room.sync(second.outcome.member_id, 2, instance_id="B")
    heir = room.join(instance_id="B")
    assert waiting.outcome == Synced(ErrorCode.FENCED_INSTANCE_ID)
    assert not heir.is_settled
    assert room.heartbeat(first.member_id, 2, instance_id="A") is ErrorCode.REBALANCE_IN_PROGRESS
    room.join(first.member_id, instance_id="A")
    assert heir.outcome.generation == 3


def test_during_a_rebalance_the_heir_waits_and_the_former_is_fenced(pair: Pair) -> None:
    room = pair.room
    former = room.join(pair.b, instance_id="B", offers=NEW)
    heir = room.join(instance_id="B")
    assert former.outcome == Joined(pair.b, ErrorCode.FENCED_INSTANCE_ID)
    room.join(pair.a, instance_id="A")
    assert heir.outcome.generation == 3


def test_a_rebalance_does_not_remove_static_members_who_are_away(pair: Pair) -> None:
    room = pair.room
    returned = room.join(pair.b, instance_id="B", offers=NEW, session_ms=SESSION_MS)
    # A's session outlasts the rebalance.
    room.group.members[pair.a].session_timeout_ms = 2 * REBALANCE_MS
    room.heartbeat(pair.a, 2, instance_id="A")
    room.pass_ms(REBALANCE_MS)
    joined = returned.outcome
    assert joined.leader == pair.b
    assert [member.member_id for member in joined.members] == [pair.a, pair.b]
    assert room.heartbeat(pair.a, 2, instance_id="A") is ErrorCode.ILLEGAL_GENERATION
    assert room.heartbeat(pair.a, 3, instance_id="A") is ErrorCode.NONE


def test_a_rebalance_without_anybody_back_goes_on_waiting(pair: Pair) -> None:
    room = pair.room
    for member in room.group.members:
        member.session_timeout_ms = 10 * REBALANCE_MS
        room.heartbeat(member.member_id, 2)
    newcomer = room.join(version=3)
    room.leave(next(member for member in room.group.members.by_id if member.startswith("client")))
    assert newcomer.outcome.error is ErrorCode.UNKNOWN_MEMBER_ID
    room.pass_ms(3 * REBALANCE_MS)
    assert room.state() is GroupState.PREPARING_REBALANCE
    returned = room.join(pair.a, instance_id="A")
    room.join(pair.b, instance_id="B")
    assert returned.outcome.generation == 3


def test_a_static_member_goes_with_its_session(pair: Pair) -> None:
    pair.room.pass_ms(SESSION_MS)
    assert pair.room.state() is GroupState.EMPTY
    assert pair.room.group.members.static_ids == {}


def test_an_operator_removes_members_by_instance_id(pair: Pair) -> None:
    assert pair.room.leave(("", "A"), ("", "C"), ("", None)) == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.UNKNOWN_MEMBER_ID,
    ]
    assert list(pair.room.group.members.by_id) == [pair.b]


def test_an_heir_in_a_stable_group_still_has_to_ask_for_its_assignment() -> None:
    room = Room()
    first = room.join(instance_id="A", rebalance_ms=5000).outcome
    second = room.join(instance_id="B", rebalance_ms=5000)
    room.join(first.member_id, instance_id="A", rebalance_ms=5000)
    room.sync(first.member_id, 2)
    assert second.outcome.member_id in room.group.pending_sync
    heir = room.join(instance_id="B", rebalance_ms=5000).outcome.member_id
    assert room.group.pending_sync == {heir}
    room.sync(heir, 2)
    room.pass_ms(6000)
    assert room.state() is GroupState.STABLE


def test_instance_ids_may_be_empty(pair: Pair) -> None:
    room = Room()
    first = room.join(instance_id="").outcome
    room.sync(first.member_id, 1)
    assert room.join(instance_id="").outcome.generation == 1


def test_an_inheritance_that_cannot_be_stored_did_not_happen(pair: Pair) -> None:
    room = pair.room
    room.log.refusal = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert room.join(instance_id="B").outcome == Joined("", ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert room.reloads == 1
