"""The broker's side of the worker process: a real one, on a real disk."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import trio

from broker.partitions import cleaning
from broker.partitions.cleaning import CleaningFailed, Worker
from storage.cleaner import CleaningJob
from storage.filesystem import RealFileSystem
from storage.loading import create_log
from storage.log_services import LogServices
from storage.partition_log import PartitionLog
from tests.storage.builders import TOPIC_ID
from tests.storage.test_cleaner import CONFIG, append, contents, latest

UNLIMITED = 1.7976931348623157e308


@pytest.fixture
def log(tmp_path: Path) -> PartitionLog:
    services = LogServices(RealFileSystem(), random_below=lambda _: 0, report=pytest.fail)
    log = create_log(services, str(tmp_path), "t", 0, TOPIC_ID, CONFIG, now_ms=0)
    for number in range(30):
        append(log, (b"key %d" % (number % 3), b"value %d" % number))
    log.roll(now_ms=0)
    append(log, (b"active", b"1"))
    return log


def job_for(log: PartitionLog, *, bytes_per_second: float = UNLIMITED) -> CleaningJob:
    cleanable = log.assess(None, now_ms=0)
    log.flush()
    return log.begin_cleaning(cleanable, keys_max=100, bytes_per_second=bytes_per_second, now_ms=0)


async def clean(
    worker: Worker, log: PartitionLog, job: CleaningJob, limit: Callable[[], float] | None = None
) -> int:
    async def swap_in(bases: list[int]) -> None:
        assert log.swap_in(bases, cuts=log.cuts, now_ms=0)

    return (await worker.clean(job, swap_in, limit or (lambda: job.bytes_per_second))).end_offset


async def test_one_process_does_several_jobs(log: PartitionLog) -> None:
    expected = latest(contents(log))
    worker = Worker()
    assert await clean(worker, log, job_for(log)) == 30
    process = worker._process
    assert await clean(worker, log, job_for(log)) == 30
    assert worker._process is process
    await worker.close()
    assert process is not None
    assert process.returncode == 0
    assert latest(contents(log)) == expected
    assert len(contents(log)) == 4


async def test_a_process_that_dies_fails_its_job_and_the_next_one_gets_another(log: PartitionLog) -> None:
    worker = Worker()
    failures: list[CleaningFailed] = []
    async with trio.open_nursery() as nursery:

        async def work() -> None:
            with pytest.raises(CleaningFailed, match="is gone") as caught:
                await clean(worker, log, job_for(log, bytes_per_second=1))
            failures.append(caught.value)

        nursery.start_soon(work)
        while worker._process is None:
            await trio.lowlevel.checkpoint()
        worker._process.kill()
    assert [failure.is_damage for failure in failures] == [False]
    assert await clean(worker, log, job_for(log)) == 30
    await worker.close()


async def test_a_process_that_cannot_be_started_fails_its_job_only(
    log: PartitionLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python may have been replaced since the broker was started, or descriptors may be short."""
    worker = Worker()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "executable", "/nowhere/python")
        with pytest.raises(CleaningFailed, match=r"cannot be started: .*/nowhere/python") as caught:
            await clean(worker, log, job_for(log))
    assert not caught.value.is_damage
    assert await clean(worker, log, job_for(log)) == 30
    await worker.close()


async def test_what_the_process_cannot_do_it_says(log: PartitionLog) -> None:
    worker = Worker()
    job = job_for(log)
    with pytest.raises(CleaningFailed) as caught:
        await clean(worker, log, job._replace(directory=job.directory + "/none"))
    assert not caught.value.is_damage
    path = Path(job.directory) / f"{0:020d}.log"
    content = bytearray(path.read_bytes())
    content[70] ^= 1
    path.write_bytes(content)
    with pytest.raises(CleaningFailed, match=str(path)) as caught:
        await clean(worker, log, job)
    assert caught.value.is_damage
    await worker.close()


async def test_a_job_that_goes_on_follows_the_limit(
    log: PartitionLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cleaning, "LIMIT_CHECK_SECONDS", 0.01)
    limits = [0.0] * 5
    worker = Worker()
    job = job_for(log, bytes_per_second=0)
    assert await clean(worker, log, job, lambda: limits.pop() if limits else UNLIMITED) == 30
    await worker.close()


async def test_closing_ends_even_a_busy_process(log: PartitionLog) -> None:
    worker = Worker()
    async with trio.open_nursery() as nursery:

        async def work() -> None:
            await clean(worker, log, job_for(log, bytes_per_second=1))

        nursery.start_soon(work)
        while worker._process is None:
            await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()
    process = worker._process
    assert process is not None
    with trio.fail_after(30):
        await worker.close()
    assert process.returncode is not None
    await worker.close()
