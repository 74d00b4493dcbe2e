"""Fetch sessions, against what Kafka 4.4 answered to the same requests."""

import itertools
import random

import pytest

from broker.partitions.fetch_sessions import (
    EPOCH_MAX,
    EVICTION_AGE_MS,
    FetchContext,
    FetchSessions,
    Reading,
    WantedPartition,
)
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic

BY_NAME = 12
BY_ID = 13
TOPIC_ID = b"t" * 16


def make_cache(slots: int = 10) -> FetchSessions:
    return FetchSessions(slots, itertools.count(100).__next__)


def asking(
    *partitions: int,
    session_id: int = 0,
    epoch: int = 0,
    offset: int = 0,
    forget: tuple[int, ...] = (),
    by_id: bool = False,
) -> FetchRequest:
    wanted = [FetchPartition(partition=number, fetch_offset=offset) for number in partitions]
    names = {"topic_id": TOPIC_ID} if by_id else {"topic": "t"}
    return FetchRequest(
        session_id=session_id,
        session_epoch=epoch,
        topics=[FetchTopic(partitions=wanted, **names)] if wanted else [],
        forgotten_topics_data=[ForgottenTopic(partitions=list(forget), **names)] if forget else [],
    )


def empty(wanted: WantedPartition, high_watermark: int = 5) -> Reading:
    return Reading(wanted, high_watermark=high_watermark, last_stable=high_watermark, log_start=0)


def with_records(wanted: WantedPartition) -> Reading:
    reading = empty(wanted)
    reading.records_size_bytes = 70
    return reading


def numbers(readings: list[Reading]) -> list[int]:
    return [reading.wanted.key[1] for reading in readings]


def asked(context: FetchContext) -> list[int]:
    return [wanted.key[1] for wanted in context.partitions]


def open_session(cache: FetchSessions, *partitions: int, now_ms: int = 0) -> int:
    context = cache.context(asking(*partitions), BY_NAME, now_ms)
    error, session_id, told = context.answer([empty(wanted) for wanted in context.partitions], now_ms)
    assert error == 0
    assert numbers(told) == list(partitions)
    return session_id


def poll(cache: FetchSessions, session_id: int, epoch: int, **changes: int) -> list[int]:
    context = cache.context(asking(session_id=session_id, epoch=epoch), BY_NAME, 0)
    assert context.error_code == 0
    readings = [empty(wanted, **changes) for wanted in context.partitions]
    error, answered_id, told = context.answer(readings, 0)
    assert (error, answered_id) == (0, session_id)
    return numbers(told)


def test_a_full_request_without_session_is_answered_in_full_and_opens_none() -> None:
    cache = make_cache()
    context = cache.context(asking(2, 0, epoch=-1), BY_NAME, 0)
    assert asked(context) == [2, 0]
    error, session_id, told = context.answer([empty(wanted) for wanted in context.partitions], 0)
    assert (error, session_id, numbers(told)) == (0, 0, [2, 0])
    assert len(cache) == 0


def test_unchanged_partitions_are_left_out_of_incremental_answers() -> None:
    cache = make_cache()
    session_id = open_session(cache, 0, 1)
    assert poll(cache, session_id, 1) == []
    assert poll(cache, session_id, 2, high_watermark=6) == [0, 1]
    assert poll(cache, session_id, 3, high_watermark=6) == []


def test_a_moved_log_start_is_told() -> None:
    cache = make_cache()
    session_id = open_session(cache, 0)
    context = cache.context(asking(session_id=session_id, epoch=1), BY_NAME, 0)
    (wanted,) = context.partitions
    told = context.answer([Reading(wanted, high_watermark=5, last_stable=5, log_start=3)], 0)[2]
    assert numbers(told) == [0]
    context = cache.context(asking(session_id=session_id, epoch=2), BY_NAME, 0)
    assert context.answer([Reading(wanted, high_watermark=5, last_stable=5, log_start=3)], 0)[2] == []


def test_partitions_with_records_are_always_told_and_then_take_the_last_turn() -> None:
    cache = make_cache()
    session_id = open_session(cache, 0, 1, 2)
    order = []
    for epoch in range(1, 6):
        context = cache.context(asking(session_id=session_id, epoch=epoch), BY_NAME, 0)
        first, *others = context.partitions
        readings = [with_records(first), *(empty(wanted) for wanted in others)]
        order.append(numbers(context.answer(readings, 0)[2]))
    assert order == [[0], [1], [2], [0], [1]]


def test_errors_are_told_every_time_and_the_partition_once_more_when_they_are_gone() -> None:
    cache = make_cache()
    session_id = open_session(cache, 0)
    for epoch in (1, 2):
        context = cache.context(asking(session_id=session_id, epoch=epoch), BY_NAME, 0)
        (wanted,) = context.partitions
        told = context.answer([Reading(wanted, ErrorCode.OFFSET_OUT_OF_RANGE)], 0)[2]
        assert numbers(told) == [0]
    assert poll(cache, session_id, 3) == [0]
    assert poll(cache, session_id, 4) == []


def test_divergence_is_told_every_time() -> None:
    cache = make_cache()
    session_id = open_session(cache, 0)
    for epoch in (1, 2):
        context = cache.context(asking(session_id=session_id, epoch=epoch), BY_NAME, 0)
        (wanted,) = context.partitions
        reading = empty(wanted)
        reading.diverging = (0, 3)
        assert numbers(context.answer([reading], 0)[2]) == [0]


def test_requests_add_change_and_forget_partitions() -> None:
    cache = make_cache()
    session_id = open_session(cache, 0, 1)
    context = cache.context(
        asking(1, 2, session_id=session_id, epoch=1, offset=9, forget=(0, 77)), BY_NAME, 0
    )
    assert [(wanted.key[1], wanted.fetch_offset) for wanted in context.partitions] == [(1, 9), (2, 9)]


def test_what_is_added_and_forgotten_at_once_is_forgotten() -> None:
    cache = make_cache()
    session_id = open_session(cache, 0, 1)
    context = cache.context(asking(1, session_id=session_id, epoch=1, forget=(1,)), BY_NAME, 0)
    assert asked(context) == [0]


def test_a_session_without_partitions_is_closed() -> None:
    cache = make_cache()
    session_id = open_session(cache, 0)
    context = cache.context(asking(session_id=session_id, epoch=1, forget=(0,)), BY_NAME, 0)
    assert context.answer([], 0) == (0, 0, [])
    again = cache.context(asking(session_id=session_id, epoch=2), BY_NAME, 0)
    assert again.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_an_empty_full_request_opens_a_session_too() -> None:
    cache = make_cache()
    session_id = open_session(cache)
    context = cache.context(asking(4, session_id=session_id, epoch=1), BY_NAME, 0)
    assert asked(context) == [4]


@pytest.mark.parametrize(("session_id", "epoch"), [(0, 1), (0, 5), (999, 7), (0, -2), (2**31 - 9, 2**31 - 1)])
def test_unknown_sessions(session_id: int, epoch: int) -> None:
    cache = make_cache()
    context = cache.context(asking(0, session_id=session_id, epoch=epoch), BY_NAME, 0)
    assert context.answer([], 0) == (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0, [])
    assert asked(context) == []


@pytest.mark.parametrize("epoch", [1, 0, -1])
def test_ids_that_no_session_can_have(epoch: int) -> None:
    cache = make_cache()
    for session_id in (2**31 - 8, 2**31 - 1, 1 - 2**28, -(2**31)):
        with pytest.raises(KafkaError) as refusal:
            cache.context(asking(0, session_id=session_id, epoch=epoch), BY_NAME, 0)
        assert refusal.value.code == ErrorCode.UNKNOWN_SERVER_ERROR
    for session_id in (2**31 - 9, 2 - 2**28):
        cache.context(asking(0, session_id=session_id, epoch=epoch), BY_NAME, 0)


def test_no_session_is_given_an_id_that_none_can_have() -> None:
    ids = iter([0, 2**31 - 1, 2**31 - 8, 2**31 - 9])
    assert open_session(FetchSessions(1, lambda: next(ids)), 0) == 2**31 - 9


@pytest.mark.parametrize("epoch", [0, -1])
def test_a_full_request_may_name_an_unknown_session(epoch: int) -> None:
    context = make_cache().context(asking(0, session_id=999, epoch=epoch), BY_NAME, 0)
    assert context.error_code == 0
    assert asked(context) == [0]


@pytest.mark.parametrize("epoch", [0, -1])
def test_a_full_request_closes_the_session_it_names(epoch: int) -> None:
    cache = make_cache()
    session_id = open_session(cache, 0)
    context = cache.context(asking(1, session_id=session_id, epoch=epoch), BY_NAME, 0)
    _, new_id, told = context.answer([empty(wanted) for wanted in context.partitions], 0)
    assert numbers(told) == [1]
    assert new_id != session_id
    assert (
        cache.context(asking(session_id=session_id, epoch=1), BY_NAME, 0).error_code
        == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    )


def test_a_wrong_epoch_is_refused_and_the_right_one_still_works() -> None:
    cache = make_cache()
    session_id = open_session(cache, 0)
    for wrong in (2, 9):
        context = cache.context(asking(session_id=session_id, epoch=wrong), BY_NAME, 0)
        assert context.answer([], 0) == (ErrorCode.INVALID_FETCH_SESSION_EPOCH, 0, [])
    assert poll(cache, session_id, 1) == []


def test_names_and_ids_do_not_mix_in_one_session() -> None:
    cache = make_cache()
    session_id = open_session(cache, 0)
    context = cache.context(asking(session_id=session_id, epoch=1, by_id=True), BY_ID, 0)
    assert context.answer([], 0) == (ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR, 0, [])
    assert poll(cache, session_id, 1) == []  # neither advanced nor closed


def test_sessions_by_topic_id() -> None:
    cache = make_cache()
    context = cache.context(asking(0, 1, by_id=True), BY_ID, 0)
    _, session_id, _ = context.answer([empty(wanted) for wanted in context.partitions], 0)
    context = cache.context(
        asking(0, session_id=session_id, epoch=1, offset=3, forget=(1,), by_id=True), BY_ID, 0
    )
    assert [(wanted.key, wanted.fetch_offset) for wanted in context.partitions] == [((TOPIC_ID, 0), 3)]


def test_an_answer_that_was_overtaken_is_refused() -> None:
    cache = make_cache()
    session_id = open_session(cache, 0)
    waiting = cache.context(asking(session_id=session_id, epoch=1), BY_NAME, 0)
    assert poll(cache, session_id, 2) == []
    assert waiting.answer([], 0) == (ErrorCode.INVALID_FETCH_SESSION_EPOCH, 0, [])


def test_a_partition_named_twice_keeps_its_first_place_and_its_last_wishes() -> None:
    request = FetchRequest(
        session_epoch=-1,
        topics=[
            FetchTopic(topic="t", partitions=[FetchPartition(partition=0), FetchPartition(partition=1)]),
            FetchTopic(topic="t", partitions=[FetchPartition(partition=0, fetch_offset=45)]),
        ],
    )
    context = make_cache().context(request, BY_NAME, 0)
    assert [(wanted.key[1], wanted.fetch_offset) for wanted in context.partitions] == [(0, 45), (1, 0)]


def test_the_epoch_wraps_to_one() -> None:
    cache = make_cache()
    session_id = open_session(cache, 0)
    cache._sessions[session_id].epoch = EPOCH_MAX
    assert poll(cache, session_id, EPOCH_MAX) == []
    assert poll(cache, session_id, 1) == []


def test_session_ids_are_never_zero_nor_used_twice() -> None:
    ids = iter([0, 7, 7, 8])
    cache = FetchSessions(10, ids.__next__)
    assert [open_session(cache, 0), open_session(cache, 0)] == [7, 8]


def test_no_slots_no_sessions() -> None:
    assert open_session(make_cache(slots=0), 0) == 0


def test_a_new_session_of_the_same_size_does_not_displace_others() -> None:
    cache = make_cache(slots=2)
    assert open_session(cache, 0)
    assert open_session(cache, 0)
    assert open_session(cache, 0, now_ms=EVICTION_AGE_MS) == 0
    assert len(cache) == 2


def test_a_session_unused_for_long_goes_first() -> None:
    cache = make_cache(slots=2)
    stale = open_session(cache, 0, 1, 2)
    used = open_session(cache, 0)
    cache.context(asking(session_id=used, epoch=1), BY_NAME, 5)
    assert open_session(cache, 0, now_ms=EVICTION_AGE_MS) == 0
    assert open_session(cache, 0, now_ms=EVICTION_AGE_MS + 1) != 0
    assert cache.context(asking(session_id=stale, epoch=1), BY_NAME, 0).error_code != 0
    assert cache.context(asking(session_id=used, epoch=2), BY_NAME, 0).error_code == 0


def test_a_larger_session_displaces_the_smallest_old_one() -> None:
    cache = make_cache(slots=2)
    small = open_session(cache, 0)
    large = open_session(cache, 0, 1, 2)
    for session_id in (small, large):
        cache.context(asking(session_id=session_id, epoch=1), BY_NAME, EVICTION_AGE_MS)
    assert open_session(cache, 0, 1, now_ms=EVICTION_AGE_MS) == 0  # nobody is old enough yet
    assert open_session(cache, 0, 1, now_ms=EVICTION_AGE_MS + 1) != 0
    assert cache.context(asking(session_id=small, epoch=2), BY_NAME, 0).error_code != 0
    assert cache.context(asking(session_id=large, epoch=2), BY_NAME, 0).error_code == 0


def test_a_follower_displaces_a_young_consumer_and_never_the_reverse() -> None:
    cache = make_cache(slots=1)
    open_session(cache, 0, 1, 2)
    context = cache.context(asking(0), BY_NAME, 1, privileged=True)
    follower = context.answer([empty(wanted) for wanted in context.partitions], 1)[1]
    assert follower != 0
    assert open_session(cache, 0, 1, 2, 3, now_ms=EVICTION_AGE_MS) == 0
    cache.context(asking(session_id=follower, epoch=1), BY_NAME, EVICTION_AGE_MS)
    assert open_session(cache, 0, 1, 2, 3, now_ms=EVICTION_AGE_MS + 2) == 0


def test_a_preview_is_what_would_be_told_and_changes_nothing(chance: random.Random) -> None:
    """For who has to wait, and is told nothing."""
    cache = make_cache()
    context = cache.context(asking(0, 1, 2, 3), BY_NAME, 0, privileged=False)
    _, session_id, told = context.answer([empty(wanted) for wanted in context.partitions], 0)
    assert numbers(told) == [0, 1, 2, 3]
    for epoch in range(1, 200):
        context = cache.context(asking(session_id=session_id, epoch=epoch), BY_NAME, 0, privileged=False)
        readings = []
        for wanted in context.partitions:
            reading = chance.choice((empty, with_records))(wanted)
            reading.high_watermark += chance.choice((0, 0, 0, 1))
            reading.log_start += chance.choice((0, 0, 0, 1))
            reading.error_code = chance.choice((0, 0, 0, 3))
            reading.diverging = chance.choice((None, None, (1, 2)))
            readings.append(reading)
        order = asked(context)
        preview = context.preview(readings)
        assert numbers(context.preview(readings)) == numbers(preview)
        assert asked(context) == order
        assert context.answer_nothing() == (ErrorCode.NONE, session_id)
        if chance.random() < 0.7:
            assert numbers(context.answer(readings, 0)[2]) == numbers(preview)


def test_who_is_told_nothing_gets_no_session_and_no_error() -> None:
    cache = make_cache()
    context = cache.context(asking(0), BY_NAME, 0, privileged=False)
    assert context.answer_nothing() == (ErrorCode.NONE, 0)
    refused = cache.context(asking(session_id=7, epoch=1), BY_NAME, 0, privileged=False)
    assert refused.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert refused.answer_nothing() == (ErrorCode.NONE, 0)
    assert refused.preview([]) == []


def test_who_was_overtaken_is_told_so_even_when_told_nothing() -> None:
    cache = make_cache()
    context = cache.context(asking(0), BY_NAME, 0, privileged=False)
    readings = [empty(wanted) for wanted in context.partitions]
    _, session_id, _ = context.answer(readings, 0)
    slow = cache.context(asking(session_id=session_id, epoch=1), BY_NAME, 0, privileged=False)
    cache.context(asking(session_id=session_id, epoch=2), BY_NAME, 0, privileged=False)
    assert slow.preview(readings) == []
    assert slow.answer_nothing() == (ErrorCode.INVALID_FETCH_SESSION_EPOCH, session_id)


def test_what_is_told_with_a_divergence_is_told_again() -> None:
    """A follower cuts its log first, and heeds nothing else that the answer says."""
    wanted = WantedPartition(("t", 0), FetchPartition())
    reading = Reading(wanted, 0, 5, 5, 2)
    assert wanted.must_tell(reading)
    assert not wanted.must_tell(reading)
    diverging = Reading(wanted, 0, 5, 5, 2)
    diverging.diverging = (1, 3)
    assert wanted.must_tell(diverging)
    assert wanted.must_tell(reading)
    assert not wanted.must_tell(reading)
