"""The broker epoch with which this process speaks."""

from typing import TYPE_CHECKING

from broker.life.heartbeat import NO_EPOCH

if TYPE_CHECKING:
    from broker.services import Services


def own_broker_epoch(services: "Services") -> int:
    """Of this process's own registration; -1 before there is one.

    Not what the metadata say, once it has registered: another process may be registered with its id by now,
    and what this one still says must not be taken for a word of that.
    """
    life = getattr(services, "life", None)  # it begins after the directories are open
    if life is not None:
        epoch: int = life.broker_epoch
        return epoch
    own = services.image.brokers.get(services.node_id)
    return NO_EPOCH if own is None else own.epoch
