"""What a transaction's coordinator is asked by producers: identities, partitions, and how it ends."""

from typing import Any, NamedTuple

from compat.oracle.conversation import conversation
from compat.oracle.conversations.producers import identify
from compat.oracle.grouping import by_topic
from compat.oracle.preparing import NOWHERE, Topic
from compat.oracle.talk import Talk
from protocol.api_keys import ApiKey
from protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from protocol.messages.describe_transactions import DescribeTransactionsRequest
from protocol.messages.end_txn import EndTxnRequest
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)

COMMIT, ABORT = True, False

AT_REST = "Empty", "CompleteCommit", "CompleteAbort"
"""States of a transactional id of which nothing is open."""

BATCHES_VERSION = 4
"""The first version of AddPartitionsToTxn that is for several transactions."""

FAR_AHEAD = 1000
"""The epoch of a coordinator that no broker reaches in the time of a test."""


class Writer(NamedTuple):
    """A transactional id and the identity that its producer has now."""

    id: str
    producer_id: int
    epoch: int

    def after(self, answer: Any) -> "Writer":
        """The identity that an answer gives, if it gives one."""
        if answer.error_code or answer.producer_id < 0:
            return self
        return self._replace(producer_id=answer.producer_id, epoch=answer.producer_epoch)


def begin(talk: Talk, name: str = "x", timeout_ms: int = 60_000) -> Writer:
    """A transactional id with an identity."""
    transactional_id = talk.name(name)
    request = identify(transactional_id=transactional_id, timeout_ms=timeout_ms)
    return Writer(transactional_id, -1, -1).after(talk.ask(f"identity of {name}", request))


def topics_of(*places: tuple[Topic, int]) -> list[AddPartitionsToTxnTopic]:
    return [
        AddPartitionsToTxnTopic(name=topic.name, partitions=[index for (index,) in partitions])
        for topic, partitions in by_topic(places)
    ]


def of_writer(
    writer: Writer, *places: tuple[Topic, int], verify: bool = False
) -> AddPartitionsToTxnTransaction:
    return AddPartitionsToTxnTransaction(
        transactional_id=writer.id,
        producer_id=writer.producer_id,
        producer_epoch=writer.epoch,
        verify_only=verify,
        topics=topics_of(*places),
    )


def add(talk: Talk, writer: Writer, *places: tuple[Topic, int]) -> AddPartitionsToTxnRequest:
    """AddPartitionsToTxn as a client of the round's version sends it."""
    if talk.version_of(ApiKey.ADD_PARTITIONS_TO_TXN) >= BATCHES_VERSION:
        return AddPartitionsToTxnRequest(transactions=[of_writer(writer, *places)])
    return old_add(writer, *places)


def old_add(writer: Writer, *places: tuple[Topic, int]) -> AddPartitionsToTxnRequest:
    return AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=writer.id,
        v3_and_below_producer_id=writer.producer_id,
        v3_and_below_producer_epoch=writer.epoch,
        v3_and_below_topics=topics_of(*places),
    )


def end(writer: Writer, committed: bool) -> EndTxnRequest:
    return EndTxnRequest(
        transactional_id=writer.id,
        producer_id=writer.producer_id,
        producer_epoch=writer.epoch,
        committed=committed,
    )


def open_transaction(talk: Talk, writer: Writer, *places: tuple[Topic, int]) -> None:
    """Add partitions without telling of it, and wait for what was before to end."""
    until_at_rest(talk, writer)
    answer = talk.quietly(old_add(writer, *places), version=3)
    codes = [
        result.partition_error_code
        for topic in answer.results_by_topic_v3_and_below
        for result in topic.results_by_partition
    ]
    assert not any(codes), answer


def until_at_rest(talk: Talk, writer: Writer) -> None:
    """Wait until every partition has its marker."""
    talk.until(
        DescribeTransactionsRequest(transactional_ids=[writer.id]),
        lambda answer: answer.transaction_states[0].transaction_state in AT_REST,
    )


def marker(
    writer: Writer,
    *places: tuple[Topic, int],
    committed: bool = ABORT,
    coordinator_epoch: int = 0,
) -> WriteTxnMarkersRequest:
    return WriteTxnMarkersRequest(
        markers=[
            WritableTxnMarker(
                producer_id=writer.producer_id,
                producer_epoch=writer.epoch,
                transaction_result=committed,
                coordinator_epoch=coordinator_epoch,
                topics=[
                    WritableTxnMarkerTopic(
                        name=topic.name, partition_indexes=[index for (index,) in partitions]
                    )
                    for topic, partitions in by_topic(places)
                ],
            )
        ]
    )


def stick(talk: Talk, writer: Writer, topic: Topic, committed: bool) -> Writer:
    """Leave a transaction between its decision and its end: a partition has met a later coordinator.

    Returns the producer as it was before the end.
    """
    talk.quietly(marker(writer, (topic, 0), coordinator_epoch=FAR_AHEAD))
    open_transaction(talk, writer, (topic, 0))
    answer = talk.quietly(end(writer, committed), version=4)
    assert not answer.error_code, answer
    return writer


def describe(*writers: Writer) -> DescribeTransactionsRequest:
    return DescribeTransactionsRequest(transactional_ids=[writer.id for writer in writers])


# Identities


@conversation(ApiKey.INIT_PRODUCER_ID)
def identities_of_a_transactional_id(talk: Talk) -> None:
    transactional_id = talk.name("x")
    for label in ("first", "second", "third"):
        talk.ask(label, identify(transactional_id=transactional_id))
    talk.ask("of another", identify(transactional_id=talk.name("y")))
    talk.ask("what is known", DescribeTransactionsRequest(transactional_ids=[transactional_id]))


@conversation(ApiKey.INIT_PRODUCER_ID)
def timeouts_of_transactions(talk: Talk) -> None:
    transactional_id = talk.name("x")
    for timeout_ms in (0, -1, -(2**31), 900_001, 2**31 - 1, 900_000, 1):
        label = f"{timeout_ms} ms"
        talk.ask(label, identify(transactional_id=transactional_id, timeout_ms=timeout_ms))
    talk.ask("what is known", DescribeTransactionsRequest(transactional_ids=[transactional_id]))


@conversation(ApiKey.INIT_PRODUCER_ID, rounds="3+")
def an_identity_to_go_on_with(talk: Talk) -> None:
    """KIP-360."""
    writer = begin(talk)

    def ask(label: str, producer_id: int, epoch: int, name: str = "x") -> Any:
        return talk.ask(label, identify(producer_id, epoch, transactional_id=talk.name(name)))

    ask("an id that nobody knows", 123_456, 5, "unknown")
    ask("the present one", writer.producer_id, 0)
    ask("the one before, as if the answer was lost", writer.producer_id, 0)
    ask("the present one again", writer.producer_id, 1)
    ask("two before", writer.producer_id, 0)
    ask("one that does not exist yet", writer.producer_id, 7)
    ask("of another id", writer.producer_id + 1_000_000, 2)
    ask("an id without epoch", writer.producer_id, -1)
    ask("an epoch without id", -1, 2)
    talk.ask("no identity", identify(transactional_id=writer.id))
    ask("the one before that", writer.producer_id, 2)
    ask("the present one after that", writer.producer_id, 3)


@conversation(ApiKey.INIT_PRODUCER_ID)
def identities_while_a_transaction_is_open(talk: Talk) -> None:
    topic = talk.topic("t")
    writer = begin(talk)
    open_transaction(talk, writer, (topic, 0))
    talk.ask("what is open", describe(writer))
    talk.ask("while it is open", identify(transactional_id=writer.id))
    until_at_rest(talk, writer)
    talk.ask("what is left", describe(writer))
    talk.ask("end of the fenced", end(writer, ABORT))
    talk.ask("commit of the fenced", end(writer, COMMIT))
    talk.ask("end of the fenced in version 4", end(writer, ABORT), version=4)
    talk.ask("partitions of the fenced", old_add(writer, (topic, 0)), version=3)
    again = writer.after(talk.ask("once more", identify(transactional_id=writer.id)))
    talk.ask("partitions of the new", old_add(again, (topic, 0)), version=3)


@conversation(ApiKey.INIT_PRODUCER_ID, rounds="3+")
def going_on_while_a_transaction_is_open(talk: Talk) -> None:
    topic = talk.topic("t")
    writer = begin(talk)
    open_transaction(talk, writer, (topic, 0))
    known = identify(writer.producer_id, 0, transactional_id=writer.id)
    talk.ask("with a wrong epoch", identify(writer.producer_id, 9, transactional_id=writer.id))
    until_at_rest(talk, writer)
    talk.ask("what is left", describe(writer))
    open_transaction(talk, writer._replace(epoch=1), (topic, 0))
    talk.ask("with a wrong id", identify(writer.producer_id + 9, 1, transactional_id=writer.id))
    talk.ask("with the identity before", known)
    until_at_rest(talk, writer)
    talk.ask("what is left now", describe(writer))
    talk.ask("once more with the first identity", known)
    talk.ask(
        "once more with the one that was fenced",
        identify(writer.producer_id, 1, transactional_id=writer.id),
    )
    talk.ask(
        "once more with the one that fenced it", identify(writer.producer_id, 2, transactional_id=writer.id)
    )


@conversation(ApiKey.INIT_PRODUCER_ID)
def identities_while_a_transaction_ends(talk: Talk) -> None:
    topic = talk.topic("t")
    for name, committed in (("committed", COMMIT), ("aborted", ABORT)):
        writer = stick(talk, begin(talk, name), topic, committed)
        talk.ask(f"while it is {name}", identify(transactional_id=writer.id))
        if talk.version_of(ApiKey.INIT_PRODUCER_ID) >= 3:
            known = identify(writer.producer_id, writer.epoch, transactional_id=writer.id)
            talk.ask(f"with its identity, while it is {name}", known)
            known.producer_id += 9
            talk.ask(f"with another, while it is {name}", known)


# Partitions

ADDING = ApiKey.ADD_PARTITIONS_TO_TXN


@conversation(ADDING)
def adding_partitions(talk: Talk) -> None:
    topic, other = talk.topic("t", 3), talk.topic("u")
    writer = begin(talk)

    def ask(label: str, who: Writer, *places: tuple[Topic, int]) -> None:
        talk.ask(label, add(talk, who, *places))

    ask("of an unknown id", writer._replace(id=talk.name("unknown")), (topic, 0))
    ask("of no id", writer._replace(id=""), (topic, 0))
    ask("with a wrong producer id", writer._replace(producer_id=writer.producer_id + 9), (topic, 0))
    ask("with an older epoch", writer._replace(epoch=-1), (topic, 0))
    ask("with a newer epoch", writer._replace(epoch=1), (topic, 0))
    ask("none", writer)
    talk.ask("what is open after none", describe(writer))
    ask("two", writer, (topic, 0), (topic, 1))
    ask("one of them again", writer, (topic, 1))
    ask("one of them and another", writer, (topic, 1), (other, 0))
    ask("an unknown topic", writer, (NOWHERE, 0))
    ask("an unknown partition", writer, (topic, 3))
    ask("a negative partition", writer, (topic, -1))
    ask("known and unknown ones", writer, (topic, 2), (NOWHERE, 0), (NOWHERE, 1), (other, 7))
    ask("the same twice", writer, (topic, 2), (topic, 2))
    ask("an internal topic", writer, (talk.known_topic("__consumer_offsets"), 0))
    talk.ask("what is open", describe(writer))


@conversation(ADDING)
def adding_partitions_while_a_transaction_ends(talk: Talk) -> None:
    topic = talk.topic("t")
    for name, committed in (("committed", COMMIT), ("aborted", ABORT)):
        writer = stick(talk, begin(talk, name), topic, committed)
        talk.ask(f"while it is {name}", add(talk, writer, (topic, 0)))
        newer = writer._replace(epoch=writer.epoch + 1)
        talk.ask(f"with the next epoch, while it is {name}", add(talk, newer, (topic, 0)))
        wrong = writer._replace(producer_id=writer.producer_id + 9)
        talk.ask(f"with a wrong producer id, while it is {name}", add(talk, wrong, (topic, 0)))


@conversation(ADDING, ApiKey.END_TXN)
def one_transaction_after_another(talk: Talk) -> None:
    topic = talk.topic("t")
    writer = begin(talk)
    for label, committed in (("first", COMMIT), ("second", ABORT), ("third", COMMIT)):
        talk.ask(f"partition of the {label}", add(talk, writer, (topic, 0)))
        talk.ask(f"what is open in the {label}", describe(writer))
        writer = writer.after(talk.ask(f"end of the {label}", end(writer, committed)))
        until_at_rest(talk, writer)
        talk.ask(f"what is left of the {label}", describe(writer))


@conversation(ADDING, rounds="4+")
def verifying(talk: Talk) -> None:
    topic = talk.topic("t", 3)
    writer = begin(talk)

    def ask(label: str, who: Writer, *places: tuple[Topic, int]) -> None:
        request = AddPartitionsToTxnRequest(transactions=[of_writer(who, *places, verify=True)])
        talk.ask(label, request)

    ask("before anything is open", writer, (topic, 0))
    open_transaction(talk, writer, (topic, 0), (topic, 1))
    ask("what is added", writer, (topic, 0), (topic, 1))
    ask("what is not", writer, (topic, 2))
    ask("some of it", writer, (topic, 1), (topic, 2))
    ask("nothing", writer)
    ask("what does not exist", writer, (topic, 0), (NOWHERE, 0))
    ask("an unknown id", writer._replace(id=talk.name("unknown")), (topic, 0))
    ask("no id", writer._replace(id=""), (topic, 0))
    ask("a wrong producer id", writer._replace(producer_id=writer.producer_id + 9), (topic, 0))
    ask("a newer epoch", writer._replace(epoch=5), (topic, 0))
    talk.quietly(end(writer, COMMIT), version=4)
    until_at_rest(talk, writer)
    ask("what is over", writer, (topic, 0))
    for name, committed in (("committed", COMMIT), ("aborted", ABORT)):
        stuck = stick(talk, begin(talk, name), topic, committed)
        ask(f"what is being {name}", stuck, (topic, 0))
        ask(f"what is being {name}, with the next epoch", stuck._replace(epoch=1), (topic, 0))


@conversation(ADDING, rounds="4+")
def several_transactions_at_once(talk: Talk) -> None:
    topic = talk.topic("t", 2)
    first, second = begin(talk, "x"), begin(talk, "y")
    unknown = first._replace(id=talk.name("z"))
    transactions = [
        of_writer(first, (topic, 0)),
        of_writer(second, (topic, 1), verify=True),
        of_writer(unknown, (topic, 1)),
    ]
    talk.ask("of three", AddPartitionsToTxnRequest(transactions=transactions))
    talk.ask("what is open", describe(first, second, unknown))


@conversation(ADDING, rounds="4+")
def adding_for_no_transaction(talk: Talk) -> None:
    talk.ask("no transaction", AddPartitionsToTxnRequest(), patience_seconds=2)


@conversation(ApiKey.ADD_OFFSETS_TO_TXN)
def adding_offsets(talk: Talk) -> None:
    topic = talk.topic("t")
    writer = begin(talk)
    group = talk.name("g")

    def ask(label: str, who: Writer, to: str = group) -> None:
        request = AddOffsetsToTxnRequest(
            transactional_id=who.id, producer_id=who.producer_id, producer_epoch=who.epoch, group_id=to
        )
        talk.ask(label, request)

    ask("of an unknown id", writer._replace(id=talk.name("unknown")))
    ask("of no id", writer._replace(id=""))
    ask("with a wrong producer id", writer._replace(producer_id=writer.producer_id + 9))
    ask("with an older epoch", writer._replace(epoch=-1))
    ask("with a newer epoch", writer._replace(epoch=1))
    ask("of a group", writer)
    ask("of the same group", writer)
    ask("of a group without name", writer, "")
    talk.quietly(end(writer, ABORT), version=4)
    until_at_rest(talk, writer)
    for name, committed in (("committed", COMMIT), ("aborted", ABORT)):
        ask(f"while it is {name}", stick(talk, begin(talk, name), topic, committed))


# Ends

ENDING = ApiKey.END_TXN


@conversation(ENDING)
def ending_what_is_not_open(talk: Talk) -> None:
    writer = begin(talk)
    talk.ask("commit of an unknown id", end(writer._replace(id=talk.name("unknown")), COMMIT))
    talk.ask("commit of no id", end(writer._replace(id=""), COMMIT))
    talk.ask("commit of nothing", end(writer, COMMIT))
    talk.ask("commit with a newer epoch", end(writer._replace(epoch=1), COMMIT))
    talk.ask("abort with a newer epoch", end(writer._replace(epoch=1), ABORT))
    talk.ask("abort with an older epoch", end(writer._replace(epoch=-1), ABORT))
    wrong = writer._replace(producer_id=writer.producer_id + 9)
    talk.ask("abort with a wrong producer id", end(wrong, ABORT))
    first = writer.after(talk.ask("abort of nothing", end(writer, ABORT)))
    until_at_rest(talk, writer)
    talk.ask("what is left", describe(writer))
    talk.ask("the same abort again", end(writer, ABORT))
    talk.ask("commit in its place", end(writer, COMMIT))
    second = first.after(talk.ask("another abort of nothing", end(first, ABORT)))
    until_at_rest(talk, writer)
    talk.ask("commit after that", end(second, COMMIT))
    talk.ask("abort of two before", end(writer._replace(epoch=second.epoch - 2), ABORT))


@conversation(ENDING)
def ending_what_is_open(talk: Talk) -> None:
    topic = talk.topic("t")
    for name, committed in (("commit", COMMIT), ("abort", ABORT)):
        writer = begin(talk, name)
        open_transaction(talk, writer, (topic, 0))
        other = writer._replace(producer_id=writer.producer_id + 9)
        talk.ask(f"{name} with a wrong producer id", end(other, committed))
        talk.ask(f"{name} with an older epoch", end(writer._replace(epoch=-1), committed))
        talk.ask(f"{name} with a newer epoch", end(writer._replace(epoch=1), committed))
        after = writer.after(talk.ask(name, end(writer, committed)))
        until_at_rest(talk, writer)
        talk.ask(f"what is left of the {name}", describe(writer))
        talk.ask(f"the same {name} again", end(writer, committed))
        talk.ask(f"the opposite of the {name}", end(writer, not committed))
        talk.ask(f"commit after the {name}, with the present epoch", end(after, COMMIT))
        last = after.after(talk.ask(f"abort after the {name}, with the present epoch", end(after, ABORT)))
        until_at_rest(talk, writer)
        talk.ask(f"{name} with an epoch of long ago", end(writer._replace(epoch=last.epoch - 3), committed))
        talk.ask(f"what is left after the {name}", describe(writer))


@conversation(ENDING)
def ending_what_is_ending(talk: Talk) -> None:
    topic = talk.topic("t")
    for name, committed in (("commit", COMMIT), ("abort", ABORT)):
        writer = begin(talk, name)
        talk.quietly(marker(writer, (topic, 0), coordinator_epoch=FAR_AHEAD))
        open_transaction(talk, writer, (topic, 0))
        after = writer.after(talk.ask(name, end(writer, committed)))
        talk.ask(f"the same {name} again", end(writer, committed))
        talk.ask(f"the opposite of the {name}", end(writer, not committed))
        if after != writer:
            talk.ask(f"the same {name} with the present epoch", end(after, committed))
            talk.ask(f"the opposite of the {name} with the present epoch", end(after, not committed))
        wrong = writer._replace(producer_id=writer.producer_id + 9)
        talk.ask(f"{name} with a wrong producer id", end(wrong, committed))
        talk.ask(f"{name} with an epoch that does not exist yet", end(writer._replace(epoch=9), committed))
        talk.ask(f"the state of the {name}", describe(writer))


@conversation(ENDING, rounds="5+")
def old_and_new_ends_in_turn(talk: Talk) -> None:
    topic = talk.topic("t")
    writer = begin(talk)
    for turn, version in enumerate((4, 5, 4, 5)):
        open_transaction(talk, writer, (topic, 0))
        writer = writer.after(talk.ask(f"end {turn}", end(writer, COMMIT), version=version))
        until_at_rest(talk, writer)
        talk.ask(f"what is left after {turn}", describe(writer))
    old = writer._replace(epoch=writer.epoch - 1)
    talk.ask("a new end again", end(old, COMMIT))
    talk.ask("a new end again, as an old one", end(old, COMMIT), version=4)
    talk.ask("an old end of nothing", end(writer, COMMIT), version=4)


@conversation(ApiKey.FIND_COORDINATOR, rounds="1+")
def coordinators_of_transactions(talk: Talk) -> None:
    if talk.version_of(ApiKey.FIND_COORDINATOR) < 4:
        talk.ask("of an id", FindCoordinatorRequest(key=talk.name("x"), key_type=1))
        talk.ask("of an empty id", FindCoordinatorRequest(key="", key_type=1))
    else:
        keys = [talk.name("x"), "", talk.name("y"), talk.name("x")]
        talk.ask("of several ids", FindCoordinatorRequest(coordinator_keys=keys, key_type=1))
