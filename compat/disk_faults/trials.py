"""The faults that are tried, and what a client sees of each."""

import errno
import time
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from compat.damaged.examine import Visitor
from protocol.errors import DecodeError
from protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.records.builder import build_batch

SUBJECT: Final = "subject"
"""The topic whose files fail."""
BYSTANDER: Final = "bystander"
LARGE: Final = "large"
"""A topic of large records."""
SEGMENT_RECORDS: Final = 4
"""So many records of ``RECORD_BYTES`` fill a segment."""
RECORD_BYTES: Final = 1000

BY_NAME: Final = 12
COMMIT_BY_NAME: Final = 9

SETTINGS: Final = {
    "log.flush.offset.checkpoint.interval.ms": "300",
    "log.flush.start.offset.checkpoint.interval.ms": "300",
    "replica.high.watermark.checkpoint.interval.ms": "300",
    "log.retention.check.interval.ms": "300",
    "log.initial.task.delay.ms": "300",
    "log.cleaner.backoff.ms": "300",
    "file.delete.delay.ms": "300",
    "log.segment.delete.delay.ms": "300",
    "offsets.topic.num.partitions": "1",
    "metadata.log.max.snapshot.interval.ms": "0",
    "metadata.log.max.record.bytes.between.snapshots": "100",
}
"""What is done from time to time is done at once."""

PATIENCE_SECONDS: Final = 2.0
"""How long the broker may take to notice what it does in the background, and to end if it will."""


class Client(Visitor):
    """Asks for what can meet a fault.  Each method returns an error code, or a word for silence."""

    def create(self, topic: str, **settings: str) -> Any:
        configs = [
            CreatableTopicConfig(name=name.replace("_", "."), value=value) for name, value in settings.items()
        ]
        wanted = CreatableTopic(name=topic, num_partitions=1, replication_factor=1, configs=configs)
        request = CreateTopicsRequest(topics=[wanted], timeout_ms=3000)
        return self._code(lambda: self.quietly(request).topics[0].error_code)

    def delete(self, topic: str) -> Any:
        request = DeleteTopicsRequest(topics=[DeleteTopicState(name=topic)], timeout_ms=3000)
        return self._code(lambda: self.quietly(request).responses[0].error_code)

    def produce_record(self, topic: str, key: bytes | None = None, *, size: int = RECORD_BYTES) -> Any:
        batch = build_batch([(int(time.time() * 1000), key, b"x" * size, ())])
        data = PartitionProduceData(index=0, records=batch)
        request = ProduceRequest(
            acks=-1, timeout_ms=3000, topic_data=[TopicProduceData(name=topic, partition_data=[data])]
        )

        def ask() -> int:
            answer = self.quietly(request, version=BY_NAME)
            return int(answer.responses[0].partition_responses[0].error_code)

        return self._code(ask)

    def produce_records(self, topic: str, count: int, key: bytes | None = None) -> Any:
        """The first code that is none of success, or 0."""
        for _ in range(count):
            if code := self.produce_record(topic, key):
                return code
        return 0

    def fetch_record(self, topic: str) -> Any:
        partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
        request = FetchRequest(
            max_wait_ms=0, min_bytes=0, topics=[FetchTopic(topic=topic, partitions=[partition])]
        )

        def ask() -> int:
            try:
                answer = self.quietly(request, version=BY_NAME)
            except DecodeError as error:
                raise AssertionError("the answer is: cut off") from error
            return int(answer.responses[0].partitions[0].error_code)

        return self._code(ask)

    def find_coordinator(self, group: str) -> Any:
        request = FindCoordinatorRequest(coordinator_keys=[group])
        return self._code(lambda: self.quietly(request).coordinators[0].error_code)

    def commit(self, group: str) -> Any:
        place = OffsetCommitRequestPartition(committed_offset=1)
        topic = OffsetCommitRequestTopic(name=BYSTANDER, partitions=[place])
        request = OffsetCommitRequest(group_id=group, topics=[topic])

        def ask() -> int:
            answer = self.quietly(request, version=COMMIT_BY_NAME)
            return int(answer.topics[0].partitions[0].error_code)

        return self._code(ask)

    def delete_records_before(self, topic: str, offset: int) -> Any:
        wanted = DeleteRecordsTopic(name=topic, partitions=[DeleteRecordsPartition(offset=offset)])
        request = DeleteRecordsRequest(topics=[wanted], timeout_ms=3000)
        return self._code(lambda: self.quietly(request).topics[0].partitions[0].error_code)

    def _code(self, question: Callable[[], Any]) -> Any:
        try:
            answer = self._ask(question)
        except OSError:
            return "no connection"
        return answer.rpartition(": ")[2] if isinstance(answer, str) else int(answer)


class Trial(NamedTuple):
    """A fault, and what meets it."""

    name: str
    operation: str
    error_number: int
    path_part: str
    action: Callable[[Client], Any]
    prepare: Callable[[Client], Any] = lambda client: None


def _compacted(client: Client) -> Any:
    client.delete(SUBJECT)
    time.sleep(0.5)
    return client.create("compacted", cleanup_policy="compact", **SMALL_SEGMENTS)


def _flushed(client: Client) -> None:
    client.create("flushed", flush_messages="1")
    client.wait_for_leader("flushed")


def _two_segments(client: Client) -> Any:
    return client.produce_records(SUBJECT, SEGMENT_RECORDS + 1)


def _large(client: Client) -> None:
    """More than is read for an answer before it is sent."""
    client.create(LARGE)
    client.wait_for_leader(LARGE)
    client.produce_record(LARGE, size=200_000)


def _dirty(client: Client) -> Any:
    return client.produce_records("compacted", 3 * SEGMENT_RECORDS, b"key")


SMALL_SEGMENTS: Final = {
    "internal_segment_bytes": str(SEGMENT_RECORDS * (RECORD_BYTES + 100)),
    "min_cleanable_dirty_ratio": "0.01",
    "retention_ms": "-1",
}

_APPEND = f"{SUBJECT}-0/00000000000000000000.log"


def all_trials() -> list[Trial]:
    """Every operation that a broker does on its files, with an error or two that it may meet."""
    return [
        Trial("append, disk full", "write", errno.ENOSPC, _APPEND, lambda c: c.produce_record(SUBJECT)),
        Trial("append, device error", "write", errno.EIO, _APPEND, lambda c: c.produce_record(SUBJECT)),
        Trial(
            "roll, no descriptors", "open", errno.EMFILE, f"{SUBJECT}-0/0000000000000000000", _two_segments
        ),
        Trial("roll, no producer snapshot", "open", errno.ENOSPC, ".snapshot", _two_segments),
        Trial(
            "flush, device error",
            "sync",
            errno.EIO,
            "flushed-0/",
            lambda c: c.produce_record("flushed"),
            _flushed,
        ),
        Trial("creation, disk full", "make directory", errno.ENOSPC, "new-0", _create_and_use),
        Trial(
            "creation, epochs not written", "write", errno.ENOSPC, "leader-epoch-checkpoint", _create_and_use
        ),
        Trial("deletion, device error", "rename", errno.EIO, f"{SUBJECT}-0", lambda c: c.delete(SUBJECT)),
        Trial("deletion, files stay", "remove", errno.EIO, f"{SUBJECT}-0.", lambda c: c.delete(SUBJECT)),
        Trial(
            "recovery points, disk full",
            "open",
            errno.ENOSPC,
            "recovery-point-offset-checkpoint",
            lambda c: c.produce_record(SUBJECT),
        ),
        Trial(
            "high watermarks, disk full",
            "open",
            errno.ENOSPC,
            "replication-offset-checkpoint",
            lambda c: c.produce_record(SUBJECT),
        ),
        Trial(
            "metadata, disk full", "write", errno.ENOSPC, "__cluster_metadata-0/0", lambda c: c.create("new")
        ),
        Trial(
            "metadata, device error", "sync", errno.EIO, "__cluster_metadata-0/0", lambda c: c.create("new")
        ),
        Trial(
            "metadata snapshot, disk full",
            "open",
            errno.ENOSPC,
            ".checkpoint.part",
            lambda c: c.create("new"),
        ),
        Trial(
            "commit, disk full",
            "write",
            errno.ENOSPC,
            "__consumer_offsets-0/",
            lambda c: c.commit("group"),
        ),
        Trial("fetch, device error", "read", errno.EIO, _APPEND, lambda c: c.fetch_record(SUBJECT)),
        Trial(
            "fetch, device error while sending",
            "send",
            errno.EIO,
            f"{LARGE}-0/",
            lambda c: c.fetch_record(LARGE),
            _large,
        ),
        Trial("compaction, disk full", "open", errno.ENOSPC, ".cleaned", _dirty, _compacted),
        Trial(
            "retention, device error",
            "rename",
            errno.EIO,
            f"{SUBJECT}-0/",
            lambda c: c.delete_records_before(SUBJECT, SEGMENT_RECORDS + 1),
            lambda c: c.produce_records(SUBJECT, 2 * SEGMENT_RECORDS),
        ),
    ]


def _create_and_use(client: Client) -> Any:
    """What creation says, and a record for the new topic a moment later."""
    created = client.create("new")
    time.sleep(0.5)
    return [created, client.produce_record("new")]
