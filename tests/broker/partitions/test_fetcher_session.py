"""What a follower's next request has to name."""

from broker.partitions.fetcher_session import FetcherSession

Session = FetcherSession[str, int]


def test_the_first_request_names_everything_and_the_others_what_has_changed() -> None:
    session = Session()
    assert session.is_full
    assert session.plan({"a": 1, "b": 1}) == ({"a": 1, "b": 1}, [])
    assert (session.id, session.epoch) == (0, 0)
    session.note_answer(7)
    assert (session.id, session.epoch, session.is_full) == (7, 1, False)
    assert session.plan({"a": 1, "b": 2}) == ({"b": 2}, [])
    session.note_answer(7)
    assert session.plan({"c": 1}, ["a", "x"]) == ({"c": 1}, ["a"])
    assert session.told == {"b": 2, "c": 1}
    assert session.epoch == 2


def test_a_leader_without_a_slot_is_told_everything_each_time() -> None:
    session = Session()
    session.plan({"a": 1})
    session.note_answer(0)
    assert session.is_full
    assert session.plan({"a": 1}) == ({"a": 1}, [])


def test_a_session_that_is_lost_begins_anew() -> None:
    session = Session()
    session.plan({"a": 1})
    session.note_answer(7)
    session.start_anew()
    assert (session.id, session.epoch) == (7, 0), "the leader closes the old one"
    assert session.plan({"a": 1}) == ({"a": 1}, [])
    session.note_answer(8)
    session.forget()
    assert (session.id, session.epoch) == (0, 0)
    session.plan({"a": 1})
    session.note_answer(9)
    session.note_answer(10)
    assert session.is_full, "an answer of another session"


def test_epochs_start_over_at_one() -> None:
    session = Session()
    session.plan({"a": 1})
    session.note_answer(7)
    session.epoch = 2**31 - 1
    session.note_answer(7)
    assert session.epoch == 1
