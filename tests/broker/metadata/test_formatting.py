"""A formatted directory holds what ``kafka-storage format`` of 4.4.0 writes, and nothing else."""

import itertools
from collections.abc import Mapping

import pytest

from broker.metadata.features import UnknownFeature
from broker.metadata.formatting import Format, bootstrap_records, format_directories
from broker.raft.snapshots import parse_snapshot
from broker.raft.voters import Voter, VoterEndpoint
from protocol.records.batch import read_batches
from protocol.stored.metadata_records import encode_metadata_record
from storage.memory_filesystem import MemoryFileSystem, PowerCut
from storage.node_files import MetaProperties, read_meta_properties
from tests.broker.metadata.golden import read_golden
from tests.broker.metadata.records import uuid

ENDPOINT = VoterEndpoint("CONTROLLER", "127.0.0.1", 29093)
BOOTSTRAP = "a/__cluster_metadata-0/00000000000000000000-0000000000.checkpoint"


def formatted(plan: Format, others: tuple[str, ...] = ()) -> MemoryFileSystem:
    file_system = MemoryFileSystem()
    ids = iter(range(1000, 1010))
    given = format_directories(
        file_system, "a", others, plan, new_id=lambda: uuid(next(ids)), now_ms=1_700_000_000_000
    )
    assert list(given.values()) == [uuid(1000 + index) for index in range(len(others) + 1)]
    return file_system


def test_the_records_are_byte_for_byte_kafka_s() -> None:
    file_system = formatted(Format("cluster", 1, 33, (ENDPOINT,)))
    ours = list(read_batches(file_system.read_file(BOOTSTRAP)))
    theirs = list(read_batches(read_golden("one_node_format")))
    assert [(b.base_offset, b.record_count, b.is_control) for b in ours] == [
        (b.base_offset, b.record_count, b.is_control) for b in theirs
    ]
    kafka_directory_id = parse_snapshot("kafka", read_golden("one_node_format")).notes.voters
    assert kafka_directory_id is not None
    for our_batch, their_batch in zip(ours, theirs, strict=True):
        for our_record, their_record in zip(our_batch.records(), their_batch.records(), strict=True):
            assert our_record.key == their_record.key
            their_value = (their_record.value or b"").replace(kafka_directory_id[0].directory_id, uuid(1000))
            if our_record.offset:  # the header holds a time
                assert our_record.value == their_value


def test_every_directory_gets_its_identity_and_only_the_first_the_snapshot() -> None:
    file_system = formatted(Format("cluster", 7, 33, (ENDPOINT,)), ("b", "c"))
    for index, directory in enumerate("abc"):
        assert read_meta_properties(file_system, directory) == MetaProperties(
            "cluster", 7, uuid(1000 + index)
        )
    assert sorted(file_system.list_names("a")) == ["__cluster_metadata-0", "meta.properties"]
    assert file_system.list_names("b") == ["meta.properties"]


def test_a_directory_that_is_added_later() -> None:
    file_system = MemoryFileSystem()
    plan = Format("cluster", 7, 33, (ENDPOINT,))
    given = format_directories(file_system, None, ["b"], plan, new_id=lambda: uuid(1000), now_ms=0)
    assert given == {"b": uuid(1000)}
    assert file_system.list_names("b") == ["meta.properties"]


def test_voters() -> None:
    notes = parse_snapshot("", formatted(Format("cluster", 7, 33, (ENDPOINT,))).read_file(BOOTSTRAP)).notes
    assert (notes.kraft_version, notes.voters) == (1, (Voter(7, uuid(1000), (ENDPOINT,)),))


def test_without_endpoints_the_voters_are_configured_elsewhere() -> None:
    notes = parse_snapshot("", formatted(Format("cluster", 7, 33)).read_file(BOOTSTRAP)).notes
    assert (notes.kraft_version, notes.voters) == (None, None)


@pytest.mark.parametrize("chosen", [{}, {"group.version": 0}])
def test_levels(chosen: Mapping[str, int]) -> None:
    records = bootstrap_records(Format("cluster", 1, 25, (), chosen))
    levels = {record.name: record.feature_level for record, _ in records}  # type: ignore[attr-defined]
    expected = {"metadata.version": 25, "group.version": 1, "transaction.version": 2}
    assert levels == {name: level for name, level in expected.items() if name not in chosen}
    assert encode_metadata_record(*records[0]) == b"\x01\x0c\x00\x11metadata.version\x00\x19\x00"


def test_a_bad_feature_formats_nothing() -> None:
    file_system = MemoryFileSystem()
    plan = Format("cluster", 1, 33, (ENDPOINT,), {"bogus": 1})
    with pytest.raises(UnknownFeature):
        format_directories(file_system, "a", [], plan, new_id=lambda: uuid(1000), now_ms=0)
    assert not file_system.exists("a")


def test_the_mark_of_a_formatted_directory_comes_last_and_stays() -> None:
    plan = Format("cluster", 1, 33, (ENDPOINT,))
    for changes in itertools.count(1):
        file_system = MemoryFileSystem()
        file_system.make_directory("a")
        file_system.sync_everything()
        file_system.stop_after = changes
        try:
            format_directories(file_system, "a", [], plan, new_id=lambda: uuid(1000), now_ms=0)
            break
        except PowerCut:
            file_system.lose_power()
        is_formatted = read_meta_properties(file_system, "a") is not None
        assert not is_formatted or parse_snapshot("", file_system.read_file(BOOTSTRAP)).batches
    file_system.lose_power()
    assert read_meta_properties(file_system, "a") is not None
    assert parse_snapshot("", file_system.read_file(BOOTSTRAP)).batches
