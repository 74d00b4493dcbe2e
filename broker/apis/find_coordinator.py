"""FindCoordinator (10): which broker keeps a group."""

from collections.abc import Callable
from enum import IntEnum
from typing import Final

import trio

from broker.metadata.topic_names import GROUP_OFFSETS
from broker.network.call import Call
from broker.network.waiting import Waiting
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse

TOPIC_WAIT_SECONDS: Final = 5.0
"""How long a group's first client waits for the topic that is made for it."""

BATCHES_VERSION: Final = 4  # KIP-699

NO_TRANSACTIONS: Final = "transactions are not served yet"
"""Told with the one error after which no client tries again: librdkafka would wait for ever for another."""

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
    if request.key_type == KeyType.TRANSACTION:
        call.services.log.warn_seldom(f"{call.peer.host}: {NO_TRANSACTIONS}")
        code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        return answer([nowhere(key, code, NO_TRANSACTIONS) for key in keys], call.version)
    if request.key_type != KeyType.GROUP:
        return answer([refuse(key, request.key_type) for key in keys], call.version)

    def build() -> FindCoordinatorResponse:
        return answer([find(key, call) for key in keys], call.version)

    if GROUP_OFFSETS in call.services.image.topics or not keys:
        return build()
    return when_topic_exists(call, build)


def when_topic_exists(
    call: Call, build: Callable[[], FindCoordinatorResponse]
) -> Waiting[FindCoordinatorResponse]:
    def settle(_: KafkaError | None = None) -> None:
        waiting.answer_with(build)

    waiting: Waiting[FindCoordinatorResponse] = Waiting(
        trio.current_time() + TOPIC_WAIT_SECONDS, settle, droppable=True
    )
    call.services.automatic_topics.ensure(GROUP_OFFSETS, settle)
    return waiting


def find(group_id: str, call: Call) -> Coordinator:
    """The leader of the partition that keeps the group, if it can be reached."""
    services = call.services
    image = services.image
    partition = image.partition(GROUP_OFFSETS, services.groups.partition_for(group_id))
    if partition is not None:
        node = services.advertised.node(image, partition.leader, call)
        if node is not None and not node.is_fenced:
            return Coordinator(
                key=group_id, node_id=node.id, host=node.host, port=node.port, error_message=""
            )
    return nowhere(group_id, ErrorCode.COORDINATOR_NOT_AVAILABLE, "")


def refuse(key: str, key_type: int) -> Coordinator:
    """Only groups have a coordinator here."""
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
