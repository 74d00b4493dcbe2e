"""Ottla and Apache Kafka nodes that make one cluster, each a process of its own on ports of its own."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from compat.broker_process import BrokerProcess
from compat.free_ports import free_ports
from compat.oracle.kafka import KafkaNode

OTTLA_ID = 1

SMALL_CLUSTER = {
    "offsets.topic.num.partitions": "5",
    "transaction.state.log.num.partitions": "5",
    "share.coordinator.state.topic.num.partitions": "5",
    "group.initial.rebalance.delay.ms": "0",
    "broker.session.timeout.ms": "6000",
}


class OttlaNode(BrokerProcess):
    """An Ottla node with broker and controller, both at addresses that others can be told of."""

    def __init__(
        self, folder: Path, settings: Mapping[str, str] | None = None, *, node_id: int = OTTLA_ID
    ) -> None:
        broker, controller = (f"127.0.0.1:{port}" for port in free_ports(2))
        super().__init__(
            folder,
            {
                "node.id": str(node_id),
                "process.roles": "broker,controller",
                "listeners": f"PLAINTEXT://{broker},CONTROLLER://{controller}",
                "controller.listener.names": "CONTROLLER",
                "controller.quorum.bootstrap.servers": controller,
                **SMALL_CLUSTER,
                **(settings or {}),
            },
        )
        self.bootstrap = broker
        self.controller = controller

    @property
    def cluster_id(self) -> str:
        return stamp(self.data, "cluster.id")

    @property
    def directory_id(self) -> str:
        return stamp(self.data, "directory.id")


class OttlaBroker(BrokerProcess):
    """An Ottla broker whose controllers are other nodes, Ottla's or Kafka's."""

    def __init__(
        self, folder: Path, controllers: str, settings: Mapping[str, str] | None = None, *, node_id: int
    ) -> None:
        """``controllers`` are their addresses."""
        self.bootstrap = f"127.0.0.1:{free_ports(1)[0]}"
        super().__init__(
            folder,
            {
                "node.id": str(node_id),
                "process.roles": "broker",
                "listeners": f"PLAINTEXT://{self.bootstrap}",
                "controller.listener.names": "CONTROLLER",
                "controller.quorum.bootstrap.servers": controllers,
                **SMALL_CLUSTER,
                **(settings or {}),
            },
        )


def kafka_controller(folder: Path, node_id: int, *format_arguments: str) -> KafkaNode:
    """The only controller of a new cluster, without a broker; formatted and not started."""
    security = {"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT"}
    node = KafkaNode(folder, {**security, **SMALL_CLUSTER}, node_id=node_id, roles="controller")
    node.format(*format_arguments)
    return node


def kafka_in(
    ottla: OttlaNode,
    folder: Path,
    *,
    node_id: int,
    roles: str,
    settings: Mapping[str, str] | None = None,
) -> KafkaNode:
    """A Kafka node, formatted and not started, that finds Ottla's cluster and joins it."""
    node = KafkaNode(
        folder,
        {
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            **SMALL_CLUSTER,
            **(settings or {}),
        },
        node_id=node_id,
        roles=roles,
        controllers=ottla.controller,
    )
    others_vote = ["--no-initial-controllers"] if "controller" in node.roles else []
    node.format(*others_vote, cluster_id=ottla.cluster_id)
    return node


@contextmanager
def ottla_and_kafka(
    folder: Path, *, kafka_id: int, roles: str = "broker", settings: Mapping[str, str] | None = None
) -> Iterator[tuple[OttlaNode, KafkaNode]]:
    """A running Ottla, and a running Kafka node in its cluster, which has these roles and settings."""
    ottla = OttlaNode(folder / "ottla")
    ottla.start()
    try:
        kafka = kafka_in(ottla, folder / "kafka", node_id=kafka_id, roles=roles, settings=settings)
        try:
            kafka.start()
            yield ottla, kafka
        finally:
            kafka.kill()
    finally:
        ottla.kill()


def stamp(directory: Path, name: str) -> str:
    """A line of the file by which a log directory knows whose it is."""
    lines = (directory / "meta.properties").read_text().splitlines()
    return next(line.partition("=")[2] for line in lines if line.startswith(f"{name}="))
