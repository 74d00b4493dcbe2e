"""ListPartitionReassignments (46): partitions that are on their way to other brokers (KIP-455)."""

from collections.abc import Iterable

from broker.controller.reassignments import is_reassigning, under_way
from broker.metadata.image import MetadataImage
from broker.network.call import Call
from protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    ListPartitionReassignmentsTopics,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)


def handle(request: ListPartitionReassignmentsRequest, call: Call) -> ListPartitionReassignmentsResponse:
    """Null asks for all; topics and partitions that rest, or are not there, are left out."""
    image = call.services.image
    asked = all_under_way(image) if request.topics is None else request.topics
    described = [describe(image, topic) for topic in asked]
    return ListPartitionReassignmentsResponse(
        error_message=None, topics=[topic for topic in described if topic.partitions]
    )


def all_under_way(image: MetadataImage) -> Iterable[ListPartitionReassignmentsTopics]:
    topics: dict[str, ListPartitionReassignmentsTopics] = {}
    for topic, index in under_way(image):
        asked = topics.setdefault(topic.name, ListPartitionReassignmentsTopics(name=topic.name))
        asked.partition_indexes.append(index)
    return topics.values()


def describe(image: MetadataImage, asked: ListPartitionReassignmentsTopics) -> OngoingTopicReassignment:
    described = OngoingTopicReassignment(name=asked.name)
    topic = image.topics.get(asked.name)
    if topic is None:
        return described
    for index in asked.partition_indexes:
        if not 0 <= index < len(topic.partitions) or not is_reassigning(topic.partitions[index]):
            continue
        partition = topic.partitions[index]
        described.partitions.append(
            OngoingPartitionReassignment(
                partition_index=index,
                replicas=list(partition.replicas),
                adding_replicas=list(partition.adding_replicas),
                removing_replicas=list(partition.removing_replicas),
            )
        )
    return described
