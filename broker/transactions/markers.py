"""Writing the markers of decided transactions, and telling the coordinator when all are there.

A partition that another broker leads gets its marker from there, see ``remote_markers``.
"""

from collections import deque
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Final

import trio

from broker.coordination.tickets import Ticket
from broker.errors import error_code_of
from broker.metadata.topic_names import GROUP_OFFSETS
from broker.network.waiting import NotYet
from broker.transactions.requests import Identity, MarkersDue
from broker.transactions.transaction import EPOCH_BUMP_VERSION, TransactionPartition
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.records.batch import RecordBatch
from protocol.records.control import EndTransactionMarker, build_end_transaction_marker
from storage.errors import StorageError

if TYPE_CHECKING:
    from broker.services import Services
    from broker.transactions.remote_markers import RemoteMarkers
    from broker.transactions.service import TransactionService

MARKERS_BEFORE_YIELD: Final = 20
"""Markers written in a row: then other transactions and requests have their turn."""

RETRY_SECONDS: Final = 0.1
"""Before a marker is tried again, or the record that says that a transaction is over."""

FORGETS: Final = frozenset(
    (ErrorCode.NONE, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, ErrorCode.UNSUPPORTED_VERSION)
)
"""The partition has its marker, or it cannot have anything of the transaction."""

FENCED: Final = frozenset((ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED))
"""The partition knows a newer producer or coordinator: this marker must not be written, ever.

As in Kafka the transaction then stays as it is until the coordinator is loaded again, with a newer epoch.
"""


def write_marker(
    services: "Services",
    partition: TransactionPartition,
    identity: Identity,
    marker: EndTransactionMarker,
    ticket: Ticket[ErrorCode],
    *,
    version: int,
) -> None:
    """Write one marker; ``ticket`` hears how that went, when the marker is committed.

    ``version`` is the transaction.version by which the transaction ends.
    """
    topic, index = partition
    image = services.image.partition(topic, index)
    if image is None or services.node_id not in image.replicas:
        ticket.settle(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return
    try:
        leader = services.partitions.leader(topic, index)
        if version >= EPOCH_BUMP_VERSION:
            leader.log.producers.check_marker_epoch(identity.producer_id, identity.producer_epoch)
        if topic == GROUP_OFFSETS:
            # The group coordinator makes the offsets count, or drops them, with the same step.
            services.groups.end_transaction(
                index, identity.producer_id, identity.producer_epoch, marker, ticket
            )
            return
        now_ms = services.clock.now_ms()
        batch = build_end_transaction_marker(
            marker,
            producer_id=identity.producer_id,
            producer_epoch=identity.producer_epoch,
            timestamp=now_ms,
        )
        appended = leader.append_own(RecordBatch(batch), now_ms)
    except (KafkaError, StorageError) as error:
        ticket.settle(error_code_of(error))
        return
    leader.when_committed(
        appended.last_offset + 1,
        lambda error: ticket.settle(ErrorCode.NONE if error is None else error.code),
    )


class Writing:
    """The markers of one transaction: those that are still to be written, and those under way."""

    __slots__ = ("again", "due", "is_over", "left", "partition", "unmarked")

    def __init__(self, partition: int, due: MarkersDue) -> None:
        self.partition = partition
        """The one of ``__transaction_state`` that keeps the transaction."""
        self.due = due
        self.left = deque(due.partitions)
        """Those whose turn is still to come."""
        self.again: list[TransactionPartition] = []
        """Those that have refused their marker for now."""
        self.unmarked = dict.fromkeys(due.partitions)
        """All that are not known to have their marker, in order."""
        self.is_over = False
        """Nothing is to be written any more."""

    @property
    def key(self) -> tuple[int, str]:
        return self.partition, self.due.transactional_id


class MarkerWriter:
    """Writes the markers that are due, in a task of the service.

    A transaction may be in thousands of partitions, whose logs must be opened first.  Therefore several take
    turns, with each other and with requests.
    """

    def __init__(self, service: "TransactionService") -> None:
        self._service = service
        self._services = service.services
        self._writings: deque[Writing] = deque()
        self._current: dict[tuple[int, str], Writing] = {}
        """What is to be written of each transaction, whatever it waits for; last of all that it is over."""
        self._is_running = False

    @cached_property
    def _remote(self) -> "RemoteMarkers":
        from broker.transactions.remote_markers import RemoteMarkers

        return RemoteMarkers(self._service)

    def write_soon(self, partition: int, due: MarkersDue) -> None:
        """``partition`` is that of ``__transaction_state`` which keeps the transaction."""
        writing = Writing(partition, due)
        before = self._current.get(writing.key)
        if before is not None:
            before.is_over = True  # the shard was loaded again, and has found the transaction in its log
        self._current[writing.key] = writing
        self._begin(writing)

    def forget(self, partition: int) -> None:
        """Write nothing any more for this partition of ``__transaction_state``, which is led elsewhere."""
        for writing in [each for each in self._current.values() if each.partition == partition]:
            self._end(writing)

    def unmarked(self, partition: int, transactional_id: str) -> tuple[TransactionPartition, ...] | None:
        """The partitions that wait for a marker; None if nothing is known of such a transaction."""
        writing = self._current.get((partition, transactional_id))
        return None if writing is None else tuple(writing.unmarked)

    def _begin(self, writing: Writing) -> None:
        self._writings.append(writing)
        if not self._is_running and self._service.nursery is not None:
            self._is_running = True
            self._service.nursery.start_soon(self._run)

    def _end(self, writing: Writing) -> None:
        writing.is_over = True
        if self._current.get(writing.key) is writing:
            del self._current[writing.key]

    async def _run(self) -> None:
        written = 0
        try:
            while self._writings:
                writing = self._writings.popleft()
                await self._let_logs_be_made(writing)
                written += self._write_some(writing)
                if writing.left and not writing.is_over:
                    self._writings.append(writing)
                else:
                    self._look_at(writing)
                if written >= MARKERS_BEFORE_YIELD:
                    written = 0
                    await trio.lowlevel.checkpoint()
        finally:
            self._is_running = False

    async def _let_logs_be_made(self, writing: Writing) -> None:
        """Making a log costs an fsync, which a thread is waiting for if the topic is new."""
        partitions = self._services.partitions
        if partitions.missing:
            try:
                partitions.require_made(list(islice(writing.left, MARKERS_BEFORE_YIELD)))
            except NotYet as not_yet:
                await not_yet.waiting.wait()

    def _write_some(self, writing: Writing) -> int:
        """Write a few of the markers that are missing; return how many."""
        written = 0
        while writing.left and not writing.is_over and written < MARKERS_BEFORE_YIELD:
            each = writing.left.popleft()
            partition = self._services.image.partition(*each)
            if partition is None:
                writing.unmarked.pop(each, None)  # the topic was deleted: there is nobody to tell
                continue
            ticket: Ticket[ErrorCode] = Ticket(lambda code: code)
            self._write(writing, each, partition.leader, ticket)
            self._hear(writing, each, ticket)
            written += 1
        return written

    def _write(
        self, writing: Writing, partition: TransactionPartition, leader: int, ticket: Ticket[ErrorCode]
    ) -> None:
        due = writing.due
        if leader == self._services.node_id:
            marker = EndTransactionMarker(due.is_commit, due.coordinator_epoch)
            write_marker(self._services, partition, due.identity, marker, ticket, version=due.version)
        elif self._services.image.is_alive(leader):
            self._remote.write(leader, writing, partition, ticket)
        else:
            ticket.settle(ErrorCode.NOT_LEADER_OR_FOLLOWER)  # until there is a leader

    def _hear(self, writing: Writing, partition: TransactionPartition, ticket: Ticket[ErrorCode]) -> None:
        """Go on with what has become of one marker, when that is known."""

        def settled() -> None:
            code = ticket.outcome
            if code in FORGETS:
                writing.unmarked.pop(partition, None)
            elif code in FENCED and not writing.is_over:
                topic, index = partition
                self._services.log.warn(
                    f"transactional id {writing.due.transactional_id}: {topic}-{index} refuses its marker "
                    f"with {code.name}; the transaction is left as it is"
                )
                writing.is_over = True
            else:
                writing.again.append(partition)
                if len(writing.again) == 1:
                    self._retry_soon(writing)
            self._look_at(writing)

        ticket.then(settled)

    def _retry_soon(self, writing: Writing) -> None:
        """Several that are refused at about the same time are tried again together."""

        async def write_again() -> None:
            await trio.sleep(RETRY_SECONDS)
            writing.left.extend(writing.again)
            writing.again.clear()
            if self.is_valid(writing):
                self._begin(writing)

        if self._service.nursery is not None:
            self._service.nursery.start_soon(write_again)

    def is_valid(self, writing: Writing) -> bool:
        """Whether its markers are still this broker's to write."""
        due = writing.due
        if not writing.is_over and not self._service.has_epoch(writing.partition, due.coordinator_epoch):
            self._end(writing)
        return not writing.is_over

    def _look_at(self, writing: Writing) -> None:
        if not writing.unmarked and self.is_valid(writing):
            writing.is_over = True
            self._complete(writing)

    def _complete(self, writing: Writing) -> None:
        """Every partition has its marker: let the coordinator keep that."""
        due = writing.due

        def completed() -> None:
            if ticket.outcome in (ErrorCode.NONE, ErrorCode.INVALID_TXN_STATE):
                self._end(writing)
            else:
                self._complete_later(writing)

        ticket: Ticket[ErrorCode] = Ticket(lambda code: code)
        self._service.ask_partition(
            writing.partition, ticket, lambda machine, now: machine.markers_written(due, ticket, now)
        )
        ticket.then(completed)

    def _complete_later(self, writing: Writing) -> None:
        """Try again, unless somebody else has become the coordinator, or the shard was loaded again."""

        async def complete_again() -> None:
            await trio.sleep(RETRY_SECONDS)
            if self._current.get(writing.key) is not writing:
                return
            if self._service.has_epoch(writing.partition, writing.due.coordinator_epoch):
                self._complete(writing)
            else:
                self._end(writing)

        if self._service.nursery is not None:
            self._service.nursery.start_soon(complete_again)
