"""Replicas that are still to be made."""

import pytest

from broker.network.waiting import NotYet
from broker.partitions.missing import Missing, MissingReplicas
from storage.config import LogConfig

MISSING = Missing(bytes(16), LogConfig(), bytes(16))


def test_those_that_somebody_waits_for_come_first() -> None:
    replicas = MissingReplicas()
    assert replicas.first() is None
    for index in range(3):
        replicas.note(("t", index), MISSING)
    assert replicas.first() == ("t", 0)
    with pytest.raises(NotYet):
        replicas.require_made([("t", 2)])
    assert replicas.first() == ("t", 2)


def test_the_latest_topic_comes_before_older_ones() -> None:
    replicas = MissingReplicas()
    for name, count in (("old", 3), ("new", 2)):
        for index in range(count):
            replicas.note((name, index), MISSING)
    order = []
    while (replica := replicas.first()) is not None:
        order.append(replica)
        del replicas[replica]
    assert order == [("new", 0), ("new", 1), ("old", 0), ("old", 1), ("old", 2)]
    replicas.note(("old", 1), MISSING)
    assert replicas.first() == ("old", 1)


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
    assert replicas.first() is None


def test_nobody_waits_for_nothing() -> None:
    MissingReplicas().require_made([])
