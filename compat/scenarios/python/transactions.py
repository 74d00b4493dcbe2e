"""What is written in a transaction counts as a whole, or not at all."""

from compat.scenarios.python.checks import Unexpected, expect
from compat.scenarios.python.client import (
    Consumer,
    Fenced,
    Partition,
    Record,
    TakenRecord,
    TransactionalProducer,
)
from compat.scenarios.python.consuming import numbered, numbers
from compat.scenarios.python.registry import plays
from compat.scenarios.python.stage import Stage, partitions_of, take, take_nothing, values, wait_for


def reader(stage: Stage, topic: str, partition_count: int = 1, *, committed_only: bool = True) -> Consumer:
    """A consumer at the beginning of a topic."""
    partitions = partitions_of(topic, partition_count)
    consumer = stage.consumer(committed_only=committed_only)
    consumer.assign(partitions)
    consumer.seek_to_beginning(partitions)
    return consumer


def expect_fenced(producer: TransactionalProducer, what: str) -> None:
    try:
        producer.commit()
    except Fenced:
        return
    raise Unexpected(f"{what} could commit")


@plays("transaction-commit")
def commit_a_transaction(stage: Stage) -> None:
    topic = stage.topic(2)
    producer = stage.transactional_producer(stage.new_name("transaction"))
    consumer = reader(stage, topic, 2)
    producer.begin()
    producer.send(topic, [Record(b"%d" % number, partition=number % 2) for number in range(10)])
    expect(values(take_nothing(consumer)), [], "values before the commit")
    producer.commit()
    expect(sorted(values(take(consumer, 10)), key=str), numbers(0, 10), "values after the commit")


@plays("transaction-abort")
def abort_a_transaction(stage: Stage) -> None:
    topic = stage.topic()
    producer = stage.transactional_producer(stage.new_name("transaction"))
    producer.begin()
    producer.send(topic, numbered(0, 10))
    producer.abort()
    producer.begin()
    producer.send(topic, numbered(10, 15))
    producer.commit()
    expect(values(take(reader(stage, topic), 5)), numbers(10, 15), "values that are committed")
    everything = take(reader(stage, topic, committed_only=False), 15)
    expect(values(everything), numbers(0, 15), "all values")


@plays("transactions-in-turn")
def many_transactions(stage: Stage) -> None:
    topic = stage.topic()
    producer = stage.transactional_producer(stage.new_name("transaction"))
    committed = []
    for number in range(30):
        producer.begin()
        producer.send(topic, numbered(3 * number, 3 * number + 3))
        if number % 3:
            producer.commit()
            committed += numbers(3 * number, 3 * number + 3)
        else:
            producer.abort()
    expect(values(take(reader(stage, topic), 60)), committed, "values that are committed")


@plays("consume-transform-produce")
def consume_transform_produce(stage: Stage) -> None:
    transform(stage, new_protocol=False)


@plays("new-group-transforms")
def transform_in_a_new_group(stage: Stage) -> None:
    transform(stage, new_protocol=True)


def transform(stage: Stage, *, new_protocol: bool) -> None:
    source, target, group = stage.topic(), stage.topic(), stage.new_name("group")
    stage.send(source, numbered(0, 20))
    pipeline = stage.pipeline(group, source, new_protocol=new_protocol)
    done = 0

    def work() -> bool:
        nonlocal done
        taken = pipeline.poll(0.2, 5)
        if taken:
            pipeline.begin()
            pipeline.send(target, [Record(b"out " + (record.value or b"")) for record in taken])
            done += len(taken)
            pipeline.commit()
        return done == 20

    wait_for(work, "all is transformed")
    outputs = [b"out " + (record.value or b"") for record in numbered(0, 20)]
    expect(values(take(reader(stage, target), 20)), outputs, "values that are committed")
    expect_group_at(stage, group, source, 20)


def expect_group_at(stage: Stage, group: str, topic: str, offset: int) -> None:
    place = Partition(topic, 0)
    (committed,) = stage.consumer(group=group).committed([place]).values()
    expect(committed and committed.offset, offset, "the group's offset")


@plays("offsets-aborted")
def abort_offsets(stage: Stage) -> None:
    topic, target, group = stage.topic(), stage.topic(), stage.new_name("group")
    stage.send(topic, numbered(0, 10))
    pipeline = stage.pipeline(group, topic)
    for count, commits in ((3, True), (4, False)):
        taken: list[TakenRecord] = []
        while len(taken) < count:
            taken += pipeline.poll(0.5, count - len(taken))
        expect(values(taken), numbers(3 - 3 * commits, 3 - 3 * commits + count), "values polled")
        pipeline.begin()
        pipeline.send(target, numbered(0, count))
        if commits:
            pipeline.commit()
        else:
            pipeline.abort()
    expect_group_at(stage, group, topic, 3)
    expect(values(take(reader(stage, target), 3)), numbers(0, 3), "values that are committed")


@plays("fencing")
def fence_a_producer(stage: Stage) -> None:
    topic, transactional_id = stage.topic(), stage.new_name("transaction")
    first = stage.transactional_producer(transactional_id)
    first.begin()
    first.send(topic, numbered(0, 3))
    second = stage.transactional_producer(transactional_id)
    second.begin()
    second.send(topic, numbered(3, 6))
    second.commit()
    expect_fenced(first, "a producer whose transactional id another one has")
    expect(values(take(reader(stage, topic), 3)), numbers(3, 6), "values that are committed")


@plays("transaction-timeout")
def abort_after_the_timeout(stage: Stage) -> None:
    topic = stage.topic()
    slow = stage.transactional_producer(stage.new_name("transaction"), timeout_ms=1000)
    slow.begin()
    slow.send(topic, numbered(0, 3))
    stage.send(topic, numbered(3, 6))
    expect(values(take(reader(stage, topic), 3)), numbers(3, 6), "values that are committed")
    expect_fenced(slow, "a producer whose time was over")
