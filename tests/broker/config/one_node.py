"""A cluster of one, as far as its settings go: requests are answered, records applied, nothing is written."""

from collections.abc import Callable, Mapping
from importlib import import_module
from io import StringIO
from typing import TYPE_CHECKING, Any, cast

from broker.apis.table import APIS
from broker.config.broker_config import BrokerConfig
from broker.config.dynamic import DynamicSettings
from broker.controller.decision import Command
from broker.logs import Log
from broker.metadata import replay
from broker.metadata.endpoints import Advertised
from broker.metadata.image import empty_image
from broker.network.call import Address, Call, ConnectionState, Listener
from protocol.errors import KafkaError
from protocol.schema import Message
from protocol.stored.metadata_records import (
    BrokerEndpoint,
    ConfigRecord,
    FeatureLevelRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
)

if TYPE_CHECKING:
    from broker.services import Services

STATIC = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
    "controller.quorum.bootstrap.servers": "127.0.0.1:9093",
    "log.dirs": "/tmp/data",
}


def registration(broker_id: int, *, fenced: bool = False) -> RegisterBrokerRecord:
    """Of a broker that clients reach."""
    endpoint = BrokerEndpoint(name="PLAINTEXT", host="127.0.0.1", port=9092)
    return RegisterBrokerRecord(broker_id=broker_id, fenced=fenced, end_points=[endpoint])


class OneNode:
    """Stands in for ``Services`` and its controller: a command's records are there at once.

    ``written`` are the records of the last command.
    """

    node_id = 1
    is_local = True

    def __init__(self, static: Mapping[str, str] | None = None) -> None:
        self.config = BrokerConfig({**STATIC, **(static or {})})
        self.lines = StringIO()
        self.log = Log(self.lines)
        self.image = empty_image("cluster")
        self.controller = self.metadata = self.channel = self
        self.advertised = Advertised(self.node_id)
        self.written: list[Message] = []
        self.timeout_ms = 0
        self._dynamic = DynamicSettings(self.config, self.log)
        topic_id = bytes(range(16))
        self.apply(
            FeatureLevelRecord(name="metadata.version", feature_level=33),
            FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=1),
            registration(1),
            ConfigRecord(resource_type=4, name="min.insync.replicas", value="1"),
            TopicRecord(name="t1", topic_id=topic_id),
            PartitionRecord(partition_id=0, topic_id=topic_id, replicas=[1], isr=[1], leader=1),
        )

    def apply(self, *records: Message) -> None:
        self.image, changes = replay.apply(
            self.image, records, offset=self.image.offset + len(records), epoch=1
        )
        self._dynamic.publish(self.image, changes)

    def answer(self, command: Command[Any], build: Callable[[Any], Message], *, timeout_ms: int) -> Message:
        self.timeout_ms = timeout_ms
        try:
            records, reply = command(self.image)
        except KafkaError as error:
            return build(error)
        self.written = [record for record, _ in records]
        if self.written:
            self.apply(*self.written)
        return build(reply)

    def ask(self, request: Message, version: int) -> Any:
        """The handler's answer to ``request``, through the wire form of both."""
        api = APIS[request.api_key]
        handle = import_module(f"broker.apis.{api.module}").handle
        connection = ConnectionState(
            1, Listener("PLAINTEXT"), Address("127.0.0.1", 1), Address("127.0.0.1", 9092)
        )
        call = Call(cast("Services", self), connection, request.api_key, version, 1, "test", 0)
        answer = handle(type(request).decode(request.encode(version), version), call)
        return type(answer).decode(answer.encode(version), version)
