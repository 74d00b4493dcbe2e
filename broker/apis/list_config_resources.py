"""ListConfigResources (74): the resources that have settings of their own (KIP-1142)."""

from collections.abc import Iterable

from broker.metadata.image import ResourceType
from broker.network.call import Call
from protocol.error_codes import ErrorCode
from protocol.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

LISTED = (
    ResourceType.GROUP,
    ResourceType.CLIENT_METRICS,
    ResourceType.BROKER_LOGGER,
    ResourceType.BROKER,
    ResourceType.TOPIC,
)
"""Every type, in the order in which Kafka lists them."""


def handle(request: ListConfigResourcesRequest, call: Call) -> ListConfigResourcesResponse:
    # The API was born as ListClientMetricsResources.
    only_client_metrics = call.version == 0
    asked = [ResourceType.CLIENT_METRICS] if only_client_metrics else request.resource_types or LISTED
    if any(kind not in LISTED for kind in asked):
        return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    return ListConfigResourcesResponse(
        config_resources=[
            ConfigResource(resource_name=name, resource_type=kind)
            for kind in LISTED
            if kind in asked
            for name in names_of(kind, call)
        ]
    )


def names_of(kind: ResourceType, call: Call) -> Iterable[str]:
    """The resources of one type: all brokers, fenced ones, too, and topics; of groups and metrics those with
    settings."""
    image = call.services.image
    if kind is ResourceType.TOPIC:
        return sorted(image.topics)
    if kind in (ResourceType.BROKER, ResourceType.BROKER_LOGGER):
        return [str(node.id) for node in call.services.advertised.all_nodes(image, call)]
    return sorted(name for resource, name in image.configs if resource == kind)
