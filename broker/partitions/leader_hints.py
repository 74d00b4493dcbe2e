"""Where a client should go that asked the wrong broker, or too early (KIP-951)."""

from typing import NamedTuple

from broker.metadata.endpoints import Node
from broker.metadata.image import PartitionImage
from broker.network.call import Call
from broker.partitions.fetch_sessions import PartitionKey


class LeaderHint(NamedTuple):
    """Who leads a partition, as far as this broker knows; -1 if nobody does."""

    leader_id: int
    leader_epoch: int
    node: Node | None
    """The leader's address for whoever asks; None if it has none."""


def leader_hint(call: Call, key: PartitionKey) -> LeaderHint | None:
    """Who leads the partition; None if there is no such partition."""
    image = call.services.image
    name, index = key
    topic = image.topics.get(name) if isinstance(name, str) else image.topics_by_id.get(name)
    if topic is None or not 0 <= index < len(topic.partitions):
        return None
    partition: PartitionImage = topic.partitions[index]
    node = call.services.advertised.node(image, partition.leader, call)
    return LeaderHint(
        partition.leader, partition.leader_epoch, None if node is None or node.is_fenced else node
    )
