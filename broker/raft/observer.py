"""A node that does not lead: it finds the leader and copies its log, one question at a time.

Whom to ask: the leader, as long as it answers; in turn with it, while it does not, the addresses at which
controllers may be found.  Whoever is asked says who leads, and since which epoch.
"""

import os
from collections.abc import Callable
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Final

import trio

from broker.flushing import run_flush
from broker.network.call import Address
from broker.network.node_client import NodeClient, NodeUnreachable, warn_of_controller
from broker.raft.followed_log import FollowedLog
from broker.raft.quorum import NOBODY, Quorum, read_host_and_port
from broker.raft.snapshots import SnapshotId
from protocol.error_codes import ErrorCode
from protocol.errors import DecodeError
from protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
    ReplicaState,
)
from protocol.messages.fetch_snapshot import (
    FetchSnapshotRequest,
    FetchSnapshotRequestPartitionSnapshot,
    FetchSnapshotRequestTopicSnapshot,
    FetchSnapshotResponse,
    FetchSnapshotResponsePartitionSnapshot,
)
from protocol.messages.fetch_snapshot import SnapshotId as WireSnapshotId
from protocol.records.errors import CorruptRecords
from storage import paths
from storage.errors import CorruptFile, DiskFailure, OffsetNotNext
from storage.log_directory import METADATA_TOPIC_ID

if TYPE_CHECKING:
    from broker.services import Services

MAX_WAIT_MS: Final = 500
"""How long the leader may wait for news before it answers."""

PAUSE_SECONDS_MAX: Final = 0.5
"""Between two questions when nobody helps; the first pause is ``controller.quorum.retry.backoff.ms``."""


class Outcome(Enum):
    """What came of a question."""

    GOT_ON = auto()
    """It brought something: ask again at once."""
    NOTHING_NEW = auto()
    """The leader has nothing more; it waited before it said so, or ought to have."""
    NO_USE = auto()
    """Ask somebody else, or later."""


class Observer:
    """Asks until it is cancelled."""

    def __init__(self, services: "Services", quorum: Quorum, followed: FollowedLog) -> None:
        self._services = services
        self._quorum = quorum
        self._followed = followed
        self._target: Address | None = None
        self._client = NodeClient(
            services.transport, lambda: self._target, client_id=f"raft-client-{services.node_id}"
        )
        config = services.config
        self._timeout_seconds: float = config.get("controller.quorum.request.timeout.ms") / 1000
        self._pause_seconds: float = max(config.get("controller.quorum.retry.backoff.ms"), 1) / 1000
        self._may_become_voter = "controller" in config.get("process.roles")
        self._tried = 0
        """How many of the addresses of controllers were asked."""

    async def run(self, on_caught_up: Callable[[], None]) -> None:
        """Follow the leader; call ``on_caught_up`` once what was committed at the start is published.

        Raises CorruptFile or DiskFailure.
        """
        pause = self._pause_seconds
        leader_fails = False
        try:
            while True:
                changed = self._quorum.changed
                leader = self._quorum.leader_address
                asks_leader = leader is not None and not leader_fails
                self._target = leader if asks_leader else self._next_address()
                asked_at = trio.current_time()
                outcome = await self._ask_target()
                waited = trio.current_time() - asked_at
                while self._followed.apply_some():
                    await trio.lowlevel.checkpoint()
                if self._followed.has_caught_up:
                    on_caught_up()
                await self._make_snapshot()
                leader_fails = asks_leader and outcome is Outcome.NO_USE and not changed.is_set()
                if (
                    outcome is Outcome.GOT_ON
                    or changed.is_set()
                    or (outcome is Outcome.NOTHING_NEW and waited >= pause)
                ):
                    pause = self._pause_seconds
                    continue
                with trio.move_on_after(pause):
                    await changed.wait()
                pause = min(pause * 2, PAUSE_SECONDS_MAX)
        finally:
            self._client.close()

    def _next_address(self) -> Address | None:
        """Of those at which controllers may be found, one after the other."""
        texts = self._services.config.get("controller.quorum.bootstrap.servers")
        addresses = dict.fromkeys([read_host_and_port(text) for text in texts])
        addresses.update(dict.fromkeys(self._quorum.find_voter_addresses()))
        leader = self._quorum.leader_address
        if leader is not None and len(addresses) > 1:  # it was asked just now, and did not answer
            addresses.pop(leader, None)
        if not addresses:
            return None
        self._tried += 1
        return list(addresses)[self._tried % len(addresses)]

    async def _ask_target(self) -> Outcome:
        if self._target is None:
            return Outcome.NO_USE
        try:
            return await self._fetch()
        except NodeUnreachable as error:
            warn_of_controller(self._services.log, self._target, error)
            return Outcome.NO_USE

    # Fetch

    async def _fetch(self) -> Outcome:
        asked_epoch = self._quorum.epoch
        answer: FetchResponse = await self._client.ask(
            self._fetch_request(), timeout_seconds=self._timeout_seconds
        )
        if answer.error_code:
            return self._refused(answer.error_code)
        partition = _only_partition(answer)
        if partition is None:
            return self._refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        current = partition.current_leader
        addresses = {node.node_id: Address(node.host, node.port) for node in answer.node_endpoints}
        if not self._heed(partition.error_code, current, addresses.get(current.leader_id), asked_epoch):
            if partition.error_code not in _OF_ELECTIONS:
                return self._refused(partition.error_code)
            if current.leader_id == NOBODY == self._quorum.leader_id:
                self._services.log.warn_seldom("no controller leads, as far as is known")
            return Outcome.NO_USE
        if partition.error_code:
            return self._refused(partition.error_code)
        return await self._take(partition)

    def _fetch_request(self) -> FetchRequest:
        partition = FetchPartition(
            partition=0,
            current_leader_epoch=self._quorum.epoch,
            fetch_offset=self._followed.end_offset,
            last_fetched_epoch=self._followed.log.last_epoch,
            replica_directory_id=self._quorum.directory_id,
            high_watermark=self._followed.high_watermark,
        )
        return FetchRequest(
            cluster_id=self._services.cluster_id,
            replica_state=ReplicaState(replica_id=self._services.node_id),
            max_wait_ms=MAX_WAIT_MS,
            max_bytes=self._services.config.get("controller.quorum.fetch.max.bytes"),
            topics=[FetchTopic(topic_id=METADATA_TOPIC_ID, partitions=[partition])],
        )

    def _heed(self, error: int, current: Any, address: Address | None, asked_epoch: int) -> bool:
        """Note what an answer says of leader and epoch; return whether its content counts."""
        quorum = self._quorum
        if current.leader_epoch < quorum.epoch or asked_epoch != quorum.epoch:
            return False
        if error == ErrorCode.UNKNOWN_LEADER_EPOCH:
            return False
        is_later = current.leader_epoch > quorum.epoch
        if current.leader_id == self._services.node_id:  # so it did before it was started
            quorum.become_unattached(current.leader_epoch)
            if "controller" not in self._services.config.get("process.roles"):
                self._services.log.warn_seldom(
                    f"the controller at {self._target} has node.id {current.leader_id}, too: "
                    "this node needs another one"
                )
            return False
        agrees = quorum.become_follower(current.leader_epoch, current.leader_id, address)
        counts = agrees and not is_later and error not in _OF_NO_LEADER
        if counts and not error:
            quorum.note_answer()
        return counts

    def _refused(self, error: int) -> Outcome:
        if error != ErrorCode.BROKER_NOT_AVAILABLE:  # it is about to stop
            self._services.log.warn_seldom(
                f"the controller at {self._target} refuses to give metadata: {_name(error)}"
            )
        return Outcome.NO_USE

    async def _take(self, partition: PartitionData) -> Outcome:
        followed = self._followed
        if partition.diverging_epoch.epoch >= 0:
            known_end = followed.end_offset
            end = followed.truncate(partition.diverging_epoch.epoch, partition.diverging_epoch.end_offset)
            self._services.log.info(f"the metadata log is cut to offset {end}: the leader has another one")
            return Outcome.GOT_ON if end < known_end else Outcome.NO_USE
        if partition.snapshot_id.epoch >= 0 and partition.snapshot_id.end_offset >= 0:
            return await self._fetch_snapshot(
                SnapshotId(partition.snapshot_id.end_offset, partition.snapshot_id.epoch)
            )
        before = followed.end_offset, followed.high_watermark
        if partition.records:
            damage: Exception | None = None
            try:
                followed.append(partition.records, epoch_max=self._quorum.epoch)
            except (CorruptRecords, OffsetNotNext, DecodeError) as error:
                damage = error
            if self._may_become_voter:
                await self._flush()  # of damaged records, too: those before it are appended
            if damage is not None:
                self._services.log.warn_seldom(f"the controller at {self._target} sends no log: {damage}")
                return Outcome.NO_USE
        followed.advance(partition.high_watermark)
        is_new = (followed.end_offset, followed.high_watermark) != before
        return Outcome.GOT_ON if is_new else Outcome.NOTHING_NEW

    async def _flush(self) -> None:
        """What a voter's next question says to have must be on its device."""
        flush = self._followed.log.log.begin_flush()
        if flush is not None:
            await run_flush(flush, self._services.run_blocking, self._services.log)
            flush.finish()

    # FetchSnapshot

    async def _fetch_snapshot(self, snapshot: SnapshotId) -> Outcome:
        """Copy a snapshot of the leader, which has not the log before it any more."""
        log = self._followed.log
        self._services.log.info(f"fetching the metadata snapshot {snapshot.name} from {self._target}")
        path = os.path.join(log.directory, snapshot.name)
        part = (
            f"{path.removesuffix(paths.SNAPSHOT)}-{self._quorum.snapshotting.unique()}{paths.SNAPSHOT_PART}"
        )
        try:
            file = log.file_system.open(part, create=True)
            try:
                position, size = 0, 1
                while position < size:
                    answer = await self._ask_for_snapshot(snapshot, position)
                    if answer is None:
                        return Outcome.NO_USE
                    data = bytes(answer.unaligned_records or b"")
                    if answer.position != position or (not data and position < answer.size):
                        return self._refused(ErrorCode.POSITION_OUT_OF_RANGE)
                    file.pwrite(data, position)
                    position += len(data)
                    size = answer.size
                await self._services.run_blocking(file.sync)
                log.file_system.rename(part, path)
                log.file_system.sync_directory(log.directory)
            finally:
                if log.file_system.exists(part):
                    log.file_system.remove(part)
        except OSError as error:
            raise DiskFailure(part, "write", error) from error
        try:
            self._followed.restart_at(snapshot)
        except CorruptFile:
            log.file_system.remove(path)  # the next start shall not find it, but ask for it again
            raise
        return Outcome.GOT_ON

    async def _ask_for_snapshot(
        self, snapshot: SnapshotId, position: int
    ) -> FetchSnapshotResponsePartitionSnapshot | None:
        """A piece of the snapshot; None if there is no use in going on."""
        asked_epoch = self._quorum.epoch
        request = FetchSnapshotRequest(
            cluster_id=self._services.cluster_id,
            replica_id=self._services.node_id,
            max_bytes=self._services.config.get("controller.quorum.fetch.snapshot.max.bytes"),
            topics=[
                FetchSnapshotRequestTopicSnapshot(
                    name=paths.METADATA_TOPIC,
                    partitions=[
                        FetchSnapshotRequestPartitionSnapshot(
                            partition=0,
                            current_leader_epoch=asked_epoch,
                            snapshot_id=WireSnapshotId(end_offset=snapshot.end_offset, epoch=snapshot.epoch),
                            position=position,
                            replica_directory_id=self._quorum.directory_id,
                        )
                    ],
                )
            ],
        )
        answer: FetchSnapshotResponse = await self._client.ask(request, timeout_seconds=self._timeout_seconds)
        if answer.error_code or not answer.topics or not answer.topics[0].partitions:
            self._refused(answer.error_code)
            return None
        partition = answer.topics[0].partitions[0]
        current = partition.current_leader
        addresses = {node.node_id: Address(node.host, node.port) for node in answer.node_endpoints}
        if not self._heed(partition.error_code, current, addresses.get(current.leader_id), asked_epoch):
            return None
        if (
            partition.error_code
            or (partition.snapshot_id.end_offset, partition.snapshot_id.epoch) != snapshot
        ):
            self._refused(partition.error_code or ErrorCode.SNAPSHOT_NOT_FOUND)
            return None
        return partition

    async def _make_snapshot(self) -> None:
        """If one is due.  It only saves time and space, so the broker can do without."""
        snapshot = self._followed.due_snapshot()
        if snapshot is None:
            return
        try:
            await self._services.run_blocking(snapshot.write)
            self._quorum.snapshotting.finish(snapshot)
        except (OSError, DiskFailure) as error:
            self._services.log.error(f"no snapshot of the metadata log could be made: {error}")


_OF_ELECTIONS: Final = frozenset(
    (
        ErrorCode.NONE,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
    )
)
"""What controllers answer while they, or this node, have yet to hear who leads."""

_OF_NO_LEADER: Final = frozenset((ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER))
"""Errors with which a node says that another one leads, or that another epoch has begun."""


def _only_partition(answer: FetchResponse) -> PartitionData | None:
    if not answer.responses or not answer.responses[0].partitions:
        return None
    return answer.responses[0].partitions[0]


def _name(error: int) -> str:
    return ErrorCode(error).name if error in ErrorCode.__members__.values() else f"error {error}"
