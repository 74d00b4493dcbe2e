"""What is found among logs that nobody has asked for."""

import pytest

from broker.partitions.closed_logs import closed_replicas
from storage.log_directory import LogDirectory
from storage.partition_log import PartitionLog
from tests.broker.partitions.one_broker import one_broker, settle


async def test_logs_may_be_made_in_a_thread_while_others_are_looked_through(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with one_broker() as broker:
        broker.create_topic("t", partitions=3)
        await settle()
        manager, find_log = broker.partitions, LogDirectory.log
        manager._homes.pop(("t", 2))

        def meanwhile(directory: LogDirectory, topic: str, partition: int) -> PartitionLog | None:
            manager._homes["t", 2] = directory
            return find_log(directory, topic, partition)

        monkeypatch.setattr(LogDirectory, "log", meanwhile)
        assert closed_replicas(broker.services, manager) == [], "all of them were opened when they were made"
