"""Who has copied how much of the metadata log, and what is committed by that."""

from broker.raft.replicas import CAUGHT_UP_WITHIN_MS, OBSERVER_SILENCE_MS, ReplicaKey, Replicas

HERE, THERE = b"\x01" * 16, b"\x02" * 16
LEADER = ReplicaKey(1, HERE)
SECOND = ReplicaKey(2, THERE)


def alone() -> Replicas:
    replicas = Replicas(LEADER)
    replicas.set_voters([LEADER])
    return replicas


def two() -> Replicas:
    replicas = Replicas(LEADER)
    replicas.set_voters([LEADER, SECOND])
    return replicas


class TestObservers:
    def test_an_observer_counts_for_nothing(self) -> None:
        replicas = alone()
        assert not replicas.note_fetch(SECOND, 3, 10, 1000)
        assert replicas.committed(10) == 10

    def test_who_keeps_no_copy_is_none(self) -> None:
        replicas = alone()
        assert not replicas.note_fetch(ReplicaKey(-1), 3, 10, 1000)
        assert replicas.observers(1000) == []

    def test_silence_ends_it(self) -> None:
        replicas = alone()
        replicas.note_fetch(SECOND, 3, 10, 1000)
        assert [seen.key for seen in replicas.observers(999 + OBSERVER_SILENCE_MS)] == [SECOND]
        assert replicas.observers(1000 + OBSERVER_SILENCE_MS) == []

    def test_one_with_all_that_there_was_has_caught_up(self) -> None:
        replicas = alone()
        replicas.note_fetch(SECOND, 3, 10, 1000)
        assert not replicas.is_caught_up(SECOND, 1000)
        replicas.note_fetch(SECOND, 10, 12, 1500)
        (seen,) = replicas.observers(1500)
        assert seen.last_caught_up_ms == 1000  # when the log ended at 10
        replicas.note_fetch(SECOND, 12, 12, 1600)
        assert seen.last_caught_up_ms == 1600
        assert replicas.is_caught_up(SECOND, 1600)
        assert not replicas.is_caught_up(SECOND, 1600 + CAUGHT_UP_WITHIN_MS)

    def test_another_directory_is_another_copy(self) -> None:
        replicas = alone()
        replicas.note_fetch(SECOND, 10, 10, 1000)
        assert not replicas.is_caught_up(ReplicaKey(2, HERE), 1000)


class TestVoters:
    def test_two_must_both_have_it(self) -> None:
        replicas = two()
        assert not replicas.is_alone
        assert replicas.committed(10) == -1
        assert replicas.note_fetch(SECOND, 7, 10, 1000)
        assert replicas.committed(10) == 7
        assert replicas.committed(5) == 5

    def test_an_observer_that_becomes_one_brings_what_is_known_of_it(self) -> None:
        replicas = alone()
        replicas.note_fetch(SECOND, 7, 10, 1000)
        replicas.set_voters([LEADER, SECOND])
        assert replicas.committed(10) == 7
        assert replicas.observers(1000) == []

    def test_one_that_is_none_any_more_observes(self) -> None:
        replicas = two()
        replicas.note_fetch(SECOND, 7, 10, 1000)
        replicas.set_voters([LEADER])
        assert replicas.committed(10) == 10
        assert [seen.key for seen in replicas.observers(1000)] == [SECOND]

    def test_a_leader_on_its_way_out_does_not_count(self) -> None:
        replicas = two()
        replicas.note_fetch(SECOND, 7, 10, 1000)
        replicas.set_voters([SECOND])
        assert not replicas.leader_votes
        assert replicas.committed(10) == 7

    def test_the_wrong_directory_does_not_vote(self) -> None:
        replicas = two()
        assert not replicas.note_fetch(ReplicaKey(2, HERE), 7, 10, 1000)
        assert replicas.committed(10) == -1

    def test_without_directories_the_id_is_enough(self) -> None:
        replicas = Replicas(LEADER)
        replicas.set_voters([ReplicaKey(1), ReplicaKey(2)])
        assert replicas.leader_votes
        assert replicas.note_fetch(SECOND, 7, 10, 1000)

    def test_of_three_the_middle_one_says(self) -> None:
        replicas = Replicas(LEADER)
        replicas.set_voters([LEADER, SECOND, ReplicaKey(3, THERE)])
        replicas.note_fetch(SECOND, 7, 10, 1000)
        replicas.note_fetch(ReplicaKey(3, THERE), 9, 10, 1000)
        assert replicas.committed(10) == 9
        assert replicas.by_progress() == [ReplicaKey(3, THERE), SECOND]
