"""Snapshot files: what Kafka wrote is read, what we write is whole or not there."""

import errno

import pytest

from broker.raft.batches import build_control_batch, snapshot_header
from broker.raft.snapshots import (
    BATCH_BYTES,
    SnapshotId,
    build_snapshot,
    list_snapshots,
    parse_snapshot,
    parse_snapshot_name,
    read_snapshot,
    remove_leftovers,
    write_snapshot,
)
from broker.raft.voters import Voter, VoterEndpoint
from protocol.records.batch import read_batches
from protocol.stored.metadata_records import ConfigRecord
from storage.errors import CorruptFile
from storage.memory_filesystem import MemoryFileSystem, PowerCut
from tests.broker.metadata.golden import read_golden
from tests.broker.metadata.records import uuid

VOTERS = (Voter(1, uuid(1000), (VoterEndpoint("CONTROLLER", "localhost", 9093),)),)
SNAPSHOT = SnapshotId(42, 3)


def setting(name: str, value: str = "v") -> tuple[ConfigRecord, int]:
    return ConfigRecord(resource_type=4, resource_name="", name=name, value=value), 0


def content(*records: tuple[ConfigRecord, int]) -> bytes:
    batches = build_snapshot(
        records, SNAPSHOT, kraft_version=1, voters=VOTERS, last_timestamp_ms=1000, now_ms=2000
    )
    return b"".join(batches)


class TestNames:
    def test_offset_and_epoch(self) -> None:
        assert SNAPSHOT.name == "00000000000000000042-0000000003.checkpoint"
        assert parse_snapshot_name(SNAPSHOT.name) == SNAPSHOT

    @pytest.mark.parametrize(
        "name",
        [
            "00000000000000000042-0000000003.checkpoint.deleted",
            "00000000000000000042-0000000003-17.checkpoint.part",
            "00000000000000000042-000000003.checkpoint",
            "0000000000000000004x-0000000003.checkpoint",
            "99999999999999999999-0000000003.checkpoint",
            "00000000000000000042-9999999999.checkpoint",
            "00000000000000000042.log",
            "00000000000000000042.checkpoint",
            "bootstrap.checkpoint",
        ],
    )
    def test_other_files(self, name: str) -> None:
        assert parse_snapshot_name(name) is None

    def test_listing_and_leftovers(self) -> None:
        file_system = MemoryFileSystem()
        file_system.make_directory("d")
        names = [
            "00000000000000000042-0000000003.checkpoint",
            "00000000000000000007-0000000001.checkpoint",
            "00000000000000000000-0000000000.checkpoint",
            "00000000000000000099-0000000003-8.checkpoint.part",
            "00000000000000000001-0000000001.checkpoint.deleted",
            "00000000000000000000.log",
        ]
        for name in names:
            file_system.open(f"d/{name}", create=True)
        assert list_snapshots(file_system, "d") == [(7, 1), (42, 3)]
        remove_leftovers(file_system, "d")
        left = [name for name in names if not name.endswith((".part", ".deleted"))]
        assert sorted(file_system.list_names("d")) == sorted(left)


class TestContent:
    def test_kafka_s(self) -> None:
        snapshot = parse_snapshot("", read_golden("one_node_snapshot_74_3"))
        assert snapshot.notes.kraft_version == 1
        assert snapshot.notes.voters is not None
        assert snapshot.notes.voters[0].endpoints == (("CONTROLLER", "127.0.0.1", 29093),)
        assert snapshot.timestamp_ms > 1_700_000_000_000
        assert sum(map(len, snapshot.batches)) == 24

    def test_the_round_trip(self) -> None:
        snapshot = parse_snapshot("", content(setting("a"), setting("b")))
        assert snapshot.batches == [[setting("a")[0], setting("b")[0]]]
        assert (snapshot.notes.kraft_version, snapshot.notes.voters) == (1, VOTERS)
        assert snapshot.timestamp_ms == 1000

    def test_without_records(self) -> None:
        assert parse_snapshot("", content()).batches == []

    def test_before_kraft_version_1_nobody_is_named(self) -> None:
        batches = build_snapshot([], SNAPSHOT, kraft_version=0, voters=(), last_timestamp_ms=0, now_ms=0)
        notes = parse_snapshot("", b"".join(batches)).notes
        assert (notes.kraft_version, notes.voters) == (None, None)

    def test_large_ones_are_cut_into_batches(self) -> None:
        records = [setting(str(index), "x" * 30_000) for index in range(100)]
        data = content(*records)
        batches = list(read_batches(data))
        assert len(batches) == 2 + 3
        assert all(batch.size_bytes < BATCH_BYTES + 31_000 for batch in batches)
        assert [batch.base_offset for batch in batches[1:]] == [batch.next_offset for batch in batches[:-1]]
        read = [record for batch in parse_snapshot("", data).batches for record in batch]
        assert read == [record for record, _ in records]

    def test_every_cut_and_every_flipped_byte_is_noticed(self) -> None:
        data = content(setting("a"))
        for size in range(len(data)):
            with pytest.raises(CorruptFile):
                parse_snapshot("f", data[:size])
        for position in range(len(data)):
            flipped = bytearray(data)
            flipped[position] ^= 0x01
            try:
                read = parse_snapshot("f", bytes(flipped))
            except CorruptFile:
                continue
            # Base offsets and leader epochs stand outside the CRC, and nobody needs them here.
            assert read == parse_snapshot("f", data)

    def test_one_that_was_not_finished(self) -> None:
        header = build_control_batch([snapshot_header(0)], base_offset=0, epoch=3, now_ms=0)
        with pytest.raises(CorruptFile, match="ends early"):
            parse_snapshot("f", bytes(header))


class TestWriting:
    def test_it_is_there_whole_or_not_at_all(self) -> None:
        data = content(setting("a"))
        for changes in range(1, 20):
            file_system = MemoryFileSystem()
            file_system.make_directory("d")
            file_system.sync_everything()
            file_system.stop_after = changes
            try:
                size = write_snapshot(file_system, "d", SNAPSHOT, [data[:100], data[100:]], unique="17")
            except PowerCut:
                file_system.lose_power()
                if list_snapshots(file_system, "d"):
                    assert read_snapshot(file_system, "d", SNAPSHOT).batches
                continue
            break
        assert size == len(data)
        file_system.lose_power()
        assert file_system.list_names("d") == [SNAPSHOT.name]
        assert read_snapshot(file_system, "d", SNAPSHOT).batches == [[setting("a")[0]]]

    def test_a_failure_leaves_the_old_ones(self) -> None:
        file_system = MemoryFileSystem()
        file_system.make_directory("d")
        file_system.refuse("write", errno.ENOSPC)
        with pytest.raises(OSError, match="No space left"):
            write_snapshot(file_system, "d", SNAPSHOT, [content()], unique="17")
        assert list_snapshots(file_system, "d") == []
        remove_leftovers(file_system, "d")
        assert file_system.list_names("d") == []
