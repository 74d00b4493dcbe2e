"""What the transaction coordinator has to say before Produce may append transactional batches (KIP-890)."""

from collections.abc import Mapping
from typing import Final

import trio

from broker.coordination.clients import Client
from broker.coordination.tickets import Ticket
from broker.errors import error_code_of
from broker.network.call import Call
from broker.partitions.fetch_sessions import PartitionKey
from broker.transactions.requests import Identity
from broker.transactions.transaction import TransactionPartition
from broker.transactions.verification import ask_coordinator
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.records.batch import NO_PRODUCER_ID, RecordBatch
from protocol.records.validation import RefusedBatch
from storage.errors import StorageError
from storage.transaction_verification import Verification

Batches = Mapping[PartitionKey, RecordBatch | RefusedBatch]
Verdicts = dict[PartitionKey, Verification | KafkaError | None]
"""By partition: an error, or what has to be handed over with the batch."""

ABORTABLE_VERSION: Final = 11
ADDING_VERSION: Final = 12

NOT_ADDED: Final = "Partition was not added to the transaction"

TRY_AGAIN: Final = frozenset(
    (
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    )
)
"""Older producers know none of these.  After NOT_ENOUGH_REPLICAS they try again, and ask for no metadata."""


class SeveralProducers(KafkaError):
    """A request is of one producer in one epoch."""


def verify(
    transactional_id: str, batches: Batches, transactional: list[PartitionKey], call: Call
) -> Ticket[Verdicts]:
    """One verdict for each transactional batch whose partition is led here."""
    services = call.services
    ticket: Ticket[Verdicts] = Ticket(lambda code: dict.fromkeys(transactional, KafkaError(code)))
    producers = {
        Identity(batch.producer_id, batch.producer_epoch)
        for batch in (batches[key] for key in transactional)
        if isinstance(batch, RecordBatch) and batch.producer_id != NO_PRODUCER_ID
    }
    if len(producers) > 1:
        raise SeveralProducers(
            ErrorCode.INVALID_PRODUCER_ID_MAPPING,
            "Transactional records contained more than one producer ID",
        )
    client = Client.of(call.version, aborts_from=ABORTABLE_VERSION, adds_from=ADDING_VERSION)
    get = services.config.get
    # Nobody else adds the partitions of those who leave that to the broker.
    is_asked = client is Client.ADDS or get("transaction.partition.verification.enable")
    if not producers or not is_asked:
        ticket.settle({})
        return ticket
    (identity,) = producers
    pause_seconds = get("add.partitions.to.txn.retry.backoff.ms") / 1000
    patience_seconds = (
        min(get("add.partitions.to.txn.retry.backoff.max.ms"), get("request.timeout.ms")) / 1000
    )

    def ask(patience_seconds: float) -> None:
        verdicts, places = begin(batches, transactional, client, call)
        if not places:
            ticket.settle(verdicts)
            return
        asked = ask_coordinator(services, transactional_id, identity, list(places), client)

        def answered() -> None:
            codes = asked.outcome
            nursery = services.transactions.nursery
            is_ending = ErrorCode.CONCURRENT_TRANSACTIONS in codes.values()
            if is_ending and client is Client.ADDS and patience_seconds > 0 and nursery is not None:
                nursery.start_soon(ask_again, patience_seconds - pause_seconds)
                return
            for place, code in codes.items():
                verdicts[places[place]] = told(code, client)
            ticket.settle(verdicts)

        asked.then(answered)

    async def ask_again(patience_seconds: float) -> None:
        """The transaction before is still ending."""
        await trio.sleep(pause_seconds)
        ask(patience_seconds)

    ask(patience_seconds)
    return ticket


def begin(
    batches: Batches, transactional: list[PartitionKey], client: Client, call: Call
) -> tuple[Verdicts, Mapping[TransactionPartition, PartitionKey]]:
    """Verdicts as far as the logs know them, and the partitions about which the coordinator must be asked."""
    verdicts: Verdicts = {}
    places: dict[TransactionPartition, PartitionKey] = {}
    for key in transactional:
        batch = batches[key]
        assert isinstance(batch, RecordBatch)
        if batch.producer_id == NO_PRODUCER_ID:
            continue  # as Kafka has it: without a producer there is nothing to verify
        try:
            leader = call.services.partitions.leader_at(key)
            verification = leader.log.producers.begin_verification(
                batch.producer_id,
                batch.producer_epoch,
                batch.base_sequence,
                starts_at_zero=client is Client.ADDS,
                now_ms=call.received_ms,
            )
        except (KafkaError, StorageError) as error:
            verdicts[key] = error if isinstance(error, KafkaError) else KafkaError(error_code_of(error))
            continue
        verdicts[key] = verification
        if verification is not None:
            places[leader.topic, leader.partition] = key
    return verdicts, places


def told(code: ErrorCode, client: Client) -> KafkaError:
    """What Produce answers in the place of the coordinator."""
    if code is ErrorCode.CONCURRENT_TRANSACTIONS and client is Client.ADDS:
        return KafkaError(code)  # these do know it
    if code is ErrorCode.INVALID_TXN_STATE:
        return KafkaError(code, NOT_ADDED)
    if code in TRY_AGAIN:
        return KafkaError(
            ErrorCode.NOT_ENOUGH_REPLICAS,
            "Unable to verify the partition has been added to the transaction. "
            f"Underlying error: {code.name}",
        )
    return KafkaError(code)
