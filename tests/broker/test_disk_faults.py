"""Every operation on every kind of file, refused in every way that a disk has: what clients are told, and
that nothing acknowledged is lost.

The broker's partitions live on a disk in memory.  While the fault lasts they are produced to, rolled,
flushed, compacted, shortened, made and deleted; then it ends, the process is killed, and another one opens
the disk.
"""

import errno
from collections.abc import Collection, Iterator, Mapping
from itertools import product

import pytest
from trio.testing import MockClock

from protocol.error_codes import ErrorCode
from protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from protocol.records.batch import read_batches
from protocol.records.builder import build_batch
from storage.errors import DiskFailure
from storage.memory_filesystem import MemoryFileSystem
from tests.broker.partitions.one_broker import (
    START_MS,
    OneBroker,
    answer_of,
    fetch_request,
    one_broker,
    produce_request,
)
from tests.broker.partitions.test_housekeeping import pass_time

SETTINGS = {
    "log.flush.offset.checkpoint.interval.ms": "1000",
    "log.flush.start.offset.checkpoint.interval.ms": "1000",
    "replica.high.watermark.checkpoint.interval.ms": "1000",
    "log.retention.check.interval.ms": "2000",
    "log.cleaner.backoff.ms": "2000",
}
SMALL = {"internal.segment.bytes": "1000", "file.delete.delay.ms": "1000"}
TOPICS = {
    "plain": SMALL,
    "flushed": SMALL | {"flush.messages": "1"},
    "compacted": SMALL | {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"},
}

ERRORS = {
    "open": (errno.EMFILE, errno.ENOSPC, errno.EROFS),
    "read": (errno.EIO,),
    "write": (errno.ENOSPC, errno.EIO, errno.EROFS),
    "sync": (errno.EIO, errno.ENOSPC),
    "rename": (errno.EIO, errno.EROFS),
    "remove": (errno.EIO,),
}
FILES = (
    ".log",
    ".index",
    ".timeindex",
    ".snapshot",
    ".cleaned",
    "leader-epoch-checkpoint",
    "partition.metadata",
    "offset-checkpoint",
    "new-0",
    "plain-0",
    "/data",
)
NEW = "new"
DELETED_BELOW = 4

ENDS_THE_BROKER = {"sync": {"flush"}, "open": {"flush"}, "rename": {"flush", "rename in"}}
"""After these nobody knows what is on disk, or under which name: not so where it only has no room."""

NEVER_MET: Mapping[str, Collection[str]] = {
    **dict.fromkeys(ERRORS, ()),
    "read": (
        *(".index", ".snapshot", ".cleaned"),
        *("leader-epoch-checkpoint", "partition.metadata", "offset-checkpoint"),
    ),
    "remove": (".cleaned", "leader-epoch-checkpoint", "partition.metadata", "offset-checkpoint"),
}
"""What a running broker does not do with such files."""

ALLOWED = {int(ErrorCode.NONE), int(ErrorCode.KAFKA_STORAGE_ERROR)}


class FaultyDisk(MemoryFileSystem):
    """Refuses an operation on all paths that contain a text, for as long as it is told to."""

    def __init__(self) -> None:
        super().__init__(now_ms=lambda: START_MS)
        self.fault: tuple[str, str, int] | None = None
        self.met = 0

    def _refusal(self, operation: str, path: str) -> OSError | None:
        if self.fault is None:
            return None
        refused, text, number = self.fault
        if operation != refused or text not in path:
            return None
        self.met += 1
        return OSError(number, "refused", path)

    def _check(self, operation: str, path: str, *, mutates: bool = False) -> None:
        if (error := self._refusal(operation, path)) is not None:
            raise error


class Ledger:
    """What was sent, and what of it was acknowledged at which offset."""

    def __init__(self) -> None:
        self.sent: set[bytes] = set()
        self.acknowledged: dict[str, dict[int, bytes]] = {name: {} for name in (*TOPICS, NEW)}

    async def produce(self, broker: OneBroker, topic: str) -> int:
        """Send one record; return the error code."""
        number = len(self.sent)
        value = b"%d" % number + b"x" * 150
        self.sent.add(value)
        batch = build_batch([(broker.clock.now_ms(), b"key %d" % (number % 3), value, ())])
        answer = await answer_of(broker.ask(produce_request(topic, batch), 9))
        (reply,) = answer.responses[0].partition_responses
        if reply.error_code == ErrorCode.NONE:
            assert reply.base_offset not in self.acknowledged[topic], "an offset is given once"
            self.acknowledged[topic][reply.base_offset] = value
        return int(reply.error_code)


async def fetched(broker: OneBroker, topic: str) -> int:
    answer = await answer_of(broker.ask(fetch_request(topic), 12))
    return int(answer.responses[0].partitions[0].error_code)


async def work(broker: OneBroker, disk: FaultyDisk, fault: tuple[str, str, int], ledger: Ledger) -> None:
    """Everything that a broker does with files, most of it while the fault lasts."""
    for topic, settings in TOPICS.items():
        broker.create_topic(topic, settings=settings)
        for _ in range(3):
            assert await ledger.produce(broker, topic) == ErrorCode.NONE
    disk.fault = fault
    new_id = broker.create_topic(NEW, settings=SMALL)
    for _ in range(3):
        for topic in (*TOPICS, NEW):
            for _ in range(4):
                assert await ledger.produce(broker, topic) in ALLOWED
            assert await fetched(broker, topic) in ALLOWED | {ErrorCode.UNKNOWN_SERVER_ERROR}
        await pass_time(broker, 1100)
    deletion = DeleteRecordsRequest(
        topics=[DeleteRecordsTopic(name="plain", partitions=[DeleteRecordsPartition(offset=DELETED_BELOW)])],
        timeout_ms=1000,
    )
    broker.ask(deletion, 2)
    await pass_time(broker, 3000)
    broker.delete_topic(new_id)
    await pass_time(broker, 1100)


async def check(broker: OneBroker, ledger: Ledger) -> None:
    """Named invariants, on the broker that opened the disk afterwards."""
    for topic in TOPICS:
        log = broker.partitions.leader(topic, 0).log
        found: dict[int, tuple[bytes | None, bytes | None]] = {}
        offset = log.log_start
        while (piece := log.read(offset, 1 << 20)) is not None:
            for batch in read_batches(piece.read()):
                batch.check_crc()
                found.update({record.offset: (record.key, record.value) for record in batch.records()})
                offset = batch.next_offset
        assert {value for _, value in found.values()} <= ledger.sent, "nothing is served that was not sent"
        latest = {key: offset for offset, (key, _) in sorted(found.items())}
        for offset, value in ledger.acknowledged[topic].items():
            if offset < log.log_start:
                assert (topic, log.log_start) == ("plain", DELETED_BELOW), "nothing else was deleted"
            elif topic == "compacted" and offset not in found:
                key = b"key %d" % (int(value.partition(b"x")[0]) % 3)
                assert latest[key] > offset, "what replaced it is there"
            else:
                assert found[offset][1] == value, "nothing acknowledged is lost"
        assert await ledger.produce(broker, topic) == ErrorCode.NONE, "it goes on"


@pytest.mark.parametrize(
    ("operation", "file"),
    [(operation, file) for operation, file in product(ERRORS, FILES) if file not in NEVER_MET[operation]],
)
async def test_nothing_acknowledged_is_lost(operation: str, file: str, autojump_clock: MockClock) -> None:
    for number in ERRORS[operation]:
        disk = FaultyDisk()
        ledger = Ledger()
        reasons: set[str] = set()
        try:
            async with one_broker(SETTINGS, file_system=disk) as broker:
                await work(broker, disk, (operation, file, number), ledger)
        except* DiskFailure as ended:
            reasons = {failure.action for failure in leaves(ended)}
        assert disk.met
        assert reasons <= ENDS_THE_BROKER.get(operation, set())
        disk.fault = None
        async with one_broker(SETTINGS, file_system=disk, image=broker.image) as broker:
            await check(broker, ledger)


def leaves(group: BaseExceptionGroup[DiskFailure]) -> Iterator[DiskFailure]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from leaves(error)
        else:
            yield error
