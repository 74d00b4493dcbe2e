"""Fetch without sessions: from where, how much, and how long it waits."""

from typing import Any

from compat.oracle.conversation import conversation
from compat.oracle.grouping import by_topic
from compat.oracle.preparing import NOWHERE, Topic
from compat.oracle.talk import Talk
from protocol.api_keys import ApiKey
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic, ReplicaState
from protocol.records.compression import Compression

MAX_BYTES = 1_000_000
READ_COMMITTED = 1

NAMELESS = Topic("", bytes(16))
"""What a request names that names nothing."""


Wanted = tuple[Topic, FetchPartition]


def at(topic: Topic, partition: int = 0, offset: int = 0, **more: Any) -> Wanted:
    """One partition to read; ``more`` are the other fields of ``FetchPartition``."""
    fields = {"partition_max_bytes": MAX_BYTES, **more}
    return topic, FetchPartition(partition=partition, fetch_offset=offset, **fields)


def fetch(
    *places: Wanted,
    max_wait_ms: int = 0,
    min_bytes: int = 1,
    max_bytes: int = MAX_BYTES,
    isolation: int = 0,
    session: int = 0,
    epoch: int = -1,
    forget: tuple[Topic, ...] = (),
) -> FetchRequest:
    """``session`` and ``epoch`` are of a fetch session; ``forget`` takes partition 0 of topics out of it."""
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        isolation_level=isolation,
        session_id=session,
        session_epoch=epoch,
        topics=[
            FetchTopic(topic=topic.name, topic_id=topic.id, partitions=[wanted for (wanted,) in partitions])
            for topic, partitions in by_topic(places)
        ],
        forgotten_topics_data=[
            ForgottenTopic(topic=topic.name, topic_id=topic.id, partitions=[0]) for topic in forget
        ],
    )


@conversation(ApiKey.FETCH)
def offsets(talk: Talk) -> None:
    topic = talk.topic("t")
    talk.ask("an empty partition", fetch(at(topic)))
    talk.produce(topic, "a", "b", "c")
    talk.produce(topic, "d", "e")
    for offset in (0, 1, 3, 4, 5, 6, -1, 2**62):
        talk.ask(f"from {offset}", fetch(at(topic, offset=offset)))
    talk.ask("from 0, committed", fetch(at(topic), isolation=READ_COMMITTED))
    talk.ask("from 5, committed", fetch(at(topic, offset=5), isolation=READ_COMMITTED))
    talk.ask("isolation level 9", fetch(at(topic), isolation=9))
    talk.ask("isolation level 9, and something unknown", fetch(at(topic), at(topic, 9), isolation=9))
    talk.ask("isolation level 9 of what is unknown", fetch(at(topic, 9), at(NOWHERE), isolation=9))


@conversation(ApiKey.FETCH)
def what_comes_back(talk: Talk) -> None:
    topic = talk.topic("t")
    for codec in Compression:
        talk.produce(topic, "a", "b", compression=codec)
    talk.produce(topic, "a", producer_id=7000, producer_epoch=2, base_sequence=5)
    talk.ask("every codec", fetch(at(topic)))
    append_time = talk.topic("append-time", message_timestamp_type="LogAppendTime")
    talk.produce(append_time, "a", "b")
    talk.ask("append time", fetch(at(append_time)))
    for name in ("uncompressed", "gzip", "snappy", "lz4", "zstd"):
        recompressed = talk.topic(name, compression_type=name)
        talk.produce(recompressed, "a", "b")
        talk.produce(recompressed, "c", "d", compression=Compression.GZIP)
        talk.ask(f"compressed anew, {name}", fetch(at(recompressed)))


@conversation(ApiKey.FETCH)
def sizes(talk: Talk) -> None:
    topic = talk.topic("t", 2)
    for partition in (0, 1):
        for _ in range(3):
            talk.produce(topic, "x" * 100, partition=partition)
    for size in (1, 100, 180, 181, 200, 400, 10_000, 0, -1):
        talk.ask(f"{size} bytes of a partition", fetch(at(topic, partition_max_bytes=size)))
        talk.ask(f"{size} bytes in all", fetch(at(topic), max_bytes=size))
    both = at(topic, 1), at(topic, 0)
    for size in (-1, 1, 200, 600, 700):
        talk.ask(f"{size} bytes of two partitions", fetch(*both, max_bytes=size))
        talk.ask(f"{size} bytes, beginning at an end", fetch(at(topic, 1, 3), at(topic, 0), max_bytes=size))
    talk.ask("-1 bytes of one of two", fetch(at(topic, 0), at(topic, 1, partition_max_bytes=-1)))
    talk.ask("-1 bytes past the end", fetch(at(topic, 0, 9, partition_max_bytes=-1)))
    talk.ask(
        "1 byte of each", fetch(at(topic, 0, partition_max_bytes=1), at(topic, 1, partition_max_bytes=1))
    )


@conversation(ApiKey.FETCH)
def places(talk: Talk) -> None:
    topic = talk.topic("t", 2)
    empty = talk.topic("empty")
    talk.produce(topic, "a", partition=1)
    talk.ask("nothing", fetch())
    talk.ask("unknown topic", fetch(at(NOWHERE)))
    talk.ask("unknown topic, committed", fetch(at(NOWHERE), isolation=READ_COMMITTED))
    talk.ask("neither name nor id", fetch(at(NAMELESS)))
    talk.ask("unknown partition", fetch(at(topic, 7)))
    talk.ask("negative partition", fetch(at(topic, -1)))
    talk.ask("good and bad", fetch(at(NOWHERE), at(topic, 7), at(empty, offset=3), at(topic, 1)))
    talk.ask("the same twice", fetch(at(topic, 1), at(topic, 1, offset=1)))


@conversation(ApiKey.FETCH)
def topics_without_name_and_id(talk: Talk) -> None:
    topic = talk.topic("t")
    talk.produce(topic, "a")
    several = at(NAMELESS), at(NAMELESS, 1)
    talk.ask("two partitions of it", fetch(*several))
    talk.ask("one before another topic", fetch(at(NAMELESS), at(topic)))
    talk.ask("one behind another topic", fetch(at(topic), at(NAMELESS)))
    talk.ask("two before another topic", fetch(*several, at(topic)))
    talk.ask("two behind another topic", fetch(at(topic), *several))
    talk.ask("two behind an unknown topic", fetch(at(NOWHERE), *several))
    talk.ask("two before an unknown topic", fetch(*several, at(NOWHERE)))
    talk.ask("three", fetch(*several, at(NAMELESS, 2)))
    talk.ask("one before an unknown partition", fetch(at(NAMELESS), at(topic, 9)))
    talk.ask("two, waiting", fetch(*several, at(topic, 0, 1), max_wait_ms=5))
    talk.ask("one, waiting", fetch(at(NAMELESS), at(topic, 0, 1), max_wait_ms=5))
    talk.ask("two at isolation level 9", fetch(*several, isolation=9))


@conversation(ApiKey.FETCH)
def topics_named_twice(talk: Talk) -> None:
    topic, other = talk.topic("t", 3), talk.topic("u")
    talk.produce(topic, "a", "b")
    request = fetch(at(topic, 0), at(other))
    request.topics += fetch(at(topic, 2)).topics
    talk.ask("with different partitions", request)
    request = fetch(at(topic, 0))
    request.topics += fetch(at(topic, 1)).topics
    talk.ask("one behind the other", request)
    request.topics += fetch(at(topic, 0, 1)).topics
    talk.ask("with the same partition", request)


@conversation(ApiKey.FETCH)
def topics_without_partitions(talk: Talk) -> None:
    topic = talk.topic("t")
    talk.produce(topic, "a")
    request = fetch(at(topic))
    for each in (topic, NOWHERE):
        request.topics.append(FetchTopic(topic=each.name, topic_id=each.id))
    talk.ask("beside one with a partition", request)
    request.topics = request.topics[1:]
    talk.ask("alone", request)


@conversation(ApiKey.FETCH)
def epochs(talk: Talk) -> None:
    topic = talk.topic("t")
    talk.produce(topic, "a", "b")
    talk.ask("the current leader epoch", fetch(at(topic, current_leader_epoch=0)))
    talk.ask("a leader epoch to come", fetch(at(topic, current_leader_epoch=5)))
    talk.ask("a negative leader epoch", fetch(at(topic, current_leader_epoch=-2)))
    talk.ask("the last epoch fetched", fetch(at(topic, offset=1, last_fetched_epoch=0)))
    talk.ask("the last epoch fetched, past the end", fetch(at(topic, offset=7, last_fetched_epoch=0)))
    talk.ask("a last epoch to come", fetch(at(topic, offset=1, last_fetched_epoch=5)))


@conversation(ApiKey.FETCH)
def replicas(talk: Talk) -> None:
    topic = talk.topic("t")
    talk.produce(topic, "a")
    for replica in (1, 77, -2, -3):
        request = fetch(at(topic))
        if talk.version_of(ApiKey.FETCH) < 15:
            request.replica_id = replica
        else:
            request.replica_state = ReplicaState(replica_id=replica, replica_epoch=1)
        talk.ask(f"replica {replica}", request)


@conversation(ApiKey.FETCH)
def waiting(talk: Talk) -> None:
    topic = talk.topic("t", 2)
    talk.start("until records come", fetch(at(topic), max_wait_ms=10_000))
    talk.let_wait()
    talk.produce(topic, "a")
    talk.finish("until records come")
    talk.start("until there are enough bytes", fetch(at(topic), max_wait_ms=10_000, min_bytes=100))
    talk.let_wait()
    talk.produce(topic, "b")
    talk.finish("until there are enough bytes")
    talk.start("at two partitions", fetch(at(topic, 0, 2), at(topic, 1), max_wait_ms=10_000))
    talk.let_wait()
    talk.produce(topic, "c", partition=1)
    talk.finish("at two partitions")
    end = at(topic, 0, 2)
    talk.ask("until it was long enough", fetch(end, max_wait_ms=5))
    talk.ask("less than no time", fetch(end, max_wait_ms=-1))
    talk.ask("for no bytes", fetch(end, max_wait_ms=10_000, min_bytes=0))
    talk.ask("for less than no bytes", fetch(end, max_wait_ms=10_000, min_bytes=-1))
    talk.ask("for more than may come", fetch(at(topic), max_wait_ms=10_000, min_bytes=900, max_bytes=50))
    talk.ask("in vain for a wrong offset", fetch(at(topic, offset=9), max_wait_ms=10_000))
    talk.ask("in vain for an unknown partition", fetch(at(topic, 9), max_wait_ms=10_000))


@conversation(ApiKey.FETCH, rounds="17+")
def waiting_with_little_room(talk: Talk) -> None:
    """What comes counts up to the limit of its partition; the high watermark tells who was woken by it."""
    topic = talk.topic("t", 2)
    in_vain = {
        "no room in a partition": fetch(at(topic, partition_max_bytes=0), max_wait_ms=1000),
        "less than no room": fetch(at(topic, 0, 2, partition_max_bytes=-1), max_wait_ms=1000),
        "room for less than is wanted": fetch(
            at(topic, 0, 4, partition_max_bytes=50), min_bytes=60, max_wait_ms=1000
        ),
    }
    for label, request in in_vain.items():
        talk.start(label, request)
        for value in ("a", "b"):
            talk.let_wait()
            talk.produce(topic, value)
        talk.finish(label)
    woken = {
        "just room enough": fetch(at(topic, 0, 6, partition_max_bytes=60), min_bytes=60, max_wait_ms=10_000),
        "no room elsewhere": fetch(at(topic, 0, 7), at(topic, 1, partition_max_bytes=0), max_wait_ms=10_000),
    }
    for label, request in woken.items():
        talk.start(label, request)
        talk.let_wait()
        talk.produce(topic, "a")
        talk.finish(label)
    talk.ask("no room in all", fetch(at(topic, 0, 8), max_bytes=0, max_wait_ms=10_000))


@conversation(ApiKey.FETCH)
def waiting_for_what_is_deleted(talk: Talk) -> None:
    topic, other = talk.topic("t"), talk.topic("u")
    talk.start("the only topic", fetch(at(topic), max_wait_ms=10_000))
    talk.start("one of two", fetch(at(topic), at(other), max_wait_ms=10_000), by="another")
    talk.let_wait()
    talk.delete_topic(topic)
    talk.finish("the only topic")
    talk.finish("one of two")


@conversation(ApiKey.FETCH)
def after_records_were_deleted(talk: Talk) -> None:
    topic = talk.topic("t")
    talk.produce(topic, "a", "b", "c")
    talk.produce(topic, "d")
    talk.delete_records(topic, 2)
    for offset in (0, 1, 2, 3):
        talk.ask(f"from {offset}", fetch(at(topic, offset=offset)))


@conversation(ApiKey.FETCH)
def the_order_of_a_connection(talk: Talk) -> None:
    """What is asked behind a waiting fetch is answered after it."""
    topic = talk.topic("t")
    talk.start("first, for more bytes than there are", fetch(at(topic), max_wait_ms=30, min_bytes=9))
    talk.start("second, at once", fetch(at(topic)))
    talk.finish("first, for more bytes than there are")
    talk.finish("second, at once")
