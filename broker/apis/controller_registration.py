"""ControllerRegistration (70): a controller that stands by tells the active one of itself (KIP-919)."""

from broker.apis.registered_endpoints import endpoints_of
from broker.controller.brokers import register_controller
from broker.controller.decision import Decision
from broker.metadata.image import MetadataImage
from broker.network.call import Call
from broker.network.waiting import Waiting
from protocol.errors import KafkaError
from protocol.messages.controller_registration import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)


def handle(
    request: ControllerRegistrationRequest, call: Call
) -> ControllerRegistrationResponse | Waiting[ControllerRegistrationResponse]:
    endpoints = endpoints_of(request.listeners)
    features = {
        feature.name: (feature.min_supported_version, feature.max_supported_version)
        for feature in request.features
    }

    def command(image: MetadataImage) -> Decision[None]:
        return register_controller(image, request.controller_id, request.incarnation_id, endpoints, features)

    def build(outcome: KafkaError | None) -> ControllerRegistrationResponse:
        if outcome is None:
            return ControllerRegistrationResponse()
        return ControllerRegistrationResponse(error_code=outcome.code, error_message=outcome.message)

    return call.services.controller.answer(command, build, timeout_ms=None)
