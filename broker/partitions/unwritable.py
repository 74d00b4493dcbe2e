"""Replicas that cannot be written to here, because the disk is full or refuses, while others can lead.

A directory that the broker can do without goes offline, and the controller hears of that.  From one that it
cannot do without, each such replica is reported as lost (KIP-858): the controller elects another leader and
takes it out of the in-sync set.  It follows from then on, and is reported as being there when writes get on
again, or when there is room.  Kafka would end the process instead, and with it all that nobody else can lead.
"""

from functools import partial
from typing import TYPE_CHECKING, Final

import trio

from broker.metadata.image import NO_LEADER, PartitionImage
from protocol.errors import KafkaError
from protocol.uuids import LOST_DIRECTORY
from storage.checkpoints import Replica
from storage.errors import DiskFailure
from storage.log_directory import LogDirectory

if TYPE_CHECKING:
    from broker.partitions.manager import PartitionManager
    from broker.services import Services

CHECK_SECONDS: Final = 5.0
"""Between two looks whether replicas can be written to again."""

ROOM_BYTES: Final = 64 * 1024 * 1024
"""With less than this on its device a disk counts as full, unless writes get on all the same: else whoever is
given its partitions back would fail with one of the next batches."""


class _Told:
    """What the controller was told of one, and when."""

    __slots__ = ("is_answered", "log_end", "partition_epoch", "topic_id")

    def __init__(self, topic_id: bytes, partition_epoch: int) -> None:
        self.topic_id = topic_id
        self.partition_epoch = partition_epoch
        """The image's at that time."""
        self.is_answered = False
        self.log_end: int | None = None
        """Where the log ended at the last look."""


class UnwritableReplicas:
    """Those of this broker that the controller believes lost, or is about to."""

    def __init__(self, services: "Services", manager: "PartitionManager") -> None:
        self._services = services
        self._manager = manager
        self._told: dict[Replica, _Told] = {}
        self._is_watching = False

    def note(self, replica: Replica, failure: DiskFailure) -> None:
        """A write to it was refused.  If somebody else is in sync, let the controller know.

        Who is alone goes on as before: to refuse writes until there is room is better than not to be read.
        """
        if failure.lacks_descriptor or failure.is_of_reading:
            return
        found = self._partition(replica)
        home = self._manager.places.homes.get(replica)
        if found is None or (home is not None and home.id is None) or self._manager.is_assigning(replica):
            return
        topic_id, partition = found
        told = self._told.get(replica)
        node_id = self._services.node_id
        if told is not None and told.topic_id == topic_id:
            is_known = partition.directory_of(node_id) == LOST_DIRECTORY
            if is_known or partition.partition_epoch <= told.partition_epoch:
                # A leader may let it join all the same, as Kafka's do: then it will see that it is late.
                return
        if node_id not in partition.isr or not self._others_can_lead(partition):
            return
        told = self._told[replica] = _Told(topic_id, partition.partition_epoch)
        self._services.log.error(
            f"{replica[0]}-{replica[1]} is left to its other replicas until it can be written to: {failure}"
        )
        answered = partial(self._answered, replica, told)
        self._manager.assignments.assign(topic_id, replica[1], LOST_DIRECTORY, answered)
        self._watch_soon()

    def holds_back(self, replica: Replica, topic_id: bytes, partition: PartitionImage) -> bool:
        """Whether the controller is not to hear where this replica lies, because others can lead.

        One that has been lost since an earlier run of this broker is seen to until it is back.
        """
        told = self._told.get(replica)
        if told is not None and told.topic_id == topic_id:
            return not self._is_needed(partition)
        if partition.directory_of(self._services.node_id) == LOST_DIRECTORY:
            self._told[replica] = found = _Told(topic_id, partition.partition_epoch)
            found.is_answered = True
            self._watch_soon()
        return False

    def _answered(self, replica: Replica, told: _Told, error: KafkaError | None) -> None:
        told.is_answered = True
        if error is not None and self._told.get(replica) is told:
            del self._told[replica]  # it is no replica of this broker any more, or lies elsewhere

    def _partition(self, replica: Replica) -> tuple[bytes, PartitionImage] | None:
        """Its topic's id and what the image says of it; None if this broker has no such replica."""
        topic = self._services.image.topics.get(replica[0])
        if topic is None or replica[1] >= len(topic.partitions):
            return None
        partition = topic.partitions[replica[1]]
        return (topic.id, partition) if self._services.node_id in partition.replicas else None

    def _others_can_lead(self, partition: PartitionImage) -> bool:
        brokers = self._services.image.brokers
        for broker_id in partition.isr:
            broker = brokers.get(broker_id)
            if (
                broker_id != self._services.node_id
                and broker is not None
                and broker.is_active
                and broker.has_online(partition.directory_of(broker_id))
            ):
                return True
        return False

    def _is_needed(self, partition: PartitionImage) -> bool:
        """Nobody leads, and this replica might: the others have left the in-sync set meanwhile."""
        node_id = self._services.node_id
        return partition.leader == NO_LEADER and (
            node_id in partition.isr or node_id in partition.eligible_leader_replicas
        )

    # Coming back

    def _watch_soon(self) -> None:
        if not self._is_watching:
            self._is_watching = True
            self._manager.start_soon(self._watch)

    async def _watch(self) -> None:
        """For as long as something is to come back."""
        while self._told:
            await trio.sleep(CHECK_SECONDS)
            roomy = await self._services.run_blocking(_with_room, self._manager.directories)
            for replica, told in list(self._told.items()):
                if self._is_over(replica, told, roomy):
                    del self._told[replica]
        self._is_watching = False

    def _is_over(self, replica: Replica, told: _Told, roomy: list[LogDirectory]) -> bool:
        """Let it come back if it can; whether nothing more is to be done about it."""
        found = self._partition(replica)
        if found is None or found[0] != told.topic_id or replica in self._manager.places.lost:
            return True
        partition = found[1]
        if not told.is_answered or partition.partition_epoch <= told.partition_epoch:
            return False
        home = self._manager.places.homes.get(replica)
        if home is None or home.id is None:  # it could not even be made
            if roomy:
                self._manager.make_again(replica[0])
            return False
        is_needed = self._is_needed(partition)
        if partition.directory_of(self._services.node_id) == home.id and not is_needed:
            return True
        # Kafka's controller elects who has just been found again only when it is told once more.
        if is_needed or self._gets_on(replica, told, has_room=home in roomy):
            self._manager.assignments.assign(told.topic_id, replica[1], home.id)
        return False

    def _gets_on(self, replica: Replica, told: _Told, *, has_room: bool) -> bool:
        """Whether there is a reason to believe that the replica can be written to."""
        follower = self._manager.open_follower(replica)
        if follower is None:
            return False
        before, told.log_end = told.log_end, follower.log.log_end
        if follower.failures or follower.has_failed:
            return False
        return has_room or (before is not None and told.log_end > before)


def _with_room(directories: list[LogDirectory]) -> list[LogDirectory]:
    """Those whose devices are not full.  Runs in a thread."""
    roomy = []
    for directory in directories:
        try:
            if directory.services.file_system.usable_bytes(directory.path) >= ROOM_BYTES:
                roomy.append(directory)
        except OSError:
            pass  # what nobody can look at has no room
    return roomy
