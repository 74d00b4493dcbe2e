"""A controller that does not lead tells the one that does where it listens and what it supports (KIP-919)."""

from typing import TYPE_CHECKING, Final

import trio

from broker.metadata.features import SUPPORTED_FEATURES
from broker.network.node_client import NodeClient, NodeUnreachable
from protocol.error_codes import ErrorCode
from protocol.messages.controller_registration import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
    Feature,
    Listener,
)

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
        """Register whenever the metadata do not name this run of the controller."""
        pause = self._services.config.get("controller.quorum.retry.backoff.ms") / 1000
        while True:
            if not self._is_wanted:
                await trio.sleep(LOOK_SECONDS)
            elif await self._register():
                await trio.sleep(LOOK_SECONDS)  # by then the metadata ought to say so
            else:
                await trio.sleep(pause)
                pause = min(pause * 2, PAUSE_SECONDS_MAX)

    @property
    def _is_wanted(self) -> bool:
        image = self._services.image
        if image.metadata_version < FIRST_LEVEL:
            return False
        own = image.controllers.get(self._services.node_id)
        return own is None or own.incarnation_id != self._quorum.incarnation_id

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
        client = NodeClient(
            services.transport,
            quorum.controller_address,
            client_id=f"controller-{services.node_id}-registration",
        )
        timeout_ms = services.config.get("controller.quorum.request.timeout.ms")
        try:
            answer: ControllerRegistrationResponse = await client.ask(
                request, timeout_seconds=timeout_ms / 1000
            )
        except NodeUnreachable as error:
            services.log.warn_seldom(f"this controller could not register: {error}")
            return False
        finally:
            client.close()
        if answer.error_code not in (ErrorCode.NONE, ErrorCode.NOT_CONTROLLER):
            services.log.warn_seldom(
                f"this controller may not register: {answer.error_message or answer.error_code}"
            )
        return not answer.error_code
