"""From which replica a consumer had better read: the one in its own rack (KIP-392)."""

from typing import TYPE_CHECKING, Final

from broker.partitions.fetch_sessions import NO_REPLICA
from broker.partitions.leader import Leader

if TYPE_CHECKING:
    from broker.network.call import Call

RACK_AWARE: Final = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
"""The one value of ``replica.selector.class`` that Kafka brings along."""


def closest_replica(call: "Call", rack: str, leader: Leader, offset: int) -> int:
    """The broker in the client's rack that has caught up best and has this offset; -1 for the leader.

    The leader stays if it is in that rack itself, or if nobody who is in sync is.
    """
    services = call.services
    replication = leader.replication
    image = services.image
    this_broker = image.brokers.get(services.node_id)
    if replication is None or this_broker is None or this_broker.rack == rack:
        return NO_REPLICA
    listener = call.connection.listener.name
    best = (-1, 0, NO_REPLICA)
    for broker_id, follower in replication.followers.items():
        broker = image.brokers.get(broker_id)
        if (
            broker is not None
            and broker.rack == rack
            and not broker.fenced
            and broker.endpoint(listener) is not None
            and broker_id in replication.isr
            and follower.log_start <= offset <= follower.log_end
        ):
            best = max(best, (follower.log_end, follower.last_caught_up_ms, broker_id))
    return best[2]
