"""Transactions a second, and records a second through a share group."""

import selectors
import threading
import time
import uuid
from collections.abc import Sequence

from confluent_kafka import Producer

from benchmarks.coordinators.lines import (
    TIMEOUT_SECONDS,
    Line,
    check,
    framed,
    set_up_group,
    until_coordinated,
)
from benchmarks.coordinators.lines import read as read_answer
from benchmarks.librdkafka import make_values, new_topic, producer
from benchmarks.storage.brokers import StoredBroker
from benchmarks.storage.partitions import wait_until_connected
from protocol.messages import share_fetch
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse

TRANSACTIONS = 400
"""For each producer alone, and for all together."""
PRODUCERS = (1, 10)
WARM_UP = 20

SHARED_RECORDS = 500_000
RECORD_BYTES = 100
RECORDS_IN_BATCH = 100
"""Members are given whole batches: larger ones would not be shared."""
RECORDS_AT_ONCE = 500
"""What the Java consumer takes by default."""
FETCH_BYTES_MAX = 50 * 1024 * 1024
MEMBERS = (1, 4)
ACCEPT = 1

HEARTBEAT_VERSION, FETCH_VERSION, METADATA_VERSION = 1, 2, 12
PAUSE_SECONDS = 0.02


def transactions(count: int) -> str:
    return f"transactions of one record, {count} producer{'' if count == 1 else 's'}"


def shared_records(count: int) -> str:
    return f"records of {RECORD_BYTES} bytes through a share group, {count} member{'' if count == 1 else 's'}"


# Transactions


def transactions_round(broker: StoredBroker, share: float) -> dict[str, float]:
    """A second's transactions of librdkafka, one after the other in each producer."""
    broker.launch()
    wait_until_connected(broker)
    topic = new_topic(broker.address, max(PRODUCERS))
    return {
        transactions(count): _transactions_per_second(
            broker.address, topic, count, max(WARM_UP, round(TRANSACTIONS * share))
        )
        for count in PRODUCERS
    }


def _transactions_per_second(address: str, topic: str, count: int, total: int) -> float:
    producers = [_transactional_producer(address) for _ in range(count)]
    failures: list[Exception] = []

    def work(producer: Producer, partition: int, times: int) -> None:
        try:
            for _ in range(times):
                producer.begin_transaction()
                producer.produce(topic, b"x" * RECORD_BYTES, partition=partition)
                producer.commit_transaction(TIMEOUT_SECONDS)
        except Exception as error:  # told in the main thread
            failures.append(error)

    def in_parallel(times: int) -> float:
        threads = [
            threading.Thread(target=work, args=(producer, partition, times))
            for partition, producer in enumerate(producers)
        ]
        began = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return time.perf_counter() - began

    in_parallel(max(1, WARM_UP // count))
    seconds = in_parallel(total // count)
    if failures:
        raise RuntimeError(str(failures[0]))
    return total // count * count / seconds


def _transactional_producer(address: str) -> Producer:
    producer = Producer(
        {
            "bootstrap.servers": address,
            "transactional.id": str(uuid.uuid4()),
            "linger.ms": 0,
            "socket.nagle.disable": True,
            "log_level": 3,
        }
    )
    producer.init_transactions(TIMEOUT_SECONDS)
    return producer


# Share groups


class SharingMember:
    """Takes records, and accepts them with the next request; several requests are never on their way."""

    def __init__(self, address: str, group: str, topic_id: bytes) -> None:
        self.line = Line(address)
        self._group = group
        self._member_id = str(uuid.uuid4())
        self._topic_id = topic_id
        self._epoch = 0
        self._held: Sequence[tuple[int, int]] = ()

    def ask(self) -> None:
        """Accept what was taken, and ask for more."""
        accepted = [
            share_fetch.AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=[ACCEPT])
            for first, last in self._held
        ]
        request = share_fetch.ShareFetchRequest(
            group_id=self._group,
            member_id=self._member_id,
            share_session_epoch=self._epoch,
            max_wait_ms=200,
            min_bytes=1,
            max_bytes=FETCH_BYTES_MAX,
            max_records=RECORDS_AT_ONCE,
            batch_size=RECORDS_AT_ONCE,
        )
        if accepted or self._epoch == 0:
            partition = share_fetch.FetchPartition(acknowledgement_batches=accepted)
            request.topics = [share_fetch.FetchTopic(topic_id=self._topic_id, partitions=[partition])]
        self.line.send(framed(request, FETCH_VERSION))
        self._epoch += 1

    def take(self) -> int:
        """How many records were accepted by the request that is answered now."""
        answer = read_answer(self.line.receive(), share_fetch.ShareFetchResponse, FETCH_VERSION)
        check(answer)
        accepted = sum(last - first + 1 for first, last in self._held)
        held = []
        for topic in answer.responses:
            for partition in topic.partitions:
                check(partition)
                if partition.acknowledge_error_code:
                    raise RuntimeError(f"not accepted: error {partition.acknowledge_error_code}")
                held += [(each.first_offset, each.last_offset) for each in partition.acquired_records]
        self._held = held
        return accepted


def share_groups_round(broker: StoredBroker, share: float) -> dict[str, float]:
    """A second's records that are taken and accepted, out of one partition."""
    broker.launch()
    wait_until_connected(broker)
    topic = new_topic(broker.address)
    count = max(1, round(SHARED_RECORDS * share / 1000)) * 1000
    _fill(broker.address, topic, count)
    line = Line(broker.address)
    try:
        wanted = MetadataRequest(topics=[MetadataRequestTopic(name=topic)])
        topic_id = line.ask(wanted, MetadataResponse, METADATA_VERSION).topics[0].topic_id
        for warming_up in (True, False):
            values = {}
            for members in MEMBERS:
                group = f"sharers-{uuid.uuid4()}"
                _begin(line, broker.address, group, topic)
                values[shared_records(members)] = _records_per_second(
                    broker.address, group, topic_id, members, count // 10 if warming_up else count
                )
    finally:
        line.close()
    return values


def _fill(address: str, topic: str, count: int) -> None:
    client = producer(address, settings={"batch.num.messages": RECORDS_IN_BATCH})
    values = [{"value": value} for value in make_values(RECORD_BYTES)]
    for _ in range(count // len(values)):
        client.produce_batch(topic, [dict(value) for value in values], partition=0)
    if client.flush(TIMEOUT_SECONDS):
        raise RuntimeError("records were not acknowledged in time")


def _begin(line: Line, address: str, group: str, topic: str) -> None:
    """A share group at the beginning of the topic, whose partition is ready to be read."""
    set_up_group(line, group, "share.auto.offset.reset", "earliest")
    until_coordinated(address, group)
    beat = ShareGroupHeartbeatRequest(group_id=group, member_id="first", subscribed_topic_names=[topic])
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while True:
        answer = line.ask(beat, ShareGroupHeartbeatResponse, HEARTBEAT_VERSION)
        check(answer)
        if answer.assignment is not None and answer.assignment.topic_partitions:
            return
        beat.member_epoch = answer.member_epoch
        if time.monotonic() > deadline:
            raise RuntimeError(f"nothing is assigned within {TIMEOUT_SECONDS} s")
        time.sleep(PAUSE_SECONDS)


def _records_per_second(address: str, group: str, topic_id: bytes, members: int, count: int) -> float:
    sharing = [SharingMember(address, group, topic_id) for _ in range(members)]
    answered = selectors.DefaultSelector()
    try:
        for member in sharing:
            answered.register(member.line, selectors.EVENT_READ, member)
        left = count
        began = time.perf_counter()
        deadline = time.monotonic() + TIMEOUT_SECONDS
        for member in sharing:
            member.ask()
        while left > 0:
            for key, _ in answered.select(TIMEOUT_SECONDS):
                left -= key.data.take()
                key.data.ask()
            if time.monotonic() > deadline:
                raise RuntimeError(f"{left} of {count} records are left after {TIMEOUT_SECONDS} s")
        seconds = time.perf_counter() - began
        for member in sharing:
            member.take()
        return count / seconds
    finally:
        answered.close()
        for member in sharing:
            member.line.close()
