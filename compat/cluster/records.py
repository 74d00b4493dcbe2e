"""Records written and read at one go, and clients that write one after the other meanwhile."""

import threading
from collections.abc import Callable

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from compat.librdkafka import IDEMPOTENT
from compat.waiting import wait_until

PATIENCE_SECONDS = 120


def produced(bootstrap: str, topic: str, values: list[bytes]) -> None:
    """Write values into a topic, one after the other, with acks=all and a producer id."""
    failures = []
    producer = Producer({**IDEMPOTENT, "bootstrap.servers": bootstrap, "linger.ms": 0})
    for value in values:
        producer.produce(topic, value, on_delivery=lambda error, _: failures.append(error))
    assert producer.flush(60) == 0
    assert [error for error in failures if error is not None] == []


def consumed(bootstrap: str, topic: str, count: int) -> set[bytes]:
    """The first values of a topic, read by a group."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": f"of-{topic}", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    found: set[bytes] = set()

    def is_complete() -> bool:
        for message in consumer.consume(100, timeout=1):
            assert message.error() is None
            found.add(message.value() or b"")
        return len(found) >= count

    try:
        wait_until(is_complete, f"{count} records of {topic}")
    finally:
        consumer.close()
    return found


def first_partition(bootstrap: str, topic: str, count: int) -> list[bytes]:
    """Committed values of partition 0, at least so many, in their order."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "reader", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[bytes] = []

    def has_all() -> bool:
        found.extend(message.value() or b"" for message in consumer.consume(500, 0.5))
        return len(found) >= count

    try:
        wait_until(has_all, f"{count} records of {topic} are read")
    finally:
        consumer.close()
    return found


def numbers(count: int) -> list[bytes]:
    """What a ``Worker`` has written that has done so many pieces."""
    return [b"%d" % number for number in range(count)]


class Worker:
    """Work in a thread of its own, one piece after the other; each is given the number of those before it."""

    def __init__(self, work: Callable[[int], None]) -> None:
        self.done = 0
        self.failure: BaseException | None = None
        self._work = work
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> "Worker":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                self._work(self.done)
                self.done += 1
        except BaseException as error:
            self.failure = error

    def wait_for(self, more: int) -> None:
        """Return when so many more pieces are done."""
        goal = self.done + more
        wait_until(
            lambda: self.done >= goal or self.failure,
            f"{more} pieces more",
            patience_seconds=PATIENCE_SECONDS,
        )
        assert self.failure is None, self.failure


def writing(bootstrap: str, topic: str) -> Callable[[int], None]:
    """One record at a time into partition 0, by an idempotent producer."""
    producer = Producer({**IDEMPOTENT, "bootstrap.servers": bootstrap, "linger.ms": 0})

    def work(number: int) -> None:
        failed: list[KafkaError] = []

        def note(error: KafkaError | None, _: Message) -> None:
            if error is not None:
                failed.append(error)

        producer.produce(topic, b"%d" % number, partition=0, on_delivery=note)
        assert producer.flush(PATIENCE_SECONDS) == 0
        assert failed == []

    return work


def transacting(bootstrap: str, topic: str) -> Callable[[int], None]:
    """One record a transaction, into partition 0; one that is aborted is done again."""
    producer = Producer(
        {"bootstrap.servers": bootstrap, "transactional.id": f"of-{topic}", "transaction.timeout.ms": 60_000}
    )
    producer.init_transactions(PATIENCE_SECONDS)

    def work(number: int) -> None:
        while True:
            try:
                producer.begin_transaction()
                producer.produce(topic, b"%d" % number, partition=0)
                producer.commit_transaction(PATIENCE_SECONDS)
                return
            except KafkaException as error:
                if not error.args[0].txn_requires_abort():
                    raise
                producer.abort_transaction(PATIENCE_SECONDS)

    return work
