"""DescribeLogDirs (35): what the log directories of a broker hold."""

import os
from typing import NamedTuple

from broker.network.call import Call
from broker.network.waiting import Waiting
from protocol.error_codes import ErrorCode
from protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from storage import paths
from storage.checkpoints import Replica
from storage.filesystem import FileSystem
from storage.log_directory import LogDirectory


class Measured(NamedTuple):
    """A replica, and its size in bytes if its log is open; else the files have to be asked."""

    replica: Replica
    size_bytes: int | None


def handle(request: DescribeLogDirsRequest, call: Call) -> Waiting[DescribeLogDirsResponse]:
    """The answer comes from a thread, since it asks the disk about every log that is not open."""
    wanted: set[Replica] | None = None
    if request.topics is not None:
        wanted = {(topic.topic, partition) for topic in request.topics for partition in topic.partitions}
    listed = [
        (directory, list_replicas(directory, wanted)) for directory in call.services.partitions.directories
    ]
    waiting: Waiting[DescribeLogDirsResponse] = Waiting()

    async def answer() -> None:
        results = [
            await call.services.run_blocking(describe, directory, replicas) for directory, replicas in listed
        ]
        waiting.answer(DescribeLogDirsResponse(results=results))

    call.services.partitions.start_soon(answer)
    return waiting


def list_replicas(directory: LogDirectory, wanted: set[Replica] | None) -> list[Measured]:
    """What is asked for and lies here, in order."""
    replicas = directory.replicas if wanted is None else wanted.intersection(directory.replicas)
    measured = []
    for replica in sorted(replicas):
        log = directory.log(*replica)
        measured.append(Measured(replica, None if log is None else log.size_bytes))
    return measured


def describe(directory: LogDirectory, replicas: list[Measured]) -> DescribeLogDirsResult:
    """One directory's part of the answer.  Runs in a thread."""
    result = DescribeLogDirsResult(log_dir=os.path.abspath(directory.path))
    file_system = directory.services.file_system
    try:
        for (topic, partition), size_bytes in replicas:
            if size_bytes is None:
                path = os.path.join(directory.path, paths.replica_name(topic, partition))
                size_bytes = size_on_disk(file_system, path)
            if not result.topics or result.topics[-1].name != topic:
                result.topics.append(DescribeLogDirsTopic(name=topic))
            result.topics[-1].partitions.append(
                DescribeLogDirsPartition(partition_index=partition, partition_size=size_bytes)
            )
        disk = os.statvfs(directory.path)
    except OSError:
        result.error_code = ErrorCode.KAFKA_STORAGE_ERROR
        return result
    result.total_bytes = disk.f_blocks * disk.f_frsize
    result.usable_bytes = disk.f_bavail * disk.f_frsize
    return result


def size_on_disk(file_system: FileSystem, path: str) -> int:
    """Bytes of the segments in a replica's folder; 0 if it has gone meanwhile."""
    try:
        return sum(
            file_system.file_size(os.path.join(path, name))
            for name in file_system.list_names(path)
            if name.endswith(paths.LOG)
        )
    except FileNotFoundError:
        return 0
