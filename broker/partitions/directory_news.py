"""What the controller is told of this broker's log directories beside who lies where."""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import trio

from broker.errors import ErrorCode, KafkaError
from broker.life.own_epoch import own_broker_epoch
from broker.metadata.features import writes_cordoned_directories
from broker.partitions.assignments import RETRY_SECONDS

if TYPE_CHECKING:
    from broker.services import Services
    from protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse


async def report_offline(services: "Services", directory_id: bytes) -> None:
    """A directory has failed.  Raises KafkaError if that cannot be told in ``log.dir.failure.timeout.ms``."""
    give_up_at = trio.current_time() + services.config.get("log.dir.failure.timeout.ms") / 1000
    while True:
        try:
            request = _heartbeat(services, offline=[directory_id])
            left = max(0.0, give_up_at - trio.current_time())
            answer: BrokerHeartbeatResponse = await services.channel.ask(request, timeout_seconds=left)
            if not answer.error_code:
                return
            raise KafkaError(ErrorCode(answer.error_code))
        except KafkaError as error:
            if trio.current_time() >= give_up_at:
                raise
            services.log.warn_seldom(f"a directory's failure could not be noted yet: {error}")
            await trio.sleep(RETRY_SECONDS)


def report_cordoned(services: "Services", cordoned: Collection[bytes]) -> None:
    """These directories take no new replicas (KIP-1066); nothing is told that is known."""
    broker = services.image.brokers.get(services.node_id)
    if (
        broker is None
        or not writes_cordoned_directories(services.image.metadata_version)
        or set(cordoned) == set(broker.cordoned_directories or ())
    ):
        return

    def done(answer: "BrokerHeartbeatResponse | KafkaError") -> None:
        if not isinstance(answer, KafkaError):
            if not answer.error_code:
                return
            answer = KafkaError(ErrorCode(answer.error_code))
        services.log.error(f"the controller does not know which directories are cordoned: {answer}")

    services.channel.submit(_heartbeat(services, cordoned=sorted(cordoned)), done)


def _heartbeat(
    services: "Services", *, offline: Sequence[bytes] = (), cordoned: Sequence[bytes] | None = None
) -> "BrokerHeartbeatRequest":
    """A heartbeat that changes nothing but what is known of directories.

    Raises BROKER_ID_NOT_REGISTERED.
    """
    from protocol.messages.broker_heartbeat import BrokerHeartbeatRequest

    image = services.image
    broker = image.brokers.get(services.node_id)
    if broker is None:
        raise KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED)
    return BrokerHeartbeatRequest(
        broker_id=broker.id,
        broker_epoch=own_broker_epoch(services),
        current_metadata_offset=image.offset,
        want_fence=broker.fenced,
        offline_log_dirs=list(offline),
        cordoned_log_dirs=None if cordoned is None else list(cordoned),
    )
