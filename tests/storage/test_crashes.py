"""Some histories of crashes, and whether the invariants see mistakes; ``crashes`` has a command for more."""

import pytest

from tests.storage.crashes.histories import History, make_history, play, shorten, shortest
from tests.storage.crashes.mutations import history_that_shows, made
from tests.storage.crashes.reference import Batch, Entry, Reference
from tests.storage.crashes.subject import Step

HISTORIES = 6
RUNS = 10

TRIED = 300
"""In so many histories a mistake must show."""

SHOW_SOON = (
    "logs_are_not_fsynced",
    "indexes_of_sealed_segments_are_not_fsynced",
    "checkpoints_are_not_fsynced",
    "names_of_segments_are_not_fsynced",
    "a_stop_does_not_wait_for_the_disk",
    "the_recovery_point_moves_too_far",
    "high_watermarks_are_not_written_down",
    "the_mark_of_a_clean_stop_is_believed_for_ever",
    "recovery_begins_one_segment_late",
    "recovery_leaves_what_is_damaged",
    "producers_are_not_rebuilt_after_a_cut",
    "what_a_failed_write_left_stays",
    "aborts_are_not_indexed",
    "sealed_segments_do_not_say_how_old_they_are",
    "transactions_are_stable_at_once",
)


@pytest.mark.parametrize("run", range(RUNS))
def test_no_crash_loses_what_is_promised(run: int) -> None:
    """Always the same histories: the command tries new ones, and has the time to make much of a failure."""
    for number in range(HISTORIES):
        history = make_history(f"{run} {number}")
        failure = play(history)
        if failure is not None:
            history, failure = shortest(history, failure)
            failure.error.add_note(str(history))
            raise failure.error


@pytest.mark.slow
@pytest.mark.parametrize("mistake", SHOW_SOON)
def test_a_mistake_shows(mistake: str) -> None:
    """Those that show in one of the first histories; the command has ``--mistakes`` for all."""
    assert history_that_shows(mistake, TRIED) is not None, "no invariant sees it"


def test_a_history_is_shortened_to_the_steps_that_matter() -> None:
    steps = tuple(Step(f"step {number}", number) for number in range(40))
    history = History("seed", steps)

    def is_failing(shorter: History) -> bool:
        return {3, 17, 30} <= {step.seed for step in shorter.steps}

    assert [step.seed for step in shorten(history, is_failing).steps] == [3, 17, 30]


def test_a_seed_gives_the_same_history_again() -> None:
    assert make_history("a") == make_history("a") != make_history("b")
    assert str(make_history("a")).startswith("history 'a', ")


def test_a_failure_says_where_it_was() -> None:
    with made("logs_are_not_fsynced"):
        seed, failure = next(
            (seed, failure) for seed in range(TRIED) if (failure := play(make_history(str(seed)))) is not None
        )
        history, failure = shortest(make_history(str(seed)), failure)
    assert play(history) is None, "it is the mistake's fault"
    assert len(history.steps) < 20


def batch(base_offset: int, count: int, *, producer_id: int = -1) -> Batch:
    """Of a transaction, if it has a producer."""
    entries = tuple(Entry(base_offset + number, 0, None, b"") for number in range(count))
    is_transactional = producer_id >= 0
    last_offset = base_offset + count - 1
    return Batch(base_offset, last_offset, 0, producer_id, 0, 0, is_transactional, False, 0, entries)


def abort_marker(offset: int, producer_id: int) -> Batch:
    marker = Entry(offset, 0, bytes(4), bytes(6))
    return batch(offset, 1, producer_id=producer_id)._replace(is_control=True, entries=(marker,))


def test_deleted_records_stay_deleted_when_a_power_cut_undoes_a_truncation_below_the_log_start() -> None:
    reference = Reference(bytes(16), compacts=False)
    batches = [batch(0, 4), batch(4, 3)]
    reference.writes(batches)
    reference.acknowledge(batches)
    reference.start_at(7)
    reference.truncate(4)
    assert reference.deleted_below == 4
    reference.adopt(batches, log_start=7, log_end=7, recovery_point=7)
    assert (reference.deleted_below, reference.log_start) == (7, 7)


def test_a_log_is_held_to_its_own_recovery_point() -> None:
    """Also if it is that of records that were to be truncated when the power was cut."""
    reference = Reference(bytes(16), compacts=False)
    batches = [batch(0, 4), batch(4, 3)]
    reference.writes(batches)
    reference.acknowledge(batches)
    reference.flushed = 7
    reference.truncate(4)
    reference.adopt(batches, log_start=0, log_end=7, recovery_point=7)
    assert reference.flushed == 7


def test_a_transaction_whose_deleted_marker_a_power_cut_has_taken_may_stay_open() -> None:
    """Also when what is left has been flushed, and the log was opened again."""
    reference = Reference(bytes(16), compacts=False)
    written = [batch(0, 2, producer_id=0), abort_marker(2, 0)]
    reference.writes(written)
    reference.acknowledge(written)
    reference.start_at(3)
    reference.adopt([], log_start=3, log_end=3, recovery_point=0)
    later = [batch(3, 3)]
    reference.writes(later)
    reference.acknowledge(later)
    reference.advance_high_watermark(6)
    assert reference.last_stable() == (3, 6)
    reference.flushed = 6
    reference.adopt(later, log_start=3, log_end=6, recovery_point=6)
    assert reference.last_stable() == (3, 6)


def test_a_transaction_that_began_in_a_hole_that_a_power_cut_has_left_may_be_open() -> None:
    """Its segment was deleted together with an older one, and the older one is back."""
    reference = Reference(bytes(16), compacts=False)
    written = [batch(0, 2), batch(2, 2, producer_id=0), batch(4, 3)]
    reference.writes(written)
    reference.acknowledge(written)
    reference.advance_high_watermark(7)
    reference.flushed = 7
    reference.start_at(4)
    reference.adopt([written[0], written[2]], log_start=0, log_end=7, recovery_point=7)
    assert reference.last_stable() == (2, 7)
    reference.acknowledge([abort_marker(7, 0)])
    assert reference.last_stable() == (2, 7), "not yet replicated"
    reference.advance_high_watermark(8)
    assert reference.last_stable() == (8, 8)
    reference.truncate(2)
    reference.acknowledge([batch(2, 3)])
    reference.advance_high_watermark(5)
    assert reference.last_stable() == (5, 5)


def test_a_marker_in_a_hole_that_a_power_cut_has_left_may_have_ended_a_transaction() -> None:
    """Snapshots of producers may be newer than what is back."""
    reference = Reference(bytes(16), compacts=False)
    written = [batch(0, 2, producer_id=0), abort_marker(2, 0), batch(3, 3)]
    reference.writes(written)
    reference.acknowledge(written)
    reference.advance_high_watermark(6)
    reference.start_at(3)
    reference.adopt([written[0], written[2]], log_start=0, log_end=6, recovery_point=0)
    assert reference.last_stable() == (0, 6)
    reference.flushed = 6
    reference.adopt([written[0], written[2]], log_start=0, log_end=6, recovery_point=6)
    assert reference.last_stable() == (0, 6)
    reference.truncate(0)
    reference.acknowledge([batch(0, 2), batch(2, 2, producer_id=1)])
    reference.advance_high_watermark(4)
    assert reference.last_stable() == (2, 2), "what is there now is in no doubt"
