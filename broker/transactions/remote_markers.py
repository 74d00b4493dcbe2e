"""Writing markers into partitions that other brokers lead: WriteTxnMarkers.

Those that become due while a request is under way go together into the next one.
"""

from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

from broker.coordination.tickets import Ticket
from broker.network.node_batches import NodeBatches
from broker.network.node_client import NodeClient, NodeUnreachable
from broker.transactions.markers import Writing
from broker.transactions.transaction import TransactionPartition
from protocol.error_codes import ErrorCode
from protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

if TYPE_CHECKING:
    from broker.transactions.service import TransactionService

MARKERS_PER_REQUEST_MAX: Final = 1000

PATIENCE_SECONDS: Final = 1.0
"""How much longer than the other broker, which waits for its followers, this one waits for the answer."""


class _Marker(NamedTuple):
    """One that is to be written, and who hears of it."""

    writing: Writing
    partition: TransactionPartition
    ticket: Ticket[ErrorCode]


class RemoteMarkers:
    """The other brokers, for the coordinator on this one."""

    def __init__(self, service: "TransactionService") -> None:
        self._service = service
        self._services = service.services
        self._batches: NodeBatches[_Marker] = NodeBatches(
            service.services, lambda: service.nursery, "transaction-markers", self._exchange
        )
        request_timeout_ms = self._services.config.get("request.timeout.ms")
        self._timeout_seconds = request_timeout_ms / 1000 + PATIENCE_SECONDS

    def write(
        self, broker_id: int, writing: Writing, partition: TransactionPartition, ticket: Ticket[ErrorCode]
    ) -> None:
        """``ticket`` hears what the broker answers, NETWORK_EXCEPTION if nobody knows."""
        self._batches.add(broker_id, _Marker(writing, partition, ticket))

    async def _exchange(self, broker_id: int, client: NodeClient, queue: deque[_Marker]) -> None:
        markers = self._taken(queue)
        if not markers:
            return
        try:
            answer: WriteTxnMarkersResponse = await client.ask(
                WriteTxnMarkersRequest(markers=_by_transaction(markers)),
                timeout_seconds=self._timeout_seconds,
            )
        except NodeUnreachable as error:
            self._services.log.warn_seldom(f"broker {broker_id} cannot be told how transactions end: {error}")
            for marker in markers:
                marker.ticket.settle(ErrorCode.NETWORK_EXCEPTION)
            return
        codes = {
            (result.producer_id, topic.name, each.partition_index): ErrorCode(each.error_code)
            for result in answer.markers
            for topic in result.topics
            for each in topic.partitions
        }
        for writing, partition, ticket in markers:
            key = writing.due.identity.producer_id, *partition
            ticket.settle(codes.get(key, ErrorCode.UNKNOWN_SERVER_ERROR))

    def _taken(self, queue: deque[_Marker]) -> list[_Marker]:
        """What goes into the next request: nothing for transactions that another broker coordinates now."""
        taken: list[_Marker] = []
        while queue and len(taken) < MARKERS_PER_REQUEST_MAX:
            marker = queue.popleft()
            if self._service.markers.is_valid(marker.writing):
                taken.append(marker)
            else:
                marker.ticket.settle(ErrorCode.NOT_COORDINATOR)
        return taken


def _by_transaction(markers: list[_Marker]) -> list[WritableTxnMarker]:
    found: dict[Writing, WritableTxnMarker] = {}
    topics: dict[tuple[Writing, str], WritableTxnMarkerTopic] = {}
    for writing, (topic, index), _ in markers:
        if writing not in found:
            due = writing.due
            found[writing] = WritableTxnMarker(
                producer_id=due.identity.producer_id,
                producer_epoch=due.identity.producer_epoch,
                transaction_result=due.is_commit,
                coordinator_epoch=due.coordinator_epoch,
                transaction_version=due.version,
            )
        if (writing, topic) not in topics:
            topics[writing, topic] = WritableTxnMarkerTopic(name=topic)
            found[writing].topics.append(topics[writing, topic])
        topics[writing, topic].partition_indexes.append(index)
    return list(found.values())
