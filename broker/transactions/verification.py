"""Asking the coordinator about transactional batches before they are written (KIP-890).

A leader must not open a transaction of which the coordinator knows nothing: nobody would ever end it.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import trio

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
    ticket: Ticket[Refusals] = Ticket(lambda code: dict.fromkeys(partitions, _told(code, client)))
    if TRANSACTION_STATE not in services.image.topics:
        ticket.refuse(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    elif client is Client.ADDS:
        _Adding(services, transactional_id, identity, partitions, ticket).ask()
    else:
        asked = commands.verify_partitions(services.transactions, transactional_id, identity, partitions)

        def verified() -> None:
            outcome = asked.outcome
            if outcome.error is not ErrorCode.NONE:
                ticket.refuse(outcome.error)
                return
            answers = zip(partitions, outcome.codes, strict=True)
            ticket.settle({each: _told(code, client) for each, code in answers if code is not ErrorCode.NONE})

        asked.then(verified)
    return ticket


class _Adding:
    """Adds partitions; asks again for a while if the transaction before is still ending."""

    def __init__(
        self,
        services: "Services",
        transactional_id: str,
        identity: Identity,
        partitions: Sequence[TransactionPartition],
        ticket: Ticket[Refusals],
    ) -> None:
        self._services = services
        self._transactional_id = transactional_id
        self._identity = identity
        self._partitions = partitions
        self._ticket = ticket
        self._patience_seconds: float = (
            min(
                services.config.get("add.partitions.to.txn.retry.backoff.max.ms"),
                services.config.get("request.timeout.ms"),
            )
            / 1000
        )

    def ask(self) -> None:
        asked = commands.add_partitions(
            self._services.transactions,
            self._transactional_id,
            self._identity,
            self._partitions,
            version=EPOCH_BUMP_VERSION,
        )
        asked.then(lambda: self._answered(asked.outcome))

    def _answered(self, code: ErrorCode) -> None:
        nursery = self._services.transactions.nursery
        if code is ErrorCode.NONE:
            self._ticket.settle({})
        elif code is ErrorCode.CONCURRENT_TRANSACTIONS and self._patience_seconds > 0 and nursery is not None:
            nursery.start_soon(self._ask_again)
        else:
            self._ticket.refuse(code)

    async def _ask_again(self) -> None:
        pause_seconds = self._services.config.get("add.partitions.to.txn.retry.backoff.ms") / 1000
        self._patience_seconds -= pause_seconds
        await trio.sleep(pause_seconds)
        self.ask()


def _told(code: ErrorCode, client: Client) -> ErrorCode:
    """What a producer is told instead of the coordinator's answer."""
    if code is ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if code is ErrorCode.TRANSACTION_ABORTABLE and client is Client.OLD:
        return ErrorCode.INVALID_TXN_STATE
    return code
