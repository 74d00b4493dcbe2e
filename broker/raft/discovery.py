"""What a new node asks before it can belong to a cluster: which cluster that is."""

from typing import TYPE_CHECKING, Final

import trio

from broker.network.call import Address
from broker.network.node_client import NodeClient, NodeUnreachable
from broker.raft.quorum import read_host_and_port
from protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse

if TYPE_CHECKING:
    from broker.services import Services

CONTROLLERS: Final = 2
"""The endpoint type of controllers in DescribeCluster (KIP-919)."""

TIMEOUT_SECONDS: Final = 5.0

PAUSE_SECONDS: Final = 0.1
"""After all controllers were asked in vain; each further time twice as long."""

PAUSE_SECONDS_MAX: Final = 2.0


async def find_cluster_id(services: "Services") -> str:
    """The id of the cluster whose controllers the settings name; returns when one of them has answered."""
    config = services.config
    addresses = [read_host_and_port(text) for text in config.get("controller.quorum.bootstrap.servers")]
    addresses += [
        read_host_and_port(text.partition("@")[2]) for text in config.get("controller.quorum.voters")
    ]
    pause = PAUSE_SECONDS
    while True:
        for address in addresses:
            try:
                return await _ask(services, address)
            except NodeUnreachable as error:
                services.log.warn_seldom(f"the controller at {address} does not name its cluster: {error}")
        await trio.sleep(pause)
        pause = min(2 * pause, PAUSE_SECONDS_MAX)


async def _ask(services: "Services", address: Address) -> str:
    client = NodeClient(services.transport, lambda: address, client_id="discovery")
    try:
        answer: DescribeClusterResponse = await client.ask(
            DescribeClusterRequest(endpoint_type=CONTROLLERS), timeout_seconds=TIMEOUT_SECONDS
        )
    finally:
        client.close()
    if answer.error_code:
        raise NodeUnreachable(f"error {answer.error_code}: {answer.error_message}")
    services.log.info(f"this node belongs to cluster {answer.cluster_id}, says the controller at {address}")
    return answer.cluster_id
