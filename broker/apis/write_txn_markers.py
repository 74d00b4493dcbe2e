"""WriteTxnMarkers (27): end transactions in partitions that this broker leads.

From the coordinators of a cluster's other brokers, and from operators who abort a transaction that hangs.
"""

from typing import NamedTuple

import trio

from broker.coordination.tickets import Ticket, answer_of_all
from broker.network.call import Call
from broker.network.waiting import Waiting
from broker.services import Services
from broker.transactions.markers import MARKERS_BEFORE_YIELD, write_marker
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


class Wanted(NamedTuple):
    """One marker in one partition, and who hears what becomes of it."""

    marker: WritableTxnMarker
    partition: TransactionPartition
    ticket: Ticket[ErrorCode]


def handle(
    request: WriteTxnMarkersRequest, call: Call
) -> WriteTxnMarkersResponse | Waiting[WriteTxnMarkersResponse]:
    """A producer is answered for once, even if it has several markers.

    The answer waits until all markers are committed.
    """
    producers: dict[int, Tickets] = {}
    wanted: list[Wanted] = []
    for marker in request.markers:
        for topic in marker.topics:
            for index in topic.partition_indexes:
                each = Wanted(marker, (topic.name, index), Ticket(lambda code: code))
                producers.setdefault(marker.producer_id, {})[each.partition] = each.ticket
                wanted.append(each)
    services = call.services
    if services.partitions.missing:
        services.partitions.require_made(each.partition for each in wanted)
    nursery = services.transactions.nursery
    if len(wanted) <= MARKERS_BEFORE_YIELD or nursery is None:
        for each in wanted:
            write(each, services)
    else:
        nursery.start_soon(write_in_turns, wanted, services)
    return answer_of_all(
        [each.ticket for each in wanted],
        lambda: WriteTxnMarkersResponse(
            markers=[
                WritableTxnMarkerResult(producer_id=producer_id, topics=topics(tickets))
                for producer_id, tickets in producers.items()
            ]
        ),
        timeout_seconds=services.config.get("request.timeout.ms") / 1000,
    )


async def write_in_turns(wanted: list[Wanted], services: Services) -> None:
    """Other requests have their turn between some of many markers."""
    for number, each in enumerate(wanted, start=1):
        write(each, services)
        if number % MARKERS_BEFORE_YIELD == 0:
            await trio.lowlevel.checkpoint()


def write(wanted: Wanted, services: Services) -> None:
    marker, partition, ticket = wanted
    if marker.transaction_version < 0:
        ticket.refuse(ErrorCode.UNKNOWN_SERVER_ERROR)
        return
    write_marker(
        services,
        partition,
        Identity(marker.producer_id, marker.producer_epoch),
        EndTransactionMarker(marker.transaction_result, marker.coordinator_epoch),
        ticket,
        version=marker.transaction_version,
    )


def topics(tickets: Tickets) -> list[WritableTxnMarkerTopicResult]:
    results: dict[str, WritableTxnMarkerTopicResult] = {}
    for (topic, partition), ticket in tickets.items():
        if topic not in results:
            results[topic] = WritableTxnMarkerTopicResult(name=topic)
        results[topic].partitions.append(
            WritableTxnMarkerPartitionResult(partition_index=partition, error_code=ticket.outcome)
        )
    return list(results.values())
