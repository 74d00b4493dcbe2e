"""ListTransactions (66): the transactional ids that this broker looks after (KIP-664)."""

from collections.abc import Callable, Iterator, Sequence

from broker.coordination.tickets import Ticket, answer_of_all
from broker.network.call import Call
from broker.network.waiting import Waiting
from broker.transactions import commands
from broker.transactions.requests import Described, Listed
from broker.transactions.states import BY_TITLE
from protocol.error_codes import ErrorCode
from protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionState,
)

Picks = Callable[[Described], bool]


def handle(
    request: ListTransactionsRequest, call: Call
) -> ListTransactionsResponse | Waiting[ListTransactionsResponse]:
    """An unknown state is named in the answer, and matches nothing."""
    filters: list[Picks] = list(read_filters(request, call.services.clock.now_ms()))
    if request.transactional_id_pattern:
        try:
            filters.append(matches(request.transactional_id_pattern))
        except ValueError:
            return ListTransactionsResponse(error_code=ErrorCode.INVALID_REGULAR_EXPRESSION)
    tickets = commands.list_transactions(call.services.transactions)
    unknown = [state for state in dict.fromkeys(request.state_filters) if state not in BY_TITLE]
    return answer_of_all(tickets, lambda: answer(tickets, filters, unknown))


def read_filters(request: ListTransactionsRequest, now_ms: int) -> Iterator[Picks]:
    if request.producer_id_filters:
        producer_ids = set(request.producer_id_filters)
        yield lambda found: found.producer_id in producer_ids
    if request.state_filters:
        states = {BY_TITLE[title] for title in request.state_filters if title in BY_TITLE}
        yield lambda found: found.state in states
    if request.duration_filter >= 0:
        # As in Kafka an id whose transaction never began has been at it for ever.
        yield lambda found: now_ms - found.start_ms > request.duration_filter


def matches(pattern: str) -> Picks:
    """Whether an id is matched by an RE2 pattern, from its first character to its last."""
    import re2  # one request in a million wants it

    options = re2.Options()
    options.log_errors = False
    try:
        compiled = re2.compile(pattern, options)
    except re2.error as error:
        raise ValueError(str(error)) from error
    return lambda found: compiled.fullmatch(found.transactional_id) is not None


def answer(
    tickets: Sequence[Ticket[Listed]], filters: Sequence[Picks], unknown: list[str]
) -> ListTransactionsResponse:
    response = ListTransactionsResponse(unknown_state_filters=unknown)
    for ticket in tickets:
        listed = ticket.outcome
        if listed.error is ErrorCode.NOT_COORDINATOR:
            continue  # another broker's by now
        if listed.error is not ErrorCode.NONE:
            return ListTransactionsResponse(error_code=listed.error)
        response.transaction_states += [
            TransactionState(
                transactional_id=found.transactional_id,
                producer_id=found.producer_id,
                transaction_state=found.state.title,
            )
            for found in listed.transactions
            if found.state is not None and all(picks(found) for picks in filters)
        ]
    return response
