"""What one partition does with one answer of its leader."""

from typing import Any

import pytest

from broker.config.broker_config import BrokerConfig
from broker.metadata.image import NO_LEADER, PartitionImage
from broker.partitions.follower import Cut, Follower, Outcome, Wanted
from broker.partitions.replica import Replica
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.messages.fetch import EpochEndOffset, PartitionData
from storage.errors import StorageError
from storage.partition_log import PartitionLog
from tests.storage.builders import World, batch, values, whole_batches

ME = 2
LEADER = 1


class Surroundings:
    def read_failed(self, replica: Replica, failure: StorageError) -> None:
        raise AssertionError(failure)


def partition_image(leader: int = LEADER, *, epoch: int = 0) -> PartitionImage:
    return PartitionImage((LEADER, ME), (LEADER, ME), leader, epoch, epoch)


def follower_of(log: PartitionLog, *, leader: int = LEADER, epoch: int = 0) -> Follower:
    settings = BrokerConfig({"node.id": str(ME)}).topic({})
    return Follower(log, partition_image(leader, epoch=epoch), settings, Surroundings())


def leader_log(*epochs: int) -> PartitionLog:
    """One record for each epoch."""
    log = World().create()
    for epoch in epochs:
        log.append_as_leader(batch(b"%d" % log.log_end), epoch, now_ms=0)
    return log


def records(log: PartitionLog, offset: int) -> bytes:
    found = log.read(offset, 1 << 20)
    return b"" if found is None else found.read()


def answer(log: PartitionLog, offset: int, **options: Any) -> PartitionData:
    options = {"high_watermark": log.log_end, "log_start_offset": log.log_start, **options}
    return PartitionData(partition_index=0, records=records(log, offset), **options)


def take(follower: Follower, data: PartitionData, asked: Wanted | None = None) -> Outcome:
    steps = follower.take(asked or follower.wanted(), data, now_ms=0)
    try:
        while True:
            write = next(steps)
            write.run()
            write.finish()
    except StopIteration as end:
        outcome: Outcome = end.value
        return outcome


def contents(log: PartitionLog) -> list[tuple[int, bytes | None]]:
    found = log.read(log.log_start, 1 << 20)
    return [] if found is None else values(whole_batches(found))


def test_what_comes_is_appended_and_the_high_watermark_follows() -> None:
    leader = leader_log(0, 0, 0)
    log = World().create()
    follower = follower_of(log)
    assert follower.wanted() == (0, 0, -1, 0)
    before = follower.is_in_sync
    assert take(follower, answer(leader, 0, high_watermark=2)) is Outcome.GOES_ON
    assert contents(log) == [(0, b"0"), (1, b"1"), (2, b"2")]
    assert log.high_watermark == 2
    assert (before, follower.is_in_sync) == (False, True)
    assert follower.wanted() == (0, 3, 0, 0)
    assert take(follower, PartitionData(high_watermark=3)) is Outcome.GOES_ON
    assert log.high_watermark == 3


def test_an_answer_to_another_question_is_left_alone() -> None:
    leader = leader_log(0, 0)
    log = World().create()
    follower = follower_of(log)
    asked = follower.wanted()
    take(follower, answer(leader, 0))
    for outdated in (asked, follower.wanted()._replace(leader_epoch=7)):
        data = PartitionData(error_code=ErrorCode.FENCED_LEADER_EPOCH)
        assert take(follower, data, outdated) is Outcome.GOES_ON
    assert not follower.has_failed
    follower.end(KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
    leader.append_as_leader(batch(b"2"), 0, now_ms=0)
    assert take(follower, answer(leader, 2)) is Outcome.GOES_ON
    assert log.log_end == 2
    assert not follower.is_ready(0)


def test_whoever_reads_hears_of_the_high_watermark_and_of_the_end() -> None:
    leader = leader_log(0, 0)
    follower = follower_of(World().create())
    told: list[KafkaError | None] = []

    def note(replica: Replica) -> None:
        told.append(replica.ended)

    follower.watch(note)
    take(follower, answer(leader, 0, high_watermark=0))
    assert told == []
    take(follower, PartitionData(high_watermark=2))
    assert told == [None]
    reason = KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    follower.end(reason)
    assert told == [None, reason]


def test_the_log_start_follows_the_leaders() -> None:
    leader = leader_log(0, 0, 0)
    log = World().create()
    follower = follower_of(log)
    take(follower, answer(leader, 0, log_start_offset=2))
    assert log.log_start == 2
    take(follower, PartitionData(high_watermark=3, log_start_offset=1))
    assert log.log_start == 2
    take(follower, PartitionData(high_watermark=3, log_start_offset=9))
    assert log.log_start == 3, "what is not here cannot be deleted"


def test_records_of_a_later_leader_are_left_out() -> None:
    """KAFKA-18723."""
    leader = leader_log(0, 1, 1)
    log = World().create()
    follower = follower_of(log, epoch=0)
    assert take(follower, answer(leader, 0)) is Outcome.GOES_ON
    assert log.log_end == 1
    assert log.high_watermark == 1
    assert follower.lag == 2


def test_without_known_epochs_only_what_was_committed_counts() -> None:
    log = World().create()
    first = batch(b"0")
    for base_offset in range(3):
        first.set_base_offset(base_offset)
        log.append_as_follower(first.data, now_ms=0)  # its epoch is -1
    log.follow_high_watermark(2)
    follower = follower_of(log)
    assert follower.cut == Cut(2)
    assert not follower.is_ready(0)
    follower.truncate(now_ms=0)
    assert log.log_end == 2
    assert follower.is_ready(0)


# Divergence: (epochs of the leader's records, of ours), which answers follow, and where that ends.

DIVERGING = {
    "the same": ((0, 0, 1), (0, 0, 1), []),
    "a tail that was never replicated": ((0, 0, 2), (0, 0, 1, 1), [2]),
    "more of the same epoch": ((0, 0, 2), (0, 0, 0, 0), [2]),
    "an epoch that the leader does not know (KIP-279)": ((0, 2, 2, 3), (0, 0, 1, 1), [1]),
    "several": ((0, 0, 0, 4), (0, 1, 2, 3), [1]),
    "epochs between those of the leader": ((0, 2, 5), (0, 1, 3, 3), [2, 1]),
}


@pytest.mark.parametrize("case", DIVERGING)
def test_a_log_is_cut_until_it_is_the_leaders(case: str) -> None:
    of_leader, of_follower, expected = DIVERGING[case]
    leader, log = leader_log(*of_leader), leader_log(*of_follower)
    follower = follower_of(log, epoch=9)
    ends = []
    for _ in range(5):
        asked = follower.wanted()
        epoch, end = leader.end_offset_for_epoch(asked.last_fetched_epoch)
        if epoch == asked.last_fetched_epoch and end >= asked.fetch_offset:
            break
        data = PartitionData(diverging_epoch=EpochEndOffset(epoch=epoch, end_offset=end), high_watermark=99)
        assert take(follower, data) is Outcome.CUT
        assert log.high_watermark == 0, "nothing else in such an answer counts"
        assert not follower.is_ready(0)
        follower.truncate(now_ms=0)
        ends.append(log.log_end)
    assert ends == expected
    take(follower, answer(leader, log.log_end))
    assert contents(log) == contents(leader)
    assert log.leader_epochs.entries == leader.leader_epochs.entries


def test_where_nothing_of_an_epoch_is_known_the_leaders_end_counts() -> None:
    log = World().create(start=5)
    first = batch(b"5")
    first.set_place(5, 7)
    log.append_as_follower(first.data, now_ms=0)
    follower = follower_of(log, epoch=9)
    log.leader_epochs.clear()
    data = PartitionData(diverging_epoch=EpochEndOffset(epoch=3, end_offset=5))
    assert take(follower, data) is Outcome.CUT
    assert follower.cut == Cut(5)


# Errors


def test_a_fenced_epoch_waits_for_the_metadata() -> None:
    follower = follower_of(World().create(), epoch=4)
    assert take(follower, PartitionData(error_code=ErrorCode.FENCED_LEADER_EPOCH)) is Outcome.FAILED
    assert follower.has_failed
    assert not follower.is_ready(1e9)
    assert not follower.follow(partition_image(epoch=4))
    assert not follower.is_ready(1e9)
    assert follower.follow(partition_image(epoch=5))
    assert follower.is_ready(0)


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.CORRUPT_MESSAGE,
        12345,
    ],
)
def test_other_errors_may_pass(code: int) -> None:
    follower = follower_of(World().create())
    assert take(follower, PartitionData(error_code=code)) is Outcome.RESTS
    assert not follower.has_failed


def test_pauses_grow_up_to_the_limit_and_begin_anew_with_success() -> None:
    follower = follower_of(World().create())
    pauses = []
    for _ in range(7):
        follower.rest(100.0, 1.0)
        pauses.append(round(follower.retry_at - 100, 3))
        assert not follower.is_ready(100)
        assert follower.is_ready(follower.retry_at)
    assert pauses == [0.05, 0.1, 0.2, 0.4, 0.8, 1.0, 1.0]
    take(follower, PartitionData())
    follower.rest(100.0, 1.0)
    assert round(follower.retry_at - 100, 3) == 0.05
    follower.follow(partition_image(epoch=1))
    assert follower.is_ready(0), "another leader is asked at once"


def test_damaged_records_are_asked_for_again() -> None:
    leader = leader_log(0, 0)
    log = World().create()
    follower = follower_of(log)
    data = answer(leader, 0)
    damaged = bytearray(data.records)
    damaged[-1] ^= 1
    data.records = bytes(damaged)
    assert take(follower, data) is Outcome.RESTS
    assert log.log_end == 1, "what came before is good"
    assert log.high_watermark == 0
    assert take(follower, answer(leader, 1)) is Outcome.GOES_ON
    assert contents(log) == contents(leader)


def test_records_that_do_not_follow_end_it() -> None:
    leader = leader_log(0, 0, 0)
    log = World().create()
    follower = follower_of(log)
    take(follower, answer(leader, 0))
    assert take(follower, answer(leader, 1)) is Outcome.FAILED
    assert log.log_end == 3


def test_a_log_that_starts_inside_a_batch_is_begun_anew_at_it() -> None:
    """DeleteRecords: the leader gives the whole batch that holds the offset."""
    leader = World().create()
    leader.append_as_leader(batch(b"0", b"1", b"2"), 0, now_ms=0)
    leader.advance_high_watermark(3)
    leader.delete_records_before(2)
    log = World().create(start=2)
    follower = follower_of(log)
    assert take(follower, answer(leader, 2)) is Outcome.CUT
    assert follower.cut is not None
    assert (follower.cut.offset, follower.cut.is_full) == (0, True)
    data = follower.cut.data
    assert data is not None
    follower.truncate(now_ms=0)
    assert take(follower, data) is Outcome.GOES_ON
    assert (log.log_start, log.log_end, log.high_watermark) == (2, 3, 3)


def test_one_that_was_cut_where_the_leaders_starts_inside_a_batch_is_begun_anew_at_it() -> None:
    """The leader's epoch ends there for who has diverged: else nothing would ever follow what is left."""
    leader = leader_log(0, 0)
    leader.append_as_leader(batch(b"2", b"3", b"4"), 2, now_ms=0)
    leader.advance_high_watermark(5)
    leader.delete_records_before(4)
    assert leader.end_offset_for_epoch(1) == (1, 4)
    log = leader_log(0, 0, 1, 1, 1, 1)
    follower = follower_of(log, epoch=2)
    diverged = PartitionData(diverging_epoch=EpochEndOffset(epoch=1, end_offset=4), log_start_offset=4)
    assert take(follower, diverged) is Outcome.CUT
    follower.truncate(now_ms=0)
    assert log.log_end == 4
    assert take(follower, answer(leader, 4)) is Outcome.CUT
    assert follower.cut is not None
    assert (follower.cut.offset, follower.cut.is_full) == (2, True)
    data = follower.cut.data
    assert data is not None
    follower.truncate(now_ms=0)
    assert take(follower, data) is Outcome.GOES_ON
    assert (log.log_start, log.log_end, log.high_watermark) == (4, 5, 5)
    assert log.leader_epochs.entries == leader.leader_epochs.entries == ((2, 4),)


# Out of range


def test_the_leaders_log_is_shorter() -> None:
    follower = follower_of(leader_log(0, 0, 0))
    assert take(follower, PartitionData(error_code=ErrorCode.OFFSET_OUT_OF_RANGE)) is Outcome.OUT_OF_RANGE
    assert follower.meet(2, 0) is Outcome.CUT
    assert follower.cut == Cut(2)


def test_the_leaders_log_starts_behind_ours() -> None:
    log = leader_log(0, 0, 0)
    follower = follower_of(log)
    assert follower.meet(9, 5) is Outcome.CUT
    assert follower.cut == Cut(5, is_full=True)
    follower.truncate(now_ms=0)
    assert (log.log_start, log.log_end, log.high_watermark) == (5, 5, 5)
    assert follower.wanted() == (0, 5, -1, 5)


def test_the_leaders_log_goes_on_where_ours_ends() -> None:
    follower = follower_of(leader_log(0, 0, 0))
    assert follower.meet(9, 1) is Outcome.RESTS
    assert follower.cut is None


# Leaders


def test_a_new_leadership_begins_anew_whoever_leads() -> None:
    follower = follower_of(leader_log(0, 0), epoch=3)
    follower.meet(1, 0)
    assert not follower.follow(partition_image(epoch=3))
    assert not follower.is_ready(0)
    assert follower.follow(partition_image(epoch=4))
    assert follower.is_ready(0)
    assert follower.wanted().leader_epoch == 4
    assert follower.follow(partition_image(NO_LEADER, epoch=5))
    assert not follower.is_ready(0)
    assert follower.follow(partition_image(3, epoch=6))
    assert follower.leader_id == 3
    assert follower.is_ready(0)


def test_readers_are_held_to_the_leaders_epoch() -> None:
    follower = follower_of(World().create(), epoch=3)
    follower.check_epoch(3)
    follower.check_epoch(-1)
    for epoch, code in ((2, ErrorCode.FENCED_LEADER_EPOCH), (4, ErrorCode.UNKNOWN_LEADER_EPOCH)):
        with pytest.raises(KafkaError) as refused:
            follower.check_epoch(epoch)
        assert refused.value.code == code


def test_settings_change() -> None:
    log = World().create()
    follower = follower_of(log)
    follower.change_settings(BrokerConfig({"node.id": "2"}).topic({"segment.bytes": "12345678"}))
    assert log.config.segment_bytes == 12345678
