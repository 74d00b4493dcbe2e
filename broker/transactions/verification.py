"""Asking the coordinator about transactional batches before they are written (KIP-890).

A leader must not open a transaction of which the coordinator knows nothing: nobody would ever end it.  The
coordinator may be another broker, see ``remote_verification``.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from broker.coordination.clients import Client
from broker.coordination.tickets import Ticket
from broker.metadata.topic_names import TRANSACTION_STATE
from broker.transactions import commands
from broker.transactions.requests import Identity
from broker.transactions.transaction import EPOCH_BUMP_VERSION, TransactionPartition
from protocol.error_codes import ErrorCode

if TYPE_CHECKING:
    from broker.services import Services

Refusals = Mapping[TransactionPartition, ErrorCode]
"""The partitions that must not be written to, and why."""


def ask_coordinator(
    services: "Services",
    transactional_id: str,
    identity: Identity,
    partitions: Sequence[TransactionPartition],
    client: Client,
) -> Ticket[Refusals]:
    """Whether these partitions are in the producer's open transaction, or may be added to it."""
    ticket: Ticket[Refusals] = Ticket(lambda code: dict.fromkeys(partitions, told(code, client)))
    transactions = services.transactions
    place = services.image.partition(TRANSACTION_STATE, transactions.partition_for(transactional_id))
    if place is None:
        ticket.refuse(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    elif place.leader == services.node_id:
        _ask_here(services, transactional_id, identity, partitions, client, ticket)
    elif services.image.is_alive(place.leader):
        question = Question(transactional_id, identity, partitions, client, ticket)
        transactions.remote_verification.ask(place.leader, question)
    else:
        ticket.refuse(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return ticket


class Question(NamedTuple):
    """What a coordinator is asked, and who is told."""

    transactional_id: str
    identity: Identity
    partitions: Sequence[TransactionPartition]
    client: Client
    ticket: Ticket[Refusals]


def _ask_here(
    services: "Services",
    transactional_id: str,
    identity: Identity,
    partitions: Sequence[TransactionPartition],
    client: Client,
    ticket: Ticket[Refusals],
) -> None:
    if client is Client.ADDS:
        added = commands.add_partitions(
            services.transactions, transactional_id, identity, partitions, version=EPOCH_BUMP_VERSION
        )
        added.then(
            lambda: ticket.settle({}) if added.outcome is ErrorCode.NONE else ticket.refuse(added.outcome)
        )
        return
    asked = commands.verify_partitions(services.transactions, transactional_id, identity, partitions)

    def verified() -> None:
        outcome = asked.outcome
        if outcome.error is not ErrorCode.NONE:
            ticket.refuse(outcome.error)
            return
        answers = zip(partitions, outcome.codes, strict=True)
        ticket.settle({each: told(code, client) for each, code in answers if code is not ErrorCode.NONE})

    asked.then(verified)


def told(code: ErrorCode, client: Client) -> ErrorCode:
    """What a producer is told instead of the coordinator's answer."""
    if code is ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if code is ErrorCode.TRANSACTION_ABORTABLE and client is Client.OLD:
        return ErrorCode.INVALID_TXN_STATE
    return code
