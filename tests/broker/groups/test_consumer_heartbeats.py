"""How members join a consumer group, share its partitions, and leave (KIP-848)."""

import pytest

from broker.groups.consumer import ConsumerGroupState
from broker.groups.consumer_member import MemberState
from broker.groups.requests import Beaten
from broker.groups.settings import GroupSettings
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.stored.group_records import ConsumerGroupMemberMetadataKey
from tests.broker.groups.consumer_rooms import (
    HEARTBEAT_MS,
    INTERVAL_MS,
    REBALANCE_MS,
    SESSION_MS,
    ConsumerRoom,
)


@pytest.fixture
def room() -> ConsumerRoom:
    room = ConsumerRoom()
    room.create_topic("t", 4)
    return room


def test_the_first_member_gets_everything_at_once(room: ConsumerRoom) -> None:
    beaten = room.entered("a")
    assert beaten == Beaten(
        member_id="a", member_epoch=2, heartbeat_interval_ms=HEARTBEAT_MS, assignment=beaten.assignment
    )
    assert room.named(beaten.assignment) == {"t": [0, 1, 2, 3]}
    assert room.state_of_consumers() is ConsumerGroupState.STABLE


def test_a_heartbeat_that_changes_nothing_writes_nothing_and_tells_no_assignment(room: ConsumerRoom) -> None:
    room.entered("a")
    end = room.log.log_end
    beaten = room.beat("a", 2)
    assert (beaten.error, beaten.member_epoch, beaten.assignment) == (ErrorCode.NONE, 2, None)
    assert room.log.log_end == end


def test_a_full_heartbeat_is_told_the_assignment_again(room: ConsumerRoom) -> None:
    room.entered("a")
    beaten = room.beat("a", 2, topics=["t"], rebalance_ms=REBALANCE_MS, owned={"t": [0, 1, 2, 3]})
    assert room.named(beaten.assignment) == {"t": [0, 1, 2, 3]}


def test_partitions_move_only_when_they_have_been_given_up(room: ConsumerRoom) -> None:
    room.entered("a")
    room.pass_ms(INTERVAL_MS)
    joined = room.entered("b")
    assert (joined.member_epoch, joined.assignment) == (3, {})
    assert room.member("b").state is MemberState.UNRELEASED_PARTITIONS

    told = room.beat("a", 2)
    assert told.member_epoch == 2
    assert room.named(told.assignment) == {"t": [0, 1]}
    assert room.member("a").state is MemberState.UNREVOKED_PARTITIONS
    assert room.state_of_consumers() is ConsumerGroupState.RECONCILING
    assert room.beat("b", 3).assignment is None

    # It still reports what it should give up, or does not say.
    assert room.beat("a", 2, owned={"t": [0, 1, 2, 3]}).member_epoch == 2
    assert room.beat("a", 2).member_epoch == 2
    assert room.beat("b", 3).assignment is None

    assert room.beat("a", 2, owned={"t": [0, 1]}).member_epoch == 3
    assert room.named(room.beat("b", 3).assignment) == {"t": [2, 3]}
    assert room.state_of_consumers() is ConsumerGroupState.STABLE


def test_an_answer_may_get_lost(room: ConsumerRoom) -> None:
    room.entered("a")
    room.pass_ms(INTERVAL_MS)
    room.entered("b")
    room.beat("a", 2)
    room.beat("a", 2, owned={"t": [0, 1]})
    # The answer with epoch 3 did not arrive: the member says again what it said.
    again = room.beat("a", 2, owned={"t": [0, 1]})
    assert (again.error, again.member_epoch) == (ErrorCode.NONE, 3)
    # But not with partitions that are another's by now.
    fenced = room.beat("a", 2, owned={"t": [0, 1, 2]})
    assert fenced.error is ErrorCode.FENCED_MEMBER_EPOCH
    assert fenced.message == (
        "The consumer group member has a smaller member epoch (2) than the one known by the group "
        "coordinator (3). The member must abandon all its partitions and rejoin."
    )
    assert room.beat("a", 2).error is ErrorCode.FENCED_MEMBER_EPOCH


def test_an_epoch_that_was_never_given_is_fenced(room: ConsumerRoom) -> None:
    room.entered("a")
    assert room.beat("a", 1, owned={}).error is ErrorCode.FENCED_MEMBER_EPOCH
    fenced = room.beat("a", 3)
    assert fenced.error is ErrorCode.FENCED_MEMBER_EPOCH
    assert fenced.member_id is None
    assert "a greater member epoch (3) than" in (fenced.message or "")


def test_a_fenced_member_may_join_again_under_its_id(room: ConsumerRoom) -> None:
    room.entered("a")
    assert room.beat("a", 7).error is ErrorCode.FENCED_MEMBER_EPOCH
    assert room.named(room.entered("a").assignment) == {"t": [0, 1, 2, 3]}
    assert list(room.consumers.members) == ["a"]


def test_who_is_not_there_is_told_so(room: ConsumerRoom) -> None:
    missing = room.beat("a", 2)
    assert (missing.error, missing.message) == (
        ErrorCode.GROUP_ID_NOT_FOUND,
        "Consumer group group not found.",
    )
    gone = room.beat("a", -1)
    assert (gone.error, gone.message) == (ErrorCode.GROUP_ID_NOT_FOUND, "Group group not found.")
    room.entered("a")
    stranger = room.beat("b", 2)
    assert (stranger.error, stranger.message) == (
        ErrorCode.UNKNOWN_MEMBER_ID,
        "Member b is not a member of group group.",
    )
    assert room.beat("b", -1).error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_without_an_id_is_given_one(room: ConsumerRoom) -> None:
    made = room.entered("").member_id
    assert made is not None
    assert made.startswith("made-")
    assert room.beat(made, 2).error is ErrorCode.NONE


def test_a_new_assignment_is_made_at_most_once_in_a_while(room: ConsumerRoom) -> None:
    room.entered("a")
    room.entered("b")
    assert (room.consumers.group_epoch, room.consumers.target.epoch) == (3, 2)
    assert room.state_of_consumers() is ConsumerGroupState.ASSIGNING
    assert room.beat("a", 2).assignment is None
    room.pass_ms(INTERVAL_MS)
    assert room.named(room.beat("a", 2).assignment) == {"t": [0, 1]}
    assert room.consumers.target.epoch == 3


@pytest.mark.acts("consumer.assignment.interval.ms")
def test_a_group_may_do_without_that_pause(room: ConsumerRoom) -> None:
    room.configure("consumer.assignment.interval.ms", "0")
    room.entered("a")
    room.entered("b")
    assert room.consumers.target.epoch == 3


def test_a_group_has_settings_of_its_own(room: ConsumerRoom) -> None:
    room.configure("consumer.heartbeat.interval.ms", "6000")
    room.configure("consumer.session.timeout.ms", "50000")
    assert room.entered("a").heartbeat_interval_ms == 6000
    room.pass_ms(49_999)
    assert "a" in room.consumers.members
    room.pass_ms(1)
    assert room.consumers.members == {}
    room.configure("consumer.heartbeat.interval.ms", None)
    assert room.entered("a").heartbeat_interval_ms == HEARTBEAT_MS


def test_a_member_that_leaves_is_gone_at_once(room: ConsumerRoom) -> None:
    room.entered("a")
    room.pass_ms(INTERVAL_MS)
    room.entered("b")
    room.settle("a", "b")
    left = room.beat("a", -1)
    assert left == Beaten(member_id="a", member_epoch=-1)
    room.settle("b")
    assert room.owned("b") == [{"t": [0, 1, 2, 3]}]


def test_the_last_member_leaves_an_empty_group(room: ConsumerRoom) -> None:
    room.entered("a")
    room.beat("a", -1)
    assert room.state_of_consumers() is ConsumerGroupState.EMPTY
    assert room.consumers.target.epoch == room.consumers.group_epoch == 3
    assert room.consumers.metadata_hash == 0
    # Whoever comes next need not wait.
    assert room.named(room.entered("b").assignment) == {"t": [0, 1, 2, 3]}


def test_a_silent_member_is_written_off_when_its_session_ends(room: ConsumerRoom) -> None:
    room.entered("a")
    room.pass_ms(SESSION_MS - 1)
    room.beat("a", 2)
    room.pass_ms(SESSION_MS - 1)
    assert "a" in room.consumers.members
    room.pass_ms(1)
    assert room.beat("a", 2).error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_that_does_not_give_up_in_time_is_written_off(room: ConsumerRoom) -> None:
    room.entered("a", rebalance_ms=10_000)
    room.pass_ms(INTERVAL_MS)
    room.entered("b")
    room.beat("a", 2)
    for _ in range(9):
        room.pass_ms(1000)
        assert room.beat("a", 2).error is ErrorCode.NONE
    room.pass_ms(1000)
    assert room.beat("a", 2).error is ErrorCode.UNKNOWN_MEMBER_ID
    room.settle("b")
    assert room.owned("b") == [{"t": [0, 1, 2, 3]}]


def test_a_member_that_gives_up_in_time_stays(room: ConsumerRoom) -> None:
    room.entered("a", rebalance_ms=10_000)
    room.pass_ms(INTERVAL_MS)
    room.entered("b")
    room.beat("a", 2)
    room.beat("a", 2, owned={"t": [0, 1]})
    room.pass_ms(20_000)
    assert room.beat("a", 3).error is ErrorCode.NONE


def test_what_a_member_does_not_read_any_more_it_loses_before_there_is_a_new_target(
    room: ConsumerRoom,
) -> None:
    room.create_topic("u", 2)
    room.entered("a", ("t", "u"))
    told = room.beat("a", 2, topics=["u"])
    assert room.consumers.target.epoch == 2
    assert told.member_epoch == 2
    assert room.named(told.assignment) == {"u": [0, 1]}
    assert room.member("a").state is MemberState.UNREVOKED_PARTITIONS


def test_topics_that_grow_come_and_go_are_noticed(room: ConsumerRoom) -> None:
    room.entered("a", ("t", "u"))
    room.pass_ms(INTERVAL_MS)
    room.add_partitions("t", 1)
    assert room.named(room.beat("a", 2).assignment) == {"t": [0, 1, 2, 3, 4]}
    room.pass_ms(INTERVAL_MS)
    room.create_topic("u", 1)
    assert room.named(room.beat("a", 3).assignment) == {"t": [0, 1, 2, 3, 4], "u": [0]}
    room.pass_ms(INTERVAL_MS)
    room.delete_topic("t")
    assert room.named(room.beat("a", 4).assignment) == {"u": [0]}
    assert room.consumers.group_epoch == 5


def test_topics_that_the_group_does_not_read_are_none_of_its_business(room: ConsumerRoom) -> None:
    room.entered("a")
    room.create_topic("u")
    room.pass_ms(INTERVAL_MS)
    end = room.log.log_end
    room.beat("a", 2)
    assert room.log.log_end == end


def test_a_topic_that_was_made_again_is_another_one(room: ConsumerRoom) -> None:
    room.entered("a")
    room.pass_ms(INTERVAL_MS)
    old = room.cluster.image.topics["t"].id
    room.delete_topic("t")
    new = room.create_topic("t", 1)
    room.beat("a", 2)
    told = room.beat("a", 2, owned={})
    assert told.assignment is not None
    assert set(told.assignment) == {new}
    assert not room.consumers.is_owned(old, 0)


def test_racks_are_part_of_what_a_group_watches(room: ConsumerRoom) -> None:
    without = room.cluster.metadata_hash(["t"])
    room.register_broker(1, "here")
    here = room.cluster.metadata_hash(["t"])
    room.register_broker(1, "there")
    assert len({without, here, room.cluster.metadata_hash(["t"])}) == 3


def test_the_assignor_that_most_members_want_is_used(room: ConsumerRoom) -> None:
    room.create_topic("u", 1)
    room.entered("a", ("t", "u"), assignor="range")
    assert room.describe_consumers().assignor == "range"
    room.pass_ms(INTERVAL_MS)
    # A member that changes its mind is reason enough for a new assignment.
    room.beat("a", 2, assignor="uniform")
    assert room.consumers.group_epoch == 3
    assert room.describe_consumers().assignor == "uniform"


def test_a_full_group_takes_nobody_else() -> None:
    room = ConsumerRoom(GroupSettings(consumer_max_size=1))
    room.create_topic("t", 1)
    room.entered("a")
    refused = room.enter("b")
    assert (refused.error, refused.message) == (
        ErrorCode.GROUP_MAX_SIZE_REACHED,
        "The consumer group has reached its maximum capacity of 1 members.",
    )
    assert room.beat("a", 2).error is ErrorCode.NONE
    assert room.entered("a").member_epoch == 2


def test_what_cannot_be_written_has_not_happened(room: ConsumerRoom) -> None:
    room.log.refusal = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert room.enter("a").error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert room.machine.groups == {}
    room.log.refusal = None
    assert room.entered("a").member_epoch == 2
    room.log.refusal = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
    room.add_partitions("t", 1)
    room.pass_ms(INTERVAL_MS)
    assert room.beat("a", 2).error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    room.log.refusal = None
    assert room.named(room.beat("a", 2).assignment) == {"t": [0, 1, 2, 3, 4]}


async def test_a_loaded_group_is_the_same_and_its_sessions_begin_anew(room: ConsumerRoom) -> None:
    room.entered("a", rebalance_ms=10_000)
    room.pass_ms(INTERVAL_MS)
    room.entered("b", ("t", "gone"), rack_id="here", client_id="other")
    room.beat("a", 2)
    again = await room.restarted()
    assert again.consumers.members == room.consumers.members
    assert again.describe_consumers() == room.describe_consumers()
    assert again.beat("b", 3).error is ErrorCode.NONE
    again.pass_ms(9_999)
    assert "a" in again.consumers.members
    again.pass_ms(1)
    assert "a" not in again.consumers.members


async def test_the_end_of_a_group_says_nothing_of_the_next_one_of_that_name(room: ConsumerRoom) -> None:
    """Of each piece of the log that is read only the last record of a key counts."""
    room.entered("a", client_id="x" * room.log.read_bytes_max)  # read in a piece of its own
    room.beat("a", -1)
    assert room.delete("group") is ErrorCode.NONE
    room.beat_later("b", 0, topics=[], regex="t")
    again = await room.restarted()
    assert again.log.reads == 2
    assert again.consumers.target.epoch == room.consumers.target.epoch


@pytest.mark.parametrize("heartbeat", [True, False])
def test_who_could_not_be_written_off_is_so_later(room: ConsumerRoom, heartbeat: bool) -> None:
    room.entered("a")
    room.log.refusal = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
    room.pass_ms(SESSION_MS + 3_000)
    assert "a" in room.consumers.members
    if heartbeat:
        assert room.beat("a", 2).error is ErrorCode.NONE
    room.log.refusal = None
    room.pass_ms(500)
    assert ("a" in room.consumers.members) is heartbeat
    room.pass_ms(SESSION_MS)
    assert room.consumers.members == {}


def test_who_gives_nothing_up_is_written_off_as_soon_as_that_can_be_written(room: ConsumerRoom) -> None:
    room.entered("a", rebalance_ms=10_000)
    room.pass_ms(INTERVAL_MS)
    room.entered("b")
    room.beat("a", 2, owned={"t": [0, 1, 2]})
    assert room.member("a").state is MemberState.UNREVOKED_PARTITIONS
    room.pass_ms(9_999)
    room.log.refusal = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
    room.pass_ms(1)
    room.beat("a", 2, owned={"t": [0, 1, 2]})
    room.log.refusal = None
    room.pass_ms(499)
    assert "a" in room.consumers.members
    room.pass_ms(1)
    assert list(room.consumers.members) == ["b"]


def test_an_assignor_of_another_broker_fails_its_group_alone(room: ConsumerRoom) -> None:
    room.entered("a")
    elsewhere = room.member("a")._replace(server_assignor="of another broker")
    room.consumers.apply(
        ConsumerGroupMemberMetadataKey(group_id="group", member_id="a"), elsewhere.metadata()
    )
    room.pass_ms(INTERVAL_MS)
    assert room.enter("b").error is ErrorCode.UNKNOWN_SERVER_ERROR
    assert room.reloads == 0
    assert room.enter("c", group_id="another").error is ErrorCode.NONE
