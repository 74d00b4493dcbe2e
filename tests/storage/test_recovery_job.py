"""Recovery in another process: the same log comes of it as of recovery on the spot."""

import json
from typing import Any

import pytest

from protocol.records.batch import RecordBatch
from storage.config import LogConfig
from storage.errors import UnsupportedFormat
from storage.loading import load_log
from storage.partition_log import PartitionLog
from storage.recovery import LargeRecovery
from storage.recovery_job import RecoveryJob, run_recovery, unpack_producers
from tests.storage.builders import DIRECTORY, TOPIC_ID, World, batch, marker, read_all, values

CONFIG = LogConfig(segment_bytes=400, index_interval_bytes=100)


def crashed(*batches: RecordBatch) -> World:
    world = World()
    log = world.create(CONFIG)
    for each in batches:
        log.append_as_leader(each, 3, now_ms=0, from_client=each.base_sequence >= 0)
    return world


def idempotent(count: int) -> list[RecordBatch]:
    return [batch(b"%d" % n, producer_id=7, producer_epoch=0, base_sequence=n) for n in range(count)]


def job_for(world: World, *, recovery_point: int = 0, log_start: int = 0) -> RecoveryJob:
    return RecoveryJob(
        DIRECTORY,
        recovery_point,
        log_start,
        now_ms=0,
        producer_expiration_ms=86_400_000,
        segment_index_bytes=CONFIG.segment_index_bytes,
        index_interval_bytes=CONFIG.index_interval_bytes,
    )


def recover_elsewhere(world: World, job: RecoveryJob) -> tuple[PartitionLog, list[dict[str, Any]]]:
    """Do the job with services of its own, and open the log with what it answers as JSON."""
    said: list[dict[str, Any]] = []
    run_recovery(world.new_services(), job, said.append)
    packed = json.loads(json.dumps(said[-1]["recovered"]))
    producers = None if packed is None else unpack_producers(packed, job, now_ms=0)
    log = load_log(
        world.new_services(),
        DIRECTORY,
        "events",
        0,
        TOPIC_ID,
        CONFIG,
        was_clean=False,
        recovery_point=job.recovery_point,
        log_start=job.log_start,
        recovered_producers=producers,
        now_ms=0,
    )
    return log, said


def test_the_log_is_what_it_was() -> None:
    world = crashed(*idempotent(20))
    log, said = recover_elsewhere(world, job_for(world))
    assert [value for _, value in values(read_all(log))] == [b"%d" % n for n in range(20)]
    assert (log.recovery_point, log.leader_epochs.entries) == (0, ((3, 0),))
    assert sum(answer.get("checked", 0) for answer in said) == log.size_bytes
    assert world.reports == []
    log.close()
    assert world.open(CONFIG).log_end == 20


def test_all_five_batches_of_a_producer_are_known() -> None:
    world = crashed(*idempotent(20))
    log, _ = recover_elsewhere(world, job_for(world))
    for number in range(15, 20):
        again = batch(b"%d" % number, producer_id=7, producer_epoch=0, base_sequence=number)
        assert log.append_as_leader(again, 3, now_ms=0).is_duplicate


def test_transactions_that_are_open_or_not_replicated_are_known() -> None:
    world = crashed(
        batch(b"a", producer_id=1, producer_epoch=0, base_sequence=0, is_transactional=True),
        batch(b"b", producer_id=2, producer_epoch=0, base_sequence=0, is_transactional=True),
        marker(commit=False, producer_id=1),
    )
    log, _ = recover_elsewhere(world, job_for(world))
    assert log.producers.first_undecided == 1
    assert log.producers.first_unstable == 0, "the marker is not below the high watermark"
    log.advance_high_watermark(3)
    assert log.last_stable == 1


def test_what_was_cut_away_goes_in_its_time() -> None:
    world = crashed(*idempotent(20))
    bases = [int(name[:20]) for name in world.names() if name.endswith(".log")]
    file = world.memory.open(f"{DIRECTORY}/{bases[1]:020d}.log")
    file.pwrite(b"\xee", file.size() - 1)
    log, _ = recover_elsewhere(world, job_for(world))
    assert log.log_end == bases[2] - 1
    assert any(name.endswith(".log.deleted") for name in world.names())
    remove = world.services.removals.begin(CONFIG.file_delete_delay_ms)
    assert remove is not None
    remove()
    assert not any(name.endswith(".deleted") for name in world.names())


def test_an_empty_directory_is_left_to_whoever_opens_the_log() -> None:
    world = World()
    log, said = recover_elsewhere(world, job_for(world, log_start=5))
    assert said[-1] == {"recovered": None}
    assert (log.log_start, log.log_end) == (5, 5)


def test_another_crash_repeats_the_work() -> None:
    world = crashed(*idempotent(20))
    run_recovery(world.new_services(), job_for(world), lambda _: None)
    world.memory.kill()
    log, _ = recover_elsewhere(world, job_for(world))
    assert [value for _, value in values(read_all(log))] == [b"%d" % n for n in range(20)]


def test_more_than_was_had_in_mind_changes_nothing() -> None:
    world = crashed(*idempotent(20))
    before = {name: world.memory.read_file(f"{DIRECTORY}/{name}") for name in world.names()}

    def recover(recovery_point: int, size_max: int) -> PartitionLog:
        return load_log(
            world.new_services(),
            DIRECTORY,
            "events",
            0,
            TOPIC_ID,
            CONFIG,
            was_clean=False,
            recovery_point=recovery_point,
            recovery_max=size_max,
            now_ms=0,
        )

    size = sum(len(content) for name, content in before.items() if name.endswith(".log"))
    with pytest.raises(LargeRecovery) as caught:
        recover(0, size - 1)
    assert caught.value.size_bytes == size
    assert {name: world.memory.read_file(f"{DIRECTORY}/{name}") for name in world.names()} == before
    assert recover(20, size - 1).log_end == 20, "little of it has to be checked"


def test_an_old_format_is_an_error() -> None:
    world = crashed(*idempotent(1))
    file = world.memory.open(f"{DIRECTORY}/{0:020d}.log")
    message = bytes.fromhex("01 00 0000000000000001 ffffffff 00000001 78")
    import zlib

    header = (1).to_bytes(8) + (len(message) + 4).to_bytes(4) + zlib.crc32(message).to_bytes(4)
    file.pwrite(header + message + bytes(61), file.size())
    with pytest.raises(UnsupportedFormat):
        run_recovery(world.new_services(), job_for(world), lambda _: None)
