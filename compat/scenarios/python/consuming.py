"""A consumer without a group gets the records it wants, from where it wants them."""

from compat.scenarios.python.checks import expect, expect_that, refused
from compat.scenarios.python.client import Code, Partition, Record
from compat.scenarios.python.records import HOUR_MS, START_MS
from compat.scenarios.python.registry import plays
from compat.scenarios.python.stage import Stage, partitions_of, take, take_nothing, values, wait_for


def numbered(first: int, end: int, *, partition: int | None = None) -> list[Record]:
    return [Record(b"%d" % number, partition=partition) for number in range(first, end)]


def numbers(first: int, end: int) -> list[bytes | None]:
    return [b"%d" % number for number in range(first, end)]


@plays("from-beginning")
def consume_from_the_beginning(stage: Stage) -> None:
    topic = stage.topic(3)
    stage.send(topic, [record for number in range(3) for record in numbered(0, 50, partition=number)])
    taken = stage.take(topic, 150, partition_count=3)
    for number in range(3):
        of_partition = [record for record in taken if record.place.partition == number]
        expect([record.place.offset for record in of_partition], list(range(50)), f"offsets of {number}")
        expect(values(of_partition), numbers(0, 50), f"values of {number}")


@plays("from-end")
def consume_from_the_end(stage: Stage) -> None:
    topic = stage.topic()
    producer = stage.producer()
    producer.send(topic, numbered(0, 10))
    consumer = stage.consumer(reset="latest")
    consumer.assign([Partition(topic, 0)])
    consumer.seek_to_end([Partition(topic, 0)])
    wait_for(lambda: consumer.poll(0.1) or consumer.position(Partition(topic, 0)) == 10, "the end is reached")
    producer.send(topic, numbered(10, 12))
    expect(values(take(consumer, 2)), numbers(10, 12), "values")


@plays("from-offset")
def consume_from_an_offset(stage: Stage) -> None:
    topic = stage.topic()
    stage.send(topic, numbered(0, 100))
    consumer = stage.consumer()
    consumer.assign([Partition(topic, 0)])
    consumer.seek(Partition(topic, 0), 37)
    expect(values(take(consumer, 63)), numbers(37, 100), "values")
    expect(consumer.position(Partition(topic, 0)), 100, "position")


@plays("from-timestamp")
def consume_from_a_timestamp(stage: Stage) -> None:
    topic = stage.topic()
    partition = Partition(topic, 0)
    times = [START_MS + 10 * number for number in range(50)]
    stage.send(topic, [Record(b"%d" % number, timestamp_ms=times[number]) for number in range(50)])
    consumer = stage.consumer()
    consumer.assign([partition])
    expect(consumer.find_times({partition: times[20]}), {partition: 20}, "offset at a time")
    expect(consumer.find_times({partition: times[20] + 1}), {partition: 21}, "offset between two times")
    expect(consumer.find_times({partition: 0}), {partition: 0}, "offset before the first time")
    expect(consumer.find_times({partition: times[-1] + 1}), {partition: None}, "offset behind the last time")
    consumer.seek(partition, 21)
    expect(values(take(consumer, 29)), numbers(21, 50), "values")


@plays("seek")
def seek_back_and_forth(stage: Stage) -> None:
    topic = stage.topic()
    partition = Partition(topic, 0)
    stage.send(topic, numbered(0, 30))
    consumer = stage.consumer()
    consumer.assign([partition])
    consumer.seek_to_beginning([partition])
    expect(values(take(consumer, 30)), numbers(0, 30), "values at first")
    consumer.seek(partition, 25)
    expect(values(take(consumer, 5)), numbers(25, 30), "values after seeking back")
    consumer.seek_to_beginning([partition])
    expect(values(take(consumer, 30)), numbers(0, 30), "values from the beginning again")


@plays("pause")
def pause_and_resume(stage: Stage) -> None:
    topic = stage.topic(2)
    first, second = partitions_of(topic, 2)
    producer = stage.producer()
    consumer = stage.consumer()
    consumer.assign([first, second])
    consumer.seek_to_beginning([first, second])
    producer.send(topic, [*numbered(0, 5, partition=0), *numbered(0, 5, partition=1)])
    take(consumer, 10)
    consumer.pause([first])
    producer.send(topic, [*numbered(5, 10, partition=0), *numbered(5, 10, partition=1)])
    taken = take(consumer, 5)
    taken += take_nothing(consumer)
    expect({record.place.partition for record in taken}, {1}, "partitions while one is paused")
    consumer.resume([first])
    taken = take(consumer, 5)
    expect([record.place for record in taken], [(0, offset) for offset in range(5, 10)], "places afterwards")


@plays("bounds")
def ask_for_first_and_last_offsets(stage: Stage) -> None:
    topic = stage.topic(2)
    first, second = partitions_of(topic, 2)
    stage.send(topic, numbered(0, 7, partition=1))
    consumer = stage.consumer()
    expect(consumer.bounds([first, second]), {first: (0, 0), second: (0, 7)}, "bounds")


@plays("out-of-range")
def consume_from_an_offset_that_is_not_there(stage: Stage) -> None:
    topic = stage.topic()
    partition = Partition(topic, 0)
    stage.send(topic, numbered(0, 5))
    consumer = stage.consumer(reset="earliest")
    consumer.assign([partition])
    consumer.seek(partition, 1000)
    expect(values(take(consumer, 5)), numbers(0, 5), "values after the reset")
    strict = stage.consumer(reset="none")
    strict.assign([partition])
    strict.seek(partition, 1000)
    with refused(Code.OFFSET_OUT_OF_RANGE, "an offset behind the end"):
        take(strict, 1)


@plays("small-fetches")
def consume_less_at_a_time_than_a_batch(stage: Stage) -> None:
    topic = stage.topic()
    sent = [Record(b"%03d " % number + b"z" * 2000) for number in range(100)]
    stage.send(topic, sent, linger_ms=50)
    taken = stage.take(topic, 100, fetch_bytes_max=1000)
    expect(values(taken), [record.value for record in sent], "values")


@plays("append-time")
def consume_with_the_broker_s_time(stage: Stage) -> None:
    topic = stage.topic(settings={"message.timestamp.type": "LogAppendTime"})
    stage.send(topic, [Record(b"x", timestamp_ms=START_MS)])
    (record,) = stage.take(topic, 1)
    expect_that(record.timestamp_ms >= START_MS + HOUR_MS, "the record has the producer's timestamp")


@plays("read-committed")
def consume_what_is_committed(stage: Stage) -> None:
    topic = stage.topic()
    stage.send(topic, numbered(0, 20))
    expect(values(stage.take(topic, 20, committed_only=True)), numbers(0, 20), "values")


@plays("many-partitions")
def consume_many_partitions(stage: Stage) -> None:
    topic = stage.topic(60)
    stage.send(topic, [Record(b"%d" % number, partition=number) for number in range(60)])
    taken = stage.take(topic, 60, partition_count=60)
    expect(sorted(record.place for record in taken), [(number, 0) for number in range(60)], "places")
