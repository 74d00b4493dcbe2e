"""AddPartitionsToTxn (24): announce the partitions that a transaction writes to, or check that it did."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from broker.coordination.tickets import Ticket, answer_of_all
from broker.metadata.topic_names import INTERNAL_TOPICS
from broker.network.call import Call
from broker.network.waiting import Waiting
from broker.transactions import commands
from broker.transactions.requests import Identity
from broker.transactions.transaction import EPOCH_BUMP_VERSION, TransactionPartition
from protocol.error_codes import ErrorCode
from protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)

PRODUCER_FENCED_VERSION = 2  # KIP-588
BATCHES_VERSION = 4  # KIP-890: from brokers, for several transactions at once


Results = Sequence[tuple[TransactionPartition, ErrorCode]]


class Asked(NamedTuple):
    """One transaction of the request, and who will know."""

    transactional_id: str
    partitions: list[TransactionPartition]
    """As asked for; one may be named twice, and is told of twice if all goes well."""
    ticket: Ticket[Results]


def handle(
    request: AddPartitionsToTxnRequest, call: Call
) -> AddPartitionsToTxnResponse | Waiting[AddPartitionsToTxnResponse]:
    """If one partition does not exist, none is added."""
    if call.version >= BATCHES_VERSION and not request.transactions:
        return AddPartitionsToTxnResponse(error_code=ErrorCode.INVALID_REQUEST)
    transactions = (
        request.transactions
        if call.version >= BATCHES_VERSION
        else [
            AddPartitionsToTxnTransaction(
                transactional_id=request.v3_and_below_transactional_id,
                producer_id=request.v3_and_below_producer_id,
                producer_epoch=request.v3_and_below_producer_epoch,
                topics=request.v3_and_below_topics,
            )
        ]
    )
    asked = [ask(call, transaction) for transaction in transactions]
    return answer_of_all([one.ticket for one in asked], lambda: answer(asked, call.version))


def ask(call: Call, transaction: AddPartitionsToTxnTransaction) -> Asked:
    partitions = list(named(transaction.topics))
    ticket: Ticket[Results] = Ticket(lambda code: [(partition, code) for partition in partitions])
    asked = Asked(transaction.transactional_id, partitions, ticket)
    errors = {partition: check(call, partition) for partition in partitions}
    if any(code is not ErrorCode.NONE for code in errors.values()):
        ticket.settle(
            [
                (partition, ErrorCode.OPERATION_NOT_ATTEMPTED if code is ErrorCode.NONE else code)
                for partition, code in errors.items()
            ]
        )
        return asked
    identity = Identity(transaction.producer_id, transaction.producer_epoch)
    if transaction.verify_only:
        verify(call, asked, identity)
    else:
        add(call, asked, identity)
    return asked


def check(call: Call, partition: TransactionPartition) -> ErrorCode:
    """Whether a partition may become part of a transaction."""
    if call.version < BATCHES_VERSION and partition[0] in INTERNAL_TOPICS:
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED  # clients have no business there, whoever they are
    if call.services.image.partition(*partition) is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.NONE


def add(call: Call, asked: Asked, identity: Identity) -> None:
    added = commands.add_partitions(
        call.services.transactions,
        asked.transactional_id,
        identity,
        asked.partitions,
        version=EPOCH_BUMP_VERSION if call.version >= BATCHES_VERSION else 0,
    )

    def tell() -> None:
        code = added.outcome
        if code is ErrorCode.PRODUCER_FENCED and call.version < PRODUCER_FENCED_VERSION:
            code = ErrorCode.INVALID_PRODUCER_EPOCH
        asked.ticket.refuse(code)

    added.then(tell)


def verify(call: Call, asked: Asked, identity: Identity) -> None:
    verified = commands.verify_partitions(
        call.services.transactions, asked.transactional_id, identity, asked.partitions
    )

    def tell() -> None:
        outcome = verified.outcome
        if outcome.error is not ErrorCode.NONE:
            asked.ticket.refuse(outcome.error)
        else:
            asked.ticket.settle(list(zip(asked.partitions, outcome.codes, strict=True)))

    verified.then(tell)


def named(topics: Iterable[AddPartitionsToTxnTopic]) -> Iterable[TransactionPartition]:
    return ((topic.name, partition) for topic in topics for partition in topic.partitions)


def answer(asked: list[Asked], version: int) -> AddPartitionsToTxnResponse:
    results = [
        AddPartitionsToTxnResult(
            transactional_id=one.transactional_id, topic_results=topics(one.ticket.outcome)
        )
        for one in asked
    ]
    if version >= BATCHES_VERSION:
        return AddPartitionsToTxnResponse(results_by_transaction=results)
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results[0].topic_results)


def topics(told: Results) -> list[AddPartitionsToTxnTopicResult]:
    results: dict[str, AddPartitionsToTxnTopicResult] = {}
    for (topic, partition), code in told:
        if topic not in results:
            results[topic] = AddPartitionsToTxnTopicResult(name=topic)
        results[topic].results_by_partition.append(
            AddPartitionsToTxnPartitionResult(partition_index=partition, partition_error_code=code)
        )
    return list(results.values())


def error_response(request: AddPartitionsToTxnRequest, code: ErrorCode) -> AddPartitionsToTxnResponse:
    """``code`` for the request, or, in an old version, for every partition."""
    return AddPartitionsToTxnResponse(
        error_code=code,
        results_by_topic_v3_and_below=topics(
            [(partition, code) for partition in named(request.v3_and_below_topics)]
        ),
    )
