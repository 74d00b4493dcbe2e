"""InitProducerId and DescribeProducers: the identities of idempotent producers."""

from compat.oracle.batches import batch
from compat.oracle.conversation import conversation
from compat.oracle.conversations.produce import produce
from compat.oracle.grouping import by_topic
from compat.oracle.preparing import NOWHERE
from compat.oracle.talk import Talk
from protocol.api_keys import ApiKey
from protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from protocol.messages.init_producer_id import InitProducerIdRequest


def identify(
    producer_id: int = -1, epoch: int = -1, transactional_id: str | None = None, timeout_ms: int = 60_000
) -> InitProducerIdRequest:
    return InitProducerIdRequest(
        transactional_id=transactional_id,
        transaction_timeout_ms=timeout_ms,
        producer_id=producer_id,
        producer_epoch=epoch,
    )


def describe(*places: tuple[str, int]) -> DescribeProducersRequest:
    return DescribeProducersRequest(
        topics=[
            TopicRequest(name=name, partition_indexes=[index for (index,) in partitions])
            for name, partitions in by_topic(places)
        ]
    )


@conversation(ApiKey.INIT_PRODUCER_ID)
def identities(talk: Talk) -> None:
    first = talk.ask("a new identity", identify())
    talk.ask("another", identify())
    talk.ask("no time", identify(timeout_ms=0))
    talk.ask("an identity to go on with", identify(first.producer_id, first.producer_epoch))
    talk.ask("an identity that nobody has", identify(123_456, 5))
    talk.ask("an id without epoch", identify(first.producer_id))
    talk.ask("an epoch without id", identify(epoch=3))
    talk.ask("an empty transactional id", identify(transactional_id=""))


@conversation(ApiKey.INIT_PRODUCER_ID)
def a_transactional_producer(talk: Talk) -> None:
    talk.ask("a transactional id", identify(transactional_id=talk.name("x")))


@conversation(ApiKey.INIT_PRODUCER_ID)
def an_idempotent_producer(talk: Talk) -> None:
    """From the identity to what is known of it."""
    topic = talk.topic("t")
    made = talk.ask("identity", identify())

    def send(label: str, epoch: int, sequence: int) -> None:
        records = batch("a", "b", producer=(made.producer_id, epoch, sequence))
        talk.ask(label, produce((topic, 0, records)))

    send("first", 0, 0)
    send("second", 0, 2)
    send("second again", 0, 2)
    send("fourth", 0, 6)
    send("with a newer epoch", 1, 0)
    talk.ask("what is known of it", describe((topic.name, 0)))


@conversation(ApiKey.DESCRIBE_PRODUCERS)
def describing(talk: Talk) -> None:
    topic = talk.topic("t", 2)
    talk.ask("nobody", describe((topic.name, 0)))
    talk.produce(topic, "a", "b", producer_id=7000, producer_epoch=3, base_sequence=5)
    talk.produce(topic, "c", "d")
    talk.ask("one", describe((topic.name, 0)))
    talk.produce(topic, "e", producer_id=7000, producer_epoch=4, base_sequence=0)
    talk.ask("a newer epoch", describe((topic.name, 0)))
    talk.ask("nowhere", describe())
    talk.ask("unknown topic", describe((NOWHERE.name, 0)))
    talk.ask("an invalid name", describe(("a b", 0)))
    talk.ask("unknown partition", describe((topic.name, 9)))
    twice = describe((topic.name, 0), (NOWHERE.name, 0))
    twice.topics += describe((topic.name, 1), (NOWHERE.name, 1)).topics
    talk.ask("topics named twice", twice)
    empty = describe((topic.name, 1))
    empty.topics += [TopicRequest(name=topic.name), TopicRequest(name=NOWHERE.name)]
    talk.ask("topics without partitions", empty)
    talk.ask("several", describe((topic.name, 1), (NOWHERE.name, 1), (topic.name, 0)))
