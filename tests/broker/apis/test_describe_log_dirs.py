"""DescribeLogDirs: what lies where, open or not."""

import os
from pathlib import Path

import pytest

from protocol.error_codes import ErrorCode
from protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
)
from tests.broker.partitions.one_broker import OneBroker, answer_of, one_broker, settle, some_batch


async def ask(
    broker: OneBroker, topics: dict[str, list[int]] | None, version: int = 5
) -> DescribeLogDirsResult:
    request = DescribeLogDirsRequest(
        topics=None
        if topics is None
        else [
            DescribableLogDirTopic(topic=topic, partitions=partitions) for topic, partitions in topics.items()
        ]
    )
    response = await answer_of(broker.ask(request, version))
    response = DescribeLogDirsResponse.decode(response.encode(version), version)
    assert response.error_code == 0
    (result,) = response.results
    assert isinstance(result, DescribeLogDirsResult)
    return result


def sizes(result: DescribeLogDirsResult) -> dict[str, dict[int, int]]:
    return {
        topic.name: {part.partition_index: part.partition_size for part in topic.partitions}
        for topic in result.topics
    }


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> os.statvfs_result:
    """The size of the disk comes from the operating system, which knows no disk in memory."""
    facts = os.statvfs(tmp_path)
    monkeypatch.setattr(os, "statvfs", lambda path: facts)
    return facts


async def filled(broker: OneBroker) -> None:
    broker.create_topic("t", partitions=11)
    broker.create_topic("u")
    broker.produce("t", some_batch(3), partition=10)
    await settle()


async def test_sizes_of_open_and_other_logs_are_the_same(disk: os.statvfs_result) -> None:
    async with one_broker() as broker:
        await filled(broker)
        everything = await ask(broker, None)
        assert everything.log_dir == "/data"
        expected = {"t": dict.fromkeys(range(10), 0) | {10: len(some_batch(3))}, "u": {0: 0}}
        assert sizes(everything) == expected
        assert list(sizes(everything)["t"]) == list(range(11))
        broker.directory.close()
        image, file_system = broker.image, broker.file_system
    async with one_broker(file_system=file_system, image=image) as broker:
        assert sizes(await ask(broker, None)) == expected
        assert broker.directory.logs == []


async def test_what_is_asked_for(disk: os.statvfs_result) -> None:
    async with one_broker() as broker:
        await filled(broker)
        assert sizes(await ask(broker, {"t": [1, 10, 10, 99], "v": [0]})) == {
            "t": {1: 0, 10: len(some_batch(3))}
        }
        assert sizes(await ask(broker, {})) == {}
        assert sizes(await ask(broker, {"t": []})) == {}


@pytest.mark.parametrize("version", range(1, 6))
async def test_every_version(version: int, disk: os.statvfs_result) -> None:
    async with one_broker() as broker:
        await filled(broker)
        result = await ask(broker, {"u": [0]}, version)
        has_space = version >= 4
        assert (result.total_bytes, result.usable_bytes) == (
            (disk.f_blocks * disk.f_frsize, disk.f_bavail * disk.f_frsize) if has_space else (-1, -1)
        )
        (topic,) = result.topics
        assert [(part.offset_lag, part.is_future_key) for part in topic.partitions] == [(0, False)]


async def test_a_disk_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str) -> None:
        raise OSError("no answer")

    async with one_broker() as broker:
        await filled(broker)
        monkeypatch.setattr(os, "statvfs", refuse)
        result = await ask(broker, None)
        assert (result.error_code, result.total_bytes) == (ErrorCode.KAFKA_STORAGE_ERROR, -1)
