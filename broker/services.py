"""What handlers and services reach each other through: one object per broker."""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from broker.clock import BrokerClock
    from broker.config.broker_config import BrokerConfig
    from broker.controller.automatic_topics import AutomaticTopics
    from broker.controller.service import ControllerService
    from broker.groups.service import GroupService
    from broker.identifiers import Identifiers
    from broker.life.channel import ControllerChannel
    from broker.life.service import BrokerLife
    from broker.logs import Log
    from broker.metadata.endpoints import Advertised
    from broker.metadata.feed import MetadataFeed
    from broker.metadata.image import MetadataImage
    from broker.metadata.producer_ids import ProducerIds
    from broker.network.nodes import Nodes
    from broker.network.transport import Transport
    from broker.partitions.manager import PartitionManager
    from broker.quotas.desk import ClientQuotas
    from broker.raft.quorum import Quorum
    from broker.raft.voter_changes import VoterChanges
    from broker.share.coordinator import ShareCoordinator
    from broker.share.host import ShareHost
    from broker.telemetry.service import TelemetryService
    from broker.transactions.service import TransactionService
    from storage.partition_log import FlushJob

Result = TypeVar("Result")


class Services:
    """The parts of a running broker.  ``app`` puts them in, bottom up, before the first request.

    Parts know each other only through this object, so that tests can put a simple one in place.
    """

    clock: "BrokerClock"
    identifiers: "Identifiers"
    log: "Log"
    config: "BrokerConfig"
    node_id: int
    cluster_id: str
    metadata: "MetadataFeed"
    quorum: "Quorum"
    controller: "ControllerService"
    channel: "ControllerChannel"
    life: "BrokerLife"
    voter_changes: "VoterChanges"
    transport: "Transport"
    nodes: "Nodes"
    advertised: "Advertised"
    automatic_topics: "AutomaticTopics"
    producer_ids: "ProducerIds"
    quotas: "ClientQuotas"
    partitions: "PartitionManager"
    groups: "GroupService"
    transactions: "TransactionService"
    share_coordinator: "ShareCoordinator"
    share: "ShareHost"
    telemetry: "TelemetryService"

    @property
    def image(self) -> "MetadataImage":
        """The cluster's metadata as last published: everything in it is committed."""
        return self.metadata.image

    async def run_blocking(self, function: Callable[..., Result], *arguments: object) -> Result:
        """Call something that blocks (fsync, cold reads, large decompressions) in a thread.

        Not abandoned on cancellation: a flush that has begun is waited for.
        """
        import trio

        return await trio.to_thread.run_sync(function, *arguments)

    def run_jobs(self, jobs: "list[FlushJob]") -> None:
        """Run the fsyncs of a stop several at a time, and return when all are done.

        Raises the first failure.
        """
        from broker.partitions.housekeeping import run_in_threads

        run_in_threads(jobs)
