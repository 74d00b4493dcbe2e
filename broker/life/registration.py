"""How a broker introduces itself to a controller on another node (KIP-631, KIP-858)."""

from typing import TYPE_CHECKING

from broker.metadata.features import SUPPORTED_FEATURES
from protocol.messages.broker_registration import BrokerRegistrationRequest, Feature, Listener

if TYPE_CHECKING:
    from broker.controller.start import Node
    from broker.services import Services


def registration_request(
    services: "Services", node: "Node", incarnation_id: bytes
) -> BrokerRegistrationRequest:
    """What this broker is.  ``incarnation_id`` is that of this run of it, whenever it registers."""
    return BrokerRegistrationRequest(
        broker_id=services.node_id,
        cluster_id=services.cluster_id,
        incarnation_id=incarnation_id,
        listeners=[
            Listener(name=name, host=host, port=port, security_protocol=protocol)
            for name, host, port, protocol in node.broker_endpoints
        ],
        features=[
            Feature(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in SUPPORTED_FEATURES.items()
        ],
        rack=services.config.get("broker.rack"),
        log_dirs=sorted(node.directory_ids),
        previous_broker_epoch=node.previous_broker_epoch,
    )
