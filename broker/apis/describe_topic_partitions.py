"""DescribeTopicPartitions (75): topics and their partitions, page by page (KIP-966)."""

from collections.abc import Iterable
from typing import Final

from broker.apis.authorized_operations import ALL_ON_TOPIC
from broker.metadata import topic_names
from broker.metadata.client_view import ClientView
from broker.metadata.image import TopicImage
from broker.network.call import Call
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)

FROM_THE_START: Final = 0


def handle(request: DescribeTopicPartitionsRequest, call: Call) -> DescribeTopicPartitionsResponse:
    services = call.services
    view = ClientView(
        services.image, call.listener.name, services.advertised.alive_nodes(services.image, call)
    )
    names = wanted_names(request, view)
    limit = min(services.config.get("max.request.partition.size.limit"), request.response_partition_limit)
    page = Page(view, max(limit, 1))
    cursor = request.cursor
    for name in names:
        start = cursor.partition_index if cursor is not None and cursor.topic_name == name else FROM_THE_START
        page.add(name, start)
        if page.next_cursor is not None:
            break
    return DescribeTopicPartitionsResponse(topics=page.topics, next_cursor=page.next_cursor)


def wanted_names(request: DescribeTopicPartitionsRequest, view: ClientView) -> list[str]:
    """The topics to show, sorted, from the cursor's on; raises ``KafkaError`` for the whole request."""
    names: Iterable[str] = {topic.name for topic in request.topics} or view.image.topics
    cursor = request.cursor
    if cursor is None:
        if "" in names:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)  # Kafka takes it for that of a cursor, and fails
        return sorted(names)
    if request.topics and cursor.topic_name not in names:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    if cursor.partition_index < 0:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    return sorted(name for name in names if name >= cursor.topic_name)


class Page:
    """The part of the answer that fits; ``next_cursor`` is where the next one goes on."""

    def __init__(self, view: ClientView, partitions_max: int) -> None:
        self.topics: list[DescribeTopicPartitionsResponseTopic] = []
        self.next_cursor: Cursor | None = None
        self._view = view
        self._left = partitions_max

    def add(self, name: str, start: int) -> None:
        """Show a topic's partitions from number ``start`` on, or find that the page is full."""
        if self._left == 0:
            self.next_cursor = Cursor(topic_name=name, partition_index=FROM_THE_START)
            return
        topic = self._view.image.topics.get(name)
        if topic is None:
            self.topics.append(_unknown(name))
            return
        end = min(start + self._left, len(topic.partitions))
        shown = _describe(topic, range(start, end), self._view)
        self._left -= len(shown.partitions)
        self.topics.append(shown)
        if end < len(topic.partitions):
            self.next_cursor = Cursor(topic_name=name, partition_index=end)


def _describe(topic: TopicImage, indexes: range, view: ClientView) -> DescribeTopicPartitionsResponseTopic:
    partitions = []
    for index in indexes:
        partition = topic.partitions[index]
        partitions.append(
            DescribeTopicPartitionsResponsePartition(
                partition_index=index,
                leader_id=view.leader(partition)[0],
                leader_epoch=partition.leader_epoch,
                replica_nodes=list(partition.replicas),
                isr_nodes=list(partition.isr),
                eligible_leader_replicas=list(partition.eligible_leader_replicas),
                last_known_elr=list(partition.last_known_elr),
                offline_replicas=view.offline(partition),
            )
        )
    return DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.name in topic_names.INTERNAL_TOPICS,
        partitions=partitions,
        topic_authorized_operations=ALL_ON_TOPIC,
    )


def _unknown(name: str) -> DescribeTopicPartitionsResponseTopic:
    is_valid = topic_names.fault_in(name) is None
    return DescribeTopicPartitionsResponseTopic(
        error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_valid else ErrorCode.INVALID_TOPIC_EXCEPTION,
        name=name,
        is_internal=name in topic_names.INTERNAL_TOPICS,
        topic_authorized_operations=ALL_ON_TOPIC,
    )


def error_response(
    request: DescribeTopicPartitionsRequest, code: ErrorCode
) -> DescribeTopicPartitionsResponse:
    """An error of the whole request stands with each topic."""
    return DescribeTopicPartitionsResponse(
        topics=[
            DescribeTopicPartitionsResponseTopic(error_code=code, name=topic.name) for topic in request.topics
        ]
    )
