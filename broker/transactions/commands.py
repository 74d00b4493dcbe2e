"""What clients ask of transactions: each command finds the transactional id's shard, and returns a ticket.

The ticket is settled at once unless a log has to be waited for.
"""

from collections.abc import Callable, Collection
from typing import Any, TypeVar

from broker.coordination.decision import Decision, Moment
from broker.coordination.tickets import Ticket
from broker.transactions.machine import TransactionMachine
from broker.transactions.requests import (
    Described,
    Ending,
    Identified,
    Identity,
    Initializing,
    Listed,
    Verified,
)
from broker.transactions.service import TransactionService
from broker.transactions.transaction import NO_TIMEOUT_MS, TransactionPartition
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError

Outcome = TypeVar("Outcome")
Command = Callable[[TransactionMachine, Moment], Decision]


def initialize(
    transactions: TransactionService, transactional_id: str, asked: Initializing
) -> Ticket[Identified]:
    """InitProducerId for a transactional id that is not empty."""
    ticket = Ticket(Identified)
    settings = transactions.settings
    if asked.two_phase_commit and not settings.two_phase_commit:
        ticket.refuse(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    elif asked.keeps_prepared:
        ticket.refuse(ErrorCode.UNSUPPORTED_VERSION)  # Kafka 4.4 has the flag, and nothing behind it
    elif asked.two_phase_commit or 0 < asked.timeout_ms <= settings.max_timeout_ms:
        if asked.two_phase_commit:
            asked = asked._replace(timeout_ms=NO_TIMEOUT_MS)
        _ask_with_producer_id(
            transactions,
            transactional_id,
            ticket,
            lambda machine, now: machine.initialize(transactional_id, asked, ticket, now),
        )
    else:
        ticket.refuse(ErrorCode.INVALID_TRANSACTION_TIMEOUT)
    return ticket


def add_partitions(
    transactions: TransactionService,
    transactional_id: str,
    identity: Identity,
    partitions: Collection[TransactionPartition],
    *,
    version: int = 0,
) -> Ticket[ErrorCode]:
    """AddPartitionsToTxn, AddOffsetsToTxn, and what adds partitions on the way.

    ``version`` is the transaction.version that the producer shows to work by.
    """
    ticket: Ticket[ErrorCode] = Ticket(lambda code: code)
    if not transactional_id:
        ticket.refuse(ErrorCode.INVALID_REQUEST)
    else:
        transactions.ask(
            transactional_id,
            ticket,
            lambda machine, now: machine.add_partitions(
                transactional_id, identity, partitions, version, ticket, now
            ),
        )
    return ticket


def verify_partitions(
    transactions: TransactionService,
    transactional_id: str,
    identity: Identity,
    partitions: Collection[TransactionPartition],
) -> Ticket[Verified]:
    """AddPartitionsToTxn that only asks."""
    ticket = Ticket(Verified)
    if not transactional_id:
        ticket.refuse(ErrorCode.INVALID_REQUEST)
    else:
        transactions.ask(
            transactional_id,
            ticket,
            lambda machine, _: machine.verify_partitions(transactional_id, identity, partitions, ticket),
        )
    return ticket


def end(transactions: TransactionService, transactional_id: str, ending: Ending) -> Ticket[Identified]:
    """EndTxn."""
    ticket = Ticket(Identified)
    if not transactional_id:
        ticket.refuse(ErrorCode.INVALID_REQUEST)
        return ticket

    def command(machine: TransactionMachine, now: Moment) -> Decision:
        return machine.end(transactional_id, ending, ticket, now)

    if ending.bumps_epoch:
        _ask_with_producer_id(transactions, transactional_id, ticket, command)
    else:
        transactions.ask(transactional_id, ticket, command)
    return ticket


def describe(transactions: TransactionService, transactional_id: str) -> Ticket[Described]:
    """DescribeTransactions, one of them."""
    ticket = Ticket(lambda code: Described(transactional_id, code))
    if not transactional_id:
        ticket.refuse(ErrorCode.INVALID_REQUEST)
    else:
        unmarked = transactions.markers.unmarked(
            transactions.partition_for(transactional_id), transactional_id
        )
        transactions.ask(
            transactional_id, ticket, lambda machine, _: machine.describe(transactional_id, unmarked, ticket)
        )
    return ticket


def list_transactions(transactions: TransactionService) -> list[Ticket[Listed]]:
    """ListTransactions: one ticket for every partition led here."""
    return [_list(transactions, partition) for partition in transactions.partitions]


def _list(transactions: TransactionService, partition: int) -> Ticket[Listed]:
    ticket = Ticket(Listed)
    if transactions.is_unread(partition):
        ticket.refuse(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    else:
        transactions.ask_partition(partition, ticket, lambda machine, _: machine.list_transactions(ticket))
    return ticket


def _ask_with_producer_id(
    transactions: TransactionService, transactional_id: str, ticket: Ticket[Any], command: Command
) -> None:
    """Ask when there is a producer id at hand, for machines do not wait."""
    if transactions.shard(transactions.partition_for(transactional_id)) is None:
        ticket.refuse(ErrorCode.NOT_COORDINATOR)  # that need not wait for the controller
        return

    def ask(refusal: KafkaError | None) -> None:
        if refusal is None:
            transactions.ask(transactional_id, ticket, command)
        else:
            ticket.refuse(refusal.code)

    transactions.services.producer_ids.when_at_hand(ask)
