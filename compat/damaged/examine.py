"""Making a directory of partitions, and what a broker says of each of them afterwards."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

from compat.damaged.damages import BASES, BATCHES, RECORDS, RECORDS_PER_BATCH
from compat.oracle.names import Names, Origin
from compat.oracle.preparing import Preparing
from protocol.errors import DecodeError
from protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.records.batch import RecordBatch, read_batches
from protocol.records.builder import build_batch

START_MS: Final = 1_600_000_000_000
"""So long ago that the producer has expired: it is known after a restart only where Kafka forgets that."""
STEP_MS: Final = 1000
PRODUCER_ID: Final = 4242
SEGMENT_BYTES: Final = 3500
TOPIC_SETTINGS: Final = {
    "internal.segment.bytes": str(SEGMENT_BYTES),
    "index.interval.bytes": "500",
    "retention.ms": "-1",
}
BY_NAME: Final = 12
"""The last version of Fetch and Produce in which topics have names."""

EARLIEST: Final = -2
LATEST: Final = -1
READY_SECONDS: Final = 30

Seen = dict[str, Any]
"""What was seen of a partition, as JSON can carry it."""


class Visitor(Preparing):
    """A client of one broker."""

    def __init__(self, address: str) -> None:
        origin = Origin(address, "", "", 0)
        super().__init__(origin, "", Names("", origin))

    # Making

    def make(self, topics: list[str]) -> None:
        """Create topics of one partition, and fill each as ``damages`` says."""
        settings = [CreatableTopicConfig(name=name, value=value) for name, value in TOPIC_SETTINGS.items()]
        wanted = [
            CreatableTopic(name=name, num_partitions=1, replication_factor=1, configs=settings)
            for name in topics
        ]
        for made in self.quietly(CreateTopicsRequest(topics=wanted, timeout_ms=30_000)).topics:
            assert made.error_code == 0, made
        for name in topics:
            self._until_led(name, 1)
            for number in range(BATCHES):
                code, offset = self.produce_batch(name, number)
                assert (code, offset) == (0, number * RECORDS_PER_BATCH), (name, number, code, offset)

    def produce_batch(self, topic: str, number: int) -> tuple[int, int]:
        """Produce the batch with that number in the producer's sequence; its error code and offset."""
        first = number * RECORDS_PER_BATCH
        batch = build_batch(
            [
                (START_MS + (first + index) * STEP_MS, None, b"%d" % (first + index) + b"x" * 300, ())
                for index in range(RECORDS_PER_BATCH)
            ],
            producer_id=PRODUCER_ID,
            producer_epoch=0,
            base_sequence=first,
        )
        data = PartitionProduceData(index=0, records=batch)
        request = ProduceRequest(
            acks=-1, timeout_ms=10_000, topic_data=[TopicProduceData(name=topic, partition_data=[data])]
        )
        (reply,) = self.quietly(request, version=BY_NAME).responses[0].partition_responses
        return reply.error_code, reply.base_offset

    # Looking

    def look(self, topic: str) -> Seen:
        """All that a client can find out of a partition, and then two batches produced to it."""
        self.wait_for_leader(topic)
        return {
            "earliest": self._ask(partial(self._list, topic, EARLIEST)),
            "latest": self._ask(partial(self._list, topic, LATEST)),
            "by time": [self._ask(partial(self._list, topic, START_MS + at * STEP_MS)) for at in (1, 13, 31)],
            "end of epoch 0": self._ask(partial(self._end_of_epoch, topic, 0)),
            "fetched": [
                self._ask(partial(self._fetch, topic, at)) for at in range(0, RECORDS + 1, RECORDS_PER_BATCH)
            ],
            "last batch again": self._ask(partial(self.produce_batch, topic, BATCHES - 1)),
            "next batch": self._ask(partial(self.produce_batch, topic, BATCHES)),
        }

    def _ask(self, question: Callable[[], Any]) -> Any:
        """The answer, or in words how a broker gave none."""
        try:
            return question()
        except AssertionError as silence:
            self.close()
            self._own = None
            return str(silence)

    def wait_for_leader(self, topic: str) -> None:
        """A broker may need a moment before it leads; a code that stays is an answer."""
        deadline = time.monotonic() + READY_SECONDS
        while self._list(topic, LATEST)[0] in (3, 5, 6) and time.monotonic() < deadline:
            time.sleep(0.05)

    def _list(self, topic: str, timestamp: int) -> list[int]:
        partition = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
        request = ListOffsetsRequest(
            replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[partition])]
        )
        (found,) = self.quietly(request).topics[0].partitions
        return [found.error_code, found.offset]

    def _end_of_epoch(self, topic: str, epoch: int) -> list[int]:
        partition = OffsetForLeaderPartition(partition=0, leader_epoch=epoch)
        request = OffsetForLeaderEpochRequest(
            topics=[OffsetForLeaderTopic(topic=topic, partitions=[partition])]
        )
        (found,) = self.quietly(request).topics[0].partitions
        return [found.error_code, found.leader_epoch, found.end_offset]

    def _fetch(self, topic: str, offset: int) -> str:
        """One batch from an offset: where it begins, whether it is whole, or why there is none."""
        partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1)
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=1 << 20,
            topics=[FetchTopic(topic=topic, partitions=[partition])],
        )
        (found,) = self.quietly(request, version=BY_NAME).responses[0].partitions
        if found.error_code:
            return f"{offset}: error {found.error_code}"
        try:
            return f"{offset}: {' '.join(_described(batch) for batch in read_batches(found.records)) or '-'}"
        except DecodeError as error:
            return f"{offset}: {len(found.records)} bytes, {type(error).__name__}"


def _described(batch: RecordBatch) -> str:
    try:
        batch.check_crc()
    except DecodeError:
        return f"{batch.base_offset}..{batch.last_offset} (bad crc)"
    return f"{batch.base_offset}..{batch.last_offset}"


@contextmanager
def visiting(address: str) -> Iterator[Visitor]:
    visitor = Visitor(address)
    try:
        yield visitor
    finally:
        visitor.close()


assert BASES[1] == 3 * RECORDS_PER_BATCH
