"""Telling the controller in which directories this broker's replicas lie (KIP-858)."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

import trio

from broker.errors import ErrorCode, KafkaError
from broker.life.own_epoch import own_broker_epoch

if TYPE_CHECKING:
    from broker.services import Services
    from protocol.messages.assign_replicas_to_dirs import (
        AssignReplicasToDirsRequest,
        AssignReplicasToDirsResponse,
    )

AT_ONCE_MAX: Final = 2250
"""Assignments in one request, as in Kafka."""

RETRY_SECONDS: Final = 1.0
"""Before a controller is asked again that could not write."""

WhenAssigned = Callable[[KafkaError | None], None]
"""Told once: None when the assignment is committed, or why it cannot be."""


_Key = tuple[bytes, int]
"""The id of a topic, and a partition of it."""


class _Pending(NamedTuple):
    directory: bytes
    done: WhenAssigned | None


class Assignments:
    """What is to be told, one request at a time.  A newer assignment of a replica replaces an older one."""

    def __init__(self, services: "Services") -> None:
        self._services = services
        self._pending: dict[_Key, _Pending] = {}
        self._is_under_way = False
        self._gathers = False
        self._is_urgent = False
        """Somebody waits to be told of one that is pending."""

    def gather(self) -> None:
        """Many assignments are coming: send them together, until ``send_gathered``.

        Each request makes another image, which everybody follows.
        """
        self._gathers = True

    def send_gathered(self) -> None:
        """Send what has been gathered, and from now on each at once."""
        self._gathers = False
        self._send()

    def assign(
        self, topic_id: bytes, partition: int, directory: bytes, done: WhenAssigned | None = None
    ) -> None:
        """Let the cluster know that the replica of this partition lies in ``directory``.

        Whoever waits to be told does not wait for others to be gathered.
        """
        replaced = self._pending.get((topic_id, partition))
        self._pending[topic_id, partition] = _Pending(directory, done)
        if replaced is not None and replaced.done is not None:
            replaced.done(KafkaError(ErrorCode.OPERATION_NOT_ATTEMPTED))
        self._is_urgent |= done is not None
        if self._is_time:
            self._send()

    @property
    def _is_time(self) -> bool:
        """Whether what is pending is to be sent, and not to wait for more."""
        return self._is_urgent or not self._gathers or len(self._pending) >= AT_ONCE_MAX

    def _send(self) -> None:
        if self._is_under_way or not self._pending:
            return
        services = self._services
        broker = services.image.brokers.get(services.node_id)
        keys = list(self._pending)[:AT_ONCE_MAX]
        sent = {key: self._pending.pop(key) for key in keys}
        self._is_under_way = True
        self._is_urgent = any(pending.done is not None for pending in self._pending.values())
        if broker is None:
            self._answered(sent, KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED))
            return
        request = _request(services.node_id, own_broker_epoch(services), sent)
        services.channel.submit(request, lambda answer: self._answered(sent, answer))

    def _answered(
        self, sent: dict[_Key, _Pending], answer: "AssignReplicasToDirsResponse | KafkaError"
    ) -> None:
        self._is_under_way = False
        if not isinstance(answer, KafkaError) and answer.error_code:
            answer = KafkaError(ErrorCode(answer.error_code))
        if isinstance(answer, KafkaError):
            self._services.log.warn_seldom(f"directories of replicas could not be noted yet: {answer}")
            for key, pending in sent.items():
                if self._pending.setdefault(key, pending) is not pending and pending.done is not None:
                    pending.done(KafkaError(ErrorCode.OPERATION_NOT_ATTEMPTED))
            self._services.partitions.start_soon(self._retry)
            return
        codes = _codes(answer)
        for key, pending in sent.items():
            code = codes.get(key, ErrorCode.UNKNOWN_SERVER_ERROR)
            if pending.done is not None:
                pending.done(None if code is ErrorCode.NONE else KafkaError(code))
        if self._is_time:
            self._send()

    async def _retry(self) -> None:
        await trio.sleep(RETRY_SECONDS)
        self._send()


def _request(
    broker_id: int, broker_epoch: int, pending: "dict[_Key, _Pending]"
) -> "AssignReplicasToDirsRequest":
    from protocol.messages.assign_replicas_to_dirs import (
        AssignReplicasToDirsRequest,
        AssignReplicasToDirsRequestDirectoryData,
        AssignReplicasToDirsRequestPartitionData,
        AssignReplicasToDirsRequestTopicData,
    )

    directories: dict[bytes, dict[bytes, list[int]]] = {}
    for (topic_id, partition), (directory, _) in pending.items():
        directories.setdefault(directory, {}).setdefault(topic_id, []).append(partition)
    return AssignReplicasToDirsRequest(
        broker_id=broker_id,
        broker_epoch=broker_epoch,
        directories=[
            AssignReplicasToDirsRequestDirectoryData(
                id=directory,
                topics=[
                    AssignReplicasToDirsRequestTopicData(
                        topic_id=topic_id,
                        partitions=[
                            AssignReplicasToDirsRequestPartitionData(partition_index=index)
                            for index in indexes
                        ],
                    )
                    for topic_id, indexes in topics.items()
                ],
            )
            for directory, topics in directories.items()
        ],
    )


def _codes(answer: "AssignReplicasToDirsResponse") -> dict[_Key, ErrorCode]:
    """What became of each replica."""
    return {
        (topic.topic_id, partition.partition_index): ErrorCode(partition.error_code)
        for directory in answer.directories
        for topic in directory.topics
        for partition in topic.partitions
    }
