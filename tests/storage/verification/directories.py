"""A log directory with some of everything, as a broker leaves it."""

from collections.abc import Callable

from broker.raft.batches import build_control_batch, build_metadata_batch, leader_change
from broker.raft.snapshots import SnapshotId, build_snapshot, write_snapshot
from protocol.records.batch import RecordBatch, read_batch
from protocol.records.builder import build_batch
from protocol.records.compression import Compression
from protocol.schema import Message
from protocol.stored.metadata_records import (
    ConfigRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
)
from protocol.uuids import uuid_from_text
from storage.compaction import Survivors, Transactions
from storage.config import LogConfig
from storage.filesystem import FileSystem
from storage.log_directory import LogDirectory
from storage.memory_filesystem import MemoryFileSystem
from storage.node_files import MetaProperties, QuorumState, write_quorum_state
from storage.offset_map import OffsetMap
from storage.partition_log import PartitionLog
from storage.verification.findings import Finding, Severity, Totals
from storage.verification.verify import check_one, verify
from tests.storage.builders import batch, marker

DATA = "data"
NODE_ID = 1
DIRECTORY_ID = uuid_from_text("5GfNW1uFTROj_TJLDxykbQ")
CLUSTER_ID = "NkEIMryHQ8O_aouOAPVOtw"
TIME = 1_790_000_000_000

TOPICS = {"events": bytes(range(16)), "compacted": bytes(range(1, 17)), "old": bytes(range(2, 18))}
PARTITION_COUNT = 2
CONFIG = LogConfig(segment_bytes=1500, index_interval_bytes=150)

METADATA_LOG = f"{DATA}/__cluster_metadata-0"
EVENTS = f"{DATA}/events-0"
OLD = f"{DATA}/old-0"
COMPACTED = f"{DATA}/compacted-0"


class Directory:
    """One log directory in memory: what is in it, and what a check says of it."""

    def __init__(self, file_system: FileSystem | None = None, path: str = DATA) -> None:
        self.memory = MemoryFileSystem()
        self.file_system = self.memory if file_system is None else file_system
        self.path = path
        self.file_system.make_directory(path)

    def open(self) -> LogDirectory:
        directory = LogDirectory.open(
            self.path,
            self.file_system,
            random_below=lambda end: end - 1,
            report=lambda line: None,
            now_ms=TIME,
        )
        if directory.properties is None:
            directory.write_properties(MetaProperties(CLUSTER_ID, NODE_ID, DIRECTORY_ID))
        return directory

    def fill(self, *, closes: bool = True) -> None:
        """Write the metadata log and the replicas; without ``closes`` the broker is killed then."""
        directory = self.open()
        write_metadata(self.file_system, directory)
        write_events(directory.create_log("events", 0, TOPICS["events"], CONFIG, now_ms=TIME))
        write_compacted(directory.create_log("compacted", 0, TOPICS["compacted"], CONFIG, now_ms=TIME))
        write_old(directory.create_log("old", 0, TOPICS["old"], CONFIG, now_ms=TIME))
        if closes:
            directory.close()
        else:
            self.memory.kill()

    def findings(self, *paths: str) -> tuple[list[Finding], Totals]:
        """What the check of this directory, or of others, comes to."""
        totals = Totals()
        found = []
        for some in verify(
            self.file_system,
            paths or [self.path],
            lambda replicas: [check_one(self.file_system, facts, lambda count: None) for facts in replicas],
            totals,
        ):
            found += some
        return found, totals

    def damages(self) -> list[Finding]:
        return [finding for finding in self.findings()[0] if finding.severity is Severity.DAMAGE]

    def notes(self) -> list[Finding]:
        return [finding for finding in self.findings()[0] if finding.severity is Severity.NOTE]

    def read(self, path: str) -> bytes:
        return self.file_system.read_file(path)

    def put(self, path: str, content: bytes) -> None:
        """Make a file hold just this."""
        file = self.file_system.open(path, create=True)
        file.truncate(0)
        file.pwrite(content, 0)

    def patch(self, path: str, position: int, content: bytes) -> None:
        self.file_system.open(path).pwrite(content, position)

    def change(self, path: str, change: Callable[[bytes], bytes]) -> None:
        self.put(path, change(self.read(path)))

    def names(self, path: str, suffix: str) -> list[str]:
        """Paths of the files in a folder that end like this, in order."""
        names = self.file_system.list_names(path)
        return [f"{path}/{name}" for name in sorted(names) if name.endswith(suffix)]


def write_metadata(file_system: FileSystem, directory: LogDirectory) -> None:
    log = directory.open_metadata_log(LogConfig(), now_ms=TIME)
    records: list[tuple[Message, int]] = [
        (RegisterBrokerRecord(broker_id=NODE_ID, log_dirs=[DIRECTORY_ID]), 3),
        (ConfigRecord(resource_type=2, resource_name="compacted", name="cleanup.policy", value="compact"), 0),
    ]
    for name, topic_id in TOPICS.items():
        records.append((TopicRecord(name=name, topic_id=topic_id), 0))
        records += [
            (
                PartitionRecord(
                    partition_id=partition,
                    topic_id=topic_id,
                    replicas=[NODE_ID],
                    isr=[NODE_ID],
                    leader=NODE_ID,
                    leader_epoch=0,
                    partition_epoch=0,
                    directories=[DIRECTORY_ID],
                ),
                1,
            )
            for partition in range(PARTITION_COUNT)
        ]
    opening = build_control_batch([leader_change(NODE_ID, [NODE_ID])], base_offset=0, epoch=1, now_ms=TIME)
    log.append_as_leader(RecordBatch(opening), 1, now_ms=TIME, from_client=False)
    for record in records:
        data = build_metadata_batch([record], base_offset=0, epoch=1, now_ms=TIME)
        log.append_as_leader(RecordBatch(data), 1, now_ms=TIME, from_client=False)
    snapshot = SnapshotId(6, 1)
    batches = build_snapshot(
        records[:5], snapshot, kraft_version=0, voters=(), last_timestamp_ms=TIME, now_ms=TIME
    )
    write_snapshot(file_system, log.directory, snapshot, batches, unique="x")
    write_quorum_state(file_system, log.directory, QuorumState(NODE_ID, 1))


def write_events(log: PartitionLog) -> None:
    """Every codec, idempotent batches, transactions of which some were aborted, two leader epochs."""
    for number in range(12):
        compression = Compression(number % 5)
        values = [b"value %d of many that are alike" % each for each in range(number % 4 + 1)]
        log.append_as_leader(
            batch(*values, timestamp=TIME + number * 10, compression=compression), 0, now_ms=TIME
        )
    for number in range(8):
        log.append_as_leader(
            batch(
                b"a" * 40,
                b"b" * 40,
                timestamp=TIME + 500 - number,
                producer_id=7,
                producer_epoch=0,
                base_sequence=number * 2,
            ),
            number // 4,
            now_ms=TIME,
        )
    log.assign_leader_epoch(2)
    sequences = {20: 0, 21: 0}
    for number, commits in enumerate((True, False, True, False, False)):
        for producer_id in (20, 21):
            for _ in range(2):
                log.append_as_leader(
                    batch(
                        b"in a transaction" * 3,
                        timestamp=TIME + 1000 + number,
                        producer_id=producer_id,
                        producer_epoch=0,
                        base_sequence=sequences[producer_id],
                        is_transactional=True,
                    ),
                    2,
                    now_ms=TIME,
                )
                sequences[producer_id] += 1
        for producer_id in (21, 20):
            log.append_as_leader(
                marker(commit=commits, producer_id=producer_id, timestamp=TIME + 1000 + number),
                2,
                now_ms=TIME,
                from_client=False,
            )
    log.append_as_leader(
        batch(
            b"open", timestamp=TIME, producer_id=20, producer_epoch=0, base_sequence=10, is_transactional=True
        ),
        3,
        now_ms=TIME,
    )
    log.advance_high_watermark(log.log_end)


def write_compacted(log: PartitionLog) -> None:
    """What a cleaner leaves: gaps between batches and within them, an emptied batch, a delete horizon."""
    for base_offset, deltas in ((3, (0, 2)), (9, ()), (20, (0, 1, 5))):
        data = keyed_batch(base_offset, deltas)
        log.append_as_follower(data, now_ms=TIME)
    log.advance_high_watermark(log.log_end)


def keyed_batch(base_offset: int, deltas: tuple[int, ...]) -> bytes:
    """A batch of which only the records with these offset deltas are left."""
    whole = read_batch(
        build_batch(
            [(TIME, b"key %d" % delta, b"value", ()) for delta in range(max(deltas, default=0) + 1)],
            base_offset=base_offset,
            partition_leader_epoch=0,
        )
    )
    offsets = OffsetMap(100)
    for delta in range(whole.record_count):
        offsets.put(b"key %d" % delta, base_offset + delta + (0 if delta in deltas else 1000))
    survivors = Survivors(
        offsets, Transactions([]), {}, high_watermark=whole.next_offset, now_ms=TIME, delete_retention_ms=1000
    )
    left = survivors.filter(whole)
    assert left is not None
    return bytes(left)


def write_old(log: PartitionLog) -> None:
    """A log that has lost its first segments, and of whose first one not all is served."""
    for number in range(40):
        log.append_as_leader(
            batch(
                b"x" * 50,
                b"y" * 50,
                timestamp=TIME + number,
                producer_id=5,
                producer_epoch=1,
                base_sequence=2 * number,
            ),
            number // 20,
            now_ms=TIME,
        )
    log.advance_high_watermark(log.log_end)
    log.delete_records_before(41)
    log.remove_segments_below_log_start(now_ms=TIME)
