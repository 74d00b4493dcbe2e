"""Produce: batches of every kind, to places of every kind."""

from compat.oracle.batches import (
    ATTRIBUTES,
    BASE_OFFSET,
    CONTROL,
    CRC,
    LAST_OFFSET_DELTA,
    LENGTH,
    LOG_APPEND_TIME,
    MAGIC,
    MAX_TIMESTAMP,
    RECORD_COUNT,
    batch,
    old_message_set,
    with_field,
    without_seal,
)
from compat.oracle.conversation import conversation
from compat.oracle.grouping import by_topic
from compat.oracle.preparing import LONG_AGO_MS, NOWHERE, Topic
from compat.oracle.talk import Talk
from protocol.api_keys import ApiKey
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.records.compression import Compression

FAR_AHEAD_MS = 4_000_000_000_000

GOOD = batch("a", "b", "c")


def produce(
    *parts: tuple[Topic, int, bytes | None], acks: int = -1, transactional_id: str | None = None
) -> ProduceRequest:
    """Parts are topic, partition and records."""
    return ProduceRequest(
        transactional_id=transactional_id,
        acks=acks,
        timeout_ms=10_000,
        topic_data=[
            TopicProduceData(
                name=topic.name,
                topic_id=topic.id,
                partition_data=[
                    PartitionProduceData(index=index, records=records) for index, records in partitions
                ],
            )
            for topic, partitions in by_topic(parts)
        ],
    )


@conversation(ApiKey.PRODUCE)
def codecs(talk: Talk) -> None:
    topic = talk.topic("t")
    for codec in Compression:
        records = batch("a", "b", "c", compression=codec)
        talk.ask(codec.name.lower(), produce((topic, 0, records)))


@conversation(ApiKey.PRODUCE)
def topics_that_compress(talk: Talk) -> None:
    for name in ("uncompressed", "gzip", "snappy", "lz4", "zstd", "producer"):
        topic = talk.topic(name, compression_type=name)
        talk.ask(f"plain to {name}", produce((topic, 0, GOOD)))
        talk.ask(f"gzip to {name}", produce((topic, 0, batch("a", "b", compression=Compression.GZIP))))


@conversation(ApiKey.PRODUCE)
def acknowledgements(talk: Talk) -> None:
    topic = talk.topic("t")
    for acks in (-1, 1, 2, -2):
        talk.ask(f"acks={acks}", produce((topic, 0, GOOD), acks=acks))
    talk.ask_in_vain("acks=0", produce((topic, 0, GOOD), acks=0))
    talk.ask_in_vain("acks=0 and nothing to append", produce(acks=0))
    talk.ask_in_vain("acks=0 to an unknown topic", produce((NOWHERE, 0, GOOD), acks=0))
    talk.ask_in_vain("acks=0 and a wrong checksum", produce((topic, 0, without_seal(GOOD, CRC, 1)), acks=0))
    talk.ask("what was appended", produce((topic, 0, GOOD)))


@conversation(ApiKey.PRODUCE)
def places(talk: Talk) -> None:
    topic = talk.topic("t", 3)
    other = talk.topic("u")
    talk.ask("nowhere", produce())
    talk.ask("unknown topic", produce((NOWHERE, 0, GOOD)))
    talk.ask("neither name nor id", produce((Topic("", bytes(16)), 0, GOOD)))
    talk.ask("unknown partition", produce((topic, 3, GOOD)))
    talk.ask("negative partition", produce((topic, -1, GOOD)))
    talk.ask("several partitions", produce((topic, 2, GOOD), (topic, 0, GOOD), (other, 0, GOOD)))
    talk.ask("good and bad", produce((topic, 1, GOOD), (NOWHERE, 0, GOOD), (other, 7, GOOD), (topic, 2, b"")))
    talk.ask("the same partition twice", produce((topic, 0, GOOD), (topic, 0, batch("x"))))
    talk.ask("after the same twice", produce((topic, 0, GOOD)))
    offsets = talk.known_topic("__consumer_offsets")
    talk.ask("an internal topic", produce((offsets, 0, GOOD)))


@conversation(ApiKey.PRODUCE)
def topics_named_twice(talk: Talk) -> None:
    topic, other = talk.topic("t", 3), talk.topic("u")
    request = produce((topic, 0, GOOD), (other, 0, GOOD))
    request.topic_data += produce((topic, 2, GOOD)).topic_data
    talk.ask("with different partitions", request)
    request = produce((topic, 1, GOOD))
    request.topic_data += produce((topic, 1, batch("x"))).topic_data
    talk.ask("with the same partition", request)
    talk.ask("after that", produce((topic, 1, GOOD)))


@conversation(ApiKey.PRODUCE)
def topics_without_partitions(talk: Talk) -> None:
    topic = talk.topic("t")
    request = produce((topic, 0, GOOD))
    for each in (topic, NOWHERE):
        request.topic_data.append(TopicProduceData(name=each.name, topic_id=each.id))
    talk.ask("beside one with a partition", request)
    request.topic_data = request.topic_data[1:]
    talk.ask("alone", request)


@conversation(ApiKey.PRODUCE)
def wrong_batches(talk: Talk) -> None:
    topic = talk.topic("t")
    for label, records in {
        "no records": b"",
        "half a batch": GOOD[:40],
        "all but the last byte": GOOD[:-1],
        "two batches": GOOD + GOOD,
        "a batch and half of another": GOOD + GOOD[:40],
        "an old message set of format 0": old_message_set(0),
        "an old message set of format 1": old_message_set(1),
        "format 0 in the place of format 2": without_seal(GOOD, MAGIC, 0),
        "format 3": without_seal(GOOD, MAGIC, 3),
        "a wrong checksum": without_seal(GOOD, CRC, 1),
        "a length that is too short": without_seal(GOOD, LENGTH, 20),
        "a length that is too long": without_seal(GOOD, LENGTH, 2000),
        "an offset of its own": with_field(GOOD, BASE_OFFSET, 7),
        "too few records": with_field(GOOD, RECORD_COUNT, 4),
        "too many records": with_field(GOOD, RECORD_COUNT, 2),
        "a last offset that does not fit": with_field(GOOD, LAST_OFFSET_DELTA, 7),
        "a latest time that does not fit": with_field(GOOD, MAX_TIMESTAMP, 5),
        "a control batch": with_field(GOOD, ATTRIBUTES, CONTROL),
        "the mark of append time": with_field(GOOD, ATTRIBUTES, LOG_APPEND_TIME),
        "an unknown codec": with_field(GOOD, ATTRIBUTES, 5),
        "gzip that is none": with_field(GOOD, ATTRIBUTES, Compression.GZIP),
        "lz4 that is none": with_field(GOOD, ATTRIBUTES, Compression.LZ4),
    }.items():
        talk.ask(label, produce((topic, 0, records)))
    talk.ask("good after all that", produce((topic, 0, GOOD)))


@conversation(ApiKey.PRODUCE)
def null_records(talk: Talk) -> None:
    topic = talk.topic("t")
    talk.ask("null", produce((topic, 0, None)), patience_seconds=2)


@conversation(ApiKey.PRODUCE)
def sizes(talk: Talk) -> None:
    small = talk.topic("small", max_message_bytes="200")
    talk.ask("as large as allowed", produce((small, 0, batch("v" * 129))))
    talk.ask("a byte too large", produce((small, 0, batch("v" * 130))))
    talk.ask("small once compressed", produce((small, 0, batch("v" * 500, compression=Compression.GZIP))))
    segments = talk.topic("segments", max_message_bytes="3000000", segment_bytes="1048576")
    talk.ask("larger than a segment", produce((segments, 0, batch("v" * 1_100_000))))
    usual = talk.topic("usual")
    talk.ask("larger than usual", produce((usual, 0, batch("v" * 1_050_000))))


@conversation(ApiKey.PRODUCE)
def times(talk: Talk) -> None:
    topic = talk.topic("t")
    for label, timestamp_ms in {"none": -1, "zero": 0, "negative": -5, "far ahead": FAR_AHEAD_MS}.items():
        talk.ask(label, produce((topic, 0, batch("a", "b", timestamp_ms=timestamp_ms))))
    append_time = talk.topic("append-time", message_timestamp_type="LogAppendTime")
    talk.ask("append time", produce((append_time, 0, GOOD)))
    talk.ask("append time, far ahead", produce((append_time, 0, batch("a", timestamp_ms=FAR_AHEAD_MS))))
    strict = talk.topic("strict", message_timestamp_before_max_ms="1000")
    talk.ask("too long ago", produce((strict, 0, batch("a", timestamp_ms=LONG_AGO_MS))))
    talk.ask("no time, where old ones are refused", produce((strict, 0, batch("a", timestamp_ms=-1))))


@conversation(ApiKey.PRODUCE)
def compacted_topics(talk: Talk) -> None:
    topic = talk.topic("t", cleanup_policy="compact")
    talk.ask("keys", produce((topic, 0, GOOD)))
    talk.ask("empty keys", produce((topic, 0, batch("a", "b", key=""))))
    talk.ask("no keys", produce((topic, 0, batch("a", "b", key=None))))
    talk.ask("no values", produce((topic, 0, batch(None, None))))


@conversation(ApiKey.PRODUCE)
def idempotence(talk: Talk) -> None:
    topic = talk.topic("t")

    def send(label: str, epoch: int, sequence: int, count: int = 2, producer: int = 7000) -> None:
        records = batch(*("v" * count), producer=(producer, epoch, sequence))
        talk.ask(label, produce((topic, 0, records)))

    send("an unknown producer may begin anywhere", 3, 10)
    send("the next", 3, 12)
    send("a gap", 3, 15)
    send("a duplicate", 3, 10)
    send("a duplicate of another size", 3, 10, 1)
    for n in range(5):
        send(f"five more, {n}", 3, 14 + 2 * n)
    send("a duplicate of the oldest remembered", 3, 14)
    send("a duplicate of what is forgotten", 3, 12)
    send("an older epoch", 2, 24)
    send("a negative epoch", -1, 24)
    send("a newer epoch that does not begin at 0", 4, 24)
    send("a newer epoch that begins at 0", 9, 0)
    send("the older epoch again", 3, 24)
    send("a negative sequence", 9, -1)
    send("another producer", 0, 0, producer=7001)
    send("near the end of the sequences", 0, 2**31 - 3, producer=7002)
    send("over the end of the sequences", 0, 2**31 - 1, producer=7002)
    send("behind the end of the sequences", 0, 1, producer=7002)
    send("a producer id of -2", 0, 0, producer=-2)


@conversation(ApiKey.PRODUCE)
def transactional_batches(talk: Talk) -> None:
    topic = talk.topic("t")
    records = batch("a", producer=(7000, 0, 0), transactional=True)
    talk.ask("without transactional id", produce((topic, 0, records)))
    talk.ask("of no transaction", produce((topic, 0, records), transactional_id="no such id"))
    talk.ask("a plain batch with transactional id", produce((topic, 0, GOOD), transactional_id="id"))


@conversation(ApiKey.PRODUCE, rounds="13")
def versions_that_are_gone(talk: Talk) -> None:
    body = b"\xff\xff\x00\x00\x27\x10\x00\x00\x00\x00"
    for version in (-1, 0, 1, 2, 14, 99):
        talk.ask_bytes(f"version {version}", ApiKey.PRODUCE, body, version=version)
