import pytest

from broker.groups.protocol_choice import choose_protocol, common_protocols


def test_only_what_all_members_support_is_a_candidate() -> None:
    assert common_protocols([["a", "b"], ["b", "c"], ["b"]]) == {"b"}
    assert common_protocols([["a"], ["b"]]) == set()
    assert common_protocols([]) == set()


def test_each_member_votes_for_its_first_candidate_and_most_votes_win() -> None:
    assert choose_protocol([["x", "a", "b"], ["b", "a"], ["b", "a"]]) == "b"
    assert choose_protocol([["a", "b"], ["a", "b"], ["b", "a"]]) == "a"


@pytest.mark.parametrize(
    ("one", "other", "chosen"),
    [
        (("range", "rr"), ("rr", "range"), "rr"),
        (("a", "b"), ("b", "a"), "a"),
        (("b", "a"), ("a", "b"), "a"),
        (("roundrobin", "range", "x"), ("x", "roundrobin", "range"), "x"),
        (("cooperative-sticky", "range"), ("range", "cooperative-sticky"), "range"),
        (("x", "y"), ("y", "x"), "x"),
    ],
)
def test_ties_end_as_they_were_seen_to_end_in_kafka(
    one: tuple[str, ...], other: tuple[str, ...], chosen: str
) -> None:
    assert choose_protocol([one, other]) == chosen


def test_names_that_collide_in_java_s_table_keep_the_order_of_their_votes() -> None:
    # Both hash to 2112.
    assert choose_protocol([["Aa", "BB"], ["BB", "Aa"]]) == "Aa"
    assert choose_protocol([["BB", "Aa"], ["Aa", "BB"]]) == "BB"


def test_a_table_of_many_names_is_larger() -> None:
    names = [f"protocol-{number}" for number in range(40)]
    lists = [names[turn:] + names[:turn] for turn in range(40)]
    assert choose_protocol(lists) in names
    assert choose_protocol(lists) == choose_protocol(list(reversed(lists)))
