"""A share partition as its leader keeps it: with the log, and with those who wait."""

from collections.abc import Callable
from typing import TypeAlias

from broker.partitions.leader import Leader
from broker.share.partition import SharePartition
from broker.share.state import SharePartitionKey
from protocol.errors import KafkaError

Waker: TypeAlias = Callable[[], None]
"""Told each time that something may have become available, and when it never will."""


class HeldPartition:
    """``is_loaded`` once what is stored of it is known; ``ended`` says why it is not kept any longer."""

    __slots__ = (
        "_wakers",
        "ended",
        "is_loaded",
        "is_read_aside",
        "key",
        "leader",
        "leader_epoch",
        "partition",
    )

    def __init__(self, key: SharePartitionKey, leader: Leader, partition: SharePartition) -> None:
        self.key = key
        self.leader = leader
        self.leader_epoch = leader.leader_epoch
        self.partition = partition
        self.is_loaded = False
        self.is_read_aside = False
        """A thread reads its log for one fetch; the others wait, or they would get the same records."""
        self.ended: KafkaError | None = None
        self._wakers: dict[Waker, None] = {}

    @property
    def can_acquire(self) -> bool:
        """Whether a fetch may get something, as far as this group is concerned."""
        return self.is_loaded and self.ended is None and not self.is_read_aside and self.partition.can_acquire

    def watch(self, waker: Waker) -> None:
        self._wakers[waker] = None

    def unwatch(self, waker: Waker) -> None:
        self._wakers.pop(waker, None)

    def wake(self) -> None:
        """Tell everybody who waits, those first who have waited longest."""
        for waker in tuple(self._wakers):
            waker()
