"""Logs that nobody has asked for since the start: which of them need retention or the cleaner.

Most are closed.  After an unclean stop they are open, and yet nobody leads them: their high watermarks are
those of a checkpoint, and hold up both until somebody does.
"""

from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING

import trio

from broker.errors import KafkaError
from storage.checkpoints import Replica
from storage.config import LogConfig
from storage.errors import StorageError
from storage.partition_log import PartitionLog

if TYPE_CHECKING:
    from broker.partitions.manager import PartitionManager
    from broker.services import Services

GLANCES_AT_ONCE = 100
"""Logs that are looked at in one go; closed ones by a thread."""


async def find_closed_in_need(
    services: "Services", manager: "PartitionManager", *, compacts: bool
) -> AsyncIterator[PartitionLog]:
    """Lead, and so open, those logs that seem to need retention or, if ``compacts``, the cleaner.

    The others, which may be thousands, stay closed: threads look at their files.
    """
    recovered = _recovered(manager, compacts)
    for first in range(0, len(recovered), GLANCES_AT_ONCE):
        for log in recovered[first : first + GLANCES_AT_ONCE]:
            found = _lead(manager, (log.topic, log.partition)) if _seems_in_need(services, log) else None
            if found is not None:
                yield found
        await trio.lowlevel.checkpoint()
    closed = [entry for entry in closed_replicas(services, manager) if entry[1].compacts is compacts]
    for first in range(0, len(closed), GLANCES_AT_ONCE):
        some = closed[first : first + GLANCES_AT_ONCE]
        now_ms = services.clock.now_ms()
        for replica in await services.run_blocking(_glance, manager, some, now_ms):
            if (found := _lead(manager, replica)) is not None:
                yield found


def _lead(manager: "PartitionManager", replica: Replica) -> PartitionLog | None:
    try:
        return manager.leader(*replica).log
    except KafkaError:
        return None  # gone meanwhile, or damaged, which was reported


def _recovered(manager: "PartitionManager", compacts: bool) -> list[PartitionLog]:
    """Logs that are open, and that nobody leads or follows."""
    return [
        log
        for directory in manager.directories
        for log in directory.logs
        if log.config.compacts is compacts
        and manager.open_leader((log.topic, log.partition)) is None
        and manager.open_follower((log.topic, log.partition)) is None
    ]


def _seems_in_need(services: "Services", log: PartitionLog) -> bool:
    try:
        return log.may_need_care(now_ms=services.clock.now_ms())
    except StorageError:
        return False  # told to whoever needs the log


def closed_replicas(services: "Services", manager: "PartitionManager") -> list[tuple[Replica, LogConfig]]:
    """Replicas that this broker leads and nobody has asked for since the start."""
    image = services.image
    configs: dict[str, LogConfig] = {}
    found = []
    for replica, directory in list(manager.places.homes.items()):  # threads may add to it
        topic, index = replica
        partition = image.partition(topic, index)
        if (
            directory.log(topic, index) is None
            and partition is not None
            and partition.leader == services.node_id
        ):
            if topic not in configs:
                configs[topic] = LogConfig.from_settings(manager.settings_of(topic))
            found.append((replica, configs[topic]))
    return found


def _glance(
    manager: "PartitionManager", replicas: Sequence[tuple[Replica, LogConfig]], now_ms: int
) -> list[Replica]:
    """Those whose files say that something may be due.  In a thread."""
    found = []
    for replica, config in replicas:
        with manager.disk_lock:
            directory = manager.places.homes.get(replica)
            if directory is not None and directory.may_need_care(*replica, config, now_ms=now_ms):
                found.append(replica)
    return found
