"""A share fetch: looks for records that its member may have, and waits until there are enough."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from broker.errors import error_code_of
from broker.partitions.leader import Leader
from broker.partitions.read import IsolationLevel, end_for
from broker.partitions.replica import Replica
from broker.share.acquiring import Acquired, AcquireMode, Offsets
from broker.share.held_partition import HeldPartition
from broker.share.sessions import TopicPartition
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.records.batch import NO_PRODUCER_ID, RecordBatch, read_batches
from protocol.records.errors import CorruptRecords
from storage.errors import DiskFailure, OffsetOutOfRange, StorageError
from storage.file_range import FileRange
from storage.transaction_index import AbortedTransaction

if TYPE_CHECKING:
    from broker.share.service import ShareService

NO_RECORDS: Final = b""

FIRST_READ_BYTES: Final = 64 * 1024
"""So much is read at first of what a member would take, and more if what it may have lies behind."""


class Wanted(NamedTuple):
    """What a member asks for."""

    group_id: str
    member_id: str
    mode: AcquireMode
    records_max: int
    batch_size: int
    min_bytes: int
    max_bytes: int
    isolation: IsolationLevel


class Fetched(NamedTuple):
    """What it gets of one partition."""

    error: ErrorCode = ErrorCode.NONE
    records: bytes | memoryview = NO_RECORDS
    acquired: Sequence[Acquired] = ()


Results: TypeAlias = Mapping[TopicPartition, Fetched]


class _Reading(NamedTuple):
    """What is to be read of a partition, or was."""

    partition: TopicPartition
    held: HeldPartition
    offset: int
    enough_offset: int
    """Whoever has read as far as this needs no more: it is behind all that can be acquired at once."""
    range: FileRange | None
    error: StorageError | None = None


class ShareFetching:
    """One fetch from its first look to its answer, which ``done`` is given once.

    Partitions of which nobody may acquire anything now are left out of the answer; those that failed are
    in it.  ``look`` is the first look, and ``expire`` the last.
    """

    def __init__(
        self,
        service: "ShareService",
        wanted: Wanted,
        partitions: Sequence[TopicPartition],
        done: Callable[[Results], None],
    ) -> None:
        self._service = service
        self._wanted = wanted
        self._done = done
        self._held: dict[TopicPartition, HeldPartition] = {}
        self._failed: dict[TopicPartition, Fetched] = {}
        self._is_over = False
        self._is_woken = False
        self._is_last_look = False
        self._aside: list[_Reading] = []
        """What a thread reads now."""
        self._waker = self._woken
        self._log_watcher = self._log_changed
        self._watched: list[Leader] = []
        for partition in partitions:
            try:
                self._held[partition] = service.hold(wanted.group_id, partition)
            except KafkaError as error:
                self._failed[partition] = Fetched(error.code)

    # Looking

    def look(self) -> bool:
        """Whether the answer is there already, or on its way; otherwise ``watch``."""
        if not self._wanted.records_max or not self._wanted.max_bytes:
            self._finish({}, with_failures=False)
        elif not self._held:
            self._finish({})
        else:
            self._look()
        return self._is_over

    def watch(self) -> None:
        """Look again whenever something may have become available."""
        for held in self._held.values():
            held.watch(self._waker)
            held.leader.watch(self._log_watcher)
            self._watched.append(held.leader)

    def look_again(self) -> None:
        """Something may have become available."""
        self._is_woken = False
        if not self._is_over and not self._aside:
            self._look()

    def expire(self) -> None:
        """The request has waited for as long as it may: take what there is."""
        self._is_last_look = True
        if not self._is_over and not self._aside:
            self._look()

    def abandon(self) -> None:
        """Nobody waits for the answer any more."""
        self._is_over = True
        self._stop_watching()

    def _woken(self) -> None:
        if not self._is_woken:
            self._is_woken = True
            self._service.woken(self)

    def _log_changed(self, _: Replica) -> None:
        self._woken()

    def _look(self) -> None:
        acquirable = []
        for partition, held in self._held.items():
            if held.ended is not None and not held.is_loaded:
                self._failed[partition] = Fetched(held.ended.code)
            elif held.can_acquire:
                acquirable.append((partition, held))
        if len(self._failed) > 0 and all(partition in self._failed for partition in self._held):
            self._finish({})
            return
        if not acquirable:
            if self._is_last_look:
                self._finish({})
            return
        readings = self._locate(acquirable)
        if not self._is_last_look and not self._has_enough(readings):
            return
        if all(reading.range is None or reading.range.is_cached() for reading in readings):
            self._acquire(readings, [_read(reading) for reading in readings])
            return
        self._aside = readings
        for reading in readings:
            reading.held.is_read_aside = True
        self._service.read_aside(self)

    async def read_aside(self) -> None:
        """Read what is not in memory in a thread, and go on."""
        readings = self._aside
        contents = await self._service.services.run_blocking(lambda: [_read(each) for each in readings])
        self._aside = []
        for reading in readings:
            reading.held.is_read_aside = False
        if not self._is_over:
            self._acquire(readings, contents)
        for reading in readings:
            reading.held.wake()

    def _locate(self, acquirable: Sequence[tuple[TopicPartition, HeldPartition]]) -> list[_Reading]:
        """Where the next records of each partition are; all share the bytes of the answer equally."""
        wanted = self._wanted
        share, rest = divmod(wanted.max_bytes, len(acquirable))
        left = wanted.max_bytes
        is_first = True
        found = []
        for index, (partition, held) in enumerate(acquirable):
            offset = held.partition.next_fetch_offset
            enough_offset = max(held.partition.end_offset + 1, offset) + wanted.records_max
            max_bytes = min(share + (rest if index == 0 else 0), left)
            try:
                found_range = held.leader.log.read(
                    offset,
                    max(max_bytes, 0),
                    upper=end_for(held.leader, wanted.isolation),
                    at_least_one=is_first,
                )
            except StorageError as error:
                found.append(_Reading(partition, held, offset, enough_offset, None, error))
                continue
            found.append(_Reading(partition, held, offset, enough_offset, found_range))
            if found_range is not None:
                is_first = False
                left = max(left - found_range.size_bytes, 0)
        return found

    def _has_enough(self, readings: Sequence[_Reading]) -> bool:
        size_bytes = 0
        for reading in readings:
            if reading.error is not None:
                return True
            if reading.offset > end_for(reading.held.leader, self._wanted.isolation):
                return True  # the log was shortened, or the group sees less of it now
            if reading.range is not None:
                size_bytes += reading.range.size_bytes
        return size_bytes >= self._wanted.min_bytes

    # Acquiring

    def _acquire(self, readings: Sequence[_Reading], contents: Sequence[bytes | StorageError]) -> None:
        results: dict[TopicPartition, Fetched] = {}
        left = self._wanted.records_max
        with_data = []
        for reading, content in zip(readings, contents, strict=True):
            if reading.held.ended is not None:
                continue
            if isinstance(content, StorageError):
                reading.held.leader.note_failed_read(content)
                results[reading.partition] = self._failed_reading(reading, content)
                continue
            try:
                fetched = self._acquire_from(reading, content, left)
            except (CorruptRecords, StorageError) as error:
                code = error_code_of(error) if isinstance(error, StorageError) else ErrorCode.CORRUPT_MESSAGE
                results[reading.partition] = Fetched(code)
                continue
            results[reading.partition] = fetched
            left -= sum(each.record_count for each in fetched.acquired)
            if content:
                with_data.append(reading.held)
        self._finish(results)
        for held in with_data:
            self._service.records_acquired(held)
            held.wake()  # there may be more, for others

    def _failed_reading(self, reading: _Reading, error: StorageError) -> Fetched:
        held = reading.held
        if isinstance(error, OffsetOutOfRange):
            held.partition.move_to(held.leader.log.log_start)
            return Fetched()
        return Fetched(error_code_of(error))

    def _acquire_from(self, reading: _Reading, content: bytes, left: int) -> Fetched:
        wanted = self._wanted
        batches = list(read_batches(content))
        if not batches:
            return Fetched()
        aborted: list[Offsets] = []
        if wanted.isolation and reading.range is not None:
            log = reading.held.leader.log
            aborted = _aborted_batches(batches, log.aborted_transactions(reading.range))
        acquired = reading.held.partition.acquire(
            wanted.member_id,
            wanted.mode,
            wanted.batch_size,
            left,
            reading.offset,
            [Offsets(batch.base_offset, batch.last_offset) for batch in batches],
            aborted,
            self._service.now_ms(),
        )
        if not acquired:
            return Fetched()
        return Fetched(ErrorCode.NONE, _sliced(content, batches, acquired), acquired)

    # The end

    def _finish(self, results: Results, *, with_failures: bool = True) -> None:
        self._is_over = True
        self._stop_watching()
        self._done({**results, **self._failed} if with_failures else results)

    def _stop_watching(self) -> None:
        for leader in self._watched:
            leader.unwatch(self._log_watcher)
        self._watched.clear()
        for held in self._held.values():
            held.unwatch(self._waker)


def _read(reading: _Reading) -> bytes | StorageError:
    if reading.error is not None:
        return reading.error
    try:
        return NO_RECORDS if reading.range is None else _read_enough(reading.range, reading.enough_offset)
    except DiskFailure as failure:
        return failure


def _read_enough(found: FileRange, enough_offset: int) -> bytes:
    """The range, or as much from its beginning as holds all that can be acquired.

    Where that is not all, it is two batches or more: a single one is told with what follows it.
    """
    size_bytes = FIRST_READ_BYTES
    while size_bytes < found.size_bytes:
        content = found.read_first(size_bytes)
        try:
            batches = list(read_batches(content))
        except CorruptRecords:
            break  # who gets the records looks at them once more, and can say so
        if len(batches) > 1 and batches[-1].last_offset >= enough_offset:
            return content
        size_bytes *= 4
    return found.read()


def _aborted_batches(
    batches: Sequence[RecordBatch], transactions: Sequence[AbortedTransaction]
) -> list[Offsets]:
    if not transactions:
        return []
    return [
        Offsets(batch.base_offset, batch.last_offset)
        for batch in batches
        if batch.producer_id != NO_PRODUCER_ID
        and batch.is_transactional
        and not batch.is_control
        and any(
            each.producer_id == batch.producer_id
            and each.first_offset <= batch.last_offset <= each.last_offset
            for each in transactions
        )
    ]


def _sliced(
    content: bytes, batches: Sequence[RecordBatch], acquired: Sequence[Acquired]
) -> bytes | memoryview:
    """Those batches that hold something acquired, and what lies between them."""
    if len(batches) == 1:
        return content
    first_offset, last_offset = acquired[0].first_offset, acquired[-1].last_offset
    kept = [
        batch for batch in batches if batch.last_offset >= first_offset and batch.base_offset <= last_offset
    ]
    begin = kept[0].position
    end = kept[-1].position + kept[-1].size_bytes
    return content if begin == 0 and end == len(content) else memoryview(content)[begin:end]
