"""Differences, and which of them are known."""

from compat.oracle.brief import Json
from compat.oracle.compare import differences, in_words, judge, unlike
from compat.oracle.differences import ANYTHING, NOTHING, Known
from compat.oracle.recording import Place, Recording, Told


def told(**outcomes: Json) -> Recording:
    """One outcome for each step, in round 5."""
    return {Place("s", "c", step, 5): Told("Api", 3, outcome) for step, outcome in outcomes.items()}


def test_unlike_values_are_found_where_they_are() -> None:
    left = {"a": [{"b": 1}, {"b": 2}], "c": None, "d": 0}
    right = {"a": [{"b": 1}, {"b": 3}, {}], "c": [], "e": False}
    assert [path for path, _, _ in unlike(left, right)] == ["/a/1/b", "/a/2", "/c", "/d", "/e"]
    assert list(unlike(left, left)) == []
    assert [path for path, _, _ in unlike({"n": 1}, {"n": True})] == ["/n"]


def test_a_step_on_one_side_only_is_a_difference() -> None:
    assert list(in_words(differences(told(a={}, b={}), told(a={})))) == [
        "s: c: b: Api 3: the outcome is {}, not nothing"
    ]
    assert list(in_words(differences(told(a={}), told(a={}, b="closed")))) == [
        's: c: b: Api 3: the outcome is nothing, not "closed"'
    ]


def test_rounds_with_the_same_difference_share_a_line() -> None:
    expected = {Place("s", "c", "a", turn): Told("Api", turn, {"n": 1}) for turn in range(4)}
    found = {Place("s", "c", "a", turn): Told("Api", turn, {"n": 2}) for turn in range(4)}
    assert list(in_words(differences(expected, found))) == ["s: c: a: Api 0-3: /n is 1, not 2"]


def test_a_known_difference_of_a_whole_outcome() -> None:
    known = [Known("s: c: a*", "hangs", "INVALID_REQUEST", "Kafka is stuck")]
    refused = {"error_code": "INVALID_REQUEST"}
    assert judge(told(a="hangs"), told(a=refused), known).is_clean
    assert not judge(told(b="hangs"), told(b=refused), known).is_clean
    assert not judge(told(a="hangs"), told(a={}), known).is_clean
    vanished = judge(told(a="hangs"), told(a="hangs"), known)
    assert list(vanished.lines()) == [
        "s: c: a: round 5: the outcome is known to differ, and does not: Kafka is stuck"
    ]


def test_a_known_difference_of_one_value() -> None:
    known = [Known("s: *", ANYTHING, NOTHING, "not served yet", "/keys/x.y")]
    expected = told(a={"keys": {"x.y": "0-1", "z": "0-5"}}, b={})
    assert judge(expected, told(a={"keys": {"z": "0-5"}}, b={}), known).is_clean
    assert not judge(expected, told(a={"keys": {"z": "0-4"}}, b={}), known).is_clean
    assert not judge(expected, told(a={"keys": {"x.y": "0-1", "z": "0-5"}}, b={}), known).is_clean
    assert not judge(expected, told(a={"keys": {"x.y": "0-2", "z": "0-5"}}, b={}), known).is_clean
