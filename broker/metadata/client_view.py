"""The cluster as a client of one listener sees it: which brokers it can reach, and who leads what."""

from typing import Final

from broker.metadata.endpoints import Node
from broker.metadata.image import NO_LEADER, MetadataImage, PartitionImage
from protocol.error_codes import ErrorCode

NO_CONTROLLER: Final = -1


class ClientView:
    """An image seen through a listener."""

    def __init__(self, image: MetadataImage, listener: str, alive: list[Node]) -> None:
        self.image = image
        self.alive = alive
        """Brokers that are not fenced and have the listener, by id."""
        self._listener = listener
        self._reachable = {node.id for node in alive}

    def is_reachable(self, broker_id: int) -> bool:
        """Whether the broker is alive and has this listener."""
        return broker_id in self._reachable

    def leader(self, partition: PartitionImage) -> tuple[int, ErrorCode]:
        """The leader, or -1 and why clients cannot be told who it is."""
        if partition.leader in self._reachable:
            return partition.leader, ErrorCode.NONE
        broker = self.image.brokers.get(partition.leader)
        if broker is None:
            return NO_LEADER, ErrorCode.LEADER_NOT_AVAILABLE
        if broker.endpoint(self._listener) is None:
            return NO_LEADER, ErrorCode.LISTENER_NOT_FOUND
        return partition.leader, ErrorCode.NONE  # fenced a moment ago: there is no better answer yet

    def offline(self, partition: PartitionImage) -> list[int]:
        """Replicas that cannot be read: their broker or their directory is gone."""
        return [
            replica
            for replica, directory in zip(partition.replicas, partition.directories, strict=True)
            if replica not in self._reachable or not self.image.brokers[replica].has_online(directory)
        ]


def controller_id(alive: list[Node], own_id: int) -> int:
    """Whom clients take for the controller: a broker that passes on what they ask it (KIP-590).

    That is the broker which answers, if it is ``alive``, and otherwise another one; Kafka names any of them.
    -1 if there is none.
    """
    ids = [node.id for node in alive]
    if own_id in ids:
        return own_id
    return ids[0] if ids else NO_CONTROLLER
