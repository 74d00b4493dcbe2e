"""ListConfigResources (74): the resources that have settings of their own (KIP-1142)."""

from collections.abc import Iterable

from broker.metadata.image import MetadataImage, ResourceType
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
            for name in names_of(call.services.image, kind)
        ]
    )


def names_of(image: MetadataImage, kind: ResourceType) -> Iterable[str]:
    """The resources of one type: all brokers and topics, of groups and metrics those with settings."""
    if kind is ResourceType.TOPIC:
        return sorted(image.topics)
    if kind in (ResourceType.BROKER, ResourceType.BROKER_LOGGER):
        return [str(broker.id) for broker in image.alive_brokers()]
    return sorted(name for resource, name in image.configs if resource == kind)
