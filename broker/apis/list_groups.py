"""ListGroups (16): every group of which this broker is the coordinator."""

from collections.abc import Sequence

from broker.coordination.tickets import Ticket, answer_of_all
from broker.groups import commands
from broker.groups.requests import Listed
from broker.network.call import Call
from broker.network.waiting import Waiting
from protocol.error_codes import ErrorCode
from protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse


def handle(request: ListGroupsRequest, call: Call) -> ListGroupsResponse | Waiting[ListGroupsResponse]:
    """States and types are matched whatever their case; names that are neither match nothing."""
    states = {state.lower() for state in request.states_filter}
    kinds = {kind.lower() for kind in request.types_filter}
    tickets = commands.list_groups(call.services.groups, states, kinds)
    return answer_of_all(tickets, lambda: answer(tickets))


def answer(tickets: Sequence[Ticket[Listed]]) -> ListGroupsResponse:
    response = ListGroupsResponse()
    for ticket in tickets:
        listed = ticket.outcome
        if listed.error is ErrorCode.NOT_COORDINATOR:
            continue  # its groups are another broker's by now
        if listed.error is not ErrorCode.NONE:
            return ListGroupsResponse(error_code=listed.error)
        response.groups += [
            ListedGroup(
                group_id=group.group_id,
                protocol_type=group.protocol_type,
                group_state=group.state,
                group_type=group.kind,
            )
            for group in listed.groups
        ]
    return response
