"""DescribeCluster (60): id, controller and nodes of the cluster."""

from broker.apis.authorized_operations import ALL_ON_CLUSTER
from broker.metadata.client_view import NO_CONTROLLER, controller_id
from broker.metadata.endpoints import Node
from broker.network.call import Call
from protocol.error_codes import ErrorCode
from protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

ENDPOINT_TYPE_VERSION = 1  # KIP-919

BROKERS = 1
CONTROLLERS = 2
ENDPOINT_TYPES = {BROKERS: "BROKER", CONTROLLERS: "CONTROLLER"}


def handle(request: DescribeClusterRequest, call: Call) -> DescribeClusterResponse:
    here = CONTROLLERS if call.listener.is_controller else BROKERS
    wanted = request.endpoint_type
    if wanted not in ENDPOINT_TYPES:
        return _refusal(ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, f"Unsupported endpoint type {wanted}")
    if wanted != here:
        return _refusal(
            ErrorCode.MISMATCHED_ENDPOINT_TYPE
            if call.version >= ENDPOINT_TYPE_VERSION
            else ErrorCode.INVALID_REQUEST,
            f"The request was sent to an endpoint of type {ENDPOINT_TYPES[here]}, but we wanted an endpoint "
            f"of type {ENDPOINT_TYPES[wanted]}",
        )
    services = call.services
    image = services.image
    if here == CONTROLLERS:
        nodes = _controllers(call)
        leader = services.quorum.leader_id
        controller = leader if any(node.id == leader for node in nodes) else NO_CONTROLLER
    else:
        alive = services.advertised.alive_nodes(image, call)
        nodes = services.advertised.all_nodes(image, call) if request.include_fenced_brokers else alive
        controller = controller_id(alive, services.node_id)
    response = DescribeClusterResponse(
        endpoint_type=here,
        cluster_id=services.cluster_id,
        controller_id=controller,
        brokers=[
            DescribeClusterBroker(
                broker_id=node.id, host=node.host, port=node.port, rack=node.rack, is_fenced=node.is_fenced
            )
            for node in nodes
        ],
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = ALL_ON_CLUSTER
    return response


def _controllers(call: Call) -> list[Node]:
    listener = call.listener.name
    found = []
    for _, controller in sorted(call.services.image.controllers.items()):
        for endpoint in controller.endpoints:
            if endpoint.name == listener:
                found.append(Node(controller.id, endpoint.host, endpoint.port, None, False))
    return found


def _refusal(code: ErrorCode, message: str) -> DescribeClusterResponse:
    return DescribeClusterResponse(error_code=code, error_message=message)
