"""BrokerRegistration (62): a broker joins the cluster (KIP-631, KIP-858)."""

from typing import TYPE_CHECKING

from broker.apis.registered_endpoints import endpoints_of
from broker.clock import monotonic_ms
from broker.controller.brokers import Registration, register_broker
from broker.controller.decision import Decision
from broker.controller.start import topic_rules
from broker.metadata.image import BrokerImage, MetadataImage
from broker.network.call import Call
from broker.network.waiting import Waiting
from protocol.errors import KafkaError
from protocol.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse

if TYPE_CHECKING:
    from broker.services import Services


def handle(
    request: BrokerRegistrationRequest, call: Call
) -> BrokerRegistrationResponse | Waiting[BrokerRegistrationResponse]:
    services = call.services
    controller = services.controller
    registration = Registration(
        broker_id=request.broker_id,
        cluster_id=request.cluster_id,
        incarnation_id=request.incarnation_id,
        endpoints=endpoints_of(request.listeners),
        features={
            feature.name: (feature.min_supported_version, feature.max_supported_version)
            for feature in request.features
        },
        rack=request.rack,
        directories=request.log_dirs,
        previous_epoch=request.previous_broker_epoch,
        is_migrating_zk_broker=request.is_migrating_zk_broker,
    )

    def command(image: MetadataImage) -> Decision[int]:
        known = image.brokers.get(request.broker_id)
        decision = register_broker(
            image,
            registration,
            topic_rules(services, image),
            kraft_version=controller.raft.kraft_version,
            session_lasts=known is not None and may_be_alive(known, services),
        )
        # Its own record comes last.
        controller.sessions.registered(request.broker_id, image.offset + len(decision.records))
        return decision

    def build(outcome: int | KafkaError) -> BrokerRegistrationResponse:
        if isinstance(outcome, KafkaError):
            services.log.warn_seldom(f"broker {request.broker_id} may not register: {outcome}")
            return BrokerRegistrationResponse(error_code=outcome.code)
        return BrokerRegistrationResponse(broker_epoch=outcome)

    return controller.answer(command, build, timeout_ms=None)


def may_be_alive(known: BrokerImage, services: "Services") -> bool:
    """Whether the broker that is registered may still be there."""
    if known.id == services.node_id and "broker" in services.config.get("process.roles"):
        # It is this process, or else was one before it whose controller led as well.
        return known.incarnation_id == services.life.incarnation_id
    return services.controller.sessions.is_alive(known, monotonic_ms())
