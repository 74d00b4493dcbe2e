"""Dead letter queues of share groups (KIP-1191): what goes there, how it is told, and what cannot be."""

from typing import Any, Final

from compat.oracle.conversation import conversation
from compat.oracle.conversations.fetch import at
from compat.oracle.conversations.fetch import fetch as fetch_log
from compat.oracle.conversations.share_acknowledge import acknowledge
from compat.oracle.conversations.share_fetch import (
    ACCEPT,
    BEN,
    CLOSE,
    REJECT,
    RELEASE,
    SOON_MS,
    a_group,
    fetch,
)
from compat.oracle.conversations.share_state import read, summarize
from compat.oracle.preparing import Topic
from compat.oracle.talk import Talk
from protocol.api_keys import ApiKey
from protocol.messages.fetch import FetchRequest
from protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from protocol.records.compression import Compression

BROKER: Final = 4
PREFIX: Final = "dlq."
"""How the names of queues begin, unless the brokers' settings want another beginning."""

PATIENCE_MS: Final = 10_000
"""For a queue to be written to, which Kafka does with requests to itself."""

BOTH: Final = (ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE)


def a_queue(talk: Talk, partitions: int = 1, **settings: str) -> Topic:
    """A topic that takes dead letters."""
    return talk.topic(
        "q", partitions, before=PREFIX, **{"errors_deadletterqueue_group_enable": "true", **settings}
    )


def a_group_with_queue(
    talk: Talk, queue: str, *batches: tuple[str, ...], partitions: int = 1, copies: bool = False, **more: str
) -> tuple[str, Topic]:
    settings = {"errors_deadletterqueue_topic_name": queue, **more}
    if copies:
        settings["errors_deadletterqueue_copy_record_enable"] = "true"
    return a_group(talk, *batches, partitions=partitions, **settings)


def letters(queue: Topic, partition: int = 0, offset: int = 0) -> FetchRequest:
    """What is in a queue from ``offset`` on, once there is something."""
    return fetch_log(at(queue, partition, offset), max_wait_ms=PATIENCE_MS)


def ask_letters(talk: Talk, label: str, wanted: FetchRequest) -> None:
    """Kafka may tell whoever has waited for letters of the high watermark before them."""
    talk.quietly(wanted)
    talk.ask(label, wanted)


def until_done(talk: Talk, group: str, topic: Topic, end: int) -> None:
    """Wait until it is stored that everything before ``end`` is done with."""

    def is_done(answer: Any) -> bool:
        (stored,) = answer.results[0].partitions
        return bool(stored.start_offset + stored.delivery_complete_count == end)

    talk.until(summarize(group, topic), is_done)


@conversation(*BOTH)
def rejected(talk: Talk) -> None:
    queue = a_queue(talk)
    group, topic = a_group_with_queue(talk, queue.name, ("a", "b", "c"), ("d", "e"))
    talk.ask("fetch", fetch(group, topic))
    talk.ask("reject one of a batch", acknowledge(group, topic, (0, 0, REJECT), epoch=1))
    ask_letters(talk, "its letter", letters(queue))
    until_done(talk, group, topic, 1)
    talk.ask("reject another", acknowledge(group, topic, (2, 2, REJECT), epoch=2))
    ask_letters(talk, "its letter, too", letters(queue, offset=1))
    until_done(talk, group, topic, 2)
    talk.ask("accept", acknowledge(group, topic, (1, 1, ACCEPT), (3, 3, ACCEPT), epoch=3))
    talk.ask("reject with a fetch", fetch(group, topic, epoch=4, acks=((4, 4, REJECT),)))
    ask_letters(talk, "the last letter", letters(queue, offset=2))
    until_done(talk, group, topic, 5)
    talk.ask("what is stored", read(group, topic))
    talk.ask("nothing is left", fetch(group, epoch=5))


@conversation(*BOTH)
def delivered_too_often(talk: Talk) -> None:
    queue = a_queue(talk)
    group, topic = a_group_with_queue(talk, queue.name, ("a", "b", "c"), share_delivery_count_limit="2")
    talk.ask("fetch", fetch(group, topic))
    talk.ask("release", acknowledge(group, topic, (0, 2, RELEASE), epoch=1))
    talk.ask("fetch again", fetch(group, epoch=2))
    talk.ask("release again", acknowledge(group, topic, (0, 2, RELEASE), epoch=3))
    ask_letters(talk, "letters", letters(queue))
    until_done(talk, group, topic, 3)
    talk.ask("what is stored", read(group, topic))
    talk.produce(topic, "d")
    talk.ask("fetch the next", fetch(group, epoch=4))
    talk.ask("close the session", fetch(group, epoch=CLOSE))
    talk.ask("of another member", fetch(group, topic, member=BEN, wait_ms=SOON_MS))
    talk.ask("it closes, too", fetch(group, member=BEN, epoch=CLOSE))
    ask_letters(talk, "a letter of what was let go", letters(queue, offset=3))


@conversation(*BOTH)
def copies_of_records(talk: Talk) -> None:
    queue = a_queue(talk)
    group, topic = a_group_with_queue(talk, queue.name, ("a", "b"), copies=True)
    talk.produce(topic, "c", "d", compression=Compression.LZ4)
    talk.ask("fetch", fetch(group, topic))
    talk.ask("reject the second", acknowledge(group, topic, (1, 1, REJECT), epoch=1))
    ask_letters(talk, "its letter", letters(queue))
    talk.ask("reject a compressed one", acknowledge(group, topic, (3, 3, REJECT), epoch=2))
    ask_letters(talk, "the letter of that", letters(queue, offset=1))
    talk.ask("reject the first", acknowledge(group, topic, (0, 0, REJECT), epoch=3))
    ask_letters(talk, "its letter, too", letters(queue, offset=2))
    talk.ask("accept the other", acknowledge(group, topic, (2, 2, ACCEPT), epoch=4))
    until_done(talk, group, topic, 4)


@conversation(*BOTH)
def partitions_of_a_queue(talk: Talk) -> None:
    queue = a_queue(talk, 2)
    group, topic = a_group_with_queue(talk, queue.name, partitions=3)
    for partition in range(3):
        talk.produce(topic, f"of {partition}", partition=partition)
        talk.ask(f"fetch {partition}", fetch(group, topic, member=f"m{partition}", partitions=(partition,)))
        talk.ask(
            f"reject {partition}",
            acknowledge(group, topic, (0, 0, REJECT), member=f"m{partition}", partition=partition),
        )
        ask_letters(talk, f"the letter of {partition}", letters(queue, partition % 2, partition // 2))


@conversation(*BOTH)
def small_letters(talk: Talk) -> None:
    queue = a_queue(talk, max_message_bytes="500")
    group, topic = a_group_with_queue(talk, queue.name, ("a", "b", "c", "d", "e", "f"))
    talk.ask("fetch", fetch(group, topic))
    talk.ask("reject", acknowledge(group, topic, (0, 5, REJECT), epoch=1))
    until_done(talk, group, topic, 6)
    ask_letters(talk, "letters", letters(queue))


def nothing_is_written(talk: Talk, queue: Topic | str) -> None:
    """Records are archived, whatever is wrong with their queue."""
    name = queue if isinstance(queue, str) else queue.name
    group, topic = a_group_with_queue(talk, name, ("a", "b"))
    talk.ask("fetch", fetch(group, topic))
    talk.ask("reject", acknowledge(group, topic, (0, 0, REJECT), epoch=1))
    until_done(talk, group, topic, 1)
    talk.ask("reject the other one", acknowledge(group, topic, (1, 1, REJECT), epoch=2))
    until_done(talk, group, topic, 2)
    talk.ask("what is stored", read(group, topic))
    if isinstance(queue, Topic):
        talk.ask("no letters", fetch_log(at(queue)))
    else:
        talk.ask("no topic", MetadataRequest(topics=[MetadataRequestTopic(name=name)]), version=12)


@conversation(*BOTH)
def a_topic_that_takes_none(talk: Talk) -> None:
    nothing_is_written(talk, talk.topic("q", before=PREFIX))


@conversation(*BOTH)
def a_topic_of_another_name(talk: Talk) -> None:
    nothing_is_written(talk, talk.topic("q", errors_deadletterqueue_group_enable="true"))


@conversation(*BOTH)
def no_such_topic(talk: Talk) -> None:
    nothing_is_written(talk, PREFIX + talk.name("none"))


@conversation(*BOTH)
def a_queue_that_refuses(talk: Talk) -> None:
    nothing_is_written(talk, a_queue(talk, cleanup_policy="compact"))


@conversation(*BOTH, alone=True)
def a_queue_that_is_made(talk: Talk) -> None:
    name = PREFIX + talk.name("made")
    allow(talk, "true")
    group, topic = a_group_with_queue(talk, name, ("a", "b"))
    talk.ask("fetch", fetch(group, topic))
    talk.ask("reject", acknowledge(group, topic, (0, 1, REJECT), epoch=1))
    until_done(talk, group, topic, 2)
    allow(talk, "false")
    queue = talk.known_topic(name)
    ask_letters(talk, "letters", letters(queue))


def allow(talk: Talk, value: str) -> None:
    """Whether queues are made that do not exist."""
    change = AlterableConfig(name="errors.deadletterqueue.auto.create.topics.enable", value=value)
    resource = AlterConfigsResource(resource_type=BROKER, resource_name="", configs=[change])
    (changed,) = talk.quietly(IncrementalAlterConfigsRequest(resources=[resource])).responses
    assert not changed.error_code, changed
    talk.settle()
