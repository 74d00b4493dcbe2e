"""What a leader of the metadata quorum does for others beside committing; a node that is alone has no duties.

It makes itself known to voters that do not fetch, resigns if it does not hear from a majority of them, and
writes an empty record now and then, so that whoever follows can tell how late it is.
"""

from typing import TYPE_CHECKING, Final

import trio

from broker.controller.decision import Command, Decision
from broker.metadata.image import MetadataImage
from broker.metadata.topic_names import CLUSTER_METADATA
from broker.network.node_client import NodeClient, NodeUnreachable
from broker.raft.replicas import ReplicaKey
from protocol.messages.begin_quorum_epoch import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochRequestPartitionData,
    BeginQuorumEpochRequestTopicData,
    BeginQuorumEpochResponse,
    LeaderEndpoint,
)
from protocol.stored.metadata_records import NoOpRecord

if TYPE_CHECKING:
    from broker.controller.service import ControllerService
    from broker.raft.quorum import Quorum
    from broker.raft.service import RaftService
    from broker.services import Services

MAJORITY_SILENT_FACTOR: Final = 1.5
"""So many times ``controller.quorum.fetch.timeout.ms`` a majority may be silent."""


class LeaderDuties:
    """Of one leader in one epoch; runs until it is cancelled."""

    def __init__(self, services: "Services", quorum: "Quorum", raft: "RaftService") -> None:
        self._services = services
        self._quorum = quorum
        self._raft = raft
        self._known_since: dict[ReplicaKey, float] = {}
        """Trio's time at which each voter was seen among them for the first time."""
        config = services.config
        self._idle_seconds: float = config.get("metadata.max.idle.interval.ms") / 1000
        self._fetch_timeout_seconds: float = config.get("controller.quorum.fetch.timeout.ms") / 1000
        self._request_timeout_seconds: float = config.get("controller.quorum.request.timeout.ms") / 1000

    async def run(self) -> None:
        """Raises DiskFailure where a newer epoch cannot be noted."""
        async with trio.open_nursery() as nursery:
            if self._idle_seconds:
                nursery.start_soon(self._write_empty_records)
            while True:
                if not self._raft.replicas.is_alone:
                    self._care_for_voters(nursery)
                await trio.sleep(self._fetch_timeout_seconds / 2)

    async def _write_empty_records(self) -> None:
        """As Kafka does, but only while nothing else is written, and not for nobody."""
        raft, controller = self._raft, self._services.controller
        while True:
            end_offset = raft.log.end_offset
            await trio.sleep(self._idle_seconds)
            has_readers = not raft.replicas.is_alone or raft.replicas.observers(raft.now_ms())
            if has_readers and raft.log.end_offset == end_offset and controller.is_active:
                await _done(controller, _write_nothing)

    def _care_for_voters(self, nursery: trio.Nursery) -> None:
        raft = self._raft
        if not raft.replicas.leader_votes and raft.are_voters_committed:
            self._quorum.hand_over()
            return
        now = trio.current_time()
        keys = raft.replicas.by_progress()
        for key in keys:
            self._known_since.setdefault(key, now)
        silence = [(key, now - (raft.heard_at(key.id) or self._known_since[key])) for key in keys]
        for key, seconds in silence:
            if raft.heard_at(key.id) is None or seconds >= self._fetch_timeout_seconds / 2:
                nursery.start_soon(self._begin_epoch, key)
        needed = (len(silence) + raft.replicas.leader_votes) // 2 + 1 - raft.replicas.leader_votes
        allowed = self._fetch_timeout_seconds * MAJORITY_SILENT_FACTOR
        if sum(seconds < allowed for _, seconds in silence) < needed:
            self._services.log.warn(
                f"this node is the controller no longer: a majority of the voters has not asked for "
                f"{allowed:g} s"
            )
            self._quorum.hand_over()

    async def _begin_epoch(self, key: ReplicaKey) -> None:
        """Tell a voter who leads."""
        raft, quorum, services = self._raft, self._quorum, self._services
        partition = BeginQuorumEpochRequestPartitionData(
            voter_directory_id=key.directory_id, leader_id=services.node_id, leader_epoch=raft.epoch
        )
        request = BeginQuorumEpochRequest(
            cluster_id=services.cluster_id,
            voter_id=key.id,
            topics=[BeginQuorumEpochRequestTopicData(topic_name=CLUSTER_METADATA, partitions=[partition])],
            leader_endpoints=[
                LeaderEndpoint(name=name, host=host, port=port) for name, host, port in raft.endpoints
            ],
        )
        client = NodeClient(
            services.transport,
            lambda: quorum.voter_address(key.id),
            client_id=f"raft-client-{services.node_id}",
        )
        try:
            answer: BeginQuorumEpochResponse = await client.ask(
                request, timeout_seconds=self._request_timeout_seconds
            )
        except NodeUnreachable as error:
            services.log.warn_seldom(f"the controller {key.id} cannot be told who leads: {error}")
            return
        finally:
            client.close()
        for topic in answer.topics:
            for told in topic.partitions:
                if told.leader_epoch > quorum.epoch:
                    quorum.become_follower(told.leader_epoch, told.leader_id)


def _write_nothing(_: MetadataImage) -> Decision[None]:
    return Decision([(NoOpRecord(), 0)], None)


async def _done(controller: "ControllerService", command: Command[None]) -> None:
    """Wait until the command is carried out, or refused: that need not trouble anybody."""
    done = trio.Event()
    controller.submit(command, lambda _: done.set())
    await done.wait()
