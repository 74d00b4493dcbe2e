"""Share groups: members, epochs, who reads what, and what is stored."""

import pytest

from broker.config.broker_config import BrokerConfig
from broker.coordination.tickets import Ticket
from broker.groups.requests import ConsumerGroupDescription
from broker.groups.settings import GroupSettings
from broker.share.group import ShareGroup, TopicState
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.stored.group_records import ShareGroupTargetAssignmentMetadataKey
from tests.broker.share.share_room import ShareRoom

FORTY_SIX_SECONDS_MS = 46_000


def stored_state(group: ShareGroup) -> object:
    return group.group_epoch, group.metadata_hash, group.members, group.target.by_member, group.states


def test_nothing_is_assigned_before_its_state_is_there() -> None:
    room = ShareRoom()
    topic_id = room.create_topic("t", 2)
    beaten = room.entered_share("a", "t")
    assert beaten.member_epoch == 2
    assert room.named(beaten.assignment) == {}
    (wanted,) = room.initialize()
    assert wanted.start_offsets == {topic_id: {0: -1, 1: -1}}, "where to start is the group's setting"
    room.pass_ms(1_000)
    beaten = room.share("a", 2)
    assert beaten.member_epoch == 3
    assert room.named(beaten.assignment) == {"t": [0, 1]}


def test_the_share_coordinator_is_asked_once_and_again_after_a_while() -> None:
    room = ShareRoom()
    room.create_topic("t", 1)
    epoch = room.entered_share("a", "t").member_epoch
    room.share("a", epoch)
    assert len(room.performed) == 1
    room.pass_ms(31_000)
    room.share("a", epoch)
    assert len(room.performed) == 2, "the first answer may have been lost"


@pytest.mark.acts("group.share.initialize.retry.interval.ms")
def test_how_soon_it_is_asked_again_can_be_set() -> None:
    config = BrokerConfig({"group.share.initialize.retry.interval.ms": "7000"})
    room = ShareRoom(GroupSettings.from_config(config))
    room.create_topic("t", 1)
    epoch = room.entered_share("a", "t").member_epoch
    for seconds, asked in ((6, 1), (2, 2)):
        room.pass_ms(seconds * 1000)
        room.share("a", epoch)
        assert len(room.performed) == asked


def test_state_that_could_not_be_made_is_asked_for_again() -> None:
    room = ShareRoom()
    room.create_topic("t", 1)
    epoch = room.entered_share("a", "t").member_epoch
    room.fail()
    assert not room.sharers.states.initializing
    room.share("a", epoch)
    assert len(room.performed) == 1


def test_new_partitions_are_read_from_their_beginning() -> None:
    room = ShareRoom()
    topic_id = room.create_topic("t", 1)
    room.entered_share("a", "t")
    room.settle_share("a")
    room.add_partitions("t", 2)
    room.share("a", room.sharers.members["a"].member_epoch)
    (wanted,) = room.initialize()
    assert wanted.start_offsets == {topic_id: {1: 0, 2: 0}}
    room.settle_share("a")
    assert room.assigned("a") == {"t": [0, 1, 2]}


def test_members_share_out_partitions() -> None:
    room = ShareRoom()
    room.create_topic("t", 4)
    room.entered_share("a", "t")
    room.settle_share("a")
    assert room.assigned("a") == {"t": [0, 1, 2, 3]}
    room.entered_share("b", "t")
    room.settle_share("a", "b")
    of_a, of_b = room.assigned("a"), room.assigned("b")
    assert of_a is not None
    assert of_b is not None
    assert len(of_a["t"]) == len(of_b["t"]) == 2
    assert sorted(of_a["t"] + of_b["t"]) == [0, 1, 2, 3]


def test_members_read_the_same_partition_when_there_are_not_enough() -> None:
    room = ShareRoom()
    room.create_topic("t", 1)
    for member_id in "abc":
        room.entered_share(member_id, "t")
    room.settle_share(*"abc")
    assert [room.assigned(member_id) for member_id in "abc"] == [{"t": [0]}] * 3


def test_a_late_member_is_written_off() -> None:
    room = ShareRoom()
    room.create_topic("t", 1)
    room.entered_share("a", "t")
    room.pass_ms(30_000)
    room.entered_share("b", "t")
    room.pass_ms(20_000)
    assert set(room.sharers.members) == {"b"}
    assert room.share("a", 2).error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_group_without_members_stays_for_ever() -> None:
    room = ShareRoom()
    room.create_topic("t", 1)
    room.entered_share("a", "t")
    assert room.share("a", -1).error is ErrorCode.NONE
    room.pass_ms(30 * 24 * 60 * 60 * 1000)
    assert room.describe_share().state == "Empty"


async def test_a_restart_changes_nothing() -> None:
    room = ShareRoom()
    room.create_topic("t", 4)
    room.create_topic("u", 2)
    room.entered_share("a", "t")
    room.entered_share("b", "t", "u")
    room.settle_share("a", "b")
    room.entered_share("c", "u")
    room.share("b", -1)
    again = await room.restarted()
    assert stored_state(again.sharers) == stored_state(room.sharers)
    assert isinstance(again.describe_share(), ConsumerGroupDescription)
    again.pass_ms(FORTY_SIX_SECONDS_MS)
    assert not again.sharers.members, "their sessions began anew, and are over"


async def test_state_that_was_being_made_at_a_crash_is_asked_for_again() -> None:
    room = ShareRoom()
    topic_id = room.create_topic("t", 1)
    epoch = room.entered_share("a", "t").member_epoch
    again = await room.restarted()
    assert again.sharers.states.initializing == {topic_id: TopicState("t", frozenset([0]))}
    again.share("a", epoch)
    assert len(again.performed) == 1


async def test_a_deleted_group_is_gone_after_a_restart_too() -> None:
    room = ShareRoom()
    room.create_topic("t", 1)
    room.entered_share("a", "t")
    room.settle_share("a")
    room.share("a", -1)
    assert room.delete() is ErrorCode.NONE
    assert not room.machine.groups
    assert not (await room.restarted()).machine.groups


def test_the_end_of_a_group_says_nothing_of_the_next_one_of_that_name() -> None:
    group = ShareGroup("group", GroupSettings(), ShareRoom().cluster)
    epoch = group.target.epoch
    group.apply(ShareGroupTargetAssignmentMetadataKey(group_id="group"), None)
    assert group.target.epoch == epoch


def test_deleted_topics_are_forgotten() -> None:
    room = ShareRoom()
    topic_id = room.create_topic("t", 1)
    room.entered_share("a", "t")
    room.settle_share("a")
    room.delete_topic("t")
    ticket: Ticket[None] = Ticket(lambda code: None)
    room.ask(ticket, lambda machine, _: machine.topics_deleted({topic_id: "t"}, ticket))
    assert not room.sharers.states.initialized
    room.settle_share("a")
    assert room.assigned("a") == {}


def test_no_more_members_than_allowed() -> None:
    room = ShareRoom(GroupSettings(share_max_size=2))
    room.create_topic("t", 1)
    room.entered_share("a", "t")
    room.entered_share("b", "t")
    assert room.share("c", 0, ["t"]).error is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert room.share("a", 0, ["t"]).error is ErrorCode.NONE


def test_a_classic_member_cannot_join() -> None:
    room = ShareRoom()
    room.create_topic("t", 1)
    room.entered_share("a", "t")
    assert room.join("").outcome.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_group_that_nobody_is_in_stays_until_it_is_deleted() -> None:
    room = ShareRoom()
    room.create_topic("t", 1)
    room.entered_share("a", "t")
    room.settle_share("a")
    room.share("a", -1)
    for _ in range(3):
        room.pass_ms(10 * 86_400_000)
    assert room.sharers.is_empty


def test_who_could_not_be_written_off_is_so_later() -> None:
    room = ShareRoom()
    room.create_topic("t", 1)
    room.entered_share("a", "t")
    room.log.refusal = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
    room.pass_ms(FORTY_SIX_SECONDS_MS)
    assert "a" in room.sharers.members
    room.log.refusal = None
    room.pass_ms(500)
    assert room.sharers.members == {}


def test_a_member_is_not_late_whose_heartbeats_the_log_refuses() -> None:
    room = ShareRoom()
    room.create_topic("t", 1)
    epoch = room.entered_share("a", "t").member_epoch
    room.log.refusal = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
    room.create_topic("u", 1)
    for _ in range(12):
        room.pass_ms(5_000)
        assert room.share("a", epoch, ["t", "u"]).error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    room.log.refusal = None
    room.pass_ms(5_000)
    assert room.share("a", epoch, ["t", "u"]).error is ErrorCode.NONE


def test_what_is_being_made_is_not_being_deleted_any_more() -> None:
    room = ShareRoom()
    room.create_topic("t", 1)
    room.entered_share("a", "t")
    room.settle_share("a")
    room.share("a", -1)
    assert not room.begin_deleting("t").unknown
    room.entered_share("a", "t")
    assert room.sharers.states.initializing
    assert not room.sharers.states.deleting
    room.share("a", -1)
    assert room.begin_deleting("t").unknown == ["t"]


@pytest.mark.parametrize("is_new", [True, False])
def test_members_do_not_ask_for_what_an_operator_is_altering(is_new: bool) -> None:
    room = ShareRoom()
    room.create_topic("t", 1)
    if not is_new:
        room.entered_share("a")
        room.share("a", -1)
    assert room.begin_altering(5, "t").error is ErrorCode.NONE
    epoch = room.entered_share("a", "t").member_epoch
    assert not room.performed, "it would begin at offset 0"
    room.pass_ms(31_000)
    room.share("a", epoch)
    assert len(room.performed) == 1, "the operator's broker may have stopped"


def test_what_could_not_be_written_was_not_asked() -> None:
    room = ShareRoom()
    room.create_topic("t", 1)
    epoch = room.entered_share("a", "t").member_epoch
    room.pass_ms(31_000)
    room.log.refusal = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
    room.share("a", epoch)
    room.log.refusal = None
    room.share("a", epoch)
    assert len(room.performed) == 2
