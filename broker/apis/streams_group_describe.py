"""StreamsGroupDescribe (89): state, topology and members of streams groups (KIP-1071)."""

from typing import Final

from broker.apis.authorized_operations import ALL_ON_GROUP
from broker.apis.error_texts import fitting
from broker.coordination.tickets import answer_of_all
from broker.groups import commands
from broker.groups.protocols import serves_streams_groups
from broker.network.call import Call
from broker.network.waiting import Waiting
from protocol.error_codes import ErrorCode
from protocol.messages.streams_group_describe import (
    DescribedGroup,
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
)

NO_DESCRIPTION: Final = 1
"""``TopologyDescriptionStatus``: nobody has given the broker one (KIP-1331)."""


def handle(
    request: StreamsGroupDescribeRequest, call: Call
) -> StreamsGroupDescribeResponse | Waiting[StreamsGroupDescribeResponse]:
    if not serves_streams_groups(call.services):
        return error_response(request, ErrorCode.UNSUPPORTED_VERSION)
    asked = sorted(request.group_ids, key=bool)  # Kafka begins with what is no name
    tickets = [commands.describe_streams(call.services.groups, group_id) for group_id in asked]

    def answer() -> StreamsGroupDescribeResponse:
        groups = [ticket.outcome for ticket in tickets]
        for group in groups:
            group.error_message = fitting(group.error_message)
            if group.error_code == ErrorCode.NONE:
                if request.include_authorized_operations:
                    group.authorized_operations = ALL_ON_GROUP
                if request.include_topology_description:
                    group.topology_description_status = NO_DESCRIPTION
        return StreamsGroupDescribeResponse(groups=groups)

    return answer_of_all(tickets, answer)


def error_response(request: StreamsGroupDescribeRequest, code: ErrorCode) -> StreamsGroupDescribeResponse:
    """``code`` for every group: there is no other place for it."""
    return StreamsGroupDescribeResponse(
        groups=[DescribedGroup(group_id=group_id, error_code=code) for group_id in request.group_ids]
    )
