"""Replicas that are still to be made."""

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from broker.network.waiting import NotYet
from broker.partitions.missing import Missing, MissingReplicas
from storage.config import LogConfig

MISSING = Missing(bytes(16), LogConfig(), bytes(16))


def noted(*topics: tuple[str, int]) -> MissingReplicas:
    replicas = MissingReplicas()
    for name, count in topics:
        for index in range(count):
            replicas.note((name, index), MISSING)
    return replicas


def test_those_that_somebody_waits_for_come_first() -> None:
    replicas = noted(("t", 3))
    with pytest.raises(NotYet):
        replicas.require_made([("t", 2)])
    assert replicas.take(2) == [("t", 2), ("t", 0)]
    assert replicas.take(2) == [("t", 1)]
    assert replicas.take(2) == []


def test_one_that_was_taken_may_be_asked_for() -> None:
    replicas = noted(("t", 2))
    assert replicas.take(1) == [("t", 0)]
    with pytest.raises(NotYet):
        replicas.require_made([("t", 0)])
    assert replicas.take(3) == [("t", 0), ("t", 1)]


def test_the_latest_topic_comes_before_older_ones() -> None:
    replicas = noted(("old", 3), ("new", 2))
    assert replicas.take(4) == [("new", 0), ("new", 1), ("old", 0), ("old", 1)]
    replicas.note(("newest", 0), MISSING)
    del replicas["old", 2]
    assert replicas.take(4) == [("newest", 0)]
    replicas.note(("old", 1), MISSING)
    assert replicas.take(4) == [("old", 1)]


async def test_all_who_make_replicas_are_woken_each_time() -> None:
    replicas = MissingReplicas()
    takers: list[set[int]] = [set()]

    async def make(number: int) -> None:
        while True:
            await replicas.wait_for_some()
            while replicas.take(2):
                takers[-1].add(number)
                for _ in range(number + 1):
                    await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        for number in range(4):
            nursery.start_soon(make, number)
        for name in ("t", "u", "v"):
            await wait_all_tasks_blocked()
            takers.append(set())
            for index in range(100):
                replicas.note((name, index), MISSING)
        await wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert takers[1:] == [{0, 1, 2, 3}] * 3


def test_who_waits_for_several_is_told_when_all_are_settled() -> None:
    replicas = MissingReplicas()
    wanted = [("t", 0), ("t", 1)]
    for replica in wanted:
        replicas.note(replica, MISSING)
    with pytest.raises(NotYet) as raised:
        replicas.require_made(wanted)
    for replica in wanted:
        assert not raised.value.waiting.is_answered
        del replicas[replica]
        replicas.settled(replica)
    assert raised.value.waiting.is_answered


def test_nobody_waits_for_nothing() -> None:
    MissingReplicas().require_made([])
