"""Who gets a vote: KRaft's rules, one by one (KIP-595, KIP-853, KIP-996)."""

import pytest

from broker.raft.elections import election_backoff_ms
from broker.raft.replicas import ReplicaKey
from broker.raft.votes import NOBODY, Candidate, Voter, may_grant

HERE, THERE = b"\x01" * 16, b"\x02" * 16
CANDIDATE = ReplicaKey(2, THERE)

VOTER = Voter(
    leads=False,
    leader_id=NOBODY,
    hears_leader=False,
    voted=ReplicaKey(NOBODY),
    last_epoch=3,
    end_offset=10,
)


def asking(last_epoch: int = 3, end_offset: int = 10, *, first: bool = False) -> Candidate:
    return Candidate(CANDIDATE, last_epoch, end_offset, first)


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize(
    ("last_epoch", "end_offset", "granted"),
    [(3, 10, True), (3, 11, True), (4, 1, True), (3, 9, False), (2, 100, False)],
)
def test_only_to_who_has_all_that_the_voter_has(
    last_epoch: int, end_offset: int, granted: bool, first: bool
) -> None:
    assert may_grant(VOTER, asking(last_epoch, end_offset, first=first)) == granted


@pytest.mark.parametrize("first", [False, True])
def test_never_by_a_leader(first: bool) -> None:
    assert not may_grant(VOTER._replace(leads=True, leader_id=1), asking(first=first))


def test_one_vote_an_epoch() -> None:
    assert may_grant(VOTER._replace(voted=CANDIDATE), asking())
    assert may_grant(VOTER._replace(voted=ReplicaKey(2)), asking()), "without a directory the id is enough"
    assert not may_grant(VOTER._replace(voted=ReplicaKey(2, HERE)), asking())
    assert not may_grant(VOTER._replace(voted=ReplicaKey(3, THERE)), asking())


def test_a_vote_given_is_no_reason_to_refuse_a_question() -> None:
    assert may_grant(VOTER._replace(voted=ReplicaKey(3, THERE)), asking(first=True))


def test_none_in_an_epoch_that_has_a_leader() -> None:
    assert not may_grant(VOTER._replace(leader_id=1), asking())


def test_a_leader_that_is_heard_is_not_voted_against() -> None:
    assert not may_grant(VOTER._replace(leader_id=1, hears_leader=True), asking(first=True))
    assert may_grant(VOTER._replace(leader_id=1), asking(first=True))


@pytest.mark.parametrize(
    ("preferred", "wait_ms"),
    [
        ([ReplicaKey(1, HERE), CANDIDATE], 0),
        ([ReplicaKey(1)], 0),
        ([CANDIDATE, ReplicaKey(1, HERE)], 500),
        ([CANDIDATE, ReplicaKey(1, HERE), ReplicaKey(3, HERE)], 250),
        ([CANDIDATE, ReplicaKey(3, HERE), ReplicaKey(1, HERE)], 500),
        ([CANDIDATE, ReplicaKey(1, THERE)], 1000),
        ([], 1000),
    ],
)
def test_who_is_named_later_waits_longer(preferred: list[ReplicaKey], wait_ms: int) -> None:
    assert election_backoff_ms(ReplicaKey(1, HERE), preferred, 1000) == wait_ms
