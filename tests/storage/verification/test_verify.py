"""What the check of log directories says of each kind of damage, and of what only looks like one."""

from collections.abc import Callable

import pytest

from storage.checkpoints import format_epochs, format_offsets
from storage.config import LogConfig
from storage.memory_filesystem import MemoryFileSystem
from storage.node_files import MetaProperties, write_meta_properties
from storage.verification.findings import FINDINGS_PER_FILE_MAX, Severity
from tests.storage.builders import batch
from tests.storage.verification.directories import (
    CLUSTER_ID,
    COMPACTED,
    CONFIG,
    DATA,
    DIRECTORY_ID,
    EVENTS,
    METADATA_LOG,
    NODE_ID,
    OLD,
    TIME,
    TOPICS,
    Directory,
    keyed_batch,
)

FIRST_LOG = f"{EVENTS}/00000000000000000000.log"
SECOND_LOG = f"{EVENTS}/00000000000000000026.log"
LAST_LOG = f"{EVENTS}/00000000000000000075.log"
LAST_TRANSACTIONS = f"{EVENTS}/00000000000000000075.txnindex"
NEWEST_SNAPSHOT = f"{EVENTS}/00000000000000000077.snapshot"
CLEAN_MARK = f"{DATA}/.kafka_cleanshutdown"


@pytest.fixture
def directory() -> Directory:
    """After a clean stop."""
    directory = Directory()
    directory.fill()
    return directory


@pytest.fixture
def killed() -> Directory:
    """After a crash."""
    directory = Directory()
    directory.fill(closes=False)
    return directory


def told(directory: Directory) -> list[tuple[str, str, int | None, str]]:
    """Severity, path within the directory, position and text of everything that the check says."""
    return [
        (finding.severity.value, finding.path.removeprefix(f"{DATA}/"), finding.position, finding.text)
        for finding in directory.findings()[0]
        if "marked as deleted" not in finding.text
    ]


def test_a_directory_that_a_broker_closed_is_sound(directory: Directory) -> None:
    assert told(directory) == []
    _, totals = directory.findings()
    assert (totals.directories, totals.partitions, totals.segments) == (1, 4, 10)
    logs = [
        path for folder in (EVENTS, OLD, COMPACTED, METADATA_LOG) for path in directory.names(folder, ".log")
    ]
    assert totals.bytes == sum(len(directory.read(path)) for path in logs)
    assert totals.records == 142


def test_what_a_crash_leaves_is_told_and_no_damage(killed: Directory) -> None:
    what = "there is no mark of a clean stop: the next start will recover 3 logs"
    assert told(killed) == [("note", DATA, None, what)]


def test_the_check_writes_nothing(directory: Directory) -> None:
    memory = directory.memory
    memory.stop_after = 1  # the next change would cut the power
    directory.findings()
    memory.kill()


# Record data

Damage = Callable[[Directory], None]


def patched(path: str, position: int, content: bytes) -> Damage:
    return lambda directory: directory.patch(path, position, content)


def cut(path: str, count: int) -> Damage:
    return lambda directory: directory.change(path, lambda content: content[:-count])


def extended(path: str, more: bytes) -> Damage:
    return lambda directory: directory.change(path, lambda content: content + more)


def removed(path: str) -> Damage:
    return lambda directory: directory.file_system.remove(path)


def written(path: str, content: bytes) -> Damage:
    return lambda directory: directory.put(path, content)


@pytest.mark.parametrize(
    ("damage", "path", "position", "text"),
    [
        (patched(FIRST_LOG, 70, b"?"), FIRST_LOG, 0, "the CRC is "),
        (patched(FIRST_LOG, 16, b"\1"), FIRST_LOG, 0, "record format 1, from before Kafka 0.11"),
        (patched(FIRST_LOG, 16, b"\7"), FIRST_LOG, 0, "a batch of format 7, which nobody can read"),
        (patched(FIRST_LOG, 8, b"\x7f"), FIRST_LOG, 0, "the next good batch begins at byte "),
        (patched(FIRST_LOG, 7, b"\1"), FIRST_LOG, 0, "offsets 0 to 0 are missing"),
        (patched(SECOND_LOG, 7, b"\0"), SECOND_LOG, 0, "offset 0 where 26 or more must be"),
        (
            patched(SECOND_LOG, 15, b"\7"),
            SECOND_LOG,
            0,
            "the batch at offset 26 has leader epoch 7, which by",
        ),
        (cut(FIRST_LOG, 3), FIRST_LOG, None, "a batch of "),
        (cut(LAST_LOG, 3), LAST_LOG, 78, "nothing behind it can be read"),
        (extended(LAST_LOG, bytes(100)), LAST_LOG, None, "nothing but zeros"),
        (removed(SECOND_LOG), f"{EVENTS}/00000000000000000047.log", 0, "offsets 26 to 46 are missing"),
        (written(FIRST_LOG, b""), SECOND_LOG, 0, "offsets 0 to 25 are missing"),
    ],
)
def test_damaged_record_data(
    directory: Directory, damage: Damage, path: str, position: int | None, text: str
) -> None:
    damage(directory)
    found = [finding for finding in directory.damages() if finding.path == path and text in finding.text]
    assert found, directory.findings()[0]
    if position is not None:
        assert found[0].position == position


def test_behind_a_damage_the_check_goes_on(directory: Directory) -> None:
    directory.patch(FIRST_LOG, 70, b"?")
    directory.patch(LAST_LOG, 70, b"?")
    assert [finding.path for finding in directory.damages()] == [FIRST_LOG, LAST_LOG]


def test_a_log_full_of_damage_is_told_of_in_some_lines(directory: Directory) -> None:
    path = f"{OLD}/00000000000000000032.log"
    content = bytearray(directory.read(path))
    many = bytearray()
    for number in range(100):  # each with a wrong checksum
        content[7] = number
        many += content[:192]
    many[0::1] = many
    for start in range(0, len(many), 192):
        many[start + 17] ^= 1
    directory.put(path, bytes(many))
    found = [finding for finding in directory.damages() if finding.path == path]
    assert 1 <= len(found) <= FINDINGS_PER_FILE_MAX + 1


def test_what_a_start_will_cut_off(killed: Directory) -> None:
    killed.change(LAST_LOG, lambda content: content[:-3])
    size = len(killed.read(LAST_LOG))
    (note,) = [finding for finding in killed.notes() if finding.path == LAST_LOG]
    assert note.position == 78
    assert note.text.endswith(
        f"a start will cut the last {size - 78} bytes off, and the log will end at offset 76"
    )
    assert killed.damages() == []


def test_what_a_start_would_cut_although_good_records_follow(killed: Directory) -> None:
    killed.patch(FIRST_LOG, 70, b"?")
    (damage,) = killed.damages()
    size = len(killed.read(FIRST_LOG))
    assert damage.path == FIRST_LOG
    assert f"a start would cut off all {size} bytes from here on and remove the segments" in damage.text


def test_a_batch_of_an_unknown_format_is_damage_that_no_start_cuts_off(killed: Directory) -> None:
    killed.patch(LAST_LOG, 78 + 16, b"\7")
    (damage,) = killed.damages()
    assert (damage.path, damage.position) == (LAST_LOG, 78)
    assert damage.text == "a batch of format 7, which nobody can read, although its CRC is right"


def test_what_was_on_the_device_must_still_be_there(killed: Directory) -> None:
    killed.put(f"{DATA}/recovery-point-offset-checkpoint", format_offsets({("events", 0): 77}))
    epochs = format_epochs([(0, 0), (1, 38), (2, 46), (3, 76)])
    killed.put(f"{EVENTS}/leader-epoch-checkpoint", epochs)
    assert killed.damages() == []
    killed.change(LAST_LOG, lambda content: content[:78])
    (damage,) = killed.damages()
    assert damage.path == EVENTS
    assert damage.text == (
        "everything below offset 77 was on the device, says recovery-point-offset-checkpoint, "
        "but the log ends at 76"
    )


def test_a_power_cut_may_take_what_was_committed_but_not_flushed(killed: Directory) -> None:
    killed.put(f"{DATA}/replication-offset-checkpoint", format_offsets({("events", 0): 77}))
    killed.change(LAST_LOG, lambda content: content[:78])
    assert killed.damages() == []
    assert any("offsets below 77 were committed" in finding.text for finding in killed.notes())


def test_a_power_cut_is_not_the_only_reason_where_the_log_is_damaged(killed: Directory) -> None:
    killed.put(f"{DATA}/replication-offset-checkpoint", format_offsets({("events", 0): 77}))
    killed.change(LAST_LOG, lambda content: content[:78])
    killed.patch(FIRST_LOG, 70, b"?")
    (note,) = [finding for finding in killed.notes() if "were committed" in finding.text]
    assert note.text.endswith(
        "but the log ends at 76: lost with what is damaged, or before they were on the device"
    )


def test_a_compacted_log_may_have_gaps(directory: Directory) -> None:
    assert [finding for finding in directory.findings()[0] if finding.path.startswith(COMPACTED)] == []


def test_a_log_whose_cleaner_has_been_there_may_have_gaps(directory: Directory) -> None:
    open_log = directory.open()
    log = open_log.create_log("old", 1, TOPICS["old"], CONFIG, now_ms=TIME)
    whole = batch(b"later")
    whole.set_place(9, 0)
    log.append_as_follower(bytes(whole.data), now_ms=TIME)
    open_log.open_log("events", 0, TOPICS["events"], CONFIG, now_ms=TIME)
    open_log.close()
    assert [finding.text for finding in directory.damages()] == [
        "offsets 0 to 8 are missing, and nothing says that the topic was ever compacted"
    ]
    directory.put(f"{DATA}/cleaner-offset-checkpoint", format_offsets({("old", 1): 9}))
    assert directory.damages() == []


def test_an_emptied_batch_says_that_a_log_was_compacted(directory: Directory) -> None:
    open_log = directory.open()
    log = open_log.create_log("old", 1, TOPICS["old"], CONFIG, now_ms=TIME)
    log.append_as_follower(keyed_batch(3, (0, 2)), now_ms=TIME)
    log.append_as_follower(keyed_batch(9, ()), now_ms=TIME)
    open_log.close()
    assert directory.damages() == []


def test_sequences_have_no_holes(directory: Directory) -> None:
    open_log = directory.open()
    log = open_log.create_log("old", 1, TOPICS["old"], CONFIG, now_ms=TIME)
    for sequence in (0, 1, 3, 3):
        data = batch(b"x", producer_id=4, producer_epoch=0, base_sequence=sequence)
        log.append_as_leader(data, 0, now_ms=TIME, from_client=False)
    open_log.close()
    assert [finding.text for finding in directory.damages()] == [
        "producer 4 with epoch 0 sent sequence 3, but its last one was 1",
        "producer 4 wrote this batch before",
    ]


def test_a_snapshot_behind_a_gap_that_compaction_made(directory: Directory) -> None:
    open_log = directory.open()
    config = LogConfig(segment_bytes=100)
    log = open_log.create_log("compacted", 1, TOPICS["compacted"], config, now_ms=TIME)
    for base_offset in (3, 50):
        log.append_as_follower(keyed_batch(base_offset, (0, 2)), now_ms=TIME)
    open_log.close()
    folder = f"{DATA}/compacted-1"
    assert f"{folder}/00000000000000000050.snapshot" in directory.names(folder, ".snapshot")
    assert directory.damages() == []


# Indexes


@pytest.mark.parametrize(
    ("damage", "text"),
    [
        (patched(f"{EVENTS}/00000000000000000026.index", 4, b"\0\0\0\1"), "it leads to byte 1 of the log"),
        (patched(f"{EVENTS}/00000000000000000026.index", 0, b"\0\0\0\1"), "it says 27 of the batch at byte "),
        (patched(f"{EVENTS}/00000000000000000026.index", 8, bytes(8)), "entry 1 is (0, 0), behind "),
        (cut(f"{EVENTS}/00000000000000000026.index", 3), "are no whole entries"),
        (extended(f"{EVENTS}/00000000000000000026.index", bytes(80)), "its last 80 bytes are zeros"),
        (extended(f"{EVENTS}/00000000000000000026.index", b"\0\0\1\0\0\0\xff\xff"), "it leads to byte 65535"),
        (patched(f"{EVENTS}/00000000000000000026.timeindex", 7, b"\0"), "which is wrong"),
        (patched(f"{EVENTS}/00000000000000000026.timeindex", 8, b"\1"), "it says that timestamp "),
        (cut(f"{EVENTS}/00000000000000000026.timeindex", 12), "it ends with timestamp "),
        (cut(f"{EVENTS}/00000000000000000026.timeindex", 1), "are no whole entries"),
        (extended(f"{EVENTS}/00000000000000000026.timeindex", bytes(120)), "its last 120 bytes are zeros"),
        (removed(f"{EVENTS}/00000000000000000026.timeindex"), "is missing: nobody finds records"),
        (patched(LAST_TRANSACTIONS, 1, b"\1"), "entry 0 is of version 1"),
        (patched(LAST_TRANSACTIONS, 9, b"\7"), "it says that producer 7 aborted at offset 75"),
        (patched(LAST_TRANSACTIONS, 17, b"\1"), "what began at 1; it began at 70"),
        (patched(LAST_TRANSACTIONS, 33, b"\1"), "all was decided below 1, not 76"),
        (removed(LAST_TRANSACTIONS), "aborted at 75, is missing: its records would be read as committed"),
        (cut(LAST_TRANSACTIONS, 1), "are no whole entries"),
    ],
)  # fmt: skip
def test_damaged_indexes(directory: Directory, killed: Directory, damage: Damage, text: str) -> None:
    damage(directory)
    assert any(text in finding.text for finding in directory.damages()), directory.findings()[0]
    # After a crash a start makes all indexes anew that were not flushed.
    killed.file_system.remove_tree(EVENTS)
    killed.file_system.make_directory(EVENTS)
    for path in directory.names(EVENTS, ""):
        killed.put(path, directory.read(path))
    assert killed.damages() == [], text


def test_a_missing_offset_index_is_made_anew_by_any_start(directory: Directory) -> None:
    directory.file_system.remove(f"{EVENTS}/00000000000000000026.index")
    assert told(directory) == [
        (
            "note",
            "events-0/00000000000000000026.index",
            None,
            "is missing; a start will rebuild it from the log",
        )
    ]


def test_indexes_of_older_kafkas_are_as_good(directory: Directory) -> None:
    """They have an entry for each append, which may be of several batches, and name a record's offset."""
    log = directory.read(SECOND_LOG)
    index = directory.read(f"{EVENTS}/00000000000000000026.index")
    second = int.from_bytes(log[8:12]) + 12
    third = second + int.from_bytes(log[second + 8 : second + 12]) + 12
    last_offset = int.from_bytes(log[third : third + 8]) + int.from_bytes(log[third + 23 : third + 27])
    entry = (last_offset - 26).to_bytes(4) + second.to_bytes(4)
    kept = [index[at : at + 8] for at in range(0, len(index), 8)]
    kept = [each for each in kept if int.from_bytes(each[4:]) > third]
    directory.put(f"{EVENTS}/00000000000000000026.index", b"".join([entry, *kept]))
    (told_of,) = told(directory)
    assert told_of[0] == "note"
    assert told_of[3] == "1 entries are of the kind that Kafka wrote before 4.2"


# Producer snapshots and leader epochs


def test_a_snapshot_must_be_what_its_checksum_says(directory: Directory) -> None:
    directory.patch(NEWEST_SNAPSHOT, 30, b"?")
    (damage,) = directory.damages()
    assert (damage.path, damage.text) == (NEWEST_SNAPSHOT, "wrong CRC")


def test_a_snapshot_must_agree_with_the_log(directory: Directory) -> None:
    directory.put(NEWEST_SNAPSHOT, directory.read(f"{EVENTS}/00000000000000000061.snapshot"))
    found = [finding.text for finding in directory.damages() if finding.path == NEWEST_SNAPSHOT]
    assert any("the last batch of producer 20 has offsets" in text for text in found)
    assert any("the transaction of producer 20 is open since" in text for text in found)


def test_a_snapshot_that_forgets_an_open_transaction(directory: Directory) -> None:
    directory.put(NEWEST_SNAPSHOT, directory.read(f"{OLD}/00000000000000000032.snapshot"))
    assert "the transaction of producer 20, open since offset 76, is missing" in [
        finding.text for finding in directory.damages()
    ]


def test_a_snapshot_of_nowhere(directory: Directory) -> None:
    directory.put(f"{EVENTS}/00000000000000000099.snapshot", directory.read(NEWEST_SNAPSHOT))
    (damage,) = directory.damages()
    assert damage.text == "it is of an offset behind the log's end, 77"


@pytest.mark.parametrize(
    ("epochs", "text"),
    [
        ([(0, 0), (1, 38), (2, 45), (3, 76)], "the batch at offset 44 has leader epoch 1"),
        ([(0, 0), (1, 37), (2, 46), (3, 76)], "ends at 37, within the batch"),
        ([(0, 0), (2, 46), (3, 76)], "the batch at offset 38 has leader epoch 1, which by"),
        ([(1, 38), (2, 46), (3, 76)], "the batch at offset 0 has leader epoch 0, which by"),
        ([(0, 0), (3, 38), (2, 46)], "epoch 2 from 46 on stands behind 3 from 38"),
        ([], "is not known"),
    ],
)
def test_leader_epochs_must_agree_with_the_log(
    directory: Directory, epochs: list[tuple[int, int]], text: str
) -> None:
    directory.put(f"{EVENTS}/leader-epoch-checkpoint", format_epochs(epochs))
    assert any(text in finding.text for finding in directory.damages()), directory.findings()[0]


def test_epochs_that_never_had_a_record_are_no_damage(directory: Directory) -> None:
    epochs = [(0, 0), (1, 38), (2, 46), (3, 76), (9, 77)]
    directory.put(f"{EVENTS}/leader-epoch-checkpoint", format_epochs(epochs))
    assert told(directory) == []


# Whose it is


def test_topics_that_the_cluster_does_not_have(directory: Directory) -> None:
    for name in ("gone-0", "events-7"):
        directory.file_system.make_directory(f"{DATA}/{name}")
        directory.put(f"{DATA}/{name}/partition.metadata", directory.read(f"{EVENTS}/partition.metadata"))
    directory.put(f"{COMPACTED}/partition.metadata", directory.read(f"{OLD}/partition.metadata"))
    aside = "; a start will set the replica aside as a stray"
    few = f"the metadata log has only 2 partitions of events{aside}"
    assert sorted(told(directory)) == [
        ("note", "compacted-0/partition.metadata", None, "the topic id is AgMEBQYHCAkKCwwNDg8QEQ, by the "
         "metadata log AQIDBAUGBwgJCgsMDQ4PEA" + aside),
        ("note", "events-7/partition.metadata", None, few),
        ("note", "gone-0/partition.metadata", None, "the metadata log has no topic gone" + aside),
    ]  # fmt: skip


def test_a_replica_without_a_topic_id(directory: Directory) -> None:
    directory.file_system.remove(f"{EVENTS}/partition.metadata")
    (damage,) = directory.damages()
    assert damage.text == "is missing: a start will set the replica aside as a stray"
    assert damage.path == f"{EVENTS}/partition.metadata"


def test_a_replica_that_was_being_made_is_no_loss(directory: Directory) -> None:
    directory.file_system.make_directory(f"{DATA}/old-1")
    assert told(directory) == [
        (
            "note",
            "old-1/partition.metadata",
            None,
            "is missing: a start will set the replica aside as a stray",
        )
    ]


def test_a_node_that_never_registered_with_this_directory(directory: Directory) -> None:
    write_meta_properties(directory.file_system, DATA, MetaProperties(CLUSTER_ID, NODE_ID, bytes(16)))
    write_meta_properties(directory.file_system, DATA, MetaProperties(CLUSTER_ID, NODE_ID, bytes(15) + b"x"))
    assert [text for _, _, _, text in told(directory)] == [
        "node 1 has never registered with directory AAAAAAAAAAAAAAAAAAAAeA"
    ]
    write_meta_properties(directory.file_system, DATA, MetaProperties(CLUSTER_ID, 5, DIRECTORY_ID))
    assert [text for _, _, _, text in told(directory)] == ["the metadata log knows no node 5"]


def test_directories_of_one_broker_must_belong_together(directory: Directory) -> None:
    other = "other"
    directory.file_system.make_directory(f"{other}/events-0")
    write_meta_properties(directory.file_system, other, MetaProperties("another", 2, DIRECTORY_ID))
    found, totals = directory.findings(DATA, other)
    texts = [finding.text for finding in found if finding.severity is Severity.DAMAGE]
    assert totals.directories == 2
    assert f"cluster.id is another, that of {DATA} is {CLUSTER_ID}" in texts
    assert f"node.id is 2, that of {DATA} is {NODE_ID}" in texts
    assert f"directory.id is the same as that of {DATA}" in texts
    assert f"the same replica lies in {DATA}, and nothing says which is the right one" in texts


def test_a_replica_that_was_on_its_way_between_two_directories(directory: Directory) -> None:
    other = "other"
    directory.file_system.make_directory(f"{other}/events-0")
    properties = MetaProperties(CLUSTER_ID, NODE_ID, bytes(15) + b"x")
    write_meta_properties(directory.file_system, other, properties)
    found = [finding for finding in directory.findings(DATA, other)[0] if "same replica" in finding.text]
    assert [(finding.path, finding.severity) for finding in found] == [(f"{other}/events-0", Severity.NOTE)]
    assert found[0].text.endswith(f"; a start takes that in {DATA}, as the metadata log says")


def test_a_replica_in_two_directories_of_which_none_is_meant(directory: Directory) -> None:
    other = "other"
    directory.file_system.make_directory(f"{other}/gone-0")
    directory.file_system.make_directory(f"{DATA}/gone-0")
    found = [finding for finding in directory.findings(DATA, other)[0] if "same replica" in finding.text]
    assert [(finding.path, finding.severity, finding.text) for finding in found] == [
        (
            f"{other}/gone-0",
            Severity.DAMAGE,
            f"the same replica lies in {DATA}, and nothing says which is the right one",
        )
    ]


def test_a_directory_that_was_never_formatted() -> None:
    directory = Directory()
    directory.file_system.make_directory(DATA)
    assert [finding.text for finding in directory.findings()[0]] == ["was never formatted"]


# What does not belong

UNFINISHED = "is left of a write that was not finished, and has no effect"


def test_names_that_do_not_belong(directory: Directory) -> None:
    directory.put(f"{DATA}/notes.txt", b"")
    directory.put(f"{DATA}/recovery-point-offset-checkpoint.tmp", b"")
    directory.put(f"{EVENTS}/core", b"")
    directory.put(f"{EVENTS}/leader-epoch-checkpoint.tmp", b"")
    directory.put(f"{EVENTS}/00000000000000000099.index", b"")
    directory.put(f"{EVENTS}/42.log", b"")
    directory.put(f"{EVENTS}/quorum-state", b"")
    directory.file_system.make_directory(f"{EVENTS}/folder")
    directory.file_system.make_directory(f"{DATA}/remote-log-index-cache")
    directory.file_system.make_directory(f"{DATA}/lost+found")
    assert sorted(told(directory)) == [
        ("damage", "lost+found", None, "is no replica's name: a broker does not start with such a folder"),
        ("note", "events-0/00000000000000000099.index", None, "has no segment; a start will remove it"),
        ("note", "events-0/42.log", None, "does not belong here"),
        ("note", "events-0/core", None, "does not belong here"),
        ("note", "events-0/folder", None, "is a folder, which does not belong here"),
        ("note", "events-0/leader-epoch-checkpoint.tmp", None, UNFINISHED),
        ("note", "events-0/quorum-state", None, "does not belong here"),
        ("note", "notes.txt", None, "does not belong here"),
        ("note", "recovery-point-offset-checkpoint.tmp", None, UNFINISHED),
    ]  # fmt: skip


def test_folders_with_a_mark(directory: Directory) -> None:
    unique = "0" * 32
    for mark in ("delete", "stray", "future"):
        name = f"{DATA}/events-0.{unique}-{mark}"
        directory.file_system.make_directory(name)
        for path in directory.names(EVENTS, ""):
            directory.put(f"{name}/{path.rpartition('/')[2]}", directory.read(path))
    assert sorted(told(directory)) == [
        ("note", f"events-0.{unique}-delete", None, "is a replica that was deleted; a start will remove it"),
        (
            "note",
            f"events-0.{unique}-future",
            None,
            "is a replica on its way here from another log directory",
        ),
        ("note", f"events-0.{unique}-stray", None, "belongs to no topic; it is kept, and not served"),
    ]


def rename(directory: Directory, base: str, old: str, new: str) -> None:
    for path in directory.names(EVENTS, ""):
        name = path.rpartition("/")[2]
        if name.startswith(base) and name.endswith((f".log{old}", f"index{old}")):
            directory.file_system.rename(path, path.removesuffix(old) + new)


def test_a_cleaning_that_was_not_finished(directory: Directory) -> None:
    for path in directory.names(EVENTS, ""):
        if "/00000000000000000026." in path and not path.endswith("snapshot"):
            directory.put(path + ".cleaned", b"half of it")
    what = "3 files (.cleaned) of a cleaning that was not finished; a start will remove them"
    assert told(directory) == [("note", "events-0", None, what)]


def test_a_cleaned_segment_whose_renames_were_not_finished(directory: Directory) -> None:
    rename(directory, "00000000000000000026", "", ".swap")
    directory.put(f"{EVENTS}/00000000000000000026.txnindex", b"")
    found = told(directory)
    assert [severity for severity, *_ in found] == ["note"] * 4
    assert (
        "note",
        "events-0/00000000000000000026.txnindex",
        None,
        "has been compacted; a start will remove it",
    ) in found
    assert (
        "note",
        "events-0/00000000000000000026.log.swap",
        None,
        "is the outcome of a cleaning; a start will complete its rename to 00000000000000000026.log",
    ) in found


def test_a_damaged_segment_whose_renames_were_not_finished(directory: Directory) -> None:
    rename(directory, "00000000000000000026", "", ".swap")
    directory.patch(f"{EVENTS}/00000000000000000026.log.swap", 16, b"\7")
    assert any("a rename that was not completed" in finding.text for finding in directory.damages())


# Checkpoints


@pytest.mark.parametrize(
    "name", ["recovery-point", "log-start", "replication", "cleaner"], ids=lambda name: str(name)
)
@pytest.mark.parametrize("content", [b"1\n0\n", b"0\nx\n", b"0\n1\n", b"0\n1\na b c\n", b"\xff"])
def test_damaged_checkpoints(directory: Directory, name: str, content: bytes) -> None:
    path = f"{DATA}/{name}-offset-checkpoint"
    directory.put(path, content)
    assert directory.damages()[0].path == path
    assert "a start will ignore it" in directory.damages()[0].text


@pytest.mark.parametrize(
    ("name", "offset", "severity", "text"),
    [
        ("recovery-point", 78, "damage", "everything below offset 78 was on the device"),
        ("log-start", 78, "damage", "the log begins at 78"),
        ("replication", 78, "damage", "offsets below 78 were committed"),
        ("cleaner", 78, "note", "says that the log is clean up to 78, it ends at 77"),
    ],
)
def test_checkpoints_must_agree_with_the_log(
    directory: Directory, name: str, offset: int, severity: str, text: str
) -> None:
    directory.put(f"{DATA}/{name}-offset-checkpoint", format_offsets({("events", 0): offset}))
    assert any(found[0] == severity and text in found[3] for found in told(directory))


def test_checkpoints_that_name_what_is_not_there(directory: Directory) -> None:
    directory.put(f"{DATA}/cleaner-offset-checkpoint", format_offsets({("nothing", 3): 1}))
    assert told(directory) == [
        ("note", "cleaner-offset-checkpoint", None, "it names nothing-3, which is not in this directory")
    ]


def test_a_replica_whose_folder_is_gone(directory: Directory) -> None:
    directory.file_system.remove_tree(EVENTS)
    (damage,) = directory.damages()
    assert damage.path == EVENTS
    assert "the metadata log places the partition in this directory" in damage.text
    assert "the checkpoints know of offsets up to 77; a start makes it anew, empty" in damage.text
    assert [finding[0] for finding in told(directory)] == ["damage"]


def test_a_replica_of_which_only_a_seldom_written_checkpoint_knows(directory: Directory) -> None:
    directory.file_system.remove_tree(EVENTS)
    for name in ("recovery-point", "replication"):
        directory.put(f"{DATA}/{name}-offset-checkpoint", format_offsets({}))
    directory.put(f"{DATA}/cleaner-offset-checkpoint", format_offsets({("events", 0): 9}))
    assert directory.damages() == []
    assert "it names events-0, which is not in this directory" in [note.text for note in directory.notes()]


def test_one_that_was_deleted_and_made_anew_is_not_lost(directory: Directory) -> None:
    directory.file_system.rename(EVENTS, f"{DATA}/events-0.{'0' * 32}-delete")
    assert directory.damages() == []
    assert "it names events-0, which is not in this directory" in [note.text for note in directory.notes()]


def test_a_directory_without_the_metadata_log_gets_a_note(directory: Directory) -> None:
    directory.file_system.remove_tree(METADATA_LOG)
    assert directory.damages() == []
    ((severity, path, _, text),) = told(directory)
    assert (severity, path) == ("note", DATA)
    assert "__cluster_metadata-0 is not among what is checked" in text


def test_a_replica_without_segments_that_had_some(directory: Directory) -> None:
    for path in directory.names(EVENTS, ""):
        if not path.endswith(("metadata", "checkpoint")):
            directory.file_system.remove(path)
    (damage,) = directory.damages()
    assert damage.text == "there is no segment, but the checkpoints know of offsets up to 77"


# The metadata log


METADATA_SEGMENT = f"{METADATA_LOG}/00000000000000000000.log"
METADATA_SNAPSHOT = f"{METADATA_LOG}/00000000000000000006-0000000001.checkpoint"


def test_a_torn_metadata_log(directory: Directory, killed: Directory) -> None:
    for each in (directory, killed):
        each.change(METADATA_SEGMENT, lambda content: content[:-1])
    assert METADATA_SEGMENT in [finding.path for finding in directory.damages()]
    assert [finding.path for finding in killed.damages()] == []


def test_metadata_records_must_be_readable(directory: Directory) -> None:
    from broker.raft.batches import build_values_batch
    from protocol.records.batch import RecordBatch

    open_directory = directory.open()
    log = open_directory.open_metadata_log(LogConfig(), now_ms=TIME)
    for value in (b"\x01\x7f\x00", b"\x02\x02\x00", b"", b"\x01\x02\x00\xff"):
        data = build_values_batch([value], base_offset=0, epoch=1, now_ms=TIME)
        log.append_as_leader(RecordBatch(data), 1, now_ms=TIME, from_client=False)
    open_directory.close()
    texts = [finding.text for finding in directory.damages()]
    assert len(texts) == 4
    assert "the record at offset 12: metadata record type 127 version 0 is unknown" in texts[0]
    assert "frame version 2" in texts[1]


@pytest.mark.parametrize(
    ("damage", "text"),
    [
        (patched(METADATA_SNAPSHOT, 70, b"?"), "the CRC is"),
        (patched(METADATA_SNAPSHOT, 7, b"\3"), "offset 3 where 0 must be"),
        (patched(METADATA_SNAPSHOT, 15, b"\3"), "leader epoch 3 in a snapshot of epoch 1"),
        (cut(METADATA_SNAPSHOT, 80), "it does not end with a snapshot's footer"),
        (written(METADATA_SNAPSHOT, b""), "it does not begin with a snapshot's header"),
        (written(f"{METADATA_LOG}/quorum-state", b"{}"), "unknown data_version None"),
        (written(f"{METADATA_LOG}/quorum-state", b"?"), "not a JSON object"),
        (
            written(
                f"{METADATA_LOG}/quorum-state",
                b'{"leaderId":1,"leaderEpoch":0,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}',
            ),
            "the last epoch is 0, but the log has records of 1",
        ),
    ],
)
def test_damaged_files_beside_the_metadata_log(directory: Directory, damage: Damage, text: str) -> None:
    damage(directory)
    assert any(text in finding.text for finding in directory.damages()), directory.findings()[0]


def test_snapshots_that_were_not_finished_or_are_marked(directory: Directory) -> None:
    directory.put(METADATA_SNAPSHOT + ".deleted", b"")
    directory.put(f"{METADATA_LOG}/00000000000000000009-0000000001-abc.checkpoint.part", b"")
    texts = [finding.text for finding in directory.notes() if finding.path == METADATA_LOG]
    assert texts == [
        "1 file (.deleted) marked as deleted; a start will remove it",
        "1 file (.checkpoint.part) of a snapshot that was not finished; a start will remove it",
    ]


def test_records_that_no_snapshot_has(directory: Directory) -> None:
    directory.file_system.remove(METADATA_SNAPSHOT)
    assert directory.damages() == []
    for path in directory.names(METADATA_LOG, ""):
        name = path.rpartition("/")[2]
        if name.startswith("00000000000000000000."):
            directory.file_system.rename(path, f"{METADATA_LOG}/00000000000000000003{name[20:]}")
    texts = [finding.text for finding in directory.damages()]
    assert "records before offset 3 are missing: the newest snapshot ends at 0" in texts


# What cannot be read


@pytest.mark.parametrize(
    "path",
    [FIRST_LOG, f"{EVENTS}/00000000000000000000.index", NEWEST_SNAPSHOT, f"{EVENTS}/leader-epoch-checkpoint",
     f"{DATA}/meta.properties", METADATA_SNAPSHOT, f"{EVENTS}/partition.metadata", METADATA_SEGMENT],
)  # fmt: skip
def test_folders_in_the_place_of_files(directory: Directory, path: str) -> None:
    directory.file_system.remove(path)
    directory.file_system.make_directory(path)
    found = directory.findings()[0]
    assert any(finding.path == path for finding in found), found


@pytest.mark.parametrize("suffix", [".log", ".index", ".snapshot", "meta.properties", "partition.metadata"])
def test_a_disk_that_refuses_is_named(directory: Directory, suffix: str) -> None:
    assert isinstance(directory.file_system, MemoryFileSystem)
    for operation in ("open", "read"):
        directory.memory.refuse(operation, 5, path_suffix=suffix)
        found = directory.damages()
        assert found == [] or "Input/output error" in found[0].text
        directory.memory.refuse_nothing()


def test_zeros_and_noise_in_the_place_of_every_file(directory: Directory) -> None:
    files = [path for folder in (EVENTS, METADATA_LOG, OLD) for path in directory.names(folder, "")]
    for content in (bytes(5000), b"\2" * 5000, b"\xff" * 5000):
        for path in files:
            if not path.endswith(".deleted"):
                before = directory.read(path)
                directory.put(path, content)
                assert directory.findings()[0], path
                directory.put(path, before)
    assert told(directory) == []
