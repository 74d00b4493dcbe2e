"""Groups that change their protocol while they work (KIP-848), and members of both protocols in one group."""

from typing import Any

import pytest

from broker.coordination.tickets import Ticket
from broker.groups.classic import ClassicGroup
from broker.groups.embedded_protocol import read_assignment, write_assignment
from broker.groups.requests import Joined, Protocols
from broker.groups.settings import GroupSettings, MigrationPolicy
from broker.groups.states import GroupState
from protocol.error_codes import ErrorCode
from protocol.stored.consumer_protocol import (
    ConsumerProtocolSubscription,
    ConsumerProtocolSubscriptionTopicPartition,
)
from tests.broker.groups.consumer_rooms import INTERVAL_MS, ConsumerRoom

OLD_SESSION_MS, OLD_REBALANCE_MS = 10_000, 20_000


@pytest.fixture
def room() -> ConsumerRoom:
    room = ConsumerRoom()
    room.create_topic("t", 4)
    return room


def says(*topics: str, owned: tuple[int, ...] = ()) -> bytes:
    """What a consumer of the classic protocol says of itself; it owns partitions of t."""
    claims = [ConsumerProtocolSubscriptionTopicPartition(topic="t", partitions=list(owned))]
    said = ConsumerProtocolSubscription(topics=list(topics), owned_partitions=claims if owned else [])
    return b"\x00\x01" + bytes(said.encode(1))


def old_join(
    room: ConsumerRoom,
    member_id: str = "",
    *,
    owned: tuple[int, ...] = (),
    topics: tuple[str, ...] = ("t",),
    name: str = "range",
    instance_id: str | None = None,
    version: int = 3,
) -> Ticket[Joined]:
    return room.join(
        member_id,
        offers=[(name, says(*topics, owned=owned))],
        session_ms=OLD_SESSION_MS,
        rebalance_ms=OLD_REBALANCE_MS,
        instance_id=instance_id,
        version=version,
    )


def told(room: ConsumerRoom, member_id: str, generation: int) -> list[int] | ErrorCode:
    """What SyncGroup gives a member: partitions of t, or an error."""
    synced = room.sync(member_id, generation).outcome
    if synced.error is not ErrorCode.NONE:
        return synced.error
    assigned = read_assignment(synced.assignment).assigned_partitions
    return [number for topic in assigned for number in topic.partitions]


def kind_of(room: ConsumerRoom) -> str:
    return room.machine.groups["group"].kind


def classic_group(room: ConsumerRoom) -> str:
    """A stable classic group of one member that has all of t; its id."""
    joined = old_join(room).outcome
    room.sync(joined.member_id, 1, {joined.member_id: write_assignment({"t": [0, 1, 2, 3]}, 1)})
    return joined.member_id


def test_a_new_member_turns_a_classic_group_into_a_consumer_group(room: ConsumerRoom) -> None:
    old = classic_group(room)
    new = room.entered("new")
    group = room.consumers
    assert (group.group_epoch, group.target.epoch, group.classic_count) == (2, 2, 1)
    assert (new.member_epoch, new.assignment) == (2, {})
    assert room.owned(old) == [{"t": [0, 1, 2, 3]}]
    assert room.member(old).member_epoch == 1

    assert room.heartbeat(old, 1) is ErrorCode.REBALANCE_IN_PROGRESS
    rejoined = old_join(room, old, owned=(0, 1, 2, 3)).outcome
    assert (rejoined.error, rejoined.generation, rejoined.members) == (ErrorCode.NONE, 1, ())
    assert told(room, old, 1) == [0, 1]
    assert room.heartbeat(old, 1) is ErrorCode.REBALANCE_IN_PROGRESS, "it has to give up the others"
    again = old_join(room, old, owned=(0, 1)).outcome
    assert again.generation == 2
    assert told(room, old, 2) == [0, 1]
    assert room.heartbeat(old, 2) is ErrorCode.NONE
    assert room.named(room.beat("new", 2).assignment) == {"t": [2, 3]}


def test_a_topic_of_which_a_classic_member_has_nothing_is_held_by_nobody(room: ConsumerRoom) -> None:
    room.create_topic("u", 1)
    joined = old_join(room).outcome
    room.sync(joined.member_id, 1, {joined.member_id: write_assignment({"t": [0, 1, 2, 3], "u": []}, 1)})
    room.entered("new")
    assert room.owned(joined.member_id) == [{"t": [0, 1, 2, 3], "u": []}]
    assert list(map(len, room.consumers.holders.values())) == [4]


def test_who_waits_in_a_classic_group_hears_of_another_rebalance(room: ConsumerRoom) -> None:
    classic_group(room)
    waiting = old_join(room)
    assert not waiting.is_settled
    room.entered("new")
    assert waiting.outcome.error is ErrorCode.REBALANCE_IN_PROGRESS


def test_the_last_new_member_leaves_a_classic_group_behind(room: ConsumerRoom) -> None:
    old = classic_group(room)
    room.entered("new")
    old_join(room, old, owned=(0, 1, 2, 3))
    old_join(room, old, owned=(0, 1))
    room.beat("new", -1)
    group = room.machine.groups["group"]
    assert isinstance(group, ClassicGroup)
    assert (group.state, group.generation) == (GroupState.PREPARING_REBALANCE, 2)
    assert room.heartbeat(old, 2) is ErrorCode.REBALANCE_IN_PROGRESS
    back = old_join(room, old, owned=(0, 1)).outcome
    assert (back.generation, back.leader) == (3, old)


def test_a_new_member_whose_session_ends_leaves_a_classic_group_behind(room: ConsumerRoom) -> None:
    old = classic_group(room)
    room.entered("new")
    for _ in range(9):
        room.pass_ms(4999)
        old_join(room, old, owned=(0, 1))
        room.sync(old, 2)
    assert kind_of(room) == "consumer"
    room.pass_ms(10)
    assert kind_of(room) == "classic"


def test_a_static_member_that_comes_back_old_takes_the_group_with_it(room: ConsumerRoom) -> None:
    room.entered("new", instance_id="i")
    room.beat("new", -2, instance_id="i")
    joined = old_join(room, instance_id="i").outcome
    assert (joined.error, joined.generation) == (ErrorCode.NONE, 2)
    group = room.machine.groups["group"]
    assert isinstance(group, ClassicGroup)
    assert group.state is GroupState.STABLE
    synced = room.sync(joined.member_id, 2, instance_id="i").outcome
    assert read_assignment(synced.assignment).assigned_partitions[0].partitions == [0, 1, 2, 3]


def test_a_static_member_that_comes_back_old_with_another_topic_makes_the_group_rebalance(
    room: ConsumerRoom,
) -> None:
    room.create_topic("u", 1)
    room.entered("new", instance_id="i")
    room.beat("new", -2, instance_id="i")
    joined = old_join(room, instance_id="i", topics=("u",)).outcome
    assert joined.error is ErrorCode.NONE
    group = room.machine.groups["group"]
    assert isinstance(group, ClassicGroup)
    assert group.state is GroupState.PREPARING_REBALANCE


@pytest.mark.parametrize("policy", list(MigrationPolicy))
def test_the_policy_says_which_way_groups_may_go(policy: MigrationPolicy) -> None:
    room = ConsumerRoom(GroupSettings(consumer_migration=policy))
    room.create_topic("t", 4)
    classic_group(room)
    entered = room.enter("new")
    if policy.allows_upgrade:
        assert entered.error is ErrorCode.NONE
    else:
        assert (entered.error, entered.message) == (
            ErrorCode.GROUP_ID_NOT_FOUND,
            "Cannot upgrade classic group group to consumer group because online upgrade is disabled.",
        )
    other = ConsumerRoom(GroupSettings(consumer_migration=policy))
    other.create_topic("t", 4)
    other.entered("new")
    joined = old_join(other).outcome
    if policy is MigrationPolicy.DISABLED:
        assert joined.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        return
    other.beat("new", -1)
    assert isinstance(other.machine.groups["group"], ClassicGroup) == policy.allows_downgrade


def test_groups_that_cannot_be_understood_stay_as_they_are(room: ConsumerRoom) -> None:
    joined = room.join(version=3, offers=[("range", b"about me")]).outcome
    room.sync(joined.member_id, 1, {joined.member_id: b"given"})
    refused = room.enter("new")
    assert refused.error is ErrorCode.GROUP_ID_NOT_FOUND
    assert "the embedded consumer protocol is malformed" in (refused.message or "")
    assert isinstance(room.machine.groups["group"], ClassicGroup)
    assert room.heartbeat(joined.member_id, 1) is ErrorCode.NONE


def classic_pair(room: ConsumerRoom, of_leader: list[int], of_follower: list[int]) -> Joined:
    """A stable classic group of two members, which have these partitions of t; the leader's last answer."""
    first = old_join(room).outcome
    follower = old_join(room)
    leader = old_join(room, first.member_id).outcome
    given = {leader.member_id: of_leader, follower.outcome.member_id: of_follower}
    room.assign(leader, {member: write_assignment({"t": of}, 1) for member, of in given.items()})
    return leader


def assert_refused(room: ConsumerRoom, *topics: str) -> None:
    """A consumer cannot make the group one of its kind, and the classic members do not notice."""
    refused = room.enter("new", topics)
    assert (refused.error, refused.message) == (ErrorCode.UNKNOWN_SERVER_ERROR, None)
    assert isinstance(room.machine.groups["group"], ClassicGroup)


def test_two_members_cannot_both_bring_a_partition(room: ConsumerRoom) -> None:
    leader = classic_pair(room, [0, 1, 2], [2, 3])
    assert_refused(room, "t")
    assert room.heartbeat(leader.member_id, leader.generation) is ErrorCode.NONE


@pytest.mark.parametrize("number", [4, -1])
def test_partitions_that_do_not_exist_cannot_be_shared_out(room: ConsumerRoom, number: int) -> None:
    room.create_topic("u", 2)
    leader = classic_pair(room, [0, 1], [2, number])
    assert_refused(room, "t", "u")
    assert room.heartbeat(leader.member_id, leader.generation) is ErrorCode.NONE


def test_nor_among_members_that_read_the_same(room: ConsumerRoom) -> None:
    """The new member would get none of those that the others have too many of."""
    classic_pair(room, [0, 1, 2, 3], [4, 5, 6, 7])
    assert_refused(room, "t")


def test_a_group_that_gathers_its_first_members_stays_classic() -> None:
    room = ConsumerRoom(GroupSettings(initial_rebalance_delay_ms=3000))
    room.create_topic("t", 4)
    first = old_join(room)
    assert_refused(room, "t")
    assert first.outcome.error is ErrorCode.REBALANCE_IN_PROGRESS
    again = old_join(room, first.outcome.member_id)
    room.pass_ms(3000)
    assert again.outcome.error is ErrorCode.NONE


def test_a_group_whose_members_are_about_to_change_their_protocol_stays_classic(room: ConsumerRoom) -> None:
    both: Protocols = (("range", says("t")), ("other", says("t")))
    first = room.join(version=3, offers=both).outcome
    follower = room.join(version=3, offers=both)
    leader = room.join(first.member_id, offers=both).outcome
    room.assign(leader, {leader.member_id: write_assignment({"t": [0, 1, 2, 3]}, 1)})
    waiting = room.join(follower.outcome.member_id, offers=both[1:])
    assert not waiting.is_settled
    assert_refused(room, "t")
    assert waiting.outcome.error is ErrorCode.REBALANCE_IN_PROGRESS
    assert room.heartbeat(leader.member_id, 2) is ErrorCode.REBALANCE_IN_PROGRESS


@pytest.mark.parametrize(
    ("settings", "how", "error"),
    [
        (GroupSettings(), {"topics": (), "regex": "("}, ErrorCode.INVALID_REGULAR_EXPRESSION),
        (GroupSettings(consumer_max_size=2), {}, ErrorCode.GROUP_MAX_SIZE_REACHED),
    ],
)
def test_who_waits_is_answered_even_if_the_new_member_is_refused(
    settings: GroupSettings, how: dict[str, Any], error: ErrorCode
) -> None:
    room = ConsumerRoom(settings)
    room.create_topic("t", 4)
    old = classic_group(room)
    waiting = old_join(room)
    assert room.enter("new", **how).error is error
    assert waiting.outcome.error is ErrorCode.REBALANCE_IN_PROGRESS
    rejoined = old_join(room, waiting.outcome.member_id)
    assert old_join(room, old).outcome.error is ErrorCode.NONE
    assert rejoined.outcome.error is ErrorCode.NONE


def test_an_assignor_of_their_own_cannot_be_gone_on_with(room: ConsumerRoom) -> None:
    joined = old_join(room).outcome
    own = write_assignment({"t": [0]}, 1)[:-4] + b"\x00\x00\x00\x04mine"
    room.sync(joined.member_id, 1, {joined.member_id: own})
    assert "an unsupported custom assignor is in use" in (room.enter("new").message or "")


def test_an_old_member_that_does_not_rejoin_in_time_is_written_off(room: ConsumerRoom) -> None:
    old = classic_group(room)
    room.entered("new")
    assert room.heartbeat(old, 1) is ErrorCode.REBALANCE_IN_PROGRESS
    for _ in range(4):
        room.pass_ms(4999)
        room.beat("new", 2)
        room.heartbeat(old, 1)
    assert old in room.consumers.members
    room.pass_ms(100)
    assert old not in room.consumers.members


def test_an_old_member_that_does_not_sync_in_time_is_written_off(room: ConsumerRoom) -> None:
    room.entered("new")
    old = old_join(room).outcome
    for _ in range(4):
        room.pass_ms(4999)
        room.beat("new", 2)
        room.heartbeat(old.member_id, old.generation)
    assert old.member_id in room.consumers.members
    room.pass_ms(100)
    assert old.member_id not in room.consumers.members


def test_an_old_member_has_the_session_that_it_asked_for(room: ConsumerRoom) -> None:
    room.entered("new")
    old = old_join(room).outcome
    told(room, old.member_id, old.generation)
    room.pass_ms(OLD_SESSION_MS - 1)
    assert old.member_id in room.consumers.members
    room.pass_ms(1)
    assert old.member_id not in room.consumers.members


def test_an_old_member_of_a_full_group_is_refused() -> None:
    room = ConsumerRoom(GroupSettings(consumer_max_size=1))
    room.create_topic("t", 4)
    room.entered("new")
    assert old_join(room).outcome.error is ErrorCode.GROUP_MAX_SIZE_REACHED


def test_offsets_stay_with_the_group(room: ConsumerRoom) -> None:
    old = classic_group(room)
    room.commit({("t", 0): 7}, member_id=old, generation=1)
    room.entered("new")
    assert room.fetch() == {("t", 0): 7}
    room.leave(old)
    room.beat("new", -1)
    assert room.fetch() == {("t", 0): 7}
    assert room.join(version=3).outcome.error is ErrorCode.NONE
    assert room.fetch() == {("t", 0): 7}


async def test_a_group_of_both_is_there_after_loading(room: ConsumerRoom) -> None:
    old = classic_group(room)
    room.entered("new")
    old_join(room, old, owned=(0, 1))
    again = await room.restarted()
    assert again.consumers.members == room.consumers.members
    assert again.consumers.classic_count == 1
    assert told(again, old, 2) == [0, 1]
    room.pass_ms(INTERVAL_MS)
    room.beat("new", -1)
    once_more = await room.restarted()
    assert isinstance(once_more.machine.groups["group"], ClassicGroup)
