"""What idempotent and transactional producers may and may not write (KIP-98, KIP-360, KIP-890)."""

import pytest

from protocol.records.batch import RecordBatch
from protocol.records.control import EndTransactionMarker, read_end_transaction_marker
from storage.errors import (
    InvalidProducerEpoch,
    InvalidTransactionState,
    OutOfOrderSequence,
    StorageError,
    TransactionCoordinatorFenced,
)
from storage.producer_state import EndedTransaction, ProducerState
from tests.storage import builders

DAY_MS = 86_400_000


class Log:
    """A log that consists of nothing but its producer state."""

    def __init__(self) -> None:
        self.state = ProducerState()
        self.end = 0

    def batch(
        self,
        sequence: int,
        count: int = 1,
        *,
        epoch: int = 0,
        producer_id: int = 7,
        timestamp: int = 0,
        is_transactional: bool = False,
    ) -> RecordBatch:
        return builders.batch(
            *[b""] * count,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
            timestamp=timestamp,
            is_transactional=is_transactional,
        )

    def write(self, batch: RecordBatch) -> int | str:
        """The offset it got; for a duplicate, the offset it had got; else what is wrong with it."""
        try:
            known = self.state.check(batch)
        except StorageError as error:
            return type(error).__name__
        if known is not None:
            return known.base_offset
        return self.apply(batch)

    def apply(self, batch: RecordBatch) -> int:
        batch.set_base_offset(self.end)
        self.state.apply(batch)
        self.end += batch.last_offset_delta + 1
        return batch.base_offset

    def finish(
        self,
        *,
        commit: bool,
        epoch: int = 0,
        producer_id: int = 7,
        coordinator_epoch: int = 0,
        timestamp: int = 0,
    ) -> EndedTransaction | None:
        batch = builders.marker(
            commit=commit,
            producer_id=producer_id,
            producer_epoch=epoch,
            coordinator_epoch=coordinator_epoch,
            timestamp=timestamp,
        )
        marker = read_end_transaction_marker(next(batch.records()))
        assert isinstance(marker, EndTransactionMarker)
        self.state.check_marker(batch, marker)
        batch.set_base_offset(self.end)
        self.end += 1
        return self.state.apply_marker(batch, marker)


# Sequences


def test_an_unknown_producer_may_start_anywhere() -> None:
    log = Log()
    assert log.write(log.batch(sequence=1234, epoch=5)) == 0
    assert log.write(log.batch(sequence=1235, epoch=5)) == 1


def test_an_unknown_producer_needs_an_epoch_that_could_be_one() -> None:
    log = Log()
    assert log.write(log.batch(0, epoch=-2)) == "InvalidProducerEpoch"
    assert log.write(log.batch(0, epoch=-1)) == 0  # so does Kafka


def test_sequences_must_follow_each_other() -> None:
    log = Log()
    assert log.write(log.batch(0, count=3)) == 0
    assert log.write(log.batch(4)) == "OutOfOrderSequence"
    assert log.write(log.batch(2)) == "OutOfOrderSequence"
    assert log.write(log.batch(3)) == 3


def test_the_error_says_what_was_expected() -> None:
    log = Log()
    log.write(log.batch(0, count=3))
    with pytest.raises(OutOfOrderSequence) as refused:
        log.state.check(log.batch(9))
    error = refused.value
    assert (error.producer_id, error.producer_epoch, error.sequence, error.last_sequence) == (7, 0, 9, 2)


def test_each_of_the_last_five_batches_is_recognised() -> None:
    log = Log()
    offsets = [log.write(log.batch(2 * number, count=2)) for number in range(7)]
    repeated = [log.write(log.batch(2 * number, count=2)) for number in range(7)]
    assert repeated == ["OutOfOrderSequence", "OutOfOrderSequence", *offsets[2:]]


def test_the_same_first_sequence_with_another_count_is_no_duplicate() -> None:
    log = Log()
    log.write(log.batch(0, count=2))
    assert log.write(log.batch(0, count=1)) == "OutOfOrderSequence"
    assert log.write(log.batch(0, count=3)) == "OutOfOrderSequence"


def test_sequences_wrap_between_batches_and_inside_one() -> None:
    log = Log()
    last = (1 << 31) - 1
    assert log.write(log.batch(last, producer_id=1)) == 0
    assert log.write(log.batch(0, producer_id=1)) == 1
    assert log.write(log.batch(last - 1, count=4, producer_id=2)) == 2
    assert log.write(log.batch(last - 1, count=4, producer_id=2)) == 2, "a duplicate across the wrap"
    assert log.write(log.batch(2, producer_id=2)) == 6


def test_producers_do_not_meet() -> None:
    log = Log()
    assert log.write(log.batch(0, producer_id=1)) == 0
    assert log.write(log.batch(0, producer_id=2)) == 1
    assert log.write(log.batch(1, producer_id=1)) == 2


# Epochs


def test_a_newer_epoch_starts_at_zero_and_may_jump() -> None:
    log = Log()
    log.write(log.batch(0, epoch=3))
    assert log.write(log.batch(1, epoch=9)) == "OutOfOrderSequence"
    assert log.write(log.batch(0, epoch=9)) == 1
    assert log.write(log.batch(1, epoch=9)) == 2


def test_an_older_epoch_is_fenced_and_nothing_of_it_is_a_duplicate() -> None:
    log = Log()
    log.write(log.batch(0, epoch=3))
    log.write(log.batch(0, epoch=4))
    assert log.write(log.batch(0, epoch=3)) == "InvalidProducerEpoch"
    assert log.write(log.batch(1, epoch=-1)) == "InvalidProducerEpoch"
    with pytest.raises(InvalidProducerEpoch) as refused:
        log.state.check(log.batch(1, epoch=3))
    assert (refused.value.producer_epoch, refused.value.current_epoch) == (3, 4)


def test_a_marker_with_a_newer_epoch_means_that_sequences_start_again() -> None:
    """KIP-890: the coordinator bumps the epoch with every transaction."""
    log = Log()
    log.write(log.batch(0, is_transactional=True))
    log.write(log.batch(1, is_transactional=True))
    log.finish(commit=True, epoch=1)
    assert log.write(log.batch(2, epoch=1, is_transactional=True)) == "OutOfOrderSequence"
    assert log.write(log.batch(2, epoch=0, is_transactional=True)) == "InvalidProducerEpoch"
    assert log.write(log.batch(0, epoch=1, is_transactional=True)) == 3


def test_after_a_marker_with_the_same_epoch_sequences_go_on() -> None:
    log = Log()
    log.write(log.batch(0, count=2, is_transactional=True))
    log.finish(commit=True)
    assert log.write(log.batch(2, is_transactional=True)) == 3


def test_of_what_coordinators_write_the_epoch_counts_but_not_the_sequence() -> None:
    log = Log()
    log.write(log.batch(5, epoch=1))
    for sequence in (-1, 0, 0, 9):
        log.state.check_internal(log.batch(sequence, epoch=1))
    log.state.check_internal(log.batch(0, producer_id=99))
    with pytest.raises(InvalidProducerEpoch):
        log.state.check_internal(log.batch(0, epoch=0))


def test_of_an_older_epoch_no_transaction_is_asked_about() -> None:
    """The log knows better than the coordinator, which may have forgotten the producer, or be away."""
    log = Log()
    log.finish(commit=False, epoch=1)
    with pytest.raises(InvalidProducerEpoch):
        log.state.begin_verification(7, 0, 0, starts_at_zero=True, now_ms=0)
    assert log.state.begin_verification(7, 1, 0, starts_at_zero=True, now_ms=0) is not None


def test_a_transaction_that_was_aborted_meanwhile_is_of_an_older_epoch() -> None:
    """Producers go on after that error, and not after that of a transaction which nobody knows."""
    log = Log()
    log.write(log.batch(0, is_transactional=True))
    assert log.state.begin_verification(7, 0, 1, starts_at_zero=True, now_ms=0) is None
    log.finish(commit=False, epoch=1)
    late = log.batch(1, is_transactional=True)
    with pytest.raises(InvalidProducerEpoch):
        log.state.check(late, None)
    with pytest.raises(InvalidProducerEpoch):
        log.state.check_internal(late, None)


# Transactions


def test_an_open_transaction_holds_the_last_stable_offset() -> None:
    log = Log()
    log.write(log.batch(0, count=5, producer_id=1))
    log.write(log.batch(0, count=5, producer_id=2, is_transactional=True))
    log.write(log.batch(0, count=5, producer_id=3, is_transactional=True))
    assert undecided_and_unstable(log) == (5, 5)
    log.finish(commit=True, producer_id=2)
    assert undecided_and_unstable(log) == (10, 5), "the marker is not replicated yet"
    log.state.advance_high_watermark(15)
    assert undecided_and_unstable(log) == (10, 5)
    log.state.advance_high_watermark(16)
    assert undecided_and_unstable(log) == (10, 10)
    log.finish(commit=False, producer_id=3)
    log.state.advance_high_watermark(17)
    assert undecided_and_unstable(log) == (None, None)


def undecided_and_unstable(log: Log) -> tuple[int | None, int | None]:
    return log.state.first_undecided, log.state.first_unstable


def test_what_a_marker_ended() -> None:
    log = Log()
    log.write(log.batch(0, count=5, producer_id=1, is_transactional=True))
    log.write(log.batch(0, count=5, producer_id=2, is_transactional=True))
    ended = log.finish(commit=False, producer_id=2)
    assert ended == EndedTransaction(2, first_offset=5, marker_offset=10, is_commit=False)
    assert log.state.last_stable_after(ended) == 0, "the other one is open"
    ended = log.finish(commit=True, producer_id=1)
    assert ended is not None
    assert log.state.last_stable_after(ended) == 12


def test_a_marker_without_a_transaction_ends_nothing() -> None:
    log = Log()
    assert log.finish(commit=True, producer_id=5, epoch=2) is None
    assert log.state.first_unstable is None
    assert log.state.entries[5].producer_epoch == 2
    assert log.write(log.batch(0, producer_id=5, epoch=1)) == "InvalidProducerEpoch"


def test_a_plain_batch_inside_a_transaction_is_refused() -> None:
    log = Log()
    log.write(log.batch(0, is_transactional=True))
    assert log.write(log.batch(1)) == "InvalidTransactionState"
    with pytest.raises(InvalidTransactionState) as refused:
        log.state.check(log.batch(1))
    assert refused.value.transaction_start == 0


def test_a_deposed_coordinator_is_fenced() -> None:
    log = Log()
    log.write(log.batch(0, is_transactional=True))
    log.finish(commit=True, coordinator_epoch=4)
    log.write(log.batch(1, is_transactional=True))
    with pytest.raises(TransactionCoordinatorFenced) as refused:
        log.finish(commit=True, coordinator_epoch=3)
    assert (refused.value.coordinator_epoch, refused.value.current_epoch) == (3, 4)
    log.finish(commit=True, coordinator_epoch=4)


def test_a_marker_of_an_old_epoch_is_refused() -> None:
    log = Log()
    log.write(log.batch(0, epoch=2, is_transactional=True))
    with pytest.raises(InvalidProducerEpoch):
        log.finish(commit=True, epoch=1)


# Life


def test_idle_producers_are_forgotten_unless_a_transaction_is_open() -> None:
    log = Log()
    log.write(log.batch(0, producer_id=1, timestamp=1000))
    log.write(log.batch(0, producer_id=2, timestamp=2000))
    log.write(log.batch(0, producer_id=3, timestamp=1000, is_transactional=True))
    log.state.expire(1000 + DAY_MS - 1)
    assert set(log.state.entries) == {1, 2, 3}
    log.state.expire(1000 + DAY_MS)
    assert set(log.state.entries) == {2, 3}
    log.finish(commit=True, producer_id=3, timestamp=3000)
    log.state.expire(2000 + DAY_MS)
    assert set(log.state.entries) == {3}
    assert log.write(log.batch(77, producer_id=1)) == 4, "forgotten, it may start anywhere"


def test_loading_leaves_out_what_has_expired() -> None:
    log = Log()
    log.write(log.batch(0, producer_id=1, timestamp=0))
    log.write(log.batch(0, producer_id=2, timestamp=0, is_transactional=True))
    log.write(log.batch(0, producer_id=3, timestamp=5000))
    log.write(log.batch(0, producer_id=4, timestamp=5000, is_transactional=True))
    loaded = ProducerState()
    loaded.load(reversed(log.state.entries.values()), 4, DAY_MS + 10)
    assert set(loaded.entries) == {2, 3, 4}
    assert loaded.end_offset == 4
    assert loaded.first_undecided == 1, "the oldest, whatever the order in the snapshot"


def test_clearing() -> None:
    log = Log()
    log.write(log.batch(0, is_transactional=True))
    log.finish(commit=True)
    log.write(log.batch(1, is_transactional=True))
    log.state.clear(50)
    assert (log.state.entries, log.state.first_unstable, log.state.end_offset) == ({}, None, 50)
