"""Records arrive as they were sent, where they were sent, and only if the broker may take them."""

from collections.abc import Callable, Sequence
from itertools import pairwise

from compat.scenarios.python.checks import Unexpected, expect, expect_that, refused
from compat.scenarios.python.client import CODECS, Code, Place, Record, TakenRecord
from compat.scenarios.python.records import HOUR_MS, START_MS, differences, sample_records
from compat.scenarios.python.registry import plays
from compat.scenarios.python.stage import Stage, values
from compat.scenarios.python.stored import stored_batches

KEYS_OF_SIX = {b"": 3, b"a": 4, b"ab": 2, b"abc": 3, b"abcd": 2, b"Ottla": 3, b"key-7": 1, b"\xff\x00\x80": 4}
"""The partition out of six that Java's producer puts a key into."""


def expect_as_sent(sent: Sequence[Record], places: Sequence[Place], taken: Sequence[TakenRecord]) -> None:
    """Every record is where the broker said, and all of it came back."""
    for difference in differences(sent, places, taken):
        raise Unexpected(difference)


def codec_play(codec: str) -> Callable[[Stage], None]:
    def produce_compressed(stage: Stage) -> None:
        topic = stage.topic()
        sent = sample_records(200)
        places = stage.send(topic, sent, codec=codec, linger_ms=100)
        expect([place.offset for place in places], list(range(200)), "offsets")
        expect_as_sent(sent, places, stage.take(topic, 200))
        stored = {batch.codec for batch in stored_batches(stage.address, topic) if batch.record_count > 50}
        expect(stored, {codec}, "codecs of the large stored batches")

    return produce_compressed


for each in CODECS:
    plays(f"codec-{each}")(codec_play(each))


@plays("acks-none")
def produce_without_waiting(stage: Stage) -> None:
    topic = stage.topic()
    sent = [Record(b"%d" % number) for number in range(20)]
    stage.send(topic, sent, acks="none")
    expect(values(stage.take(topic, 20)), [record.value for record in sent], "values")


@plays("acks-leader")
def produce_to_the_leader(stage: Stage) -> None:
    produce_with_acks(stage, "leader")


@plays("acks-all")
def produce_to_all(stage: Stage) -> None:
    produce_with_acks(stage, "all")


def produce_with_acks(stage: Stage, acks: str) -> None:
    topic = stage.topic()
    sent = sample_records(20)
    places = stage.send(topic, sent, acks=acks)
    expect([place.offset for place in places], list(range(20)), "offsets")
    expect_as_sent(sent, places, stage.take(topic, 20))


@plays("order")
def produce_many_in_order(stage: Stage) -> None:
    topic = stage.topic()
    sent = [Record(b"%06d " % number + b"x" * 200) for number in range(2000)]
    places = stage.send(topic, sent, batch_bytes_max=16_384)
    expect([place.offset for place in places], list(range(2000)), "offsets")
    taken = stage.take(topic, 2000)
    expect(values(taken), [record.value for record in sent], "values")
    expect_that(len(stored_batches(stage.address, topic)) > 1, "all records came in one batch")


@plays("keys")
def produce_by_key(stage: Stage) -> None:
    topic = stage.topic(6)
    producer = stage.producer()
    for key, partition in KEYS_OF_SIX.items():
        places = producer.send(topic, [Record(b"1", key), Record(b"2", key)])
        expect([place.partition for place in places], [partition] * 2, f"partitions of the key {key!r}")


@plays("partition")
def produce_to_a_partition(stage: Stage) -> None:
    topic = stage.topic(4)
    sent = [Record(b"%d" % number, b"same key", partition=number % 4) for number in range(20)]
    places = stage.send(topic, sent)
    expect([place.partition for place in places], [number % 4 for number in range(20)], "partitions")
    expect_as_sent(sent, places, stage.take(topic, 20, partition_count=4))


@plays("timestamps")
def produce_with_timestamps(stage: Stage) -> None:
    topic = stage.topic()
    times = [START_MS + 5000, START_MS, 1, START_MS + 1]
    stage.send(topic, [Record(b"x", timestamp_ms=each) for each in times])
    expect([record.timestamp_ms for record in stage.take(topic, 4)], times, "timestamps")


@plays("headers")
def produce_with_headers(stage: Stage) -> None:
    topic = stage.topic()
    headers = [
        ("twice", b"1"),
        ("twice", b"2"),
        ("empty", b""),
        ("", b"no name"),
        ("größe", "größer".encode()),
        ("bytes", bytes(range(256))),
    ]
    sent = [Record(b"with", headers=headers), Record(b"without")]
    places = stage.send(topic, sent)
    expect_as_sent(sent, places, stage.take(topic, 2))


@plays("null-header")
def produce_a_header_that_is_null(stage: Stage) -> None:
    topic = stage.topic()
    sent = [Record(b"x", headers=[("null", None), ("empty", b"")])]
    places = stage.send(topic, sent)
    expect_as_sent(sent, places, stage.take(topic, 1))


@plays("nulls")
def produce_nulls(stage: Stage) -> None:
    topic = stage.topic()
    contents: list[bytes | None] = [None, b"", b"x"]
    pairs = [(key, value) for key in contents for value in contents]
    sent = [Record(value, key) for key, value in pairs if (key, value) != (None, None)]
    places = stage.send(topic, sent)
    expect_as_sent(sent, places, stage.take(topic, len(sent)))


@plays("large-record")
def produce_a_large_record(stage: Stage) -> None:
    topic = stage.topic()
    sent = [Record(bytes(range(256)) * 4000), Record(b"small")]
    places = stage.send(topic, sent, request_bytes_max=2_000_000)
    expect_as_sent(sent, places, stage.take(topic, 2, fetch_bytes_max=4_000_000))


@plays("too-large-record")
def produce_a_record_that_is_too_large(stage: Stage) -> None:
    topic = stage.topic(settings={"max.message.bytes": "20000"})
    producer = stage.producer(request_bytes_max=2_000_000)
    producer.send(topic, [Record(b"before")])
    with refused(Code.MESSAGE_TOO_LARGE, "a record above max.message.bytes"):
        producer.send(topic, [Record(bytes(range(250)) * 100)])
    (place,) = producer.send(topic, [Record(b"after")])
    expect(place.offset, 1, "offset of the next record")
    expect(values(stage.take(topic, 2)), [b"before", b"after"], "values")


@plays("key-required")
def produce_without_the_key_that_compaction_needs(stage: Stage) -> None:
    topic = stage.topic(settings={"cleanup.policy": "compact"})
    producer = stage.producer()
    producer.send(topic, [Record(b"with", b"key")])
    with refused(Code.INVALID_RECORD, "a record without key"):
        producer.send(topic, [Record(b"without")])
    (place,) = producer.send(topic, [Record(b"with", b"key")])
    expect(place.offset, 1, "offset of the next record")


@plays("future-timestamp")
def produce_with_a_time_that_is_far_ahead(stage: Stage) -> None:
    topic = stage.topic()
    with refused(Code.INVALID_TIMESTAMP, "a record two hours ahead of its time"):
        stage.send(topic, [Record(b"x", timestamp_ms=START_MS + 3 * HOUR_MS)])


@plays("idempotence")
def produce_idempotently(stage: Stage) -> None:
    topic = stage.topic()
    producer = stage.producer(idempotent=True, batch_bytes_max=16_384)
    sent = [Record(b"%06d " % number + b"y" * 200) for number in range(1000)]
    places = producer.send(topic, sent)
    expect([place.offset for place in places], list(range(1000)), "offsets")
    batches = stored_batches(stage.address, topic)
    expect_that(len(batches) > 1, "all records came in one batch")
    expect(len({batch.producer_id for batch in batches}), 1, "producer ids")
    expect_that(batches[0].producer_id >= 0, "the batches have no producer id")
    expect(batches[0].base_sequence, 0, "the first sequence number")
    for before, after in pairwise(batches):
        expect(after.base_sequence, before.base_sequence + before.record_count, "a sequence number")
    expect(values(stage.take(topic, 1000)), [record.value for record in sent], "values")
