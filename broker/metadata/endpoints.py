"""By which address clients are sent to a broker."""

from collections.abc import Collection
from typing import NamedTuple

from broker.metadata.image import BrokerImage, MetadataImage
from broker.network.call import Call


class Node(NamedTuple):
    """A broker as a client of one listener sees it."""

    id: int
    host: str
    port: int
    rack: str | None
    is_fenced: bool


class Advertised:
    """Addresses as the brokers registered them, with one exception.

    A broker that was given no address to advertise cannot know the one by which its clients reach it: a
    container's port may be published anywhere.  While it is the only broker of the cluster, it answers
    with the address at which the asking client has just reached it.
    """

    def __init__(self, node_id: int, unaddressed_listeners: Collection[str] = ()) -> None:
        """``unaddressed_listeners`` are the names of this broker's listeners that have no address given."""
        self._node_id = node_id
        self._unaddressed = frozenset(unaddressed_listeners)

    def node(self, image: MetadataImage, broker_id: int, call: Call) -> Node | None:
        """The broker for a client of this call's listener; None if it is unknown there.

        Fenced brokers have addresses, too: whether they count is for the caller.
        """
        broker = image.brokers.get(broker_id)
        return None if broker is None else self._node(image, broker, call)

    def alive_nodes(self, image: MetadataImage, call: Call) -> list[Node]:
        """All brokers that are not fenced and have this call's listener, by id."""
        nodes = [self._node(image, broker, call) for broker in image.alive_brokers()]
        return [node for node in nodes if node is not None]

    def all_nodes(self, image: MetadataImage, call: Call) -> list[Node]:
        """The same with the fenced ones."""
        nodes = [self._node(image, broker, call) for _, broker in sorted(image.brokers.items())]
        return [node for node in nodes if node is not None]

    def _node(self, image: MetadataImage, broker: BrokerImage, call: Call) -> Node | None:
        listener = call.connection.listener.name
        endpoint = broker.endpoint(listener)
        if endpoint is None:
            return None
        host, port = endpoint.host, endpoint.port
        if broker.id == self._node_id and listener in self._unaddressed and len(image.brokers) == 1:
            host, port = call.connection.local_address
        return Node(broker.id, host, port, broker.rack, broker.fenced)
