"""A broker on several log directories: moves under load, restarts, and a disk that goes."""

import random
from pathlib import Path
from typing import NamedTuple

import pytest

from compat.broker_process import BrokerProcess
from compat.python_clients import CLIENTS
from compat.scenarios.python.client import Record
from compat.scenarios.python.records import differences, sample_records
from compat.scenarios.python.stage import Stage
from compat.waiting import wait_until
from protocol.error_codes import ErrorCode
from protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)
from protocol.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from tests.integration.conftest import StartBroker
from tests.support.raw_client import RawClient

pytestmark = pytest.mark.slow

CLIENT = CLIENTS["confluent-kafka"]


class Replica(NamedTuple):
    """What DescribeLogDirs says of one."""

    directory: str
    size_bytes: int
    is_future: bool


class Disks:
    """A broker with directories ``a`` and ``b``, and what can be asked about them."""

    def __init__(self, start_broker: StartBroker, folder: Path) -> None:
        self.paths = [folder / "a", folder / "b"]
        self.broker: BrokerProcess = start_broker({"log.dirs": ",".join(map(str, self.paths))})

    def client(self) -> RawClient:
        host, _, port = self.broker.address.rpartition(":")
        return RawClient((host, int(port)))

    def described(self) -> tuple[list[int], dict[tuple[str, int], list[Replica]]]:
        """The error code of each directory, and where every replica and copy lies."""
        with self.client() as client:
            answer = client.ask(DescribeLogDirsRequest(topics=None), DescribeLogDirsResponse, 5)
        found: dict[tuple[str, int], list[Replica]] = {}
        for result in answer.results:
            for topic in result.topics:
                for part in topic.partitions:
                    replica = Replica(Path(result.log_dir).name, part.partition_size, part.is_future_key)
                    found.setdefault((topic.name, part.partition_index), []).append(replica)
        return [result.error_code for result in answer.results], found

    def move(self, topic: str, directory: int, *partitions: int) -> None:
        wish = AlterReplicaLogDir(
            path=str(self.paths[directory]),
            topics=[AlterReplicaLogDirTopic(name=topic, partitions=list(partitions))],
        )
        with self.client() as client:
            answer = client.ask(AlterReplicaLogDirsRequest(dirs=[wish]), AlterReplicaLogDirsResponse, 2)
        assert all(not result.error_code for topic in answer.results for result in topic.partitions)

    def limit(self, bytes_per_second: int) -> None:
        """How fast replicas move."""
        rate = AlterableConfig(
            name="replica.alter.log.dirs.io.max.bytes.per.second", value=str(bytes_per_second)
        )
        resource = AlterConfigsResource(resource_type=4, resource_name="", configs=[rate])
        with self.client() as client:
            request = IncrementalAlterConfigsRequest(resources=[resource])
            answer = client.ask(request, IncrementalAlterConfigsResponse, 1)
        assert answer.responses[0].error_code == 0

    def is_in(self, topic: str, directory: str) -> bool:
        """Whether every partition of a topic lies there, and nowhere else."""
        _, found = self.described()
        return all(
            [(replica.directory, replica.is_future) for replica in replicas] == [(directory, False)]
            for (name, _), replicas in found.items()
            if name == topic
        )


@pytest.fixture
def disks(start_broker: StartBroker, tmp_path: Path) -> Disks:
    return Disks(start_broker, tmp_path)


def test_records_written_while_their_partitions_move(disks: Disks, chance: random.Random) -> None:
    sent, places = [], []
    with Stage(CLIENT, disks.broker.address) as stage:
        topic = stage.topic(4)
        for turn in range(4):
            records = sample_records(300, chance)
            disks.move(topic, turn % 2, 0, 1, 2, 3)
            places += stage.send(topic, records, codec="lz4", idempotent=True)
            sent += records
            directory = "ab"[turn % 2]
            wait_until(lambda: disks.is_in(topic, directory), f"all lie in {directory}")  # noqa: B023
        taken = stage.take(topic, len(sent), partition_count=4)
    assert differences(sent, places, taken) == []
    assert disks.broker.stop() == 0
    for path in disks.paths:
        assert (path / ".kafka_cleanshutdown").exists()


@pytest.mark.parametrize("is_killed", [True, False])
def test_a_restart_in_the_middle_of_a_move(disks: Disks, chance: random.Random, is_killed: bool) -> None:
    sent = [Record(value=chance.randbytes(100_000)) for _ in range(40)]
    with Stage(CLIENT, disks.broker.address) as stage:
        topic = stage.topic(1)
        disks.move(topic, 0, 0)
        wait_until(lambda: disks.is_in(topic, "a"), "it lies in a")
        places = stage.send(topic, sent, codec="none", idempotent=True)
    disks.limit(1)
    disks.move(topic, 1, 0)
    wait_until(lambda: is_begun(disks.described()[1][topic, 0]), "something is copied")
    if is_killed:
        disks.broker.kill()
    else:
        assert disks.broker.stop() == 0
    disks.broker.start()
    assert len(disks.described()[1][topic, 0]) == 2
    disks.limit(1 << 40)
    wait_until(lambda: disks.is_in(topic, "b"), "the move has gone on")
    with Stage(CLIENT, disks.broker.address) as stage:
        taken = stage.take(topic, len(sent), partition_count=1)
    assert differences(sent, places, taken) == []


def is_begun(replicas: list[Replica]) -> bool:
    return any(replica.is_future and replica.size_bytes for replica in replicas)


def test_a_disk_that_goes_takes_its_partitions_only(disks: Disks, chance: random.Random) -> None:
    sent = sample_records(50, chance)
    with Stage(CLIENT, disks.broker.address) as stage:
        here, gone = stage.topic(1), stage.topic(1)
        for directory, topic in enumerate((here, gone)):
            disks.move(topic, directory, 0)
            wait_until(lambda: disks.is_in(topic, "ab"[directory]), "it is there")  # noqa: B023
        places = {topic: stage.send(topic, sent, codec="none") for topic in (here, gone)}
        # As when a file system goes: what is open stays readable, and nothing new can be made.
        disks.paths[1].rename(disks.paths[1].with_name("gone"))
        disks.paths[1].touch()
        wait_until(lambda: disks.described()[0] == [0, ErrorCode.KAFKA_STORAGE_ERROR], "the failure is seen")
        places[here] += stage.send(here, sent, codec="none")
        assert differences(sent + sent, places[here], stage.take(here, 100, partition_count=1)) == []
    assert disks.broker.stop() == 0
    disks.broker.start()
    assert disks.described()[0] == [0, ErrorCode.KAFKA_STORAGE_ERROR]
    assert disks.broker.stop() == 0
    disks.paths[1].unlink()
    disks.paths[1].with_name("gone").rename(disks.paths[1])
    disks.broker.start()
    with Stage(CLIENT, disks.broker.address) as stage:
        assert differences(sent, places[gone], stage.take(gone, 50, partition_count=1)) == []
        assert differences(sent + sent, places[here], stage.take(here, 100, partition_count=1)) == []
