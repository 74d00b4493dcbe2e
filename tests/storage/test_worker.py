"""The worker process: a log on a real disk, cleaned from outside, and an end when its input ends."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from math import nan
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from storage.cleaner import CleaningJob
from storage.config import LogConfig
from storage.filesystem import RealFileSystem
from storage.loading import create_log
from storage.log_services import LogServices
from storage.partition_log import PartitionLog
from storage.worker import Throttle, do_job
from tests.storage.builders import TOPIC_ID
from tests.storage.test_cleaner import append, contents, latest

ROOT = Path(__file__).resolve().parents[2]
CONFIG = LogConfig(segment_bytes=400, compacts=True, deletes=False, min_cleanable_dirty_ratio=0.0)


@pytest.fixture
def services() -> LogServices:
    return LogServices(RealFileSystem(), random_below=lambda _: 0, report=pytest.fail)


@pytest.fixture
def log(services: LogServices, tmp_path: Path) -> PartitionLog:
    """Thirty records of three keys."""
    log = create_log(services, str(tmp_path), "t", 0, TOPIC_ID, CONFIG, now_ms=0)
    for number in range(30):
        append(log, (b"key %d" % (number % 3), b"value %d" % number))
    log.roll(now_ms=0)
    append(log, (b"active", b"1"))
    return log


def job_for(log: PartitionLog) -> CleaningJob:
    log.flush()
    return log.begin_cleaning(
        log.assess(None, now_ms=0), keys_max=100, bytes_per_second=1.7976931348623157e308, now_ms=0
    )


@pytest.fixture
def process() -> Iterator["subprocess.Popen[bytes]"]:
    with subprocess.Popen(
        [sys.executable, "-P", "-m", "storage.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    ) as worker:
        yield worker
        worker.kill()


def line_of(job: CleaningJob) -> bytes:
    return json.dumps({"clean": job._asdict()}).encode() + b"\n"


def send(process: "subprocess.Popen[bytes]", job: CleaningJob) -> list[dict[str, Any]]:
    """The answers to one job."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(line_of(job))
    process.stdin.flush()
    answers: list[dict[str, Any]] = []
    while not answers or "ready" in answers[-1]:
        answers.append(json.loads(process.stdout.readline()))
    return answers


def test_jobs_are_done_one_after_the_other(process: "subprocess.Popen[bytes]", log: PartitionLog) -> None:
    before = latest(contents(log))
    for _ in range(2):
        *ready, last = send(process, job_for(log))
        assert last["cleaned"][0] == 30
        for answer in ready:
            assert log.swap_in(answer["ready"], cuts=log.cuts, now_ms=0)
    assert latest(contents(log)) == before
    assert len(contents(log)) == 4
    log.close()


def test_the_process_ends_with_its_input(process: "subprocess.Popen[bytes]", log: PartitionLog) -> None:
    send(process, job_for(log))
    assert process.stdin is not None
    process.stdin.close()
    assert process.wait(timeout=30) == 0


def test_another_rate_reaches_a_job_that_sleeps(
    process: "subprocess.Popen[bytes]", log: PartitionLog
) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(line_of(job_for(log)._replace(bytes_per_second=0)))
    process.stdin.write(b'{"limit": 1e9}\n')
    process.stdin.flush()
    assert "ready" in json.loads(process.stdout.readline())


def test_it_ends_even_in_the_middle_of_a_job(process: "subprocess.Popen[bytes]", log: PartitionLog) -> None:
    assert process.stdin is not None
    slow = job_for(log)._replace(bytes_per_second=1)
    process.stdin.write(line_of(slow))
    process.stdin.close()
    assert process.wait(timeout=30) == 0


def failure(services: LogServices, job: CleaningJob) -> dict[str, Any]:
    said: list[dict[str, Any]] = []
    do_job(services, "clean", job._asdict(), said.append, Throttle())
    return said[-1]


def test_damage_and_other_failures_are_told_apart(services: LogServices, log: PartitionLog) -> None:
    job = job_for(log)
    missing = failure(services, job._replace(directory=job.directory + "/gone"))
    assert missing["is_damage"] is False
    path = Path(job.directory) / f"{0:020d}.log"
    content = bytearray(path.read_bytes())
    content[70] ^= 1
    path.write_bytes(content)
    damaged = failure(services, job)
    assert damaged["is_damage"] is True
    assert str(path) in damaged["failed"]


@pytest.mark.parametrize(("rate", "slept_for"), [(0.0, [600]), (5e-324, [600]), (nan, []), (-1.0, [])])
def test_a_rate_that_makes_no_sense(rate: float, slept_for: list[float]) -> None:
    slept: list[float] = []
    Throttle(rate, clock=lambda: 0.0, sleep=slept.append)(1)
    assert slept == slept_for


def test_the_throttle_sleeps_off_what_was_too_fast() -> None:
    now = [0.0]
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        now[0] += seconds

    throttle = Throttle(1000, clock=lambda: now[0], sleep=sleep)
    throttle(500)
    assert slept == [0.5]
    now[0] += 1.0
    throttle(1000)
    assert slept == [0.5]
    throttle(100)
    assert slept == [0.5, pytest.approx(0.1)]


def test_whoever_sleeps_is_woken_by_another_rate() -> None:
    throttle = Throttle(0)
    sleeper = Thread(target=throttle, args=(1,))
    sleeper.start()
    while sleeper.is_alive():  # it may not have begun to sleep yet
        throttle.change(1e9)
        sleeper.join(0.01)


def test_what_was_moved_at_another_rate_does_not_count() -> None:
    slept: list[float] = []
    throttle = Throttle(1000, clock=lambda: 0.0, sleep=slept.append)
    throttle(500)
    throttle.change(100)
    throttle(50)
    assert slept == [0.5, 0.5]
