import pytest

from broker.coordination.tickets import Ticket, answer_of, answer_of_all
from broker.network.waiting import Waiting
from protocol.error_codes import ErrorCode


def a_ticket() -> Ticket[str]:
    return Ticket(lambda code: f"refused with {code.name}")


def test_the_first_outcome_counts() -> None:
    ticket = a_ticket()
    ticket.settle("first")
    ticket.settle("second")
    ticket.refuse(ErrorCode.NOT_COORDINATOR)
    assert ticket.outcome == "first"


def test_there_is_no_outcome_before_there_is_one() -> None:
    with pytest.raises(RuntimeError):
        _ = a_ticket().outcome


def test_a_refusal_is_an_outcome_of_its_own_kind() -> None:
    ticket = a_ticket()
    ticket.refuse(ErrorCode.NOT_COORDINATOR)
    assert ticket.outcome == "refused with NOT_COORDINATOR"


def test_what_is_settled_is_answered_at_once() -> None:
    ticket = a_ticket()
    ticket.settle("done")
    assert answer_of(ticket, str.upper) == "DONE"


def test_what_is_open_is_answered_when_it_is_settled() -> None:
    ticket = a_ticket()
    waiting = answer_of(ticket, str.upper, droppable=True)
    assert isinstance(waiting, Waiting)
    assert waiting.droppable
    assert not waiting.is_answered
    ticket.settle("done")
    assert waiting.result() == "DONE"


def test_several_are_answered_together_with_the_last() -> None:
    tickets = [a_ticket() for _ in range(3)]
    tickets[1].settle("b")
    waiting = answer_of_all(tickets, lambda: "".join(ticket.outcome for ticket in tickets))
    assert isinstance(waiting, Waiting)
    tickets[2].settle("c")
    assert not waiting.is_answered
    tickets[0].settle("a")
    assert waiting.result() == "abc"


def test_none_at_all_are_answered_at_once() -> None:
    assert answer_of_all([], lambda: "nothing") == "nothing"
