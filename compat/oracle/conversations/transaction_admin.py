"""DescribeTransactions and ListTransactions (KIP-664)."""

from compat.oracle.conversation import conversation
from compat.oracle.conversations.transactions import (
    ABORT,
    COMMIT,
    begin,
    describe,
    end,
    open_transaction,
    stick,
    until_at_rest,
)
from compat.oracle.talk import Talk
from protocol.api_keys import ApiKey
from protocol.messages.describe_transactions import DescribeTransactionsRequest
from protocol.messages.list_transactions import ListTransactionsRequest

LISTING = ApiKey.LIST_TRANSACTIONS


@conversation(ApiKey.DESCRIBE_TRANSACTIONS)
def describing_transactions(talk: Talk) -> None:
    topic, other = talk.topic("t", 2), talk.topic("u")
    writer = begin(talk)
    talk.ask("a new one", describe(writer))
    open_transaction(talk, writer, (topic, 0), (topic, 1), (other, 0))
    talk.ask("an open one", describe(writer))
    talk.quietly(end(writer, COMMIT), version=4)
    until_at_rest(talk, writer)
    talk.ask("a committed one", describe(writer))
    unknown = talk.name("unknown")
    talk.ask("an unknown one", DescribeTransactionsRequest(transactional_ids=[unknown]))
    talk.ask("one without id", DescribeTransactionsRequest(transactional_ids=[""]))
    talk.ask("none", DescribeTransactionsRequest())
    ids = [writer.id, unknown, writer.id]
    talk.ask("several, and one twice", DescribeTransactionsRequest(transactional_ids=ids))


@conversation(LISTING)
def listing_transactions(talk: Talk) -> None:
    topic = talk.topic("t")
    empty, opened, done = begin(talk, "empty"), begin(talk, "opened"), begin(talk, "done")
    open_transaction(talk, opened, (topic, 0))
    open_transaction(talk, done, (topic, 0))
    talk.quietly(end(done, ABORT), version=4)
    until_at_rest(talk, done)
    stick(talk, begin(talk, "ending"), talk.topic("u"), COMMIT)
    talk.ask("all", ListTransactionsRequest())
    for states in (
        ["Ongoing"],
        ["Empty", "CompleteAbort"],
        ["PrepareCommit"],
        ["Dead"],
        ["PrepareEpochFence"],
    ):
        talk.ask(" and ".join(states), ListTransactionsRequest(state_filters=states))
    unknown = ListTransactionsRequest(state_filters=["ongoing", "Nothing", "Nothing", "Ongoing"])
    talk.ask("unknown states", unknown)
    talk.ask("unknown states alone", ListTransactionsRequest(state_filters=["x"]))
    wanted = [empty.producer_id, done.producer_id, 2**62]
    talk.ask("of producers", ListTransactionsRequest(producer_id_filters=wanted))
    both = ListTransactionsRequest(producer_id_filters=wanted, state_filters=["Empty"])
    talk.ask("of producers and states", both)
    if talk.version_of(LISTING) >= 1:
        for duration_ms in (0, 3_600_000, -2):
            talk.ask(f"for {duration_ms} ms", ListTransactionsRequest(duration_filter=duration_ms))
    if talk.version_of(LISTING) >= 2:
        for pattern in (".*opened", "opened", ".*-(empty|done)", "", "(", "(?=a)", ".*OPENED"):
            request = ListTransactionsRequest(transactional_id_pattern=pattern)
            talk.ask(f"like {pattern or 'nothing'}", request)
