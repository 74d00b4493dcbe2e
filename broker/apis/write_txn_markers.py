"""WriteTxnMarkers (27): end transactions in partitions that this broker leads.

From the coordinators of a cluster's other brokers, and from operators who abort a transaction that hangs.
"""

from broker.coordination.tickets import Ticket, answer_of_all
from broker.network.call import Call
from broker.network.waiting import Waiting
from broker.transactions.markers import write_marker
from broker.transactions.requests import Identity
from broker.transactions.transaction import TransactionPartition
from protocol.error_codes import ErrorCode
from protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from protocol.records.control import EndTransactionMarker

Tickets = dict[TransactionPartition, Ticket[ErrorCode]]


def handle(
    request: WriteTxnMarkersRequest, call: Call
) -> WriteTxnMarkersResponse | Waiting[WriteTxnMarkersResponse]:
    """A producer is answered for once, even if it has several markers."""
    producers: dict[int, Tickets] = {}
    for marker in request.markers:
        tickets = write(marker, call)
        if tickets:
            producers.setdefault(marker.producer_id, {}).update(tickets)
    return answer_of_all(
        [ticket for tickets in producers.values() for ticket in tickets.values()],
        lambda: WriteTxnMarkersResponse(
            markers=[
                WritableTxnMarkerResult(producer_id=producer_id, topics=topics(tickets))
                for producer_id, tickets in producers.items()
            ]
        ),
    )


def write(asked: WritableTxnMarker, call: Call) -> Tickets:
    identity = Identity(asked.producer_id, asked.producer_epoch)
    marker = EndTransactionMarker(asked.transaction_result, asked.coordinator_epoch)
    tickets: Tickets = {}
    for topic in asked.topics:
        for partition in topic.partition_indexes:
            ticket: Ticket[ErrorCode] = Ticket(lambda code: code)
            tickets[topic.name, partition] = ticket
            if asked.transaction_version < 0:
                ticket.refuse(ErrorCode.UNKNOWN_SERVER_ERROR)
                continue
            write_marker(
                call.services,
                (topic.name, partition),
                identity,
                marker,
                ticket,
                version=asked.transaction_version,
            )
    return tickets


def topics(tickets: Tickets) -> list[WritableTxnMarkerTopicResult]:
    results: dict[str, WritableTxnMarkerTopicResult] = {}
    for (topic, partition), ticket in tickets.items():
        if topic not in results:
            results[topic] = WritableTxnMarkerTopicResult(name=topic)
        results[topic].partitions.append(
            WritableTxnMarkerPartitionResult(partition_index=partition, error_code=ticket.outcome)
        )
    return list(results.values())
