"""What a group leaves in the log, and what becomes of it when another broker reads that."""

import pytest

from broker.groups.settings import GroupSettings
from broker.groups.states import GroupState
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.stored.group_records import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from tests.broker.groups.rooms import (
    REBALANCE_MS,
    SESSION_MS,
    WALL_START_MS,
    Room,
    settled,
    subscription,
)


@pytest.fixture
def room() -> Room:
    return Room()


def test_a_group_is_founded_by_a_record_before_its_first_member(room: Room) -> None:
    room.join()
    assert room.stored() == {
        "group group": GroupMetadataValue(
            protocol=None, leader=None, current_state_timestamp=WALL_START_MS + room.steady_ms
        )
    }
    (record,) = room.log.records()
    assert record.value is not None
    assert record.value[:2] == b"\x00\x03"


def test_a_group_that_cannot_be_founded_is_not_there(room: Room) -> None:
    room.log.refusal = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert room.join(version=3).outcome.error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert room.machine.groups == {}
    assert room.reloads == 0


def test_a_generation_is_stored_with_its_assignments(room: Room) -> None:
    joined = room.join_alone()
    founded = len(room.log.records())
    room.pass_ms(5)
    room.sync(joined.member_id, 1, {joined.member_id: b"assigned"})
    assert len(room.log.records()) == founded + 1
    assert room.stored() == {
        "group group": GroupMetadataValue(
            protocol_type="consumer",
            generation=1,
            protocol="range",
            leader=joined.member_id,
            current_state_timestamp=WALL_START_MS + room.steady_ms - 5,
            members=[
                MemberMetadata(
                    member_id=joined.member_id,
                    group_instance_id=None,
                    client_id="client",
                    client_host="/10.0.0.1",
                    rebalance_timeout=REBALANCE_MS,
                    session_timeout=SESSION_MS,
                    subscription=b"about range",
                    assignment=b"assigned",
                )
            ],
        )
    }


def test_an_empty_group_is_stored_with_the_moment_from_which_its_offsets_age(room: Room) -> None:
    room.leave(*room.stable())
    assert room.stored() == {
        "group group": GroupMetadataValue(
            protocol_type="consumer",
            generation=2,
            protocol=None,
            leader=None,
            current_state_timestamp=WALL_START_MS + room.steady_ms,
        )
    }


def test_a_rebalance_that_only_began_is_not_stored(room: Room) -> None:
    room.stable(2)
    before = room.stored()
    room.join(version=3)
    assert room.stored() == before


async def test_a_stable_group_goes_on_after_a_restart(room: Room) -> None:
    leader, follower = room.stable(2, offers=(("range", subscription("t")),))
    room = await room.restarted()
    assert room.state() is GroupState.STABLE
    assert room.heartbeat(leader, 2) is ErrorCode.NONE
    assert room.sync(follower, 2).outcome.assignment == f"for {follower}".encode()
    assert room.commit({("t", 0): 5}, member_id=follower, generation=2).outcome == [ErrorCode.NONE]
    assert room.group.is_subscribed_to("t")
    assert not room.group.is_subscribed_to("u")


async def test_sessions_begin_anew_after_a_restart(room: Room) -> None:
    leader, _ = room.stable(2)
    room.steady_ms += 10 * SESSION_MS  # the broker was down
    room = await room.restarted()
    room.pass_ms(SESSION_MS - 1)
    assert room.heartbeat(leader, 2) is ErrorCode.NONE
    room.pass_ms(1)
    assert room.heartbeat(leader, 2) is ErrorCode.REBALANCE_IN_PROGRESS


async def test_a_rebalance_under_way_is_forgotten_and_begins_again(room: Room) -> None:
    leader, follower = room.stable(2)
    newcomer = room.join(version=3)
    room.join(leader)
    room.join(follower)
    new_id = newcomer.outcome.member_id
    room = await room.restarted()
    assert room.heartbeat(leader, 3) is ErrorCode.ILLEGAL_GENERATION
    assert room.heartbeat(leader, 2) is ErrorCode.NONE
    assert room.heartbeat(new_id, 3) is ErrorCode.UNKNOWN_MEMBER_ID
    assert room.join(new_id, version=3).outcome.error is ErrorCode.UNKNOWN_MEMBER_ID


async def test_ids_that_were_given_out_are_forgotten(room: Room) -> None:
    member_id = room.join().outcome.member_id
    room = await room.restarted()
    assert room.state() is GroupState.EMPTY
    assert room.join(member_id).outcome.error is ErrorCode.UNKNOWN_MEMBER_ID


async def test_static_members_are_known_after_a_restart(room: Room) -> None:
    first = room.join(instance_id="A").outcome
    room.sync(first.member_id, 1, {first.member_id: b"a"})
    room = await room.restarted()
    heir = room.join(instance_id="A").outcome
    assert heir.skip_assignment
    assert room.sync(heir.member_id, 1, instance_id="A").outcome.assignment == b"a"
    assert settled((await room.restarted()).machine) == settled(room.machine)


async def test_a_follower_whose_other_protocols_are_forgotten_is_asked_to_rejoin(room: Room) -> None:
    _, follower = room.stable(2, offers=("range", "rr"))
    room = await room.restarted()
    assert not room.join(follower, offers=("range", "rr")).is_settled
    assert room.state() is GroupState.PREPARING_REBALANCE


async def test_a_group_above_the_limit_has_to_shrink_after_a_restart(room: Room) -> None:
    members = room.stable(3)
    room.settings = GroupSettings(group_max_size=2)
    room = await room.restarted()
    assert room.state() is GroupState.PREPARING_REBALANCE
    joins = [room.join(member) for member in members]
    assert joins[2].outcome.error is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert [ticket.outcome.generation for ticket in joins[:2]] == [3, 3]


async def test_deleted_groups_stay_away(room: Room) -> None:
    room.leave(*room.stable())
    room.delete()
    room.join(group_id="other")
    room = await room.restarted()
    assert room.list_groups() == ["other"]


async def test_members_without_a_rebalance_timeout_have_their_session_timeout(room: Room) -> None:
    """Version 0 of the record had none."""
    (leader,) = room.stable()
    value = room.group.stored()
    value.members[0].rebalance_timeout = -1
    room.group.apply(GroupMetadataKey(group="group"), value)
    room.group.members.remove(room.group.members[leader])
    room.group.apply(GroupMetadataKey(group="group"), value)
    assert room.group.members[leader].rebalance_timeout_ms == SESSION_MS


def test_when_the_log_refuses_an_empty_group_its_members_return_with_the_next_load(room: Room) -> None:
    room.stable()
    room.log.refusal = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
    room.pass_ms(SESSION_MS)
    assert room.reloads == 1
    assert not room.shard.is_active


# Operators


def test_groups_are_listed_by_state_and_kind(room: Room) -> None:
    room.stable()
    room.join(group_id="new")
    assert room.list_groups() == ["group", "new"]
    assert room.list_groups(states=["stable"]) == ["group"]
    assert room.list_groups(states=["empty", "stable"]) == ["group", "new"]
    assert room.list_groups(states=["nonsense"]) == []
    assert room.list_groups(kinds=["classic"]) == ["group", "new"]
    assert room.list_groups(kinds=["consumer"]) == []
    assert room.list_groups(states=["dead"], kinds=["classic"]) == []


def test_a_group_that_is_not_there_is_described_as_dead(room: Room) -> None:
    described = room.describe("nobody")
    assert (described.error, described.state) == (ErrorCode.GROUP_ID_NOT_FOUND, "Dead")
