"""The listeners that a node registers, as the cluster keeps them."""

from collections.abc import Iterable

from broker.metadata.image import Endpoint, SecurityProtocol
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.messages import broker_registration, controller_registration


def endpoints_of(
    listeners: Iterable[broker_registration.Listener | controller_registration.Listener],
) -> list[Endpoint]:
    """Their endpoints; raises INVALID_REGISTRATION for a security protocol that nobody knows."""
    try:
        return [
            Endpoint(
                listener.name, listener.host, listener.port, SecurityProtocol(listener.security_protocol)
            )
            for listener in listeners
        ]
    except ValueError as error:
        raise KafkaError(ErrorCode.INVALID_REGISTRATION, str(error)) from None
