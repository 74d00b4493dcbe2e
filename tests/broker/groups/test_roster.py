import pytest

from broker.coordination.decision import Decision
from broker.coordination.tickets import Ticket
from broker.groups.member import Member
from broker.groups.requests import Joined, Synced
from broker.groups.roster import Roster, read_subscribed_topics
from protocol.error_codes import ErrorCode
from protocol.errors import DecodeError
from tests.broker.groups.rooms import Name, protocols, subscription


def a_member(member_id: str, *offers: Name, instance_id: str | None = None, rebalance_ms: int = 10) -> Member:
    return Member(
        member_id,
        instance_id=instance_id,
        client_id="c",
        client_host="/h",
        session_timeout_ms=10,
        rebalance_timeout_ms=rebalance_ms,
        protocols=protocols(*(offers or ("range",))),
    )


def test_who_is_a_member() -> None:
    roster = Roster([a_member("a"), a_member("b", instance_id="i")])
    assert roster.check("a", None) is ErrorCode.NONE
    assert roster.check("b", None) is ErrorCode.NONE
    assert roster.check("b", "i") is ErrorCode.NONE
    assert roster.check("a", "i") is ErrorCode.FENCED_INSTANCE_ID
    assert roster.check("b", "j") is ErrorCode.UNKNOWN_MEMBER_ID
    assert roster.check("c", None) is ErrorCode.UNKNOWN_MEMBER_ID


def test_an_instance_id_goes_with_its_member() -> None:
    member = a_member("b", instance_id="i")
    roster = Roster([member])
    roster.remove(member)
    assert roster.check("b", "i") is ErrorCode.UNKNOWN_MEMBER_ID
    roster.add(a_member("c", instance_id="i"))
    assert roster.check("c", "i") is ErrorCode.NONE


def test_what_all_support_follows_who_is_there() -> None:
    first, second = a_member("a", "x", "y"), a_member("b", "y", "z")
    roster = Roster([first])
    assert roster.all_support_one_of(protocols("x"))
    roster.add(second)
    assert not roster.all_support_one_of(protocols("x", "z"))
    assert roster.all_support_one_of(protocols("z", "y"))
    assert roster.choose_protocol() == "y"
    roster.change_protocols(first, protocols("z"))
    assert roster.choose_protocol() == "z"
    roster.remove(second)
    assert not roster.all_support_one_of(protocols("y"))


def test_the_most_patient_member_counts() -> None:
    assert Roster([a_member("a", rebalance_ms=5), a_member("b", rebalance_ms=9)]).rebalance_timeout_ms() == 9
    assert Roster().rebalance_timeout_ms() == 0


def test_a_member_that_is_owed_an_answer_is_not_removed() -> None:
    member = a_member("a")
    roster = Roster([member])
    roster.wait_to_join(member, Ticket(lambda code: Joined("", code)))
    with pytest.raises(AssertionError):
        roster.remove(member)
    decision = Decision()
    roster.answer_join(member, Joined("a"), decision)
    roster.answer_join(member, Joined("a"), decision)
    assert len(decision.replies) == 1
    roster.remove(member)


def test_who_waits() -> None:
    first, second = a_member("a"), a_member("b")
    roster = Roster([first, second])
    seen = [(roster.first_joined(), roster.all_have_joined)]
    for member in (second, first):
        roster.wait_to_join(member, Ticket(lambda code: Joined("", code)))
        seen.append((roster.first_joined(), roster.all_have_joined))
    assert seen == [(None, False), (second, False), (first, True)]
    second.sync_ticket = Ticket(Synced)
    assert len(list(roster.waiting_tickets())) == 3
    assert roster.answer_sync(second, Synced(), Decision())
    assert not roster.answer_sync(second, Synced(), Decision())


def test_topics_are_read_from_every_member_s_metadata() -> None:
    roster = Roster(
        [a_member("a", ("range", subscription("t", "u"))), a_member("b", ("range", subscription("v")))]
    )
    assert roster.subscribed_topics("range") == frozenset({"t", "u", "v"})
    roster.add(a_member("c", ("range", b"not metadata")))
    assert roster.subscribed_topics("range") is None


def test_without_a_protocol_only_an_empty_group_is_known_to_read_nothing() -> None:
    assert Roster().subscribed_topics(None) == frozenset()
    assert Roster([a_member("a")]).subscribed_topics(None) is None


@pytest.mark.parametrize("version", [0, 1, 2, 3, 99, -1])
def test_every_version_of_the_metadata_begins_alike(version: int) -> None:
    metadata = version.to_bytes(2, "big", signed=True) + subscription("t")[2:] + b"whatever follows"
    assert read_subscribed_topics(metadata) == ["t"]


@pytest.mark.parametrize("size", range(len(subscription("t")) - 4))
def test_metadata_that_ends_early(size: int) -> None:
    with pytest.raises(DecodeError):
        read_subscribed_topics(subscription("t")[:size])
