"""DescribeTransactions (65): the state of transactional ids (KIP-664)."""

from broker.coordination.tickets import answer_of_all
from broker.network.call import Call
from broker.network.waiting import Waiting
from broker.transactions import commands
from broker.transactions.requests import Described
from protocol.error_codes import ErrorCode
from protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)


def handle(
    request: DescribeTransactionsRequest, call: Call
) -> DescribeTransactionsResponse | Waiting[DescribeTransactionsResponse]:
    tickets = [commands.describe(call.services.transactions, each) for each in request.transactional_ids]
    return answer_of_all(
        tickets,
        lambda: DescribeTransactionsResponse(
            transaction_states=[described(ticket.outcome) for ticket in tickets]
        ),
    )


def described(transaction: Described) -> TransactionState:
    if transaction.state is None:
        return TransactionState(error_code=transaction.error, transactional_id=transaction.transactional_id)
    topics: dict[str, TopicData] = {}
    for topic, partition in transaction.partitions:
        if topic not in topics:
            topics[topic] = TopicData(topic=topic)
        topics[topic].partitions.append(partition)
    return TransactionState(
        transactional_id=transaction.transactional_id,
        transaction_state=transaction.state.title,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_start_time_ms=transaction.start_ms,
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        topics=list(topics.values()),
    )


def error_response(request: DescribeTransactionsRequest, code: ErrorCode) -> DescribeTransactionsResponse:
    """``code`` for every id: there is no other place for it."""
    return DescribeTransactionsResponse(
        transaction_states=[
            TransactionState(error_code=code, transactional_id=each) for each in request.transactional_ids
        ]
    )
