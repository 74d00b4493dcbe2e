"""BrokerHeartbeat (63): a broker tells that it lives, and which of its log directories do not."""

from broker.controller.brokers import registered
from broker.controller.decision import Decision
from broker.controller.directories import cordon_directories, take_directories_offline
from broker.controller.start import topic_rules
from broker.metadata.image import MetadataImage
from broker.metadata.records import VersionedRecord
from broker.network.call import Call
from broker.network.waiting import Waiting
from protocol.errors import KafkaError
from protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse

TIMEOUT_MS = 60_000


def handle(
    request: BrokerHeartbeatRequest, call: Call
) -> BrokerHeartbeatResponse | Waiting[BrokerHeartbeatResponse]:
    services = call.services

    def command(image: MetadataImage) -> Decision[BrokerHeartbeatResponse]:
        broker = registered(image, request.broker_id, request.broker_epoch)
        records: list[VersionedRecord] = []
        if request.offline_log_dirs:
            rules = topic_rules(services, image)
            gone = take_directories_offline(image, broker.id, broker.epoch, request.offline_log_dirs, rules)
            records += gone.records
        if request.cordoned_log_dirs is not None:
            cordoned = cordon_directories(image, broker.id, broker.epoch, request.cordoned_log_dirs)
            records += cordoned.records
        return Decision(
            records,
            BrokerHeartbeatResponse(
                is_caught_up=request.current_metadata_offset >= broker.epoch, is_fenced=broker.fenced
            ),
        )

    def build(outcome: BrokerHeartbeatResponse | KafkaError) -> BrokerHeartbeatResponse:
        return (
            BrokerHeartbeatResponse(error_code=outcome.code) if isinstance(outcome, KafkaError) else outcome
        )

    return services.controller.answer(command, build, timeout_ms=TIMEOUT_MS)
