"""BrokerHeartbeat (63): a broker stays in the cluster, or asks to leave it (KIP-631)."""

from broker.clock import monotonic_ms
from broker.controller.decision import Decision
from broker.controller.heartbeats import Heartbeat, HeartbeatReply, process_heartbeat
from broker.controller.start import topic_rules
from broker.metadata.image import MetadataImage
from broker.network.call import Call
from broker.network.waiting import Waiting
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse


def handle(
    request: BrokerHeartbeatRequest, call: Call
) -> BrokerHeartbeatResponse | Waiting[BrokerHeartbeatResponse]:
    services = call.services
    controller = services.controller
    if not controller.is_active:
        return BrokerHeartbeatResponse(error_code=ErrorCode.NOT_CONTROLLER)
    # At once: a controller that is busy must not take brokers for dead.
    controller.sessions.heard(request.broker_id, request.broker_epoch, monotonic_ms())
    heartbeat = Heartbeat(
        request.broker_id,
        request.broker_epoch,
        request.current_metadata_offset,
        want_fence=request.want_fence,
        want_shut_down=request.want_shut_down,
        offline=request.offline_log_dirs,
        cordoned=request.cordoned_log_dirs,
    )

    def command(image: MetadataImage) -> Decision[HeartbeatReply]:
        return process_heartbeat(image, heartbeat, controller.sessions, topic_rules(services, image))

    def build(outcome: HeartbeatReply | KafkaError) -> BrokerHeartbeatResponse:
        if isinstance(outcome, KafkaError):
            return BrokerHeartbeatResponse(error_code=outcome.code)
        return BrokerHeartbeatResponse(
            is_caught_up=outcome.is_caught_up,
            is_fenced=outcome.is_fenced,
            should_shut_down=outcome.should_shut_down,
        )

    # The next heartbeat comes soon, and will do instead of one that had to wait too long.
    return controller.answer(
        command, build, timeout_ms=services.config.get("broker.heartbeat.interval.ms") // 2
    )
