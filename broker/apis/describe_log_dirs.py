"""DescribeLogDirs (35): what the log directories of a broker hold."""

import os
from typing import NamedTuple

from broker.metadata.features import writes_cordoned_directories
from broker.network.call import Call
from broker.network.waiting import Waiting
from broker.partitions.places import Places
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

LAG_UNKNOWN = -1
"""Of a copy whose source is not there."""


class Measured(NamedTuple):
    """A replica, or a copy that is to take one's place (KIP-113)."""

    replica: Replica
    folder: str
    size_bytes: int | None
    """If the log is open; else the files have to be asked."""
    lag: int = 0
    is_future: bool = False


def handle(request: DescribeLogDirsRequest, call: Call) -> Waiting[DescribeLogDirsResponse]:
    """The answer comes from a thread, since it asks the disk about every log that is not open."""
    wanted: set[Replica] | None = None
    if request.topics is not None:
        wanted = {(topic.topic, partition) for topic in request.topics for partition in topic.partitions}
    places = call.services.partitions.places
    shows_cordoned = writes_cordoned_directories(call.services.image.metadata_version)
    listed = {
        os.path.abspath(directory.path): (directory, list_replicas(directory, places, wanted))
        for directory in places.online
    }
    waiting: Waiting[DescribeLogDirsResponse] = Waiting()

    async def answer() -> None:
        results = []
        for path in map(os.path.abspath, call.services.config.log_directories):
            result = DescribeLogDirsResult(log_dir=path, error_code=ErrorCode.KAFKA_STORAGE_ERROR)
            if path in listed:
                directory, replicas = listed[path]
                result = await call.services.run_blocking(describe, directory, replicas)
                result.is_cordoned = shows_cordoned and directory.id in places.cordoned
            results.append(result)
        waiting.answer(DescribeLogDirsResponse(results=results))

    call.services.partitions.start_soon(answer)
    return waiting


def list_replicas(directory: LogDirectory, places: Places, wanted: set[Replica] | None) -> list[Measured]:
    """What is asked for and lies here, in order."""
    measured = []
    for replica in directory.replicas:
        if wanted is None or replica in wanted:
            log = directory.log(*replica)
            size_bytes = None if log is None else log.size_bytes
            measured.append(Measured(replica, paths.replica_name(*replica), size_bytes))
    for replica, folder in directory.futures.items():
        if wanted is None or replica in wanted:
            log = directory.future_log(*replica)
            size_bytes, lag = None if log is None else log.size_bytes, LAG_UNKNOWN
            home = places.homes.get(replica)
            source = None if home is None else home.log(*replica)
            if log is not None and source is not None:
                lag = source.log_end - log.log_end
            measured.append(Measured(replica, folder, size_bytes, lag, is_future=True))
    return sorted(measured)


def describe(directory: LogDirectory, replicas: list[Measured]) -> DescribeLogDirsResult:
    """One directory's part of the answer.  Runs in a thread."""
    result = DescribeLogDirsResult(log_dir=os.path.abspath(directory.path))
    file_system = directory.services.file_system
    try:
        for (topic, partition), folder, size_bytes, lag, is_future in replicas:
            if size_bytes is None:
                size_bytes = size_on_disk(file_system, os.path.join(directory.path, folder))
            if not result.topics or result.topics[-1].name != topic:
                result.topics.append(DescribeLogDirsTopic(name=topic))
            result.topics[-1].partitions.append(
                DescribeLogDirsPartition(
                    partition_index=partition,
                    partition_size=size_bytes,
                    offset_lag=lag,
                    is_future_key=is_future,
                )
            )
        disk = os.statvfs(directory.path)
    except OSError:
        return DescribeLogDirsResult(log_dir=result.log_dir, error_code=ErrorCode.KAFKA_STORAGE_ERROR)
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
