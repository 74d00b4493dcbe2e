"""Records in transactions: who may write them, and what readers see of them (KIP-98, KIP-890)."""

from compat.oracle.batches import batch
from compat.oracle.conversation import conversation
from compat.oracle.conversations.fetch import READ_COMMITTED, at, fetch
from compat.oracle.conversations.list_offsets import look_up
from compat.oracle.conversations.produce import produce
from compat.oracle.conversations.producers import describe as describe_producers
from compat.oracle.conversations.transactions import (
    ABORT,
    COMMIT,
    FAR_AHEAD,
    Writer,
    begin,
    describe,
    end,
    marker,
    open_transaction,
    stick,
    until_at_rest,
)
from compat.oracle.preparing import NOWHERE, Topic
from compat.oracle.talk import Talk
from protocol.api_keys import ApiKey
from protocol.messages.produce import ProduceRequest

EARLIEST, LATEST = -2, -1


def write(
    writer: Writer, *places: tuple[Topic, int], sequence: int = 0, transactional: bool = True
) -> ProduceRequest:
    """One record for each place."""
    records = batch("v", producer=(writer.producer_id, writer.epoch, sequence), transactional=transactional)
    return produce(*((topic, index, records) for topic, index in places), transactional_id=writer.id)


@conversation(ApiKey.PRODUCE, alone=True)
def writing_in_a_transaction(talk: Talk) -> None:
    topic = talk.topic("t", 4)
    writer = begin(talk)
    open_transaction(talk, writer, (topic, 0), (topic, 1))
    talk.ask("where it was announced", write(writer, (topic, 0)))
    talk.ask("more of it", write(writer, (topic, 0), sequence=1))
    talk.ask("the same again", write(writer, (topic, 0), sequence=1))
    talk.ask("where it was not", write(writer, (topic, 2)))
    talk.ask("in both kinds of places", write(writer, (topic, 1), (topic, 3)))
    talk.ask("outside the transaction", write(writer, (topic, 0), sequence=2, transactional=False))
    nameless = write(writer, (topic, 0), sequence=2)
    nameless.transactional_id = None
    talk.ask("without an id", nameless)
    talk.ask("where nothing is", write(writer, (NOWHERE, 0), (topic, 0), sequence=2))
    talk.ask("what is open", describe(writer))
    talk.ask("who writes", describe_producers((topic.name, 0), (topic.name, 2)))


@conversation(ApiKey.PRODUCE)
def after_a_stranger_was_refused(talk: Talk) -> None:
    topic = talk.topic("t")
    writer = begin(talk)
    open_transaction(talk, writer, (topic, 0))
    talk.ask("its first", write(writer, (topic, 0)))
    talk.ask("the stranger's", write(writer._replace(epoch=3), (topic, 0)))
    talk.ask("its second", write(writer, (topic, 0), sequence=1))


@conversation(ApiKey.PRODUCE, alone=True)
def writing_as_somebody_else(talk: Talk) -> None:
    topic = talk.topic("t", 2)
    writer = begin(talk)
    unknown = writer._replace(id=talk.name("unknown"))
    talk.ask("of an unknown id", write(unknown, (topic, 0)))
    talk.ask("before it is open", write(begin(talk, "early"), (topic, 0)))
    open_transaction(talk, writer, (topic, 1))
    talk.ask("with a wrong producer id", write(writer._replace(producer_id=7000), (topic, 1)))
    talk.ask("with a newer epoch", write(writer._replace(epoch=3), (topic, 1)))
    talk.ask("with its own", write(writer, (topic, 1)))
    talk.ask("of no id", write(writer._replace(id=""), (topic, 1), sequence=1))
    talk.ask("of an unknown id after that", write(unknown, (topic, 1), sequence=1))
    two = produce(
        (topic, 0, batch("v", producer=(writer.producer_id, 0, 0), transactional=True)),
        (topic, 1, batch("v", producer=(7000, 0, 0), transactional=True)),
        transactional_id=writer.id,
    )
    talk.ask("as two at once", two)
    two = produce(
        (topic, 0, batch("v", producer=(writer.producer_id, 0, 0), transactional=True)),
        (topic, 1, batch("v", producer=(writer.producer_id, 1, 0), transactional=True)),
        transactional_id=writer.id,
    )
    talk.ask("in two epochs at once", two)
    mixed = produce(
        (topic, 0, batch("plain")),
        (topic, 1, batch("v", producer=(writer.producer_id, writer.epoch, 2), transactional=True)),
        transactional_id=writer.id,
    )
    talk.ask("with a plain batch beside it", mixed)
    nobody = produce((topic, 0, batch("v", transactional=True)), transactional_id=writer.id)
    talk.ask("without a producer id", nobody)


@conversation(ApiKey.PRODUCE, alone=True)
def writing_after_the_end(talk: Talk) -> None:
    topic = talk.topic("t", 2)
    for name, committed in (("commit", COMMIT), ("abort", ABORT)):
        writer = begin(talk, name)
        open_transaction(talk, writer, (topic, 0))
        talk.ask(f"before the {name}", write(writer, (topic, 0)))
        after = writer.after(talk.ask(f"the {name}", end(writer, committed)))
        until_at_rest(talk, writer)
        talk.ask(f"after the {name}, with the epoch before", write(writer, (topic, 0), sequence=1))
        talk.ask(f"after the {name}, with a gap", write(after, (topic, 0), sequence=1))
        talk.ask(f"after the {name}", write(after, (topic, 0)))
        talk.ask(f"elsewhere after the {name}, with a gap", write(after, (topic, 1), sequence=5))
        talk.ask(f"elsewhere after the {name}", write(after, (topic, 1)))
        talk.ask(f"what is open after the {name}", describe(writer))
        talk.quietly(end(after, ABORT))
        until_at_rest(talk, writer)


@conversation(ApiKey.PRODUCE, alone=True)
def writing_while_a_transaction_ends(talk: Talk) -> None:
    topic, other = talk.topic("t"), talk.topic("u")
    for name, committed in (("committed", COMMIT), ("aborted", ABORT)):
        writer = stick(talk, begin(talk, name), topic, committed)
        talk.ask(f"while it is {name}", write(writer, (topic, 0)))
        talk.ask(f"elsewhere while it is {name}", write(writer, (other, 0)))
        newer = writer._replace(epoch=1)
        talk.ask(f"with the next epoch, while it is {name}", write(newer, (other, 0)))


@conversation(ApiKey.PRODUCE, rounds="12+")
def partitions_that_are_added_on_the_way(talk: Talk) -> None:
    topic = talk.topic("t", 3)
    writer = begin(talk)
    talk.ask("the first", write(writer, (topic, 0)))
    talk.ask("what is open", describe(writer))
    talk.ask("two more", write(writer, (topic, 1), (topic, 2)))
    talk.ask("one again", write(writer, (topic, 1), sequence=1))
    talk.ask("what is open now", describe(writer))
    after = writer.after(talk.ask("commit", end(writer, COMMIT)))
    until_at_rest(talk, writer)
    talk.ask("the same transaction again", write(writer, (topic, 0), sequence=1))
    talk.ask("the next", write(after, (topic, 0)))
    talk.ask("what is open in the end", describe(writer))


@conversation(ApiKey.FETCH, ApiKey.LIST_OFFSETS)
def reading_transactions(talk: Talk) -> None:
    topic = talk.topic("t")

    def read(label: str) -> None:
        for offset in (0, 2, 4):
            talk.ask(f"all from {offset} {label}", fetch(at(topic, offset=offset)))
            committed = fetch(at(topic, offset=offset), isolation=READ_COMMITTED)
            talk.ask(f"committed from {offset} {label}", committed)
        for name, timestamp in (("earliest", EARLIEST), ("latest", LATEST)):
            talk.ask(f"{name} {label}", look_up((topic.name, 0, timestamp)))
            if talk.version_of(ApiKey.LIST_OFFSETS) >= 2:
                committed_only = look_up((topic.name, 0, timestamp), isolation=READ_COMMITTED)
                talk.ask(f"{name} committed {label}", committed_only)

    first, second = begin(talk, "x"), begin(talk, "y")
    talk.produce(topic, "plain")
    open_transaction(talk, first, (topic, 0))
    talk.quietly(write(first, (topic, 0)))
    read("while one is open")
    open_transaction(talk, second, (topic, 0))
    talk.quietly(write(second, (topic, 0)))
    talk.produce(topic, "plain")
    talk.quietly(end(second, COMMIT), version=4)
    until_at_rest(talk, second)
    read("after the second was committed")
    talk.quietly(end(first, ABORT), version=4)
    until_at_rest(talk, first)
    read("after the first was aborted")
    open_transaction(talk, second, (topic, 0))
    talk.quietly(write(second, (topic, 0), sequence=1))
    talk.quietly(end(second, ABORT), version=4)
    until_at_rest(talk, second)
    read("after both were aborted")
    talk.ask("who wrote", describe_producers((topic.name, 0)))


@conversation(ApiKey.FETCH)
def waiting_for_the_end(talk: Talk) -> None:
    """A reader of what is committed waits for the marker, not for the record."""
    topic = talk.topic("t")
    writer = begin(talk)
    open_transaction(talk, writer, (topic, 0))
    talk.start("committed", fetch(at(topic), isolation=READ_COMMITTED, max_wait_ms=60_000), by="reader")
    talk.let_wait()
    talk.quietly(write(writer, (topic, 0)))
    talk.let_wait()
    talk.quietly(end(writer, COMMIT), version=4)
    talk.finish("committed")


MARKERS = ApiKey.WRITE_TXN_MARKERS


@conversation(MARKERS)
def markers(talk: Talk) -> None:
    topic = talk.topic("t", 2)
    writer = Writer("", 7000, 5)
    talk.ask("of a producer that nobody knows", marker(writer, (topic, 0)))
    talk.ask("of the same again", marker(writer, (topic, 0), committed=COMMIT))
    talk.ask("with an older epoch", marker(writer._replace(epoch=4), (topic, 0)))
    talk.ask("with a newer epoch", marker(writer._replace(epoch=6), (topic, 0)))
    writer = writer._replace(epoch=6)
    talk.ask("of a later coordinator", marker(writer, (topic, 0), coordinator_epoch=3))
    talk.ask("of an earlier coordinator", marker(writer, (topic, 0), coordinator_epoch=2))
    talk.ask("of the same coordinator", marker(writer, (topic, 0), coordinator_epoch=3))
    talk.ask("to several places", marker(writer, (topic, 0), (NOWHERE, 0), (topic, 1), (topic, 7)))
    talk.ask("to nowhere", marker(writer))
    talk.ask("none", type(marker(writer))())
    offsets = talk.known_topic("__consumer_offsets")
    talk.ask("to the offsets of groups", marker(writer, (offsets, 0), (offsets, 99)))
    several = marker(writer, (topic, 0))
    several.markers += marker(writer, (topic, 1)).markers
    several.markers += marker(writer._replace(producer_id=7001), (topic, 0)).markers
    talk.ask("several", several)
    newer = marker(writer, (topic, 0))
    if talk.version_of(MARKERS) >= 2:
        for version in (0, 1, 2, 3, -1):
            newer.markers[0].transaction_version = version
            talk.ask(f"of transaction version {version}", newer)
    talk.ask("who wrote", describe_producers((topic.name, 0)))
    talk.ask("what was written", fetch(at(topic), isolation=READ_COMMITTED))


@conversation(MARKERS)
def ending_a_transaction_by_hand(talk: Talk) -> None:
    """What kafka-transactions does with one that hangs."""
    topic = talk.topic("t")
    writer = begin(talk)
    open_transaction(talk, writer, (topic, 0))
    talk.quietly(write(writer, (topic, 0)))
    talk.ask("who writes", describe_producers((topic.name, 0)))
    talk.ask("the end", marker(writer, (topic, 0)))
    talk.ask("who wrote", describe_producers((topic.name, 0)))
    talk.ask("what is left", fetch(at(topic), isolation=READ_COMMITTED))
    talk.ask("more of the transaction", write(writer, (topic, 0), sequence=1))
    talk.ask("what the coordinator thinks", describe(writer))


@conversation(MARKERS, rounds="2+")
def markers_by_transaction_version(talk: Talk) -> None:
    topic = talk.topic("t")
    writer = begin(talk)
    open_transaction(talk, writer, (topic, 0))
    talk.quietly(write(writer, (topic, 0)))
    request = marker(writer, (topic, 0))
    request.markers[0].transaction_version = 2
    talk.ask("of version 2 with the epoch of the records", request)
    request.markers[0].producer_epoch += 1
    talk.ask("of version 2 with the next epoch", request)
    talk.ask("of version 2 with the next epoch again", request)
    request.markers[0].coordinator_epoch = FAR_AHEAD
    talk.ask("of version 2 from a later coordinator", request)
    talk.ask("who wrote", describe_producers((topic.name, 0)))
