"""DeleteGroups (42): remove groups without members, with their offsets."""

from broker.coordination.tickets import answer_of_all
from broker.groups import commands
from broker.network.call import Call
from broker.network.waiting import Waiting
from protocol.error_codes import ErrorCode
from protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse


def handle(request: DeleteGroupsRequest, call: Call) -> DeleteGroupsResponse | Waiting[DeleteGroupsResponse]:
    """A group that is named twice is deleted, and answered, once."""
    group_ids = list(dict.fromkeys(request.groups_names))
    tickets = [commands.delete(call.services.groups, group_id) for group_id in group_ids]
    return answer_of_all(
        tickets,
        lambda: DeleteGroupsResponse(
            results=[
                DeletableGroupResult(group_id=group_id, error_code=ticket.outcome)
                for group_id, ticket in zip(group_ids, tickets, strict=True)
            ]
        ),
    )


def error_response(request: DeleteGroupsRequest, code: ErrorCode) -> DeleteGroupsResponse:
    """``code`` for every group: there is no other place for it."""
    return DeleteGroupsResponse(
        results=[
            DeletableGroupResult(group_id=group_id, error_code=code)
            for group_id in dict.fromkeys(request.groups_names)
        ]
    )
