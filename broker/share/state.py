"""What one partition of ``__share_group_state`` keeps: how far share groups are, record by record."""

from collections import deque
from collections.abc import Collection, Sequence
from typing import Any, Final, NamedTuple

from broker.coordination.decision import Decision, Moment, StoredRecord, in_batches
from broker.coordination.record_codec import RecordCodec
from broker.coordination.tickets import Ticket
from broker.share.state_batches import NO_START_OFFSET, StateBatch, combine
from protocol.error_codes import ErrorCode
from protocol.stored import share_records
from protocol.stored.share_records import (
    KEY_TYPES,
    VALUE_TYPES,
    ShareSnapshotKey,
    ShareSnapshotValue,
    ShareUpdateKey,
    ShareUpdateValue,
)
from protocol.uuids import uuid_from_text, uuid_to_text

CODEC: Final = RecordCodec(KEY_TYPES, VALUE_TYPES)

NO_EPOCH: Final = -1
NO_COUNT: Final = -1
"""A delivery complete count that nobody has told."""

COLD_BYTES_PER_BATCH: Final = 128 * 1024
"""About how much is written at once when idle share partitions are written anew: well below the smallest
``max.message.bytes`` that anybody would set, and then requests have their turn."""

TOMBSTONES_PER_BATCH: Final = 1000

_SNAPSHOT_BYTES: Final = 150
_STATE_BATCH_BYTES: Final = 24
"""What these take in the log, roughly."""

NEGATIVE_PARTITION: Final = "The partition id cannot be a negative number."
NEGATIVE_LEADER_EPOCH: Final = "The leader epoch cannot be a negative number."
NEGATIVE_STATE_EPOCH: Final = "The state epoch cannot be a negative number."
WRITE_UNINITIALIZED: Final = "Write operation on uninitialized share partition not allowed."
READ_UNINITIALIZED: Final = "Read operation on uninitialized share partition not allowed."


class SharePartitionKey(NamedTuple):
    """A partition of a topic, as one share group sees it."""

    group_id: str
    topic_id: bytes
    partition: int

    @classmethod
    def from_text(cls, text: str) -> "SharePartitionKey":
        """What ``text`` gives; ValueError if nothing does.  Groups may have colons in their names."""
        group_id, topic_id, partition = text.rsplit(":", 2)
        if not group_id.strip():
            raise ValueError(f"the share partition {text!r} has no group")
        return cls(group_id, uuid_from_text(topic_id), int(partition))

    @property
    def text(self) -> str:
        """What Kafka makes the partition of the state topic out of."""
        return f"{self.group_id}:{uuid_to_text(self.topic_id)}:{self.partition}"


class StateSettings(NamedTuple):
    """What a share coordinator goes by; times in ms."""

    updates_per_snapshot: int = 500
    cold_snapshot_interval_ms: int = 300_000


class Outcome(NamedTuple):
    """The answer for one share partition: an error with its text, or what was asked for."""

    error: ErrorCode = ErrorCode.NONE
    text: str | None = None
    state_epoch: int = 0
    leader_epoch: int = 0
    start_offset: int = 0
    delivery_complete_count: int = NO_COUNT
    batches: Sequence[StateBatch] = ()


class StoredState:
    """What the log says of one share partition."""

    __slots__ = (
        "batches",
        "create_timestamp_ms",
        "delivery_complete_count",
        "highest_leader_epoch",
        "highest_state_epoch",
        "leader_epoch",
        "snapshot_epoch",
        "snapshot_offset",
        "start_offset",
        "state_epoch",
        "updates",
        "write_timestamp_ms",
    )

    def __init__(self, snapshot_offset: int) -> None:
        self.snapshot_epoch = 0
        self.state_epoch = 0
        self.leader_epoch = 0
        self.start_offset = NO_START_OFFSET
        self.delivery_complete_count = NO_COUNT
        self.batches: list[StateBatch] = []
        self.create_timestamp_ms = 0
        self.write_timestamp_ms = 0
        self.highest_leader_epoch = 0
        """Whoever comes with a lower one leads no longer."""
        self.highest_state_epoch = 0
        self.snapshot_offset = snapshot_offset
        """Of the record from which on the log is needed."""
        self.updates = 0
        """Since the snapshot."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StoredState) and all(
            getattr(self, name) == getattr(other, name) for name in self.__slots__
        )

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
        return f"StoredState({values})"

    @property
    def is_cold(self) -> bool:
        """Whether its last snapshot was written only because nothing had happened for long."""
        return self.create_timestamp_ms != self.write_timestamp_ms


class ShareStateMachine:
    """The machine of one shard.  A share partition exists from its initialization to its deletion.

    A *snapshot* record holds all of its state, and an *update* what has changed; an update's batches are
    merged into those that are known.  After so many updates the next write is a snapshot, and what lies
    before the oldest snapshot that is needed can be deleted.
    """

    def __init__(self, settings: StateSettings) -> None:
        self.settings = settings
        self.partitions: dict[SharePartitionKey, StoredState] = {}
        self._last_tombstone_offset = 0
        self._next_cold_ms: int | None = None
        self._cold: deque[SharePartitionKey] = deque()

    # What a shard wants of a machine

    def apply(self, record: StoredRecord, offset: int, producer_id: int) -> None:
        key, value = record.key, record.value
        if isinstance(key, ShareSnapshotKey):
            assert value is None or isinstance(value, ShareSnapshotValue)
            self._apply_snapshot(SharePartitionKey(key.group_id, key.topic_id, key.partition), value, offset)
        else:
            assert isinstance(key, ShareUpdateKey)
            # Kafka writes no tombstones of updates, and it takes one for nothing.
            if isinstance(value, ShareUpdateValue):
                self._apply_update(
                    SharePartitionKey(key.group_id, key.topic_id, key.partition), value, offset
                )

    def _apply_snapshot(self, key: SharePartitionKey, value: ShareSnapshotValue | None, offset: int) -> None:
        if value is None:
            self.partitions.pop(key, None)
            self._last_tombstone_offset = offset
            return
        state = self.partitions.get(key)
        if state is None:
            state = self.partitions[key] = StoredState(offset)
        state.snapshot_epoch = value.snapshot_epoch
        state.state_epoch = value.state_epoch
        state.leader_epoch = value.leader_epoch
        state.start_offset = value.start_offset
        state.delivery_complete_count = value.delivery_complete_count
        state.batches = _read_batches(value.state_batches)
        state.create_timestamp_ms = value.create_timestamp
        state.write_timestamp_ms = value.write_timestamp
        state.highest_leader_epoch = max(state.highest_leader_epoch, value.leader_epoch)
        state.highest_state_epoch = max(state.highest_state_epoch, value.state_epoch)
        state.snapshot_offset = offset
        state.updates = 0

    def _apply_update(self, key: SharePartitionKey, value: ShareUpdateValue, offset: int) -> None:
        state = self.partitions.get(key)
        if state is None:
            # Its snapshot was pruned, which means that another one follows.
            state = self.partitions[key] = StoredState(offset)
            state.snapshot_epoch = value.snapshot_epoch
        if value.start_offset != NO_START_OFFSET:
            state.start_offset = value.start_offset
        if value.leader_epoch != NO_EPOCH:
            state.leader_epoch = value.leader_epoch
        state.delivery_complete_count = value.delivery_complete_count
        state.batches = combine(state.batches, _read_batches(value.state_batches), state.start_offset)
        state.highest_leader_epoch = max(state.highest_leader_epoch, value.leader_epoch)
        state.updates += 1

    def end_transaction(self, producer_id: int, *, is_commit: bool) -> None:
        """Nothing here is written in a transaction."""

    def loaded(self, now: Moment) -> Decision:
        self._next_cold_ms = now.steady_ms + self.settings.cold_snapshot_interval_ms
        return Decision()

    def deadline_ms(self) -> int | None:
        return 0 if self._cold else self._next_cold_ms

    def advance(self, now: Moment) -> Decision:
        """Write snapshots of share partitions whose last one is old, so that the log before can go."""
        if not self._cold:
            self._next_cold_ms = now.steady_ms + self.settings.cold_snapshot_interval_ms
            if not all(state.is_cold for state in self.partitions.values()):
                self._cold.extend(self.partitions)
        decision = Decision(tentative=True)
        size_bytes = 0
        while self._cold and size_bytes < COLD_BYTES_PER_BATCH:
            key = self._cold.popleft()
            state = self.partitions.get(key)
            if state is None:
                continue
            age_ms = now.wall_ms - state.write_timestamp_ms
            if age_ms >= self.settings.cold_snapshot_interval_ms:
                snapshot = _snapshot_of(state)
                snapshot.snapshot_epoch += 1
                snapshot.write_timestamp = now.wall_ms
                decision.write(_snapshot_key(key), snapshot)
                size_bytes += _SNAPSHOT_BYTES + _STATE_BATCH_BYTES * len(state.batches)
        return decision

    def waiting_tickets(self) -> Sequence[Ticket[Any]]:
        return ()

    @property
    def needed_from(self) -> int:
        """Every record below this offset is superseded."""
        return min(
            (state.snapshot_offset for state in self.partitions.values()), default=self._last_tombstone_offset
        )

    # Requests

    def initialize(
        self,
        key: SharePartitionKey,
        state_epoch: int,
        start_offset: int,
        partition_count: int | None,
        ticket: Ticket[Outcome],
        now: Moment,
    ) -> Decision:
        """InitializeShareGroupState: begin anew at ``start_offset``.

        ``partition_count`` is that of the topic, None if there is no such topic.
        """
        decision = Decision(tentative=True)
        state = self.partitions.get(key)
        refusal = _negative(key, state_epoch=state_epoch)
        if refusal is None and state is not None and state.highest_state_epoch > state_epoch:
            refusal = refused(ErrorCode.FENCED_STATE_EPOCH)
        if refusal is None:
            refusal = _unknown(key, partition_count)
        if refusal is not None:
            decision.reply(ticket, refusal)
            return decision
        is_repeated = (
            state is not None
            and state.highest_state_epoch == state_epoch
            and state.start_offset == start_offset
        )
        if not is_repeated:
            snapshot = ShareSnapshotValue(
                snapshot_epoch=0 if state is None else state.snapshot_epoch + 1,
                state_epoch=state_epoch,
                start_offset=start_offset,
                delivery_complete_count=NO_COUNT if start_offset == NO_START_OFFSET else 0,
                create_timestamp=now.wall_ms,
                write_timestamp=now.wall_ms,
            )
            decision.write(_snapshot_key(key), snapshot)
        decision.reply(ticket, Outcome())
        return decision

    def read(
        self,
        key: SharePartitionKey,
        leader_epoch: int,
        partition_count: int | None,
        ticket: Ticket[Outcome],
        now: Moment,
    ) -> Decision:
        """ReadShareGroupState, by a new leader of the topic's partition: those before it are fenced."""
        decision = Decision(tentative=True)
        state = self.partitions.get(key)
        refusal = _negative(key, leader_epoch=leader_epoch)
        if refusal is None and state is None:
            refusal = Outcome(ErrorCode.INVALID_REQUEST, READ_UNINITIALIZED)
        if refusal is None and state is not None and state.highest_leader_epoch > leader_epoch:
            refusal = refused(ErrorCode.FENCED_LEADER_EPOCH)
        if refusal is None:
            refusal = _unknown(key, partition_count)
        if refusal is not None or state is None:
            decision.reply(ticket, refusal)
            return decision
        if state.highest_leader_epoch != leader_epoch:
            self._write_change(
                decision, key, state, leader_epoch, state.start_offset, state.delivery_complete_count, (), now
            )
        found = Outcome(
            state_epoch=state.state_epoch, start_offset=state.start_offset, batches=tuple(state.batches)
        )
        decision.reply(ticket, found)
        return decision

    def read_summary(
        self, key: SharePartitionKey, partition_count: int | None, ticket: Ticket[Outcome]
    ) -> Decision:
        """ReadShareGroupStateSummary: what is known without the batches."""
        decision = Decision()
        refusal = _negative(key) or _unknown(key, partition_count)
        state = self.partitions.get(key)
        if refusal is not None:
            decision.reply(ticket, refusal)
        elif state is None:
            decision.reply(ticket, Outcome(start_offset=NO_START_OFFSET))
        else:
            found = Outcome(
                state_epoch=state.state_epoch,
                leader_epoch=state.leader_epoch,
                start_offset=state.start_offset,
                delivery_complete_count=state.delivery_complete_count,
            )
            decision.reply(ticket, found)
        return decision

    def write(
        self,
        key: SharePartitionKey,
        change: "Change",
        partition_count: int | None,
        ticket: Ticket[Outcome],
        now: Moment,
    ) -> Decision:
        """WriteShareGroupState."""
        decision = Decision(tentative=True)
        state = self.partitions.get(key)
        refusal = _negative(key, leader_epoch=change.leader_epoch, state_epoch=change.state_epoch)
        if refusal is None and state is None:
            refusal = Outcome(ErrorCode.INVALID_REQUEST, WRITE_UNINITIALIZED)
        if refusal is None and state is not None:
            if state.highest_leader_epoch > change.leader_epoch:
                refusal = refused(ErrorCode.FENCED_LEADER_EPOCH)
            elif state.highest_state_epoch > change.state_epoch:
                refusal = refused(ErrorCode.FENCED_STATE_EPOCH)
        if refusal is None:
            refusal = _unknown(key, partition_count)
        if refusal is not None or state is None:
            decision.reply(ticket, refusal)
            return decision
        complete_count = change.delivery_complete_count
        if change.start_offset == state.start_offset:
            complete_count = max(complete_count, state.delivery_complete_count)
        elif change.start_offset < state.start_offset:
            complete_count = state.delivery_complete_count
        self._write_change(
            decision,
            key,
            state,
            state.leader_epoch,
            max(change.start_offset, state.start_offset),
            complete_count,
            change.batches,
            now,
        )
        decision.reply(ticket, Outcome())
        return decision

    def _write_change(
        self,
        decision: Decision,
        key: SharePartitionKey,
        state: StoredState,
        leader_epoch: int,
        start_offset: int,
        delivery_complete_count: int,
        batches: Sequence[StateBatch],
        now: Moment,
    ) -> None:
        """An update, or a snapshot if it is time for one."""
        if state.updates < self.settings.updates_per_snapshot:
            update = ShareUpdateValue(
                snapshot_epoch=state.snapshot_epoch,
                leader_epoch=leader_epoch,
                start_offset=start_offset,
                delivery_complete_count=delivery_complete_count,
                state_batches=_stored_batches(combine((), batches, start_offset)),
            )
            update_key = ShareUpdateKey(group_id=key.group_id, topic_id=key.topic_id, partition=key.partition)
            decision.write(update_key, update)
            return
        snapshot = ShareSnapshotValue(
            snapshot_epoch=state.snapshot_epoch + 1,
            state_epoch=state.state_epoch,
            leader_epoch=leader_epoch,
            start_offset=start_offset,
            delivery_complete_count=delivery_complete_count,
            create_timestamp=now.wall_ms,
            write_timestamp=now.wall_ms,
            state_batches=_stored_batches(combine(state.batches, batches, start_offset)),
        )
        decision.write(_snapshot_key(key), snapshot)

    def delete(
        self, key: SharePartitionKey, partition_count: int | None, ticket: Ticket[Outcome]
    ) -> Decision:
        """DeleteShareGroupState.  Deleting what is not there is no error."""
        decision = Decision(tentative=True)
        refusal = _negative(key) or _unknown(key, partition_count)
        if refusal is None and key in self.partitions:
            decision.write(_snapshot_key(key), None)
        decision.reply(ticket, refusal or Outcome())
        return decision

    def topics_deleted(self, topic_ids: Collection[bytes], ticket: Ticket[None]) -> Decision:
        """The state of these topics means nothing any more."""
        tombstones = [
            StoredRecord(_snapshot_key(key), None) for key in self.partitions if key.topic_id in topic_ids
        ]
        last = Decision(tentative=True, asked_by=ticket)
        last.reply(ticket, None)
        return in_batches(tombstones, TOMBSTONES_PER_BATCH, last)


class Change(NamedTuple):
    """What the leader of a topic's partition wants to be kept."""

    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    batches: Sequence[StateBatch]


TEXTS: Final = {
    ErrorCode.FENCED_STATE_EPOCH: (
        "The coordinator rejected the request because the state epoch did not match."
    ),
    ErrorCode.FENCED_LEADER_EPOCH: "The leader epoch in the request is older than the epoch on the broker.",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "This server does not host this topic-partition.",
}


def refused(code: ErrorCode) -> Outcome:
    """``code`` in Kafka's words."""
    return Outcome(code, TEXTS[code])


def _negative(key: SharePartitionKey, *, leader_epoch: int = 0, state_epoch: int = 0) -> Outcome | None:
    if key.partition < 0:
        return Outcome(ErrorCode.INVALID_REQUEST, NEGATIVE_PARTITION)
    if leader_epoch < 0:
        return Outcome(ErrorCode.INVALID_REQUEST, NEGATIVE_LEADER_EPOCH)
    if state_epoch < 0:
        return Outcome(ErrorCode.INVALID_REQUEST, NEGATIVE_STATE_EPOCH)
    return None


def _unknown(key: SharePartitionKey, partition_count: int | None) -> Outcome | None:
    if partition_count is None or key.partition >= partition_count:
        return refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return None


def _snapshot_key(key: SharePartitionKey) -> ShareSnapshotKey:
    return ShareSnapshotKey(group_id=key.group_id, topic_id=key.topic_id, partition=key.partition)


def _snapshot_of(state: StoredState) -> ShareSnapshotValue:
    return ShareSnapshotValue(
        snapshot_epoch=state.snapshot_epoch,
        state_epoch=state.state_epoch,
        leader_epoch=state.leader_epoch,
        start_offset=state.start_offset,
        delivery_complete_count=state.delivery_complete_count,
        create_timestamp=state.create_timestamp_ms,
        write_timestamp=state.write_timestamp_ms,
        state_batches=_stored_batches(state.batches),
    )


def _read_batches(batches: Sequence[share_records.StateBatch]) -> list[StateBatch]:
    return [
        StateBatch(batch.first_offset, batch.last_offset, batch.delivery_state, batch.delivery_count)
        for batch in batches
    ]


def _stored_batches(batches: Sequence[StateBatch]) -> list[share_records.StateBatch]:
    return [
        share_records.StateBatch(
            first_offset=first_offset,
            last_offset=last_offset,
            delivery_state=delivery_state,
            delivery_count=delivery_count,
        )
        for first_offset, last_offset, delivery_state, delivery_count in batches
    ]
