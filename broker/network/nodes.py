"""The other brokers of the cluster, as this one reaches them: by the listener that is for brokers."""

from typing import TYPE_CHECKING, Any, Final

from broker.network.call import Address
from broker.network.settings import size_if_set

if TYPE_CHECKING:
    from broker.network.node_client import NodeClient
    from broker.services import Services
    from protocol.schema import Message

CLIENT_ID_PREFIX: Final = "broker"


class Nodes:
    """Asks brokers by their ids.  Connections are opened when needed, and follow the cluster's image."""

    def __init__(self, services: "Services") -> None:
        self._services = services
        self._clients: dict[int, NodeClient] = {}

    def address(self, broker_id: int) -> Address | None:
        """Where the broker listens for other brokers; None if it is not registered, or does not."""
        broker = self._services.image.brokers.get(broker_id)
        if broker is None:
            return None
        endpoint = broker.endpoint(self._services.config.inter_broker_listener_name)
        return None if endpoint is None else Address(endpoint.host, endpoint.port)

    def new_client(self, broker_id: int, purpose: str) -> "NodeClient":
        """A connection of its own, for who has long polls; whoever asks for it closes it in the end."""
        return self._client(broker_id, purpose)

    def new_fetcher_client(self, leader_id: int, purpose: str) -> "NodeClient":
        """A connection to the leader of what this broker follows; who asks for it closes it in the end."""
        size = size_if_set(self._services.config, "replica.socket.receive.buffer.bytes")
        return self._client(leader_id, purpose, receive_buffer_bytes=size)

    def _client(
        self, broker_id: int, purpose: str, *, receive_buffer_bytes: int | None = None
    ) -> "NodeClient":
        from broker.network.node_client import NodeClient  # a node that is alone needs none

        return NodeClient(
            self._services.transport,
            lambda: self.address(broker_id),
            client_id=f"{CLIENT_ID_PREFIX}-{self._services.node_id}-{purpose}",
            receive_buffer_bytes=receive_buffer_bytes,
        )

    async def ask(
        self, broker_id: int, request: "Message", *, version: int | None = None, timeout_seconds: float
    ) -> Any:
        """The broker's answer, over the connection that all such questions share.  Raises NodeUnreachable."""
        client = self._clients.get(broker_id)
        if client is None:
            client = self._clients[broker_id] = self.new_client(broker_id, "general")
        return await client.ask(request, version=version, timeout_seconds=timeout_seconds)

    def close(self) -> None:
        """Close all shared connections."""
        for client in self._clients.values():
            client.close()
        self._clients.clear()
