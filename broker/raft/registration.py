"""A controller that does not lead tells the one that does where it listens and what it supports.

All register, so that brokers and tools know them (KIP-919).  If a voter listens elsewhere than the record of
the voters says, it lets that be changed, too (KIP-853), and who is to vote by itself asks for that.
"""

from typing import TYPE_CHECKING, Any, Final

import trio

from broker.metadata.features import SUPPORTED_FEATURES
from broker.network.node_client import NodeClient, NodeUnreachable, warn_of_controller
from broker.raft.voters import KRAFT_VERSIONS, find_voter
from protocol.error_codes import ErrorCode
from protocol.messages.add_raft_voter import AddRaftVoterRequest
from protocol.messages.add_raft_voter import Listener as JoiningListener
from protocol.messages.controller_registration import ControllerRegistrationRequest, Feature, Listener
from protocol.messages.remove_raft_voter import RemoveRaftVoterRequest
from protocol.messages.update_raft_voter import KRaftVersionFeature, UpdateRaftVoterRequest
from protocol.messages.update_raft_voter import Listener as VoterListener
from protocol.schema import Message

if TYPE_CHECKING:
    from broker.raft.quorum import Quorum
    from broker.services import Services

LOOK_SECONDS: Final = 1.0
"""How often the cluster's metadata are looked at for what this controller has told."""

PAUSE_SECONDS_MAX: Final = 5.0

FIRST_LEVEL: Final = 15
"""The metadata.version since which controllers register."""


class ControllerRegistration:
    """Runs while this node follows, until it is cancelled."""

    def __init__(self, services: "Services", quorum: "Quorum") -> None:
        self._services = services
        self._quorum = quorum

    async def run(self) -> None:
        """Tell it whenever the metadata do not name this run of the controller, or the voters its address."""
        first_pause = self._services.config.get("controller.quorum.retry.backoff.ms") / 1000
        pause = first_pause
        join_seconds = self._services.config.get("controller.quorum.fetch.timeout.ms") / 1000
        joins_at = trio.current_time() + join_seconds
        while True:
            is_told = True
            if self._must_register:
                is_told = await self._register()
            if self._must_update:
                is_told &= await self._update()
            if self._must_join and trio.current_time() >= joins_at:
                joins_at = trio.current_time() + join_seconds
                await self._join()
            if is_told:
                pause = first_pause
                await trio.sleep(LOOK_SECONDS)  # by then what was told ought to be in the log
            else:
                await trio.sleep(pause)
                pause = min(pause * 2, PAUSE_SECONDS_MAX)

    @property
    def _must_register(self) -> bool:
        image = self._services.image
        if image.metadata_version < FIRST_LEVEL:
            return False
        own = image.controllers.get(self._services.node_id)
        return own is None or own.incarnation_id != self._quorum.incarnation_id

    @property
    def _must_update(self) -> bool:
        quorum = self._quorum
        own = find_voter(quorum.voters, self._services.node_id, quorum.directory_id)
        if own is None or quorum.kraft_version < 1 or not quorum.hears_leader:
            return False
        return {(at.name.upper(), *at[1:]) for at in own.endpoints} != {
            (at.name.upper(), *at[1:]) for at in quorum.endpoints
        }

    @property
    def _must_join(self) -> bool:
        quorum = self._quorum
        return (
            self._services.config.get("controller.quorum.auto.join.enable")
            and quorum.kraft_version >= 1
            and quorum.hears_leader
            and not quorum.is_voter
        )

    async def _register(self) -> bool:
        """Whether the leader has taken it."""
        services, quorum = self._services, self._quorum
        request = ControllerRegistrationRequest(
            controller_id=services.node_id,
            incarnation_id=quorum.incarnation_id,
            listeners=[Listener(name=name, host=host, port=port) for name, host, port in quorum.endpoints],
            features=[
                Feature(name=name, min_supported_version=low, max_supported_version=high)
                for name, (low, high) in SUPPORTED_FEATURES.items()
            ],
        )
        answer = await self._ask(request)
        if answer is None:
            return False
        if answer.error_code not in (ErrorCode.NONE, ErrorCode.NOT_CONTROLLER):
            self._services.log.warn_seldom(
                f"this controller may not register: {answer.error_message or answer.error_code}"
            )
        return not answer.error_code

    async def _update(self) -> bool:
        """Whether the leader has taken where this voter listens."""
        services, quorum = self._services, self._quorum
        low, high = KRAFT_VERSIONS
        request = UpdateRaftVoterRequest(
            cluster_id=services.cluster_id,
            current_leader_epoch=quorum.epoch,
            voter_id=services.node_id,
            voter_directory_id=quorum.directory_id,
            listeners=[
                VoterListener(name=name, host=host, port=port) for name, host, port in quorum.endpoints
            ],
            kraft_version_feature=KRaftVersionFeature(min_supported_version=low, max_supported_version=high),
        )
        answer = await self._ask(request)
        return answer is not None and not answer.error_code

    async def _join(self) -> None:
        """Ask to vote; first to forget a voter of this id whose directory is gone.

        What the leader says to it does not matter: if this node does not vote then, it asks again.
        """
        services, quorum = self._services, self._quorum
        for voter in quorum.voters:
            if voter.id == services.node_id:
                await self._ask(
                    RemoveRaftVoterRequest(
                        cluster_id=services.cluster_id,
                        voter_id=voter.id,
                        voter_directory_id=voter.directory_id,
                    )
                )
                return
        await self._ask(
            AddRaftVoterRequest(
                cluster_id=services.cluster_id,
                timeout_ms=services.config.get("controller.quorum.request.timeout.ms"),
                voter_id=services.node_id,
                voter_directory_id=quorum.directory_id,
                listeners=[
                    JoiningListener(name=name, host=host, port=port) for name, host, port in quorum.endpoints
                ],
                ack_when_committed=False,
            )
        )

    async def _ask(self, request: Message) -> Any:
        """The leader's answer; None if there is none."""
        services = self._services
        address = self._quorum.controller_address()
        if address is None:  # while nobody leads there is nothing to tell
            return None
        client = NodeClient(
            services.transport,
            lambda: address,
            client_id=f"controller-{services.node_id}-registration",
        )
        timeout_ms = services.config.get("controller.quorum.request.timeout.ms")
        try:
            return await client.ask(request, timeout_seconds=timeout_ms / 1000)
        except NodeUnreachable as error:
            warn_of_controller(services.log, address, error)
            return None
        finally:
            client.close()
