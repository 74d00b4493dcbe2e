"""StreamsGroupTopologyDescriptionUpdate (93): a member describes its topology in words (KIP-1331).

Kafka hands the description on to a plugin, a class in Java.  Without one, as here, it turns members away.
"""

from broker.groups.protocols import serves_streams_groups
from broker.network.call import Call
from protocol.error_codes import ErrorCode
from protocol.messages.streams_group_topology_description_update import (
    StreamsGroupTopologyDescriptionUpdateRequest,
    StreamsGroupTopologyDescriptionUpdateResponse,
)


def handle(
    request: StreamsGroupTopologyDescriptionUpdateRequest, call: Call
) -> StreamsGroupTopologyDescriptionUpdateResponse:
    message = None
    if serves_streams_groups(call.services):
        message = "The broker has no streams group topology description plugin configured."
    return StreamsGroupTopologyDescriptionUpdateResponse(
        error_code=ErrorCode.UNSUPPORTED_VERSION, error_message=message
    )
