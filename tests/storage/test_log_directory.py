import errno
import zlib
from pathlib import Path
from random import Random

import pytest

from protocol.uuids import ONE_UUID
from storage.config import LogConfig
from storage.errors import (
    CorruptFile,
    DirectoryLocked,
    DiskFailure,
    DuplicateReplica,
    InconsistentTopicId,
    ReplicaExists,
    ReplicaNotFound,
    UnexpectedDirectory,
    UnsupportedFormat,
)
from storage.filesystem import FileSystem, RealFileSystem
from storage.log_directory import LogDirectory
from storage.memory_filesystem import MemoryFile, MemoryFileSystem, PowerCut
from storage.node_files import MetaProperties
from storage.partition_log import FlushJob, PartitionLog
from tests.storage.builders import TOPIC_ID, batch, read_all, values

OTHER_ID = bytes(16 * [9])
CONFIG = LogConfig()


class Node:
    """A process that holds the directory ``data``, again and again."""

    def __init__(self, file_system: FileSystem | None = None, path: str = "data") -> None:
        self.memory = MemoryFileSystem()
        self.file_system = file_system or self.memory
        self.path = path
        self.reports: list[str] = []

    def open(self, *, now_ms: int = 0, open_files_max: int = 512) -> LogDirectory:
        return LogDirectory.open(
            self.path,
            self.file_system,
            random_below=lambda end: end - 1,
            report=self.reports.append,
            now_ms=now_ms,
            open_files_max=open_files_max,
        )

    def write(self, name: str, content: bytes) -> None:
        self.memory.open(f"{self.path}/{name}", create=True).pwrite(content, 0)

    def read(self, name: str) -> bytes:
        return self.file_system.read_file(f"{self.path}/{name}")

    def folders(self) -> list[str]:
        return sorted(self.file_system.list_directories(self.path))


@pytest.fixture
def node() -> Node:
    return Node()


def make(
    directory: LogDirectory, topic: str = "events", partition: int = 0, *, count: int = 1
) -> PartitionLog:
    log = directory.create_log(topic, partition, TOPIC_ID, CONFIG, now_ms=0)
    fill(log, count)
    return log


def fill(log: PartitionLog, count: int) -> None:
    for number in range(count):
        log.append_as_leader(batch(b"%d" % number), 0, now_ms=0)
    log.advance_high_watermark(log.log_end)


def reopened(directory: LogDirectory, topic: str = "events", partition: int = 0) -> PartitionLog:
    return directory.open_log(topic, partition, TOPIC_ID, CONFIG, now_ms=0)


# Opening


def test_a_new_directory_is_clean_and_unformatted(node: Node) -> None:
    directory = node.open()
    assert directory.was_clean
    assert directory.properties is None
    assert directory.replicas == []
    assert directory.previous_broker_epoch == -1


def test_only_one_process_holds_it(node: Node) -> None:
    directory = node.open()
    with pytest.raises(DirectoryLocked, match="data"):
        node.open()
    directory.close()
    node.open()


def test_what_it_belongs_to_is_remembered(node: Node) -> None:
    directory = node.open()
    properties = MetaProperties("cluster", 1, OTHER_ID)
    directory.write_properties(properties)
    assert directory.properties == properties
    directory.close()
    assert node.open().properties == properties


def test_a_foreign_folder_is_refused_by_name_and_the_lock_let_go(node: Node) -> None:
    for name in ("lost+found", "photos", "events-x", "-0", "events-0.x-deletE"):
        node.memory.make_directory(f"data/{name}")
        with pytest.raises(UnexpectedDirectory, match="data/") as refused:
            node.open()
        assert refused.value.path == f"data/{name}"
        node.memory.remove_tree(f"data/{name}")
    node.open()


def test_plain_files_and_kafkas_own_folders_are_no_replicas(node: Node) -> None:
    node.memory.make_directory("data/remote-log-index-cache")
    node.memory.make_directory("data/__cluster_metadata-0")
    node.memory.make_directory("data/events-7")
    node.write("notes.txt", b"")
    node.write("cleaner-offset-checkpoint", b"0\n1\nevents 7 5\n")
    directory = node.open()
    assert directory.replicas == [("events", 7)]
    directory.close()
    assert node.read("cleaner-offset-checkpoint") == b"0\n1\nevents 7 5\n"


def test_damaged_properties_are_an_error(node: Node) -> None:
    node.memory.make_directory("data")
    node.write("meta.properties", b"version=1\n")
    with pytest.raises(CorruptFile, match=r"meta\.properties"):
        node.open()


def test_a_disk_that_cannot_be_used(node: Node) -> None:
    node.memory.make_directory("data")
    node.memory.refuse("open", errno.EACCES)
    with pytest.raises(DiskFailure, match="cannot use log directory data: Permission denied"):
        node.open()


# Replicas


def test_a_replica_lives_on(node: Node) -> None:
    directory = node.open()
    log = make(directory, count=3)
    assert directory.log("events", 0) is log
    assert directory.logs == [log]
    assert node.read("events-0/partition.metadata").startswith(b"version: 0\ntopic_id: ")
    directory.close()
    directory = node.open()
    assert directory.replicas == [("events", 0)]
    assert directory.log("events", 0) is None, "it is opened when somebody asks"
    assert directory.topic_id("events", 0) == TOPIC_ID
    log = reopened(directory)
    assert reopened(directory) is log
    assert (log.log_end, log.high_watermark) == (3, 3)


def test_the_topic_id_is_on_the_device_before_any_record(node: Node) -> None:
    directory = node.open()
    node.memory.sync_everything()
    log = make(directory)
    log.flush()
    node.memory.lose_power()
    directory = node.open()
    assert directory.topic_id("events", 0) == TOPIC_ID
    assert len(read_all(reopened(directory))) == 1


def test_what_is_there_and_what_is_not(node: Node) -> None:
    directory = node.open()
    make(directory)
    with pytest.raises(ReplicaExists, match="events-0"):
        make(directory)
    for action in (directory.topic_id, directory.set_aside):
        with pytest.raises(ReplicaNotFound):
            action("events", 1)
    with pytest.raises(ReplicaNotFound):
        directory.delete_log("events", 1, now_ms=0)
    with pytest.raises(ReplicaNotFound):
        reopened(directory, partition=1)


def test_one_that_could_not_be_made_can_be_made_later(node: Node) -> None:
    directory = node.open()
    node.memory.refuse("sync", errno.ENOSPC, path_suffix="partition.metadata.tmp")
    with pytest.raises(DiskFailure):
        make(directory)
    assert (directory.replicas, directory.replica_count) == ([], 0)
    make(directory)
    assert (directory.replicas, directory.replica_count) == ([("events", 0)], 1)


def test_a_replica_of_an_older_topic_of_that_name(node: Node) -> None:
    directory = node.open()
    make(directory)
    with pytest.raises(InconsistentTopicId) as other:
        directory.open_log("events", 0, OTHER_ID, CONFIG, now_ms=0)
    assert (other.value.stored, other.value.expected) == (TOPIC_ID, OTHER_ID)
    directory.close()
    directory = node.open()
    with pytest.raises(InconsistentTopicId):
        directory.open_log("events", 0, OTHER_ID, CONFIG, now_ms=0)
    node.memory.remove("data/events-0/partition.metadata")
    with pytest.raises(InconsistentTopicId) as none:
        directory.open_log("events", 0, OTHER_ID, CONFIG, now_ms=0)
    assert none.value.stored is None


def test_deleting_renames_at_once_and_removes_later(node: Node) -> None:
    directory = node.open()
    log = make(directory)
    piece = log.read(0, 100)
    directory.delete_log("events", 0, delay_ms=60, now_ms=1000)
    assert directory.replicas == []
    assert directory.log("events", 0) is None
    assert node.folders() == ["events-0.ffffffffffffffffffffffffffffffff-delete"]
    make(directory)
    removals = directory.services.removals
    assert removals.begin(1059) is None
    remove = removals.begin(1060)
    assert remove is not None
    remove()
    assert node.folders() == ["events-0"]
    assert piece is not None
    assert piece.read()


def test_leftovers_of_deletions_go_after_the_next_start(node: Node) -> None:
    directory = node.open()
    make(directory)
    directory.delete_log("events", 0, now_ms=0)
    directory.close()
    directory = node.open(now_ms=5000)
    assert directory.replicas == []
    remove = directory.services.removals.begin(5000)
    assert remove is not None
    remove()
    assert node.folders() == []


def test_strays_are_kept_and_not_served(node: Node) -> None:
    directory = node.open()
    make(directory)
    path = directory.set_aside("events", 0)
    assert path is not None
    assert node.folders() == [path.removeprefix("data/")]
    assert path.endswith("-stray")
    directory.close()
    directory = node.open()
    assert directory.replicas == []
    assert directory.services.removals.begin(1 << 50) is None
    assert node.reports == [f"{path}: kept, and not served, because there is no such topic"]


def test_a_folder_whose_number_has_zeros_in_front_is_no_replica(node: Node) -> None:
    """Its replica would lie elsewhere, where there is nothing to put aside."""
    node.memory.make_directory("data/backup-2026-01")
    directory = node.open()
    assert directory.replicas == []
    assert node.folders() == ["backup-2026-01"]
    assert node.reports == ["data/backup-2026-01: kept, and not served, because there is no such topic"]


def test_many_strays_are_told_in_one_line(node: Node) -> None:
    directory = node.open()
    kept = []
    for partition in range(3):
        make(directory, partition=partition)
        kept.append(directory.set_aside("events", partition))
    directory.close()
    node.open()
    assert node.reports == [f"{kept[0]} and 2 more: kept, and not served, because there is no such topic"]


def test_a_folder_that_was_never_finished_is_nothing_to_be_kept(node: Node) -> None:
    """A process died between making it and writing the topic's id, which comes before the first record."""
    node.memory.make_directory("data/events-0")
    node.memory.open(f"data/events-0/{0:020d}.log", create=True)
    directory = node.open()
    assert directory.set_aside("events", 0) is None
    assert directory.replicas == []
    remove = directory.services.removals.begin(0)
    assert remove is not None
    remove()
    assert node.folders() == []


@pytest.mark.parametrize("name", [f"{0:020d}.log", f"{0:020d}.log.deleted", "partition.metadata"])
def test_a_folder_with_a_record_or_a_topic_is_kept(node: Node, name: str) -> None:
    node.memory.make_directory("data/events-0")
    node.memory.open(f"data/events-0/{name}", create=True).pwrite(b"?", 0)
    path = node.open().set_aside("events", 0)
    assert path is not None
    assert path.endswith("-stray")


def test_unfinished_copies_are_found(node: Node) -> None:
    node.memory.make_directory("data/events-0.ffffffffffffffffffffffffffffffff-future")
    directory = node.open()
    assert directory.replicas == []
    assert list(directory.futures) == [("events", 0)]
    assert directory.future_log("events", 0) is None
    assert not directory.was_clean


# Checkpoints and the mark of a clean stop


def test_the_mark_is_gone_while_somebody_holds_the_directory(node: Node) -> None:
    directory = node.open()
    make(directory)
    directory.close(broker_epoch=5)
    assert node.read(".kafka_cleanshutdown") == b'{"version":0,"brokerEpoch":5}'
    directory = node.open()
    assert directory.was_clean
    assert directory.previous_broker_epoch == 5
    assert not node.memory.exists("data/.kafka_cleanshutdown")
    node.memory.lose_power()
    directory = node.open()
    assert not directory.was_clean, "that it is gone is on the device"
    assert directory.previous_broker_epoch == -1


def test_a_start_that_fails_early_leaves_the_mark(node: Node) -> None:
    directory = node.open()
    make(directory)
    directory.close(broker_epoch=5)
    directory = node.open()
    directory.open_metadata_log(CONFIG, now_ms=0)
    directory.abandon()
    directory = node.open()
    assert directory.was_clean
    assert directory.previous_broker_epoch == 5
    reopened(directory)
    directory.abandon()
    directory = node.open()
    assert not directory.was_clean
    directory.abandon()
    assert not node.open().was_clean


def test_a_start_that_fails_on_a_broken_disk_leaves_no_mark(node: Node) -> None:
    directory = node.open()
    make(directory)
    directory.close()
    directory = node.open()
    node.memory.refuse("write", errno.EIO)
    directory.abandon()
    assert len(node.reports) == 1
    assert not node.open().was_clean


def test_a_clean_stop_needs_every_replica_to_be_recovered(node: Node) -> None:
    directory = node.open()
    make(directory, partition=0, count=3)
    make(directory, partition=1, count=3)
    node.memory.kill()
    directory = node.open()
    assert not directory.was_clean
    assert directory.needs_recovery("events", 0)
    assert reopened(directory, partition=0).log_end == 3
    assert not directory.needs_recovery("events", 0)
    directory.close()
    assert not node.memory.exists("data/.kafka_cleanshutdown")
    assert "no mark of a clean stop, because 1 of its logs were not recovered, events-1" in node.reports[-1]
    directory = node.open()
    for partition in (0, 1):
        assert reopened(directory, partition=partition).log_end == 3
    directory.close()
    assert node.open().was_clean


def test_checkpoints_say_what_kafkas_say(node: Node) -> None:
    directory = node.open()
    first = make(directory, partition=0, count=5)
    second = make(directory, partition=1, count=7)
    first.flush()
    second.delete_records_before(3)
    directory.begin_checkpoint()()
    directory.begin_high_watermark_checkpoint()()
    assert node.read("recovery-point-offset-checkpoint") == b"0\n2\nevents 0 5\nevents 1 0\n"
    assert node.read("log-start-offset-checkpoint") == b"0\n1\nevents 1 3\n"
    assert node.read("replication-offset-checkpoint") == b"0\n2\nevents 0 5\nevents 1 7\n"


def test_a_checkpoint_is_of_the_moment_it_began(node: Node) -> None:
    directory = node.open()
    log = make(directory, count=5)
    write = directory.begin_high_watermark_checkpoint()
    fill(log, 5)
    write()
    assert node.read("replication-offset-checkpoint") == b"0\n1\nevents 0 5\n"


def test_logs_that_nobody_opened_keep_their_checkpoints(node: Node) -> None:
    directory = node.open()
    for partition in range(3):
        make(directory, partition=partition, count=5 + partition).delete_records_before(2)
    directory.close()
    before = {name: node.read(name) for name in node.memory.list_names("data") if name.endswith("checkpoint")}
    assert len(before) == 3
    directory = node.open()
    reopened(directory, partition=1)
    directory.close()
    for name, content in before.items():
        assert sorted(node.read(name).splitlines()) == sorted(content.splitlines())
    directory = node.open()
    assert [reopened(directory, partition=n).log_start for n in range(3)] == [2, 2, 2]


def test_deleted_replicas_leave_the_checkpoints(node: Node) -> None:
    directory = node.open()
    make(directory, count=5)
    directory.close()
    directory = node.open()
    directory.delete_log("events", 0, now_ms=0)
    make(directory, count=0)
    directory.close()
    assert node.read("replication-offset-checkpoint") == b"0\n1\nevents 0 0\n"


def test_a_damaged_checkpoint_costs_a_recovery_and_no_record(node: Node) -> None:
    directory = node.open()
    make(directory, count=5)
    directory.close()
    node.write("recovery-point-offset-checkpoint", b"9")
    directory = node.open()
    assert reopened(directory).log_end == 5
    assert len(node.reports) == 1


def test_a_disk_that_fails_while_closing_leaves_no_mark(node: Node) -> None:
    directory = node.open()
    make(directory)
    node.memory.refuse("sync", errno.EIO, path_suffix=".log")
    with pytest.raises(DiskFailure):
        directory.close()
    assert not node.memory.exists("data/.kafka_cleanshutdown")
    node.open()


def test_flushes_at_the_end_may_run_in_any_order(node: Node, chance: Random) -> None:
    directory = node.open()
    for partition in range(10):
        make(directory, partition=partition, count=partition)

    def run_shuffled(jobs: list[FlushJob]) -> None:
        chance.shuffle(jobs)
        for job in jobs:
            job.run()

    directory.close(run_jobs=run_shuffled)
    node.memory.lose_power(chance)
    directory = node.open()
    assert directory.was_clean
    assert [reopened(directory, partition=n).log_end for n in range(10)] == list(range(10))
    assert node.reports == []


def test_closing_many_logs_needs_few_descriptors(node: Node) -> None:
    directory = node.open(open_files_max=16)
    for partition in range(40):
        make(directory, partition=partition, count=1)
    most = 0

    def run_and_count(jobs: list[FlushJob]) -> None:
        nonlocal most
        for job in jobs:
            most = max(most, node.memory.open_files)
            job.run()

    directory.close(run_jobs=run_and_count)
    assert most <= 32
    assert node.open().was_clean


MANY = 150


@pytest.fixture
def many() -> Node:
    """The process has been killed, and none of its logs was ever flushed; every third one is empty."""
    node = Node()
    directory = node.open()
    for partition in range(MANY):
        make(directory, partition=partition, count=partition % 3)
    node.memory.kill()
    return node


def reopen_many(directory: LogDirectory) -> None:
    for partition in range(MANY):
        log = reopened(directory, partition=partition)
        assert log.log_end == partition % 3
        assert log.leader_epochs.latest == (0 if log.log_end else -1)


def test_many_logs_are_closed_with_one_wait_for_the_device(many: Node) -> None:
    directory = many.open()
    reopen_many(directory)
    fill(reopened(directory, partition=0), 5)
    make(directory, "other", count=2)
    reopened(directory, partition=1).assign_leader_epoch(7)
    many.memory.syncs = 0
    directory.close()
    assert many.memory.syncs < 20
    many.memory.lose_power()
    directory = many.open()
    assert directory.was_clean
    assert reopened(directory, partition=0).log_end == 5
    assert reopened(directory, "other").log_end == 2
    for partition in range(2, MANY):
        log = reopened(directory, partition=partition)
        assert (log.log_end, log.recovery_point) == (partition % 3, partition % 3)
    assert many.reports == []
    many.memory.syncs = 0
    directory.close()
    assert many.memory.syncs < 20, "nothing has changed"


def test_many_logs_are_closed_one_by_one_where_the_device_cannot_be_asked_for_all(many: Node) -> None:
    many.memory.can_sync_all = False
    directory = many.open()
    reopen_many(directory)
    directory.close()
    many.memory.lose_power()
    directory = many.open()
    assert directory.was_clean
    reopen_many(directory)
    assert many.reports == []


def test_a_device_that_fails_when_many_logs_are_closed_leaves_no_mark(many: Node) -> None:
    directory = many.open()
    reopen_many(directory)
    many.memory.refuse("sync", errno.EIO, path_suffix="everything")
    with pytest.raises(DiskFailure):
        directory.close()
    many.memory.kill()
    directory = many.open()
    assert not directory.was_clean
    reopen_many(directory)


def test_a_power_cut_while_many_logs_are_closed_leaves_no_mark_without_the_data(
    many: Node, chance: Random
) -> None:
    directory = many.open()
    reopen_many(directory)
    many.memory.stop_after = chance.randrange(1, 2000)
    try:
        directory.close()
    except PowerCut:
        many.memory.lose_power()
    else:
        many.memory.lose_power()
    directory = many.open()
    if directory.was_clean and directory.replicas:  # of a directory that was never fsynced nothing is left
        reopen_many(directory)


def test_epochs_that_were_stored_and_cut_again_are_not_left_behind(many: Node) -> None:
    directory = many.open()
    reopen_many(directory)
    log = reopened(directory, partition=2)
    log.append_as_leader(batch(b"x"), 5, now_ms=0)
    log.flush()
    log.truncate_to(2, now_ms=0)
    directory.close()
    assert reopened(many.open(), partition=2).leader_epochs.entries == ((0, 0),)
    assert many.read("events-2/leader-epoch-checkpoint") == b"0\n1\n0 0\n"


# The metadata log


def test_the_metadata_log_stands_apart(node: Node) -> None:
    directory = node.open()
    log = directory.open_metadata_log(CONFIG, now_ms=0)
    assert directory.open_metadata_log(CONFIG, now_ms=0) is log
    assert (log.topic, log.partition, log.topic_id) == ("__cluster_metadata", 0, ONE_UUID)
    fill(log, 3)
    assert directory.replicas == []
    assert directory.logs == []
    directory.close()
    assert node.read("recovery-point-offset-checkpoint") == b"0\n0\n"
    directory = node.open()
    log = directory.open_metadata_log(CONFIG, now_ms=0)
    assert values(read_all(log)) == [(0, b"0"), (1, b"1"), (2, b"2")]
    assert log.topic_id == ONE_UUID


def test_the_metadata_log_is_checked_at_each_start(node: Node) -> None:
    directory = node.open()
    fill(directory.open_metadata_log(CONFIG, now_ms=0), 3)
    directory.close()
    path = "data/__cluster_metadata-0/00000000000000000000.log"
    node.memory.open(path).pwrite(b"\xee", node.memory.file_size(path) - 1)
    for _ in range(2):  # a start that fails leaves the mark of the clean stop where it was
        directory = node.open()
        with pytest.raises(CorruptFile, match="although the log was closed properly"):
            directory.open_metadata_log(CONFIG, now_ms=0)
        directory.abandon()
    node.memory.remove("data/.kafka_cleanshutdown")
    assert node.open().open_metadata_log(CONFIG, now_ms=0).log_end == 2
    assert len(node.reports) == 1


def test_a_copy_of_the_metadata_log_is_cut_where_a_power_cut_has_left_a_hole(node: Node) -> None:
    directory = node.open()
    fill(directory.open_metadata_log(CONFIG, now_ms=0), 3)
    path = "data/__cluster_metadata-0/00000000000000000000.log"
    node.memory.open(path).pwrite(bytes(20), node.memory.file_size(path) // 3)
    node.memory.kill()
    directory = node.open()
    with pytest.raises(CorruptFile, match="although a good batch follows"):
        directory.open_metadata_log(CONFIG, now_ms=0)
    assert directory.open_metadata_log(CONFIG, now_ms=0, is_copy=True).log_end == 1
    assert "the log continues at offset 1" in node.reports[-1]


def test_a_failed_start_marks_a_clean_stop_only_if_the_metadata_log_is_whole(node: Node) -> None:
    directory = node.open()
    fill(directory.open_metadata_log(CONFIG, now_ms=0), 3)
    directory.close()
    directory = node.open()
    fill(directory.open_metadata_log(CONFIG, now_ms=0), 2)
    directory.abandon()
    node.memory.lose_power()
    directory = node.open()
    assert directory.was_clean
    assert directory.open_metadata_log(CONFIG, now_ms=0).log_end == 5


# On a real disk


def test_on_the_operating_systems_files(tmp_path: Path) -> None:
    node = Node(RealFileSystem(), str(tmp_path / "data") + "/")
    directory = node.open()
    for partition in range(3):
        log = make(directory, partition=partition, count=10)
        piece = log.read(0, 1 << 20)
        assert piece is not None
        assert piece.fileno() is not None
        assert piece.is_cached()
        assert len(piece.read()) == piece.size_bytes
    directory.delete_log("events", 2, delay_ms=0, now_ms=0)
    remove = directory.services.removals.begin(0)
    assert remove is not None
    remove()
    directory.close()
    directory = node.open()
    assert directory.was_clean
    assert sorted(directory.replicas) == [("events", 0), ("events", 1)]
    assert len(read_all(reopened(directory))) == 10
    directory.close()


# A replica of a name that another one had


def test_a_new_log_is_not_taken_for_a_deleted_one_of_its_name(node: Node) -> None:
    directory = node.open()
    log = make(directory, count=10)
    log.delete_records_before(8)
    log.flush()
    directory.begin_checkpoint()()
    directory.begin_high_watermark_checkpoint()()
    directory.delete_log("events", 0, now_ms=0)
    log = make(directory, count=3)
    node.memory.kill()
    directory = node.open()
    log = reopened(directory)
    assert (log.log_start, log.log_end, log.recovery_point) == (0, 3, 0)
    assert node.reports == []


@pytest.mark.parametrize("deleted", ["before the flush runs", "while it waits for the device"])
def test_a_late_flush_leaves_the_epochs_of_a_new_log_alone(
    node: Node, deleted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = node.open()
    log = make(directory)
    log.assign_leader_epoch(5)
    job = log.begin_flush()
    assert job is not None
    epochs = "events-0/leader-epoch-checkpoint"
    sync = MemoryFile.sync

    def replace_log() -> None:
        monkeypatch.setattr(MemoryFile, "sync", sync)
        directory.delete_log("events", 0, now_ms=0)
        make(directory, count=3).flush()
        node.file_system.write_temporary(f"data/{epochs}", b"not fsynced yet")

    def sync_and_replace_log(file: MemoryFile) -> None:
        sync(file)
        if file.path.endswith("leader-epoch-checkpoint.tmp"):
            replace_log()

    if deleted == "before the flush runs":
        replace_log()
    else:
        monkeypatch.setattr(MemoryFile, "sync", sync_and_replace_log)
    job.run()
    job.finish()
    assert node.read(epochs) == b"0\n1\n0 0\n"
    assert node.read(f"{epochs}.tmp") == b"not fsynced yet"


def test_nor_after_a_restart(node: Node) -> None:
    directory = node.open()
    log = make(directory, count=10)
    log.delete_records_before(8)
    directory.begin_checkpoint()()
    directory.delete_log("events", 0, now_ms=0)
    node.memory.kill()
    directory = node.open()
    make(directory, count=3)
    node.memory.kill()
    assert reopened(node.open()).log_end == 3


def test_a_checkpoint_that_is_late_does_not_undo_a_later_one(node: Node) -> None:
    directory = node.open()
    log = make(directory)
    late = directory.begin_high_watermark_checkpoint()
    fill(log, 3)
    directory.begin_high_watermark_checkpoint()()
    late()
    assert node.read("replication-offset-checkpoint") == b"0\n1\nevents 0 4\n"


# What a power cut could bring back


def test_a_start_that_comes_to_nothing_leaves_no_mark_of_a_clean_stop(node: Node) -> None:
    directory = node.open()
    make(directory)
    directory.close()
    node.memory.refuse("sync", errno.EIO)
    with pytest.raises(DiskFailure):
        node.open()
    node.memory.kill()
    directory = node.open()
    assert not directory.was_clean
    fill(reopened(directory), 1)
    node.memory.lose_power()
    assert not node.open().was_clean, "the mark is gone from the device"


def test_where_a_log_starts_is_noted_until_deleted_segments_cannot_come_back(node: Node) -> None:
    directory = node.open()
    log = directory.create_log("events", 0, TOPIC_ID, LogConfig(segment_bytes=200), now_ms=0)
    fill(log, 12)
    log.flush()
    log.delete_records_before(8)
    log.remove_segments_below_log_start(now_ms=0)
    log.delete_records_before(log.segments[1].base_offset)
    log.remove_segments_below_log_start(now_ms=0)
    start = log.log_start
    assert log.first_base == start
    directory.begin_checkpoint()()
    node.memory.lose_power()
    assert reopened(node.open()).log_start == start


def test_a_checkpoint_goes_back_when_recovery_cuts_a_log(node: Node) -> None:
    directory = node.open()
    log = make(directory, count=10)
    log.flush()
    directory.begin_checkpoint()()
    directory.begin_cleaner_checkpoint("events", 0, 9)()
    node.memory.kill()
    file = node.memory.open("data/events-0/00000000000000000000.log")
    file.truncate(file.size() // 2)
    directory = node.open()
    log = reopened(directory)
    assert log.log_end == 5
    fill(log, 10)
    node.memory.kill()
    directory = node.open()
    assert reopened(directory).recovery_point == 5
    assert directory.cleaner_offset("events", 0) == 5


# Copies that are about to take a replica's place


def copy_of(directory: LogDirectory, start: int = 0, *, count: int = 0) -> PartitionLog:
    log = directory.create_future_log("events", 0, TOPIC_ID, CONFIG, start=start, now_ms=0)
    fill(log, count)
    return log


def test_a_copy_stands_beside_the_replicas(node: Node) -> None:
    directory = node.open()
    log = copy_of(directory, 7, count=2)
    assert (log.log_start, log.log_end) == (7, 9)
    assert directory.replicas == []
    assert directory.logs == []
    assert list(directory.futures) == [("events", 0)]
    assert directory.future_log("events", 0) is log
    assert directory.future_topic_id("events", 0) == TOPIC_ID
    assert directory.replica_count == 1
    (folder,) = node.folders()
    assert folder == directory.futures["events", 0] == f"events-0.{'f' * 32}-future"
    with pytest.raises(ReplicaExists):
        copy_of(directory)


def test_where_the_replica_lies_there_is_no_copy(node: Node) -> None:
    directory = node.open()
    make(directory)
    with pytest.raises(ReplicaExists):
        copy_of(directory)


@pytest.mark.parametrize("is_clean", [True, False])
def test_a_copy_outlives_the_process(node: Node, is_clean: bool) -> None:
    directory = node.open()
    copy_of(directory, 7, count=2)
    if is_clean:
        directory.close()
        assert "events 0 9" in node.read("recovery-point-offset-checkpoint").decode()
    else:
        node.memory.kill()
    directory = node.open()
    assert directory.was_clean is is_clean
    assert directory.needs_recovery("events", 0) is not is_clean
    log = directory.open_future_log("events", 0, TOPIC_ID, CONFIG, now_ms=0)
    assert (log.log_start, log.log_end) == (7, 9)
    assert directory.open_future_log("events", 0, TOPIC_ID, CONFIG, now_ms=0) is log


def test_a_copy_takes_over_while_it_is_used(node: Node) -> None:
    directory = node.open()
    log = copy_of(directory, count=3)
    log.flush()
    assert directory.promote_future_log("events", 0) is log
    assert (node.folders(), directory.replicas, directory.futures) == (["events-0"], [("events", 0)], {})
    fill(log, 2)
    log.roll(now_ms=0)
    fill(log, 1)
    assert [value for _, value in values(read_all(log))] == [b"0", b"1", b"2", b"0", b"1", b"0"]
    log.flush()
    directory.sync()
    node.memory.lose_power()
    log = reopened(node.open())
    assert (log.log_end, log.high_watermark) == (6, 0)


def test_what_waits_for_its_removal_is_found_under_the_new_name(node: Node) -> None:
    directory = node.open()
    log = copy_of(directory, count=3)
    log.truncate_fully_and_start_at(5, now_ms=0)
    directory.promote_future_log("events", 0)
    assert any(name.endswith(".deleted") for name in node.memory.list_names("data/events-0"))
    remove = directory.services.removals.begin(CONFIG.file_delete_delay_ms)
    assert remove is not None
    remove()
    assert not any(name.endswith(".deleted") for name in node.memory.list_names("data/events-0"))


def test_a_copy_that_nobody_wants(node: Node) -> None:
    directory = node.open()
    copy_of(directory)
    directory.delete_future_log("events", 0, now_ms=0)
    (folder,) = node.folders()
    assert folder.endswith("-delete")
    copy_of(directory)
    assert directory.set_aside_future("events", 0).endswith("-stray")
    assert directory.futures == {}


def test_a_copy_that_cannot_be_made_leaves_nothing(node: Node) -> None:
    directory = node.open()
    node.memory.refuse("write", errno.ENOSPC, path_suffix=".log")
    with pytest.raises(DiskFailure):
        copy_of(directory)
    assert (node.folders(), directory.futures) == ([], {})


def test_two_copies_of_one_replica_are_refused(node: Node) -> None:
    for letter in "ab":
        node.memory.make_directory(f"data/events-0.{letter * 32}-future")
    with pytest.raises(DuplicateReplica, match="hold the same partition"):
        node.open()


def test_without_a_mark_if_only_the_metadata_lie_here(node: Node) -> None:
    directory = node.open()
    directory.open_metadata_log(CONFIG, now_ms=0)
    directory.close(leaves_mark=False)
    assert ".kafka_cleanshutdown" not in node.memory.list_names("data")


def test_a_log_that_cannot_be_recovered_is_not_read_again_for_everybody_who_asks(node: Node) -> None:
    directory = node.open()
    make(directory, count=3)
    node.memory.kill()
    log_file = node.memory.open(f"data/events-0/{0:020d}.log")
    # A message of an old format, its CRC included, behind what is good.
    message = bytes.fromhex("01 00 0000000000000001 ffffffff 00000001 78")
    header = (3).to_bytes(8) + (len(message) + 4).to_bytes(4) + zlib.crc32(message).to_bytes(4)
    log_file.pwrite(header + message + bytes(61), log_file.size())
    directory = node.open()
    with pytest.raises(UnsupportedFormat) as first:
        reopened(directory)
    node.memory.reads = 0
    for _ in range(3):
        with pytest.raises(UnsupportedFormat) as again:
            reopened(directory)
        assert again.value is first.value
    assert node.memory.reads == 0
    assert directory.needs_recovery("events", 0)
    directory.set_aside("events", 0)
    assert make(directory).log_end == 1
