"""At a start: which of the folders on disk are replicas of this broker, and what becomes of the others."""

from typing import TYPE_CHECKING, Final

from broker.metadata.image import PartitionImage
from protocol.uuids import is_reserved
from storage.checkpoints import Replica
from storage.config import LogConfig
from storage.errors import DiskFailure, DuplicateReplica, StorageError
from storage.log_directory import LogDirectory
from storage.partition_log import PartitionLog
from storage.wording import counted

if TYPE_CHECKING:
    from broker.partitions.manager import PartitionManager
    from broker.services import Services

VANISHED_NAMED_MAX: Final = 20
"""More of one directory are only counted in the log line."""


async def sort_out(services: "Services", manager: "PartitionManager") -> None:
    """Put aside what the cluster does not know, and go on with copies that were not finished.

    Where each directory has its replicas and nothing else, this looks at names only.  Raises
    DuplicateReplica, and DiskFailure if the broker cannot do without the directory.
    """
    sorting = _Sorting(services, manager)
    for replica, directory in manager.places.duplicates:
        sorting.choose_home(replica, directory)
    sorting.put_strays_aside()
    for directory in manager.directories:
        for replica in directory.futures:
            await sorting.sort_out_future(directory, replica)
    sorting.tell_of_absent()
    sorting.tell_of_vanished()


class _Sorting:
    def __init__(self, services: "Services", manager: "PartitionManager") -> None:
        self._services = services
        self._manager = manager
        self._homes = manager.places.homes

    def _partition_here(self, replica: Replica) -> PartitionImage | None:
        """The partition, if this broker is to have a replica of it."""
        partition = self._services.image.partition(*replica)
        if partition is None or self._services.node_id not in partition.replicas:
            return None
        return partition

    def _set_aside(self, directory: LogDirectory, replica: Replica, reason: str) -> None:
        try:
            self._manager.set_aside(directory, replica, reason)
        except DiskFailure as failure:
            if not self._manager.note_failure(directory, failure):
                raise

    def put_strays_aside(self) -> None:
        """Replicas that the cluster does not know, or not here."""
        for replica, directory in list(self._homes.items()):
            if self._partition_here(replica) is None:
                path = f"{directory.path}: {replica[0]}-{replica[1]}"
                self._set_aside(directory, replica, f"{path} is not in the cluster's metadata")

    def choose_home(self, replica: Replica, other: LogDirectory) -> None:
        """Of two folders for one replica, keep the one that the cluster means."""
        first = self._homes[replica]
        topic = self._services.image.topics.get(replica[0])
        partition = self._partition_here(replica)
        right = [each for each in (first, other) if topic is not None and each.topic_id(*replica) == topic.id]
        if len(right) == 2 and partition is not None:
            assigned = partition.directory_of(self._services.node_id)
            right = [each for each in right if each.id == assigned]
            if not right:
                name = f"{replica[0]}-{replica[1]}"
                raise DuplicateReplica(f"{first.path}/{name}", f"{other.path}/{name}")
        home = right[0] if right else other
        rejected = first if home is other else other
        path = f"{rejected.path}: {replica[0]}-{replica[1]}"
        self._homes[replica] = rejected
        self._set_aside(rejected, replica, f"{path} lies in {home.path}, too")
        self._homes[replica] = home

    async def sort_out_future(self, directory: LogDirectory, replica: Replica) -> None:
        """A copy that was not finished: go on with it, let it take over, or put it aside."""
        try:
            await self._sort_out_future(directory, replica)
        except StorageError as failure:
            self._services.log.error(f"{replica[0]}-{replica[1]} does not go on moving: {failure}")
            if isinstance(failure, DiskFailure):
                self._manager.note_failure_at(failure.path, failure)

    async def _sort_out_future(self, directory: LogDirectory, replica: Replica) -> None:
        now_ms = self._services.clock.now_ms()
        topic_id = directory.future_topic_id(*replica)
        home = self._homes.get(replica)
        if topic_id is None or home is directory:  # nothing has been copied, or need be
            directory.delete_future_log(*replica, now_ms=now_ms)
            return
        topic = self._services.image.topics.get(replica[0])
        partition = self._partition_here(replica)
        if topic is None or partition is None or topic_id != topic.id:
            path = directory.set_aside_future(*replica)
            self._services.log.warn(
                f"{directory.path}: a copy of {replica[0]}-{replica[1]} is not in the cluster's metadata; "
                f"it is kept as {path}"
            )
            return
        if home is not None and home.topic_id(*replica) != topic.id:
            self._set_aside(home, replica, f"{home.path}: {replica[0]}-{replica[1]} is of another topic")
            home = None
        is_assigned = partition.directory_of(self._services.node_id) == directory.id
        if home is None and not is_assigned:
            return  # the replica may be in a directory that is offline
        config = LogConfig.from_settings(self._manager.settings_of(topic.name))

        def open_both() -> tuple[PartitionLog, PartitionLog | None]:
            future = directory.open_future_log(*replica, topic.id, config, now_ms=now_ms)
            if home is None:
                return future, None
            return future, home.open_log(*replica, topic.id, config, now_ms=now_ms)

        future, source = await self._services.run_blocking(open_both)
        if source is None:
            directory.promote_future_log(*replica)
            self._homes[replica] = directory
        elif is_assigned and future.log_end >= source.log_end:
            from broker.partitions.moves import Move

            # It has taken over, but for names that had not reached the device.
            self._manager.take_over(Move(source, directory, future, None))
        else:
            await self._manager.moves.resume(source, directory, future)

    def tell_of_absent(self) -> None:
        """Replicas of which nobody knows where they are, and which are not made anew for that."""
        node_id = self._services.node_id
        absent = [
            f"{topic.name}-{index}"
            for topic in self._services.image.topics.values()
            for index, partition in enumerate(topic.partitions)
            if node_id in partition.replicas
            and (topic.name, index) not in self._homes
            and not self._manager.places.may_make(partition.directory_of(node_id))
        ]
        if absent:
            self._services.log.warn(
                f"{counted(len(absent), 'partition')}, {absent[0]} among them, must wait for log directories "
                "that are offline or not among log.dirs"
            )

    def tell_of_vanished(self) -> None:
        """Replicas that were here and whose folders are gone.  As in Kafka, they are made anew."""
        node_id = self._services.node_id
        for directory in self._manager.directories:
            vanished = []
            for replica, offset in directory.absent.items():
                partition = self._partition_here(replica)
                if partition is None or replica in self._homes:
                    continue
                assigned = partition.directory_of(node_id)
                if assigned == directory.id or is_reserved(assigned):
                    vanished.append(f"{replica[0]}-{replica[1]} (offsets up to {offset})")
            if vanished:
                named = ", ".join(vanished[:VANISHED_NAMED_MAX])
                more = len(vanished) - VANISHED_NAMED_MAX
                self._services.log.warn(
                    f"{directory.path}: checkpoints know of partitions whose folders are gone, so these are "
                    f"empty now: {named}" + (f", and {more} more" if more > 0 else "")
                )
