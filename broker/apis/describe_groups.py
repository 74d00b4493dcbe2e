"""DescribeGroups (15): the state and the members of classic groups."""

from broker.apis.authorized_operations import ALL_ON_GROUP, NOT_ASKED
from broker.coordination.tickets import answer_of_all
from broker.groups import commands
from broker.groups.requests import GroupDescription
from broker.network.call import Call
from broker.network.waiting import Waiting
from protocol.error_codes import ErrorCode
from protocol.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)


def handle(
    request: DescribeGroupsRequest, call: Call
) -> DescribeGroupsResponse | Waiting[DescribeGroupsResponse]:
    tickets = [commands.describe(call.services.groups, group_id) for group_id in request.groups]
    return answer_of_all(
        tickets,
        lambda: DescribeGroupsResponse(
            groups=[
                describe(ticket.outcome, call.version, request.include_authorized_operations)
                for ticket in tickets
            ]
        ),
    )


def describe(group: GroupDescription, version: int, with_operations: bool) -> DescribedGroup:
    error, message = group.error, None
    if error is ErrorCode.GROUP_ID_NOT_FOUND:
        if version >= 6:  # KIP-1043
            message = group.message
        else:
            error = ErrorCode.NONE  # the state says it: Dead
    return DescribedGroup(
        error_code=error,
        error_message=message,
        group_id=group.group_id,
        group_state=group.state,
        protocol_type=group.protocol_type,
        protocol_data=group.protocol_name,
        members=[
            DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.metadata,
                member_assignment=member.assignment,
            )
            for member in group.members
        ],
        authorized_operations=(ALL_ON_GROUP if with_operations and error is ErrorCode.NONE else NOT_ASKED),
    )


def error_response(request: DescribeGroupsRequest, code: ErrorCode) -> DescribeGroupsResponse:
    """``code`` for every group: there is no other place for it."""
    return DescribeGroupsResponse(
        groups=[DescribedGroup(group_id=group_id, error_code=code) for group_id in request.groups]
    )
