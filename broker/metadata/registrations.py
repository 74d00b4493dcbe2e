"""What a registration's record says of a node's listeners and of the features that it supports."""

from collections.abc import Iterable, Mapping

from broker.metadata.image import Endpoint
from protocol.stored.metadata_records import (
    BrokerEndpoint,
    BrokerFeature,
    ControllerEndpoint,
    ControllerFeature,
)


def broker_endpoints(endpoints: Iterable[Endpoint]) -> list[BrokerEndpoint]:
    """For a RegisterBrokerRecord."""
    return [
        BrokerEndpoint(name=name, host=host, port=port, security_protocol=protocol)
        for name, host, port, protocol in endpoints
    ]


def broker_features(features: Mapping[str, tuple[int, int]]) -> list[BrokerFeature]:
    """For a RegisterBrokerRecord; of each feature the lowest and the highest level."""
    return [
        BrokerFeature(name=name, min_supported_version=low, max_supported_version=high)
        for name, (low, high) in features.items()
    ]


def controller_endpoints(endpoints: Iterable[Endpoint]) -> list[ControllerEndpoint]:
    """For a RegisterControllerRecord."""
    return [
        ControllerEndpoint(name=name, host=host, port=port, security_protocol=protocol)
        for name, host, port, protocol in endpoints
    ]


def controller_features(features: Mapping[str, tuple[int, int]]) -> list[ControllerFeature]:
    """For a RegisterControllerRecord; of each feature the lowest and the highest level."""
    return [
        ControllerFeature(name=name, min_supported_version=low, max_supported_version=high)
        for name, (low, high) in features.items()
    ]
