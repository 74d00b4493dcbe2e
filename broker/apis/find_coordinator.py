"""FindCoordinator (10): which broker keeps a group, a transactional id or a share partition."""

from collections.abc import Callable
from enum import IntEnum
from typing import Any, Final

import trio

from broker.coordination.hosting import CoordinatorService
from broker.network.call import Call
from broker.network.waiting import Waiting
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse

TOPIC_WAIT_SECONDS: Final = 5.0
"""How long a coordinator's first client waits for the topic that is made for it."""

BATCHES_VERSION: Final = 4  # KIP-699
SHARE_VERSION: Final = 6  # KIP-932

INVALID_REQUEST_TEXT: Final = (
    "This most likely occurs because of a request being malformed by the client library or the message was "
    "sent to an incompatible broker. See the broker logs for more details."
)
TEXTS: Final = {
    ErrorCode.NONE: "NONE",
    ErrorCode.COORDINATOR_NOT_AVAILABLE: "The coordinator is not available.",
    ErrorCode.INVALID_REQUEST: INVALID_REQUEST_TEXT,
}
"""What versions 1 to 3 say beside each code.  Later ones say nothing, unless the key type is unknown."""


class KeyType(IntEnum):
    """What a key names."""

    GROUP = 0
    TRANSACTION = 1
    SHARE = 2


def handle(
    request: FindCoordinatorRequest, call: Call
) -> FindCoordinatorResponse | Waiting[FindCoordinatorResponse]:
    """Kafka answers COORDINATOR_NOT_AVAILABLE while the topic is made; here the first client waits for it."""
    keys = request.coordinator_keys if call.version >= BATCHES_VERSION else [request.key]
    service = coordinator(request.key_type, call)
    if service is None:
        return answer([refuse(key, request.key_type) for key in keys], call.version)

    def build() -> FindCoordinatorResponse:
        return answer([find(key, request.key_type, service, call) for key in keys], call.version)

    if service.topic in call.services.image.topics or not keys:
        return build()
    return when_topic_exists(service.topic, call, build)


def coordinator(key_type: int, call: Call) -> CoordinatorService[Any] | None:
    """Who looks after keys of that type; None if nobody does."""
    if key_type == KeyType.GROUP:
        return call.services.groups
    if key_type == KeyType.TRANSACTION:
        return call.services.transactions
    if key_type == KeyType.SHARE and call.version >= SHARE_VERSION:
        return call.services.share_coordinator
    return None


def when_topic_exists(
    topic: str, call: Call, build: Callable[[], FindCoordinatorResponse]
) -> Waiting[FindCoordinatorResponse]:
    def settle(_: KafkaError | None = None) -> None:
        waiting.answer_with(build)

    waiting: Waiting[FindCoordinatorResponse] = Waiting(
        trio.current_time() + TOPIC_WAIT_SECONDS, settle, droppable=True
    )
    call.services.automatic_topics.ensure(topic, settle)
    return waiting


def find(key: str, key_type: int, service: CoordinatorService[Any], call: Call) -> Coordinator:
    """The leader of the partition that keeps the key, if it can be reached."""
    services = call.services
    image = services.image
    kept = share_partition_key(key) if key_type == KeyType.SHARE else key
    if kept is None:
        return refuse(key, key_type)
    partition = image.partition(service.topic, service.partition_for(kept))
    if partition is not None:
        node = services.advertised.node(image, partition.leader, call)
        if node is not None and not node.is_fenced:
            return Coordinator(key=key, node_id=node.id, host=node.host, port=node.port, error_message="")
    return nowhere(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, "")


def share_partition_key(key: str) -> str | None:
    """The key of a share partition as it is kept, ``group:topic id:partition``; None if it is no such key."""
    from broker.share.state import SharePartitionKey

    try:
        return SharePartitionKey.from_text(key).text
    except ValueError:
        return None


def refuse(key: str, key_type: int) -> Coordinator:
    """There is no such key."""
    message = "" if key_type == KeyType.SHARE else INVALID_REQUEST_TEXT
    return nowhere(key, ErrorCode.INVALID_REQUEST, message)


def nowhere(key: str, code: ErrorCode, message: str) -> Coordinator:
    return Coordinator(key=key, node_id=-1, host="", port=-1, error_code=code, error_message=message)


def answer(coordinators: list[Coordinator], version: int) -> FindCoordinatorResponse:
    if version >= BATCHES_VERSION:
        return FindCoordinatorResponse(coordinators=coordinators)
    only = coordinators[0]
    return FindCoordinatorResponse(
        error_code=only.error_code,
        error_message=only.error_message or TEXTS[ErrorCode(only.error_code)],
        node_id=only.node_id,
        host=only.host,
        port=only.port,
    )


def error_response(request: FindCoordinatorRequest, code: ErrorCode) -> FindCoordinatorResponse:
    """``code`` for every key, or for the request of an old version."""
    if request.coordinator_keys:
        return FindCoordinatorResponse(
            coordinators=[nowhere(key, code, "") for key in request.coordinator_keys]
        )
    return FindCoordinatorResponse(
        error_code=code, error_message=TEXTS.get(code, code.name), node_id=-1, host="", port=-1
    )
