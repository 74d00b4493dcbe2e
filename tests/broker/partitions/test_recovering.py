"""What a broker does for its logs after an unclean stop: on a disk in memory, and with real processes."""

import random
from io import StringIO
from pathlib import Path
from typing import cast

import pytest
import trio
from trio.testing import MockClock

from broker.logs import Log
from broker.node_directories import NodeDirectories
from broker.partitions import recovering
from broker.partitions.manager import PartitionManager
from broker.partitions.recovering import recover_logs
from broker.services import Services
from storage.filesystem import RealFileSystem
from storage.log_directory import LogDirectory
from tests.broker.partitions.one_broker import OneBroker, one_broker, settle, some_batch

PARTITIONS = 5


async def crashed(*, size: int = 10, partitions: int = PARTITIONS) -> OneBroker:
    """A broker that has ended in the middle of its work."""
    async with one_broker() as broker:
        broker.create_topic("t", partitions=partitions)
        for partition in range(partitions):
            for _ in range(3):
                broker.produce("t", some_batch(4, size=size), partition=partition)
        await settle()
    return broker


async def test_progress_is_told_while_it_lasts(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recovering, "LOGS_AT_ONCE", 2)
    monkeypatch.setattr(recovering, "PROGRESS_SECONDS", 4.0)
    before = await crashed()
    broker = OneBroker({"num.recovery.threads.per.data.dir": "1"}, before.file_system)
    broker.image = before.image

    async def slow(function, *arguments):  # type: ignore[no-untyped-def]
        await trio.sleep(5)
        return function(*arguments)

    monkeypatch.setattr(broker, "run_blocking", slow)
    directory = LogDirectory.open(
        "/data",
        before.file_system,
        random_below=random.Random(1).randrange,
        report=broker.log.warn,
        now_ms=0,
    )
    manager = PartitionManager(broker.services, NodeDirectories(directory, [directory], {}))
    await recover_logs(broker.services, manager, dict.fromkeys(directory.replicas, directory))
    lines = [line.split("INFO  ")[1] for line in broker.lines.getvalue().splitlines()]
    assert lines == [
        "recovering 5 partitions after an unclean stop",
        "recovered 0 of 5 partitions, 0 a second",
        "recovered 2 of 5 partitions, 0 a second",
        "recovered 4 of 5 partitions, 0 a second",
        "recovered 5 partitions in 15.0 s",
    ]


async def test_one_partition_is_not_partitions() -> None:
    before = await crashed(partitions=1)
    async with one_broker(file_system=before.file_system, image=before.image) as broker:
        assert "recovering 1 partition after" in broker.lines.getvalue()
        assert "recovered 1 partition in" in broker.lines.getvalue()


async def test_what_is_large_comes_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recovering, "SMALL_BYTES", 1000)
    before = await crashed(size=100)
    async with one_broker(file_system=before.file_system, image=before.image) as broker:
        assert len(broker.directory.logs) == PARTITIONS
        assert "recovered 5 partitions, checking 0.0 GB of large ones, in" in broker.lines.getvalue()
        for partition in range(PARTITIONS):
            assert broker.partitions.leader("t", partition).log.log_end == 12


@pytest.mark.acts("num.recovery.threads.per.data.dir")
async def test_every_directory_has_its_own_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recovering, "LOGS_AT_ONCE", 1)
    before = await crashed()
    broker = OneBroker({"num.recovery.threads.per.data.dir": "3"}, before.file_system)
    broker.image = before.image
    at_once = most = 0

    async def counted(function, *arguments):  # type: ignore[no-untyped-def]
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await trio.testing.wait_all_tasks_blocked()
        at_once -= 1
        return function(*arguments)

    monkeypatch.setattr(broker, "run_blocking", counted)
    directory = LogDirectory.open(
        "/data",
        before.file_system,
        random_below=random.Random(1).randrange,
        report=broker.log.warn,
        now_ms=0,
    )
    manager = PartitionManager(broker.services, NodeDirectories(directory, [directory], {}))
    await recover_logs(broker.services, manager, dict.fromkeys(directory.replicas, directory))
    assert most == 3
    assert len(directory.logs) == PARTITIONS


# With processes of their own


class OnDisk:
    """The same logs on a real disk, not recovered yet."""

    def __init__(self, folder: Path, before: OneBroker, damaged: int | None = None) -> None:
        self.services = OneBroker({}, before.file_system)
        self.services.image = before.image
        self.services.lines = StringIO()
        self.services.log = Log(self.services.lines)
        memory = before.file_system
        for name in memory.list_directories("/data"):
            (folder / name).mkdir()
            for file in memory.list_names(f"/data/{name}"):
                (folder / name / file).write_bytes(memory.read_file(f"/data/{name}/{file}"))
        if damaged is not None:
            path = folder / f"t-{damaged}" / f"{0:020d}.log"
            content = bytearray(path.read_bytes())
            content[-1] ^= 1
            path.write_bytes(content)
        self.directory = LogDirectory.open(
            str(folder),
            RealFileSystem(),
            random_below=random.Random(1).randrange,
            report=self.services.log.warn,
            now_ms=0,
        )

    async def recover(self) -> str:
        services = cast("Services", self.services)
        manager = PartitionManager(services, NodeDirectories(self.directory, [self.directory], {}))
        await recover_logs(services, manager, dict.fromkeys(self.directory.replicas, self.directory))
        return self.services.lines.getvalue()


@pytest.fixture
def everything_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recovering, "SMALL_BYTES", 0)
    monkeypatch.setattr(recovering, "WORKER_BYTES_MIN", 0)


@pytest.mark.usefixtures("everything_is_large")
async def test_much_is_checked_by_processes(tmp_path: Path) -> None:
    disk = OnDisk(tmp_path, await crashed(), damaged=3)
    text = await disk.recover()
    ends = {log.partition: log.log_end for log in disk.directory.logs}
    assert ends == {0: 12, 1: 12, 2: 12, 3: 8, 4: 12}
    assert f"{tmp_path}/t-3/{0:020d}.log: at byte" in text
    assert "recovered 5 partitions" in text
    disk.directory.close()


@pytest.mark.usefixtures("everything_is_large")
async def test_a_process_that_dies_leaves_its_work_to_the_broker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.executable", "/bin/false")
    disk = OnDisk(tmp_path, await crashed())
    text = await disk.recover()
    assert "the worker process is gone; the logs that it was to check are checked here" in text
    assert {log.log_end for log in disk.directory.logs} == {12}


@pytest.mark.usefixtures("everything_is_large")
async def test_a_log_that_cannot_be_recovered_does_not_keep_the_others_from_it(tmp_path: Path) -> None:
    disk = OnDisk(tmp_path, await crashed())
    snapshot = tmp_path / "t-2" / f"{0:020d}.index"
    snapshot.unlink(missing_ok=True)
    snapshot.mkdir()
    text = await disk.recover()
    assert "partition 2 of t cannot be recovered" in text
    assert sorted(log.partition for log in disk.directory.logs) == [0, 1, 3, 4]
