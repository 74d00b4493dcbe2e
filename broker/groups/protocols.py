"""Which rebalance protocols this broker serves: an operator may switch them off."""

from typing import TYPE_CHECKING

from broker.metadata.features import GROUP_VERSION, STREAMS_VERSION

if TYPE_CHECKING:
    from broker.services import Services


def serves_consumer_groups(services: "Services") -> bool:
    """Whether ``group.version`` is finalized and ``group.coordinator.rebalance.protocols`` has them."""
    if services.image.features.get(GROUP_VERSION, 0) < 1:
        return False
    return "consumer" in services.config.get("group.coordinator.rebalance.protocols")


def serves_streams_groups(services: "Services") -> bool:
    """Whether ``streams.version`` is finalized and ``group.coordinator.rebalance.protocols`` has them."""
    if services.image.features.get(STREAMS_VERSION, 0) < 1:
        return False
    return "streams" in services.config.get("group.coordinator.rebalance.protocols")
