"""The other brokers of the cluster, as this one reaches them: by the listener that is for brokers."""

from typing import TYPE_CHECKING, Any, Final

from broker.network.call import Address

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
        from broker.network.node_client import NodeClient  # a node that is alone needs none

        client_id = f"{CLIENT_ID_PREFIX}-{self._services.node_id}-{purpose}"
        return NodeClient(self._services.transport, lambda: self.address(broker_id), client_id=client_id)

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
