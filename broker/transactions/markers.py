"""Writing the markers of decided transactions, and telling the coordinator when all are there."""

from collections import deque
from collections.abc import Iterable
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
    from broker.transactions.service import TransactionService

MARKERS_BEFORE_YIELD: Final = 20
"""Markers written in a row: then other transactions and requests have their turn."""

RETRY_SECONDS: Final = 1.0
"""Before a marker is tried again, or the record that says that a transaction is over."""

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
    if services.image.partition(topic, index) is None:
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


class _Writing:
    """The markers of one transaction: those that are still to be written, and what came of the others."""

    __slots__ = ("due", "left", "partition", "tickets")

    def __init__(self, partition: int, due: MarkersDue, partitions: Iterable[TransactionPartition]) -> None:
        self.partition = partition
        """The one of ``__transaction_state`` that keeps the transaction."""
        self.due = due
        self.left = deque(partitions)
        self.tickets: dict[TransactionPartition, Ticket[ErrorCode]] = {}


class MarkerWriter:
    """Writes the markers that are due, in a task of the service.

    A transaction may be in thousands of partitions, whose logs must be opened first.  Therefore several take
    turns, with each other and with requests.
    """

    def __init__(self, service: "TransactionService") -> None:
        self._service = service
        self._services = service.services
        self._writings: deque[_Writing] = deque()
        self._is_running = False

    def write_soon(self, partition: int, due: MarkersDue) -> None:
        """``partition`` is that of ``__transaction_state`` which keeps the transaction."""
        self._begin(_Writing(partition, due, due.partitions))

    def _begin(self, writing: _Writing) -> None:
        self._writings.append(writing)
        if not self._is_running and self._service.nursery is not None:
            self._is_running = True
            self._service.nursery.start_soon(self._run)

    async def _run(self) -> None:
        written = 0
        try:
            while self._writings:
                writing = self._writings.popleft()
                await self._let_logs_be_made(writing)
                written += self._write_some(writing)
                if writing.left:
                    self._writings.append(writing)
                else:
                    self._wait(writing)
                if written >= MARKERS_BEFORE_YIELD:
                    written = 0
                    await trio.lowlevel.checkpoint()
        finally:
            self._is_running = False

    async def _let_logs_be_made(self, writing: _Writing) -> None:
        """Making a log costs an fsync, which a thread is waiting for if the topic is new."""
        partitions = self._services.partitions
        if partitions.missing:
            try:
                partitions.require_made(list(islice(writing.left, MARKERS_BEFORE_YIELD)))
            except NotYet as not_yet:
                await not_yet.waiting.wait()

    def _write_some(self, writing: _Writing) -> int:
        """Write a few of the markers that are missing; return how many."""
        due, left = writing.due, writing.left
        marker = EndTransactionMarker(due.is_commit, due.coordinator_epoch)
        written = 0
        while left and written < MARKERS_BEFORE_YIELD:
            each = left.popleft()
            if self._exists(each):
                ticket: Ticket[ErrorCode] = Ticket(lambda code: code)
                writing.tickets[each] = ticket
                write_marker(self._services, each, due.identity, marker, ticket, version=due.version)
                written += 1
        return written

    def _wait(self, writing: _Writing) -> None:
        """Go on when all markers are committed, or refused."""
        waited_for = [ticket for ticket in writing.tickets.values() if not ticket.is_settled]
        missing = len(waited_for)

        def settled() -> None:
            nonlocal missing
            missing -= 1
            if missing == 0:
                self._written(writing)

        for ticket in waited_for:
            ticket.when_settled(settled)
        if not waited_for:
            self._written(writing)

    def _exists(self, partition: TransactionPartition) -> bool:
        """Whether there is anybody to tell: a topic may have been deleted."""
        return self._services.image.partition(*partition) is not None

    def _written(self, writing: _Writing) -> None:
        partition, due = writing.partition, writing.due
        outcomes = {each: ticket.outcome for each, ticket in writing.tickets.items()}
        refused = [each for each, code in outcomes.items() if code in FENCED]
        if refused:
            topic, index = refused[0]
            self._services.log.warn(
                f"transactional id {due.transactional_id}: {topic}-{index} refuses its marker with "
                f"{outcomes[refused[0]].name}; the transaction is left as it is"
            )
            return
        again = tuple(each for each, code in outcomes.items() if code is not ErrorCode.NONE)
        if again:
            self._retry(partition, due, again)
        else:
            self._complete(partition, due)

    def _complete(self, partition: int, due: MarkersDue) -> None:
        def completed() -> None:
            if ticket.outcome not in (ErrorCode.NONE, ErrorCode.INVALID_TXN_STATE):
                self._retry(partition, due, ())  # unless somebody else has become the coordinator

        ticket: Ticket[ErrorCode] = Ticket(lambda code: code)
        self._service.ask_partition(
            partition, ticket, lambda machine, now: machine.markers_written(due, ticket, now)
        )
        ticket.then(completed)

    def _retry(self, partition: int, due: MarkersDue, partitions: tuple[TransactionPartition, ...]) -> None:
        async def write_again() -> None:
            await trio.sleep(RETRY_SECONDS)
            if self._service.has_epoch(partition, due.coordinator_epoch):
                self._begin(_Writing(partition, due, partitions))

        if self._service.nursery is not None:
            self._service.nursery.start_soon(write_again)
