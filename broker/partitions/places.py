"""In which log directory each replica of this broker lies, and where the next one goes."""

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from broker import limits
from broker.errors import ErrorCode, KafkaError
from protocol.uuids import LOST_DIRECTORY, MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY
from storage.checkpoints import Replica
from storage.errors import DiskFailure, StorageError
from storage.log_directory import LogDirectory

if TYPE_CHECKING:
    from broker.metadata.image import MetadataImage
    from broker.node_directories import NodeDirectories


class Places:
    """The log directories, as they are in use, and the replicas in them."""

    def __init__(self, directories: "NodeDirectories") -> None:
        self._directories = directories
        self.homes: dict[Replica, LogDirectory] = {}
        """Where each replica lies.  Of two folders for the same one the first counts until ``duplicates``
        are sorted out."""
        self.lost: dict[Replica, bytes | None] = {}
        """Replicas in directories that have failed since the start, with their topics' ids if known."""
        self.wanted: dict[Replica, LogDirectory] = {}
        """Where replicas that are not made yet are to go, because somebody has asked for that."""
        self.cordoned: tuple[bytes, ...] = ()
        """Directories that take no new replicas unless they are asked for by name (KIP-1066)."""
        self.duplicates: list[tuple[Replica, LogDirectory]] = []
        """Replicas that another directory holds as well."""
        for directory in self.online:
            for replica in directory.replicas:
                if replica in self.homes:
                    self.duplicates.append((replica, directory))
                else:
                    self.homes[replica] = directory

    @property
    def online(self) -> list[LogDirectory]:
        """Those that can be used, in the order of ``log.dirs``."""
        return self._directories.online

    @property
    def offline(self) -> dict[str, StorageError]:
        """Those that cannot, by their paths."""
        return self._directories.offline

    def by_id(self, directory_id: bytes) -> LogDirectory | None:
        """The usable directory with this id."""
        for directory in self.online:
            if directory.id == directory_id:
                return directory
        return None

    def at(self, path: str) -> LogDirectory:
        """The usable directory at this absolute path.

        Raises LOG_DIR_NOT_FOUND if it is none of ``log.dirs``, and KAFKA_STORAGE_ERROR if it is offline.
        """
        for directory in self.online:
            if os.path.abspath(directory.path) == path:
                return directory
        if path in self.offline:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"Log directory {path} is offline")
        raise KafkaError(ErrorCode.LOG_DIR_NOT_FOUND, f"Log dir {path} is not found in the config.")

    def want(self, replica: Replica, directory: LogDirectory) -> None:
        """Let a replica, if it is ever made, be made in this directory."""
        self.wanted.pop(replica, None)
        self.wanted[replica] = directory
        if len(self.wanted) > limits.WANTED_DIRECTORIES_MAX:
            del self.wanted[next(iter(self.wanted))]

    def may_make(self, assigned: bytes) -> bool:
        """Whether a replica that is in no directory may be made, given where the cluster says it lies.

        Not if it may lie in a directory that is offline, or no longer named in the settings: what it holds
        must not be forgotten.  Kafka would put an empty replica in the place of one whose directory is not
        named any more.
        """
        if assigned == UNASSIGNED_DIRECTORY:
            return True
        if assigned in (MIGRATING_DIRECTORY, LOST_DIRECTORY):
            return not self.offline
        return self.by_id(assigned) is not None

    def candidates(self, replica: Replica, assigned: bytes) -> Iterator[LogDirectory]:
        """Where a new replica may go, the best place first.

        That is where somebody wants it, or else where the controller has put it, or else where the fewest
        replicas are.
        """
        named = self.wanted.get(replica) or self.by_id(assigned)
        if named is not None and named in self.online:
            yield named
            return
        free = [directory for directory in self.online if directory.id not in self.cordoned]
        yield from sorted(free, key=lambda directory: directory.replica_count)

    def can_spare(self, directory: LogDirectory) -> bool:
        """Whether the broker can go on without this one."""
        return directory is not self._directories.metadata and self.online != [directory]

    def take_offline(self, directory: LogDirectory, failure: DiskFailure, image: "MetadataImage") -> None:
        """Use a directory no longer: its replicas are lost until the next start."""
        self.online.remove(directory)
        self.offline[directory.path] = failure
        # Of a copy: threads may add to it.
        for replica in [replica for replica, home in list(self.homes.items()) if home is directory]:
            del self.homes[replica]
            self.lost[replica] = image.topic_id(replica[0])
        for replica in [replica for replica, home in self.wanted.items() if home is directory]:
            del self.wanted[replica]
        directory.abandon()
