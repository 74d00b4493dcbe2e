"""What the leader of several replicas knows of its followers, and what follows from it (KIP-497, KIP-903).

Who is in sync, how far the high watermark may go, which change of the in-sync set is to be proposed.  Pure:
time, the log's ends and the brokers' registrations are handed in.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from broker.metadata.image import BrokerImage, PartitionImage
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError

UNKNOWN_OFFSET: Final = -1
"""Of a follower that has not fetched yet."""

ANY_BROKER_EPOCH: Final = -1
"""What a follower sends that does not know its own, and a leader that has not heard it."""

BACK_TO_COMMITTED: Final = frozenset((ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.INELIGIBLE_REPLICA))
"""The controller says that the partition epoch is right and that nothing has changed."""

WAIT_FOR_METADATA: Final = frozenset(
    (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NEW_LEADER_ELECTED,
    )
)
"""This leader knows less than the controller: the proposal stands until the image says what has happened."""


class FollowerState:
    """What one follower's fetches have told."""

    __slots__ = (
        "broker_epoch",
        "last_caught_up_ms",
        "last_fetch_leader_end",
        "last_fetch_ms",
        "log_end",
        "log_start",
    )

    def __init__(self) -> None:
        self.log_start = UNKNOWN_OFFSET
        self.log_end = UNKNOWN_OFFSET
        self.last_fetch_leader_end = 0
        """Where the leader's log ended when the last fetch came."""
        self.last_fetch_ms = 0
        self.last_caught_up_ms = 0
        """The latest time at which the follower had, as is known now, everything that the leader had then."""
        self.broker_epoch: int | None = None
        """None before the first fetch."""

    def __repr__(self) -> str:
        return f"<FollowerState {self.log_start} to {self.log_end}, caught up at {self.last_caught_up_ms}>"

    def fetched(
        self, offset: int, *, log_start: int, now_ms: int, leader_end: int, broker_epoch: int
    ) -> None:
        """A fetch from ``offset`` has come when the leader's log ended at ``leader_end``.

        A follower that never quite reaches a log which is always written to has still caught up with what was
        there when it fetched before.
        """
        if offset >= leader_end:
            self.last_caught_up_ms = max(self.last_caught_up_ms, now_ms)
        elif offset >= self.last_fetch_leader_end:
            self.last_caught_up_ms = max(self.last_caught_up_ms, self.last_fetch_ms)
        self.log_start = log_start
        self.log_end = offset
        self.last_fetch_leader_end = max(leader_end, self.last_fetch_leader_end)
        self.last_fetch_ms = now_ms
        self.broker_epoch = broker_epoch

    def begin_epoch(self, now_ms: int, leader_end: int, *, is_new_leader: bool, is_in_sync: bool) -> None:
        """The leader was elected, or elected again.

        Members of the in-sync set get the time that a lag may take; others must not hold anything up.
        """
        self.last_caught_up_ms = now_ms if is_in_sync else 0
        if is_new_leader:
            self.log_start = self.log_end = UNKNOWN_OFFSET
            self.last_fetch_leader_end = UNKNOWN_OFFSET
            self.last_fetch_ms = 0
            self.broker_epoch = None
        else:
            self.last_fetch_leader_end = leader_end
            self.last_fetch_ms = self.last_caught_up_ms

    def is_caught_up(self, leader_end: int, now_ms: int, lag_max_ms: int) -> bool:
        return self.log_end == leader_end or now_ms - self.last_caught_up_ms <= lag_max_ms


class IsrProposal:
    """A change of the in-sync set that the controller has not decided yet.  Told apart by identity."""

    __slots__ = ("added", "broker_epochs", "isr", "leader_epoch", "partition_epoch")

    def __init__(
        self,
        isr: Sequence[int],
        broker_epochs: Sequence[int],
        *,
        added: int | None,
        leader_epoch: int,
        partition_epoch: int,
    ) -> None:
        self.isr = isr
        self.broker_epochs = broker_epochs
        """Parallel to ``isr``; the controller refuses members that have registered again meanwhile."""
        self.added = added
        """Who is to join; None if members are to leave."""
        self.leader_epoch = leader_epoch
        self.partition_epoch = partition_epoch

    def __repr__(self) -> str:
        return f"<IsrProposal {list(self.isr)} on partition epoch {self.partition_epoch}>"


class Replication:
    """The replicas of a partition, as their leader sees them.

    ``isr`` is what the controller has committed.  One change at most is proposed at a time.  While it is, the
    high watermark heeds the larger set, ``maximal_isr``: nothing is committed too early, however the
    controller decides.
    """

    __slots__ = (
        "_brokers",
        "_directories",
        "_node_id",
        "epoch_start",
        "followers",
        "isr",
        "lag_max_ms",
        "leader_epoch",
        "partition_epoch",
        "pending",
    )

    def __init__(
        self, node_id: int, brokers: Callable[[], Mapping[int, BrokerImage]], *, lag_max_ms: int
    ) -> None:
        """``brokers`` gives the registrations as the image has them; ``lag_max_ms`` is
        ``replica.lag.time.max.ms``."""
        self._node_id = node_id
        self._brokers = brokers
        self.lag_max_ms = lag_max_ms
        self.followers: dict[int, FollowerState] = {}
        self._directories: dict[int, bytes] = {}
        """Where the controller believes each replica to lie."""
        self.isr: frozenset[int] = frozenset()
        self.pending: IsrProposal | None = None
        self.leader_epoch = -1
        self.partition_epoch = -1
        self.epoch_start = 0
        """Where the log ended when this leader epoch began."""

    @property
    def maximal_isr(self) -> frozenset[int]:
        pending = self.pending
        if pending is None or pending.added is None:
            return self.isr
        return self.isr | {pending.added}

    def follow(self, partition: PartitionImage, *, epoch_start: int, now_ms: int) -> bool:
        """Go by a newer image; False, and nothing has changed, if the controller has told more already.

        ``epoch_start`` counts if it begins another leader epoch.
        """
        if partition.partition_epoch < self.partition_epoch:
            return False
        followers = self.followers
        for broker_id in partition.replicas:
            if broker_id != self._node_id and broker_id not in followers:
                followers[broker_id] = FollowerState()
        for broker_id in followers.keys() - set(partition.replicas):
            del followers[broker_id]
        if partition.partition_epoch > self.partition_epoch:
            self.pending = None
        self._directories = dict(zip(partition.replicas, partition.directories, strict=True))
        self.isr = frozenset(partition.isr)
        self.partition_epoch = partition.partition_epoch
        if partition.leader_epoch > self.leader_epoch:
            for broker_id, follower in followers.items():
                follower.begin_epoch(
                    now_ms,
                    epoch_start,
                    is_new_leader=self.leader_epoch < 0,
                    is_in_sync=broker_id in self.isr,
                )
            self.leader_epoch = partition.leader_epoch
            self.epoch_start = epoch_start
        return True

    # Fetches

    def fetched(
        self,
        broker_id: int,
        offset: int,
        *,
        log_start: int,
        now_ms: int,
        leader_end: int,
        broker_epoch: int,
    ) -> bool:
        """A follower has fetched; returns whether it has more than before.

        Raises NOT_LEADER_OR_FOLLOWER, and nothing has changed, if the broker has registered again since it
        sent this.
        """
        broker = self._brokers().get(broker_id)
        if (
            broker_epoch != ANY_BROKER_EPOCH
            and broker is not None
            and not broker.fenced
            and broker.epoch > broker_epoch
        ):
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        follower = self.followers[broker_id]
        before = follower.log_end
        follower.fetched(
            offset, log_start=log_start, now_ms=now_ms, leader_end=leader_end, broker_epoch=broker_epoch
        )
        return offset != before

    def is_eligible(self, broker_id: int) -> bool:
        """Whether the follower may join, as far as the image tells.

        Kafka's leaders and controllers let one join whose directory is offline.  But its broker has said that
        it cannot write: to wait for it, as for all that were in sync just now, would hold up producers.
        """
        follower = self.followers.get(broker_id)
        broker = self._brokers().get(broker_id)
        return (
            follower is not None
            and broker is not None
            and broker.is_active
            and broker.has_online(self._directories[broker_id])
            and follower.broker_epoch is not None
            and follower.broker_epoch in (ANY_BROKER_EPOCH, broker.epoch)
        )

    def low_watermark(self, log_start: int) -> int:
        """Where the log starts on every live replica; ``log_start`` is the leader's own."""
        brokers = self._brokers()
        starts = [
            follower.log_start
            for broker_id, follower in self.followers.items()
            if broker_id in brokers and not brokers[broker_id].fenced
        ]
        return min([log_start, *starts])

    # Commitment

    def effective_min_isr(self, min_insync_replicas: int) -> int:
        return min(min_insync_replicas, len(self.followers) + 1)

    def has_enough_in_sync(self, min_insync_replicas: int) -> bool:
        """Whether acks=all can be given at all; without that the high watermark stays where it is."""
        return len(self.isr) >= self.effective_min_isr(min_insync_replicas)

    def high_watermark(
        self, own_end: int, *, log_end: int, now_ms: int, min_insync_replicas: int
    ) -> int | None:
        """How far everything may count as committed; None if that must not change now.

        ``own_end`` is what counts of the leader's log, which may wait for an fsync.  A follower that is about
        to join is waited for, too: else it would run after the high watermark for ever.
        """
        if not self.has_enough_in_sync(min_insync_replicas):
            return None
        end = own_end
        maximal_isr = self.maximal_isr
        for broker_id, follower in self.followers.items():
            if follower.log_end < end and (
                broker_id in maximal_isr
                or (follower.is_caught_up(log_end, now_ms, self.lag_max_ms) and self.is_eligible(broker_id))
            ):
                end = follower.log_end
        return end

    # Proposals

    def propose_expansion(self, broker_id: int, high_watermark: int) -> IsrProposal | None:
        """The proposal that is due now that the follower has fetched, if one is.

        A follower that has not reached the start of this leader epoch might lack what was committed before.
        """
        follower = self.followers[broker_id]
        if (
            self.pending is not None
            or broker_id in self.isr
            or follower.log_end < high_watermark
            or follower.log_end < self.epoch_start
            or not self.is_eligible(broker_id)
        ):
            return None
        return self._propose(sorted(self.isr | {broker_id}), broker_id)

    def propose_shrinking(self, log_end: int, now_ms: int) -> IsrProposal | None:
        """The proposal to let members go that have not caught up for too long, if there are any."""
        if self.pending is not None:
            return None
        late = {
            broker_id
            for broker_id in self.isr
            if broker_id != self._node_id and self._is_late(broker_id, log_end, now_ms)
        }
        if not late:
            return None
        return self._propose(sorted(self.isr - late), None)

    def _is_late(self, broker_id: int, log_end: int, now_ms: int) -> bool:
        follower = self.followers.get(broker_id)
        return follower is None or not follower.is_caught_up(log_end, now_ms, self.lag_max_ms)

    def _propose(self, isr: Sequence[int], added: int | None) -> IsrProposal:
        self.pending = IsrProposal(
            isr,
            [self._epoch_of(broker_id) for broker_id in isr],
            added=added,
            leader_epoch=self.leader_epoch,
            partition_epoch=self.partition_epoch,
        )
        return self.pending

    def _epoch_of(self, broker_id: int) -> int:
        """An unknown one does no harm: should that broker go, the controller raises the partition epoch."""
        if broker_id == self._node_id:
            broker = self._brokers().get(broker_id)
            return ANY_BROKER_EPOCH if broker is None else broker.epoch
        follower = self.followers.get(broker_id)
        if follower is None or follower.broker_epoch is None:
            return ANY_BROKER_EPOCH
        return follower.broker_epoch

    def accepted(
        self, proposal: IsrProposal, isr: Sequence[int], *, leader_epoch: int, partition_epoch: int
    ) -> bool:
        """The controller has answered with this state; False if more is known already."""
        if (
            self.pending is not proposal
            or leader_epoch != self.leader_epoch
            or partition_epoch < self.partition_epoch
        ):
            return False
        self.pending = None
        self.isr = frozenset(isr)
        self.partition_epoch = partition_epoch
        return True

    def refused(self, proposal: IsrProposal, code: ErrorCode) -> bool:
        """The controller has refused; returns whether to propose the same again."""
        if self.pending is not proposal or code in WAIT_FOR_METADATA:
            return False
        if code in BACK_TO_COMMITTED:
            self.pending = None
            return False
        return True
