"""What this broker's replica of a partition is to those who read it, whether it leads or follows."""

from collections.abc import Callable
from typing import Protocol, TypeAlias

from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from storage.errors import OffsetOutOfRange, StorageError
from storage.partition_log import PartitionLog

Watcher: TypeAlias = Callable[["Replica"], None]
"""Told each time that more can be read, and when the replica is in this role no longer."""

NO_EPOCH = -1
"""The leader epoch that a client sends which knows none."""


def check_epoch(taken_for_current: int, leader_epoch: int) -> None:
    """Raise FENCED_LEADER_EPOCH or UNKNOWN_LEADER_EPOCH if the epochs differ."""
    if taken_for_current < leader_epoch:
        raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH)
    if taken_for_current > leader_epoch:
        raise KafkaError(ErrorCode.UNKNOWN_LEADER_EPOCH)


class ReadSurroundings(Protocol):
    """What a replica needs from whoever holds it so that it can be read."""

    def read_failed(self, replica: "Replica", failure: StorageError) -> None:
        """Something on disk is damaged or cannot be read; whoever asked is told no more than a code."""


class Replica:
    """A partition's log on this broker in one role, ``Leader`` or ``Follower``, until that ends."""

    __slots__ = (
        "_read_surroundings",
        "_watchers",
        "ended",
        "leader_epoch",
        "log",
        "partition",
        "topic",
        "topic_id",
    )

    is_leader = False

    def __init__(self, log: PartitionLog, *, leader_epoch: int, surroundings: ReadSurroundings) -> None:
        self.topic = log.topic
        self.topic_id = log.topic_id
        self.partition = log.partition
        self.log = log
        self.leader_epoch = leader_epoch
        """The epoch of the partition's leader, whoever that is."""
        self.ended: KafkaError | None = None
        """Why this object is in its role no longer, once it is not."""
        self._read_surroundings = surroundings
        self._watchers: dict[Watcher, None] = {}

    def check_epoch(self, current_leader_epoch: int) -> None:
        """Refuse a reader that takes another epoch for the current one (KIP-320)."""
        if current_leader_epoch != NO_EPOCH:
            check_epoch(current_leader_epoch, self.leader_epoch)

    def note_failed_read(self, failure: StorageError) -> None:
        """Let the operator know, unless it was just an offset that the log does not have."""
        if not isinstance(failure, OffsetOutOfRange):
            self._read_surroundings.read_failed(self, failure)

    # Waiting for more to read

    def watch(self, watcher: Watcher) -> None:
        """Call ``watcher`` from now on whenever more can be read, and when this role ends."""
        self._watchers[watcher] = None

    def unwatch(self, watcher: Watcher) -> None:
        self._watchers.pop(watcher, None)

    def tell_watchers(self) -> None:
        """More can be read: the high watermark has moved, or for followers the end of the log."""
        for watcher in tuple(self._watchers):
            watcher(self)
