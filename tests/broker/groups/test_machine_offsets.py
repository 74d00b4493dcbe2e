"""Offsets: who may commit, what is fetched, deleted and forgotten."""

import pytest

from broker.groups.requests import OffsetsDeleted
from broker.groups.settings import GroupSettings
from broker.groups.states import GroupState
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.records.builder import build_batch
from protocol.records.control import EndTransactionMarker, build_end_transaction_marker
from protocol.stored.group_records import (
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from tests.broker.coordination.fake_log import FakeLog
from tests.broker.groups.rooms import TOPIC_ID, WALL_START_MS, Room, offsets_of, subscription

DAY_MS = 24 * 60 * 60 * 1000
WEEK_MS = 7 * DAY_MS


@pytest.fixture
def room() -> Room:
    return Room()


# Committing and fetching


def test_a_consumer_without_a_group_makes_one_with_its_first_commit(room: Room) -> None:
    assert room.commit({("t", 0): 5, ("t", 1): 6}).outcome == [ErrorCode.NONE] * 2
    assert room.fetch({"t": [0, 1, 2], "other": [0]}) == {
        ("t", 0): 5,
        ("t", 1): 6,
        ("t", 2): -1,
        ("other", 0): -1,
    }
    assert room.describe().state == "Empty"
    assert room.describe().protocol_type == ""


def test_the_offsets_of_one_request_are_one_batch(room: Room) -> None:
    room.commit({("t", partition): partition for partition in range(10)})
    assert len(room.log.batches) == 1


def test_the_last_of_several_commits_counts(room: Room) -> None:
    room.commit({("t", 0): 5})
    room.commit({("t", 0): 3})
    assert room.fetch() == {("t", 0): 3}


def test_a_group_that_is_not_there_has_no_offsets(room: Room) -> None:
    assert room.fetch({"t": [0]}) == {("t", 0): -1}
    assert room.fetch() == {}


def test_the_group_without_a_name_may_have_offsets(room: Room) -> None:
    room.commit({("t", 0): 5}, group_id="")
    assert room.fetch(group_id="") == {("t", 0): 5}
    assert room.delete("") is ErrorCode.NONE
    assert room.fetch(group_id="") == {}


def test_offsets_may_be_negative(room: Room) -> None:
    room.commit({("t", 0): -5})
    assert room.fetch() == {("t", 0): -5}


@pytest.mark.parametrize(
    ("metadata", "code"),
    [
        ("m" * 4096, ErrorCode.NONE),
        ("é" * 4096, ErrorCode.NONE),
        ("m" * 4097, ErrorCode.OFFSET_METADATA_TOO_LARGE),
        ("\U0001f600" * 2048, ErrorCode.NONE),
        ("\U0001f600" * 2049, ErrorCode.OFFSET_METADATA_TOO_LARGE),
    ],
)
def test_metadata_is_measured_in_java_s_characters(room: Room, metadata: str, code: ErrorCode) -> None:
    assert room.commit({("t", 0): 5}, metadata=metadata).outcome == [code]
    assert room.fetch({"t": [0]}) == {("t", 0): 5 if code is ErrorCode.NONE else -1}


def test_a_topic_made_anew_under_the_same_name_has_no_offsets(room: Room) -> None:
    room.commit({("t", 0): 5})
    assert room.fetch({"t": [0]}, topic_id=TOPIC_ID) == {("t", 0): 5}
    assert room.fetch({"t": [0]}, topic_id=bytes(reversed(TOPIC_ID))) == {("t", 0): -1}


def test_a_commit_that_cannot_be_stored_changes_nothing(room: Room) -> None:
    room.commit({("t", 0): 5})
    room.log.refusal = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
    refused = room.commit({("t", 0): 6, ("t", 1): 6})
    assert refused.outcome == [ErrorCode.COORDINATOR_NOT_AVAILABLE] * 2
    assert room.fetch() == {("t", 0): 5}
    assert room.reloads == 0


def test_fetching_waits_for_what_is_committed_just_now(room: Room) -> None:
    room.commit({("t", 0): 5})
    room.log.follows = False
    committing = room.commit({("t", 0): 6})
    with pytest.raises(RuntimeError, match="not settled"):
        room.fetch()
    room.log.cover(room.log.log_end)
    assert committing.outcome == [ErrorCode.NONE]
    assert room.fetch() == {("t", 0): 6}


# How they are stored


def test_how_an_offset_is_stored(room: Room) -> None:
    room.commit({("t", 0): 5}, metadata="m")
    assert room.stored() == {
        "group t-0": OffsetCommitValue(
            offset=5,
            leader_epoch=3,
            metadata="m",
            commit_timestamp=WALL_START_MS + room.steady_ms,
            topic_id=TOPIC_ID,
        )
    }
    (record,) = room.log.records()
    assert record.value is not None
    assert record.value[:2] == b"\x00\x04"


def test_an_offset_with_its_own_retention_is_stored_as_version_1(room: Room) -> None:
    room.commit({("t", 0): 5}, retention_ms=1000)
    (record,) = room.log.records()
    assert record.value is not None
    assert record.value[:2] == b"\x00\x01"
    ((_, committed),) = offsets_of(room.machine).items()
    assert committed.expire_timestamp_ms == WALL_START_MS + room.steady_ms + 1000


async def test_offsets_survive_a_restart(room: Room) -> None:
    room.commit({("t", 0): 5, ("t", 1): 6}, metadata="m")
    room.commit({("u", 0): 7}, retention_ms=5000)
    room.delete_offsets(("t", 1))
    assert offsets_of((await room.restarted()).machine) == {
        place: committed
        if committed.expire_timestamp_ms == -1
        else committed._replace(leader_epoch=-1, topic_id=bytes(16))  # version 1 cannot hold them
        for place, committed in offsets_of(room.machine).items()
    }


async def test_offsets_in_the_oldest_format_are_understood() -> None:
    key = LegacyOffsetCommitKey(group="group", topic="t", partition=0)
    value = LegacyOffsetCommitValue(offset=5, metadata="m", commit_timestamp=123)
    log = FakeLog()
    log.append(build_batch([(0, b"\0\0" + key.encode(0), b"\0\0" + value.encode(0), ())]))
    room = Room(log=log)
    await room.shard.load()
    assert room.fetch() == {("t", 0): 5}


# Transactions, as they are found in the log


def commit_in_transaction(log: FakeLog, producer_id: int, offset: int, partition: int = 0) -> None:
    room = Room(log=FakeLog())
    room.commit({("t", partition): offset})
    (record,) = room.log.records()
    log.append(
        build_batch(
            [(0, record.key, record.value, ())],
            producer_id=producer_id,
            producer_epoch=0,
            is_transactional=True,
        )
    )


def end_transaction(log: FakeLog, producer_id: int, *, is_commit: bool) -> None:
    marker = EndTransactionMarker(is_commit, 0)
    log.append(build_end_transaction_marker(marker, producer_id=producer_id, producer_epoch=0, timestamp=0))


async def test_pending_offsets_are_unstable_until_their_transaction_ends() -> None:
    room = Room()
    room.commit({("t", 0): 1, ("t", 1): 1})
    commit_in_transaction(room.log, 7, 2)
    room = await room.restarted()
    assert room.fetch({"t": [0, 1]}, stable=True) == {
        ("t", 0): ErrorCode.UNSTABLE_OFFSET_COMMIT,
        ("t", 1): 1,
    }
    assert room.fetch({"t": [0, 1]}) == {("t", 0): 1, ("t", 1): 1}


@pytest.mark.parametrize(("is_commit", "offset"), [(True, 2), (False, 1)])
async def test_a_marker_decides(is_commit: bool, offset: int) -> None:
    room = Room()
    room.commit({("t", 0): 1})
    commit_in_transaction(room.log, 7, 2)
    end_transaction(room.log, 7, is_commit=is_commit)
    room = await room.restarted()
    assert room.fetch({"t": [0]}, stable=True) == {("t", 0): offset}


async def test_a_later_commit_outlives_an_earlier_transaction() -> None:
    room = Room()
    commit_in_transaction(room.log, 7, 2)
    room = await room.restarted()
    room.commit({("t", 0): 9})
    end_transaction(room.log, 7, is_commit=True)
    assert (await room.restarted()).fetch() == {("t", 0): 9}


async def test_deleting_an_offset_drops_what_is_pending_for_it() -> None:
    room = Room()
    room.commit({("t", 0): 1})
    commit_in_transaction(room.log, 7, 2)
    room = await room.restarted()
    assert room.delete_offsets(("t", 0)) == OffsetsDeleted(codes=(ErrorCode.NONE,))
    end_transaction(room.log, 7, is_commit=True)
    assert (await room.restarted()).fetch() == {}


# Deleting


def test_deleting_writes_tombstones_for_what_is_there_only(room: Room) -> None:
    room.commit({("t", 0): 5, ("t", 1): 6})
    before = len(room.log.records())
    assert room.delete_offsets(("t", 0), ("t", 7)).codes == (ErrorCode.NONE, ErrorCode.NONE)
    assert len(room.log.records()) - before == 1
    assert room.fetch() == {("t", 1): 6}


def test_deleting_a_group_takes_its_offsets_with_it(room: Room) -> None:
    room.leave(*room.stable())
    room.commit({("t", partition): 5 for partition in range(2500)})
    batches = len(room.log.batches)
    assert room.delete() is ErrorCode.NONE
    assert len(room.log.batches) - batches == 4
    assert room.stored() == {}
    assert room.machine.groups == {}
    assert room.delete() is ErrorCode.GROUP_ID_NOT_FOUND


def test_a_deleted_topic_s_offsets_disappear_from_every_group(room: Room) -> None:
    for group_id in ("a", "b"):
        room.commit({("t", 0): 5, ("u", 0): 6}, group_id=group_id)
    (leader,) = room.stable(offers=(("range", subscription("t")),))
    room.commit({("t", 0): 5}, member_id=leader, generation=1)
    room.forget_topic("t")
    assert room.fetch(group_id="a") == {("u", 0): 6}
    assert room.fetch(group_id="b") == {("u", 0): 6}
    assert room.fetch() == {}
    assert room.state() is GroupState.STABLE


def test_a_new_topic_keeps_its_offsets_when_one_of_the_same_name_is_forgotten(room: Room) -> None:
    """A coordinator that has just taken over may hear of the old one's end late."""
    room.commit({("t", 0): 5})
    room.forget_topic("t", bytes(15) + b"\x01")
    assert room.fetch() == {("t", 0): 5}
    room.forget_topic("t")
    assert room.fetch() == {}


async def test_an_offset_that_does_not_know_its_topic_goes_with_any_of_that_name() -> None:
    key = OffsetCommitKey(group="group", topic="t", partition=0)
    log = FakeLog()
    log.append(
        build_batch([(0, b"\0\1" + key.encode(0), b"\0\1" + OffsetCommitValue(offset=5).encode(1), ())])
    )
    room = Room(log=log)
    await room.shard.load()
    assert room.fetch() == {("t", 0): 5}
    room.forget_topic("t")
    assert room.fetch() == {}


async def test_pending_offsets_go_with_their_topic_only() -> None:
    log = FakeLog()
    commit_in_transaction(log, 7, 5)
    room = Room(log=log)
    await room.shard.load()
    room.forget_topic("t", bytes(15) + b"\x01")
    assert room.fetch({"t": [0]}, stable=True) == {("t", 0): ErrorCode.UNSTABLE_OFFSET_COMMIT}
    room.forget_topic("t")
    assert room.fetch({"t": [0]}, stable=True) == {("t", 0): -1}


# Retention


def test_offsets_of_a_consumer_without_a_group_go_some_time_after_the_commit(room: Room) -> None:
    room.commit({("t", 0): 5})
    room.pass_ms(DAY_MS)
    room.commit({("t", 1): 5})
    room.pass_ms(WEEK_MS - DAY_MS + 600_000)
    assert room.fetch() == {("t", 1): 5}
    assert room.list_groups() == ["group"]
    room.pass_ms(DAY_MS)
    assert room.fetch() == {}
    assert room.list_groups() == []
    assert room.stored() == {}


def test_offsets_of_a_group_stay_while_it_has_members(room: Room) -> None:
    room = Room(GroupSettings(max_session_timeout_ms=3 * WEEK_MS))
    (leader,) = room.stable(session_ms=3 * WEEK_MS, offers=(("range", subscription("t")),))
    room.commit({("t", 0): 5, ("unread", 0): 6}, member_id=leader, generation=1)
    room.pass_ms(WEEK_MS + 600_000)
    assert room.fetch() == {("t", 0): 5}


def test_offsets_of_an_empty_group_go_some_time_after_the_last_member(room: Room) -> None:
    (leader,) = room.stable(offers=(("range", subscription("t")),))
    room.commit({("t", 0): 5}, member_id=leader, generation=1)
    for _ in range(2 * WEEK_MS // 3_600_000):
        room.steady_ms += 3_600_000
        room.heartbeat(leader, 1)
    room.leave(leader)
    room.pass_ms(WEEK_MS - 1)
    assert room.fetch() == {("t", 0): 5}
    room.pass_ms(600_001)
    assert room.fetch() == {}
    assert room.list_groups() == []


def test_an_offset_s_own_retention_goes_before_the_group_s(room: Room) -> None:
    room.leave(*room.stable())
    room.commit({("t", 0): 5}, retention_ms=1000)
    room.commit({("t", 1): 5}, retention_ms=2 * WEEK_MS)
    room.pass_ms(600_000)
    assert room.fetch() == {("t", 1): 5}
    room.pass_ms(WEEK_MS)
    assert room.fetch() == {("t", 1): 5}


def test_offsets_of_a_group_that_is_no_consumers_stay_while_it_has_members(room: Room) -> None:
    room = Room(GroupSettings(max_session_timeout_ms=3 * WEEK_MS))
    (worker,) = room.stable(session_ms=3 * WEEK_MS, kind="connect")
    room.commit({("t", 0): 5}, member_id=worker, generation=1)
    room.pass_ms(2 * WEEK_MS)
    assert room.fetch() == {("t", 0): 5}


async def test_what_a_transaction_may_still_change_does_not_expire() -> None:
    room = Room()
    room.commit({("t", 0): 1})
    commit_in_transaction(room.log, 7, 2)
    room = await room.restarted()
    room.pass_ms(2 * WEEK_MS)
    assert room.fetch() == {("t", 0): 1}
    assert room.list_groups() == ["group"]


def test_an_empty_group_without_offsets_goes_with_the_next_check(room: Room) -> None:
    room.leave(*room.stable())
    room.pass_ms(600_000)
    assert room.list_groups() == []
    assert room.stored() == {}


def test_many_groups_are_cleaned_in_turns(room: Room) -> None:
    for number in range(250):
        room.commit({("t", 0): 1}, group_id=f"g{number}", retention_ms=1)
    room.steady_ms += 600_000
    turns = 0
    while (deadline_ms := room.shard.deadline_ms()) is not None and deadline_ms <= room.steady_ms:
        room.shard.advance()
        turns += 1
    assert room.list_groups() == []
    assert turns >= 250  # each with a batch of its own, so that requests come between
