"""Merging ranges: the same as looking at every offset by itself."""

import random

import pytest

from broker.share.state_batches import DeliveryState, StateBatch, combine

A, K = DeliveryState.AVAILABLE, DeliveryState.ACKNOWLEDGED


def batch(first: int, last: int, state: int = A, count: int = 1) -> StateBatch:
    return StateBatch(first, last, state, count)


def one_by_one(known: list[StateBatch], news: list[StateBatch], start: int) -> list[StateBatch]:
    """What ``combine`` has to give: the strongest of each offset, and neighbours of a kind together."""
    strongest: dict[int, tuple[int, int]] = {}
    for each in known + news:
        for offset in range(max(each.first_offset, start), each.last_offset + 1):
            mine = each.delivery_count, each.delivery_state
            strongest[offset] = max(strongest.get(offset, mine), mine)
    merged: list[StateBatch] = []
    for offset, (count, state) in sorted(strongest.items()):
        if merged and merged[-1][1:] == (offset - 1, state, count):
            merged[-1] = merged[-1]._replace(last_offset=offset)
        else:
            merged.append(StateBatch(offset, offset, state, count))
    return merged


def test_neighbours_of_a_kind_are_one() -> None:
    assert combine([batch(0, 4)], [batch(5, 9)], 0) == [batch(0, 9)]
    assert combine([batch(5, 9)], [batch(0, 4)], 0) == [batch(0, 9)]


def test_others_stay_apart() -> None:
    assert combine([batch(0, 4)], [batch(5, 9, count=2)], 0) == [batch(0, 4), batch(5, 9, count=2)]
    assert combine([batch(0, 4)], [batch(6, 9)], 0) == [batch(0, 4), batch(6, 9)]


def test_the_higher_count_wins_and_then_the_higher_state() -> None:
    assert combine([batch(0, 9)], [batch(3, 5, K)], 0) == [batch(0, 2), batch(3, 5, K), batch(6, 9)]
    assert combine([batch(0, 9, K)], [batch(3, 5)], 0) == [batch(0, 9, K)]
    assert combine([batch(0, 9, K)], [batch(3, 5, A, 2)], 0) == [
        batch(0, 2, K),
        batch(3, 5, A, 2),
        batch(6, 9, K),
    ]


def test_what_lies_below_the_start_is_left_out() -> None:
    assert combine([batch(0, 4), batch(6, 9)], [], 7) == [batch(7, 9)]
    assert combine([], [batch(0, 4)], 5) == []
    assert combine([batch(0, 4)], [batch(2, 8, K)], 6) == [batch(6, 8, K)]


@pytest.mark.parametrize("history", range(20))
def test_the_same_as_one_by_one(seed: int, history: int) -> None:
    chance = random.Random(seed * 1000 + history)
    known: list[StateBatch] = []
    start = 0
    for _ in range(40):
        start += chance.choice((0, 0, 0, 1, 5))
        news = []
        for _ in range(chance.randrange(5)):
            first = chance.randrange(start - 3, start + 60)
            news.append(
                batch(first, first + chance.randrange(12), chance.choice((0, 2, 4)), chance.randrange(1, 4))
            )
        expected = one_by_one(known, news, start)
        known = combine(known, news, start)
        assert known == expected
