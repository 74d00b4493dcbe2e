"""A voter that hears of no leader wants to lead itself: it asks the other voters (KIP-595, KIP-996).

First whether they would vote for it, which costs nobody anything, and then in a new epoch for their votes.
Voter sets here have one or two members while the controller is handed over, but any majority is counted.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import trio

from broker.metadata.topic_names import CLUSTER_METADATA
from broker.network.call import Address
from broker.network.node_client import NodeClient, NodeUnreachable
from broker.raft.replicas import ReplicaKey
from broker.raft.voters import Voter
from protocol.error_codes import ErrorCode
from protocol.messages.end_quorum_epoch import (
    EndQuorumEpochRequest,
    EndQuorumEpochRequestPartitionData,
    EndQuorumEpochRequestTopicData,
    LeaderEndpoint,
    ReplicaInfo,
)
from protocol.messages.vote import (
    VoteRequest,
    VoteRequestPartitionData,
    VoteRequestTopicData,
    VoteResponse,
)
from protocol.schema import Message

if TYPE_CHECKING:
    from broker.raft.quorum import Quorum
    from broker.services import Services

NOBODY: Final = -1


class Campaign:
    """Runs while this node does not lead, until it is cancelled, which winning does."""

    def __init__(self, services: "Services", quorum: "Quorum") -> None:
        self._services = services
        self._quorum = quorum
        config = services.config
        self._timeout_seconds: float = config.get("controller.quorum.request.timeout.ms") / 1000
        self._backoff_max_seconds: float = config.get("controller.quorum.election.backoff.max.ms") / 1000

    async def run(self) -> None:
        """Stand for election whenever the quorum's patience ends and this node votes.

        Raises DiskFailure, or CorruptFile if it wins and cannot read its log.
        """
        quorum = self._quorum
        async with trio.open_nursery() as nursery:
            if quorum.successors:
                nursery.start_soon(self._say_end, quorum.epoch, quorum.successors)
                quorum.successors = ()
            while True:
                changed = quorum.changed
                if trio.current_time() < quorum.patience_ends:
                    with trio.move_on_at(quorum.patience_ends):
                        await changed.wait()
                elif quorum.may_stand:
                    await self._stand()
                else:  # it may become one, and others may ask for its vote already
                    quorum.lose_patience()
                    quorum.postpone(self._backoff_max_seconds)

    async def _stand(self) -> None:
        quorum, services = self._quorum, self._services
        quorum.lose_patience()
        others = [voter for voter in quorum.voters if voter.id != services.node_id]
        if others and quorum.has_led:
            # Who has followed it in its epoch goes on doing so, and Kafka's nodes grant nothing meanwhile.
            quorum.become_unattached(quorum.epoch + 1)
        if others and not await self._wins(others, quorum.epoch, pre_vote=True):
            return
        if others:
            quorum.vote(quorum.epoch + 1, services.node_id, quorum.directory_id)
            services.log.info(f"this node wants to be the controller, in epoch {quorum.epoch}")
            if not await self._wins(others, quorum.epoch, pre_vote=False):
                return
        from broker.controller.start import take_lead  # what is above this layer is called by it only here

        take_lead(services, elected_in=quorum.epoch if others else None)
        services.log.info(f"this node is the controller since epoch {quorum.epoch}")

    async def _wins(self, others: Sequence[Voter], epoch: int, *, pre_vote: bool) -> bool:
        """Whether a majority is for this node; if not, the quorum waits before it tries again."""
        quorum = self._quorum
        granted = int(quorum.is_voter)
        needed = (len(others) + granted) // 2 + 1

        async with trio.open_nursery() as nursery:

            async def ask(voter: Voter) -> None:
                nonlocal granted
                if await self._ask_for_vote(voter, epoch, pre_vote=pre_vote):
                    granted += 1
                    if granted >= needed:
                        nursery.cancel_scope.cancel()

            for voter in others:
                nursery.start_soon(ask, voter)
        if quorum.epoch != epoch or quorum.is_leader or quorum.hears_leader:
            return False  # meanwhile somebody leads, or may do so
        if granted >= needed:
            return True
        quorum.postpone(self._services.identifiers.random.random() * self._backoff_max_seconds)
        return False

    async def _ask_for_vote(self, voter: Voter, epoch: int, *, pre_vote: bool) -> bool:
        quorum, services = self._quorum, self._services
        partition = VoteRequestPartitionData(
            replica_epoch=epoch,
            replica_id=services.node_id,
            replica_directory_id=quorum.directory_id,
            voter_directory_id=voter.directory_id,
            last_offset_epoch=quorum.log.last_epoch,
            last_offset=quorum.log.end_offset,
            pre_vote=pre_vote,
        )
        request = VoteRequest(
            cluster_id=services.cluster_id,
            voter_id=voter.id,
            topics=[VoteRequestTopicData(topic_name=CLUSTER_METADATA, partitions=[partition])],
        )
        answer = await self._ask(voter.id, request)
        if not isinstance(answer, VoteResponse) or answer.error_code:
            return False
        if not answer.topics or not answer.topics[0].partitions:
            return False
        told = answer.topics[0].partitions[0]
        addresses = {node.node_id: Address(node.host, node.port) for node in answer.node_endpoints}
        if told.leader_epoch > quorum.epoch or (
            told.leader_id not in (NOBODY, services.node_id) and told.leader_epoch == quorum.epoch
        ):
            quorum.become_follower(told.leader_epoch, told.leader_id, addresses.get(told.leader_id))
        return told.error_code == ErrorCode.NONE and told.vote_granted

    async def _say_end(self, epoch: int, successors: Sequence[ReplicaKey]) -> None:
        """Tell the other voters that this node leads no longer, so that they need not find out."""
        partition = EndQuorumEpochRequestPartitionData(
            leader_id=self._services.node_id,
            leader_epoch=epoch,
            preferred_candidates=[
                ReplicaInfo(candidate_id=key.id, candidate_directory_id=key.directory_id)
                for key in successors
            ],
        )
        request = EndQuorumEpochRequest(
            cluster_id=self._services.cluster_id,
            topics=[EndQuorumEpochRequestTopicData(topic_name=CLUSTER_METADATA, partitions=[partition])],
            leader_endpoints=[
                LeaderEndpoint(name=name, host=host, port=port) for name, host, port in self._quorum.endpoints
            ],
        )
        async with trio.open_nursery() as nursery:
            for key in successors:
                nursery.start_soon(self._ask, key.id, request)

    async def _ask(self, voter_id: int, request: Message) -> object:
        """The voter's answer; None if there is none."""
        quorum, services = self._quorum, self._services
        client = NodeClient(
            services.transport,
            lambda: quorum.voter_address(voter_id),
            client_id=f"raft-client-{services.node_id}",
        )
        try:
            return await client.ask(request, timeout_seconds=self._timeout_seconds)
        except NodeUnreachable as error:
            services.log.warn_seldom(f"the controller {voter_id} cannot be asked: {error}")
            return None
        finally:
            client.close()
