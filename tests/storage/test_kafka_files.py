"""Files that Apache Kafka 4.4.0 wrote: we read them, and write the very same.

``kafka_4_4/events-0`` is the log of a topic with ``internal.segment.bytes=4000`` and
``index.interval.bytes=300`` after a clean stop.  Five producers, one for each codec and two of them
idempotent, sent batches of one to three records each; then three transactions, of which the second
was aborted.
"""

from pathlib import Path

import pytest

from protocol.records.batch import read_batches
from storage.config import LogConfig
from storage.segment import FoundRecord
from tests.storage.builders import DIRECTORY, World, read_all, values

KAFKA = Path(__file__).parent / "kafka_4_4" / "events-0"
CONFIG = LogConfig(segment_bytes=4000, index_interval_bytes=300)
TIME = 1_700_000_000_000


def kafka_files(*suffixes: str) -> dict[str, bytes]:
    """Name -> content of what Kafka left."""
    return {path.name: path.read_bytes() for path in sorted(KAFKA.iterdir()) if path.name.endswith(suffixes)}


SEGMENT_FILES = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")


@pytest.fixture
def world() -> World:
    """A file system with Kafka's directory."""
    world = World()
    for name, content in kafka_files("").items():
        world.memory.open(f"{DIRECTORY}/{name}", create=True).pwrite(content, 0)
    world.memory.sync_everything()
    return world


def our_files(world: World, *suffixes: str) -> dict[str, bytes]:
    return {
        name: world.memory.read_file(f"{DIRECTORY}/{name}")
        for name in world.names()
        if name.endswith(suffixes)
    }


def test_a_log_that_kafka_closed_is_opened_as_it_is(world: World) -> None:
    log = world.open(CONFIG)
    assert (log.log_start, log.log_end) == (0, 189)
    assert log.leader_epochs.entries == ((0, 0),)
    records = values(read_all(log))
    assert records[0] == (0, b"value-0 ")
    assert [value for _, value in records if value == b"transaction 1.1"] == [b"transaction 1.1"]
    assert log.find_by_timestamp(TIME + 5000) == FoundRecord(51, TIME + 5100, 0)
    assert len(log.active_producers()) == 3
    assert log.producers.first_undecided is None
    log.close()
    assert our_files(world, "") == kafka_files("")
    assert world.reports == []


def test_recovery_makes_of_the_records_what_kafka_made_of_them(world: World) -> None:
    for name in world.names():
        if name.endswith((".index", ".timeindex", ".txnindex", ".snapshot")):
            world.memory.remove(f"{DIRECTORY}/{name}")
    log = world.open(CONFIG, was_clean=False)
    log.close()
    assert our_files(world, *SEGMENT_FILES) == kafka_files(*SEGMENT_FILES)


def test_writing_the_same_records_gives_the_same_files() -> None:
    world = World()
    log = world.create(CONFIG)
    for name, content in kafka_files(".log").items():
        for batch in read_batches(content):
            # A leader would get the batches with base offset 0 and any epoch.
            own = bytearray(batch.data)
            own[:8] = bytes(8)
            own[12:16] = bytes(4)
            (sent,) = read_batches(own)
            appended = log.append_as_leader(sent, batch.partition_leader_epoch, now_ms=0, from_client=False)
            assert appended.base_offset == batch.base_offset, name
    log.close()
    assert our_files(world, *SEGMENT_FILES, "leader-epoch-checkpoint") == kafka_files(
        *SEGMENT_FILES, "leader-epoch-checkpoint"
    )
