"""Asking another broker, which is the coordinator, about transactional batches: AddPartitionsToTxn.

Questions that come while a request is under way go together into the next one.
"""

from collections import deque
from typing import TYPE_CHECKING, Final

from broker.coordination.clients import Client
from broker.network.node_batches import NodeBatches
from broker.network.node_client import NodeClient, NodeUnreachable
from broker.transactions.verification import Question, told
from protocol.error_codes import ErrorCode
from protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)

if TYPE_CHECKING:
    import trio

    from broker.services import Services
    from broker.transactions.service import TransactionService

TRANSACTIONS_PER_REQUEST_MAX: Final = 1000


class RemoteVerification:
    """The coordinators on other brokers, for whoever writes transactional batches here."""

    def __init__(self, services: "Services", transactions: "TransactionService") -> None:
        self._services = services
        self._transactions = transactions
        self._batches: NodeBatches[Question] = NodeBatches(
            services, self._nursery, "transaction-verification", self._exchange
        )
        self._timeout_seconds = services.config.get("request.timeout.ms") / 1000

    def ask(self, broker_id: int, question: Question) -> None:
        """Its ticket is settled later: with NETWORK_EXCEPTION if the broker cannot be asked."""
        self._batches.add(broker_id, question)

    def _nursery(self) -> "trio.Nursery | None":
        return self._transactions.nursery

    async def _exchange(self, broker_id: int, client: NodeClient, queue: deque[Question]) -> None:
        questions = _taken(queue)
        request = AddPartitionsToTxnRequest(transactions=[_transaction(each) for each in questions.values()])
        try:
            answer: AddPartitionsToTxnResponse = await client.ask(
                request, timeout_seconds=self._timeout_seconds
            )
        except NodeUnreachable as error:
            self._services.log.warn_seldom(
                f"broker {broker_id}, which looks after transactions, cannot be asked about them: {error}"
            )
            for question in questions.values():
                question.ticket.refuse(ErrorCode.NETWORK_EXCEPTION)
            return
        if answer.error_code:
            code = ErrorCode(answer.error_code)
            if code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
                code = ErrorCode.INVALID_TXN_STATE  # what this broker may do is no matter of the producer's
            for question in questions.values():
                question.ticket.refuse(code)
            return
        for result in answer.results_by_transaction:
            known = questions.get(result.transactional_id)
            if known is not None:
                known.ticket.settle(
                    {
                        (topic.name, each.partition_index): told(
                            ErrorCode(each.partition_error_code), known.client
                        )
                        for topic in result.topic_results
                        for each in topic.results_by_partition
                        if each.partition_error_code
                    }
                )
        for question in questions.values():
            question.ticket.refuse(ErrorCode.UNKNOWN_SERVER_ERROR)  # only those that are not in the answer


def _taken(queue: deque[Question]) -> dict[str, Question]:
    """What goes into the next request, which can name a transactional id once; the rest stays, in order."""
    taken: dict[str, Question] = {}
    left: list[Question] = []
    while queue and len(taken) < TRANSACTIONS_PER_REQUEST_MAX:
        question = queue.popleft()
        if question.transactional_id in taken:
            left.append(question)
        else:
            taken[question.transactional_id] = question
    queue.extendleft(reversed(left))
    return taken


def _transaction(question: Question) -> AddPartitionsToTxnTransaction:
    topics: dict[str, AddPartitionsToTxnTopic] = {}
    for name, partition in question.partitions:
        if name not in topics:
            topics[name] = AddPartitionsToTxnTopic(name=name)
        topics[name].partitions.append(partition)
    return AddPartitionsToTxnTransaction(
        transactional_id=question.transactional_id,
        producer_id=question.identity.producer_id,
        producer_epoch=question.identity.producer_epoch,
        verify_only=question.client is not Client.ADDS,
        topics=list(topics.values()),
    )
