"""A controller with its broker, on a file system in memory: started, stopped, killed and started again."""

import math
from collections.abc import Callable, Mapping
from importlib import import_module
from random import Random
from types import SimpleNamespace
from typing import Any, TypeVar, cast

import trio

from broker.apis.table import APIS
from broker.clock import BrokerClock
from broker.config.broker_config import BrokerConfig
from broker.controller.automatic_topics import AutomaticTopics
from broker.controller.decision import Command
from broker.controller.service import ControllerService
from broker.controller.start import Node, start_controller, stop_controller
from broker.identifiers import Identifiers
from broker.life.channel import ControllerChannel
from broker.life.service import BrokerLife
from broker.logs import Log
from broker.metadata.endpoints import Advertised
from broker.metadata.formatting import Format, format_directories
from broker.metadata.image import Endpoint, MetadataImage
from broker.metadata.producer_ids import ProducerIds
from broker.network.call import Address, Call, ConnectionState, Listener
from broker.network.transport import SocketTransport
from broker.network.waiting import Waiting
from broker.raft.service import RaftService
from broker.raft.voters import VoterEndpoint
from broker.services import Services
from protocol.schema import Message
from storage.file_range import FileRange
from storage.log_directory import LogDirectory
from storage.memory_filesystem import MemoryFileSystem
from storage.node_files import read_meta_properties
from tests.support.lines import Lines

Reply = TypeVar("Reply")

DIRECTORY = "data"
METADATA = "data/__cluster_metadata-0"
NODE_ID = 1
CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"
PLAINTEXT = Endpoint("PLAINTEXT", "broker.example", 9092)
CONTROLLER = Endpoint("CONTROLLER", "127.0.0.1", 9093)


class TestClock(BrokerClock):
    """Time that moves only when a test moves it."""

    __test__ = False

    def __init__(self) -> None:
        super().__init__()
        self.time_ms = 1_700_000_000_000

    def now_ms(self) -> int:
        return self.time_ms


class InlineServices(Services):
    """What would run in a thread runs here and now."""

    async def run_blocking(self, function: Callable[..., Any], *arguments: object) -> Any:
        return function(*arguments)


def _start_nothing(*_: object) -> None:
    """The controller is in this process, so its broker needs no task to ask it."""
    raise AssertionError("another node's controller is asked")


class ControllerNode:
    """One node with one log directory, formatted when it is first started."""

    def __init__(
        self,
        settings: Mapping[str, str] | None = None,
        *,
        seed: int = 1,
        node_id: int = NODE_ID,
        metadata_version: int = 33,
        feature_levels: Mapping[str, int] | None = None,
    ) -> None:
        self.file_system = MemoryFileSystem()
        self.clock = TestClock()
        self.file_system.now_ms = self.clock.now_ms
        self.file_system.make_directory(DIRECTORY)
        self.file_system.sync_everything()
        self.lines = Lines()
        self.format = Format(
            CLUSTER_ID,
            node_id,
            metadata_version,
            (VoterEndpoint(CONTROLLER.name, CONTROLLER.host, CONTROLLER.port),),
            feature_levels or {},
        )
        self.services = InlineServices()
        self.services.clock = self.clock
        self.services.identifiers = Identifiers(seed)
        self.services.log = Log(self.lines)
        self.services.config = BrokerConfig({"node.id": str(node_id), **(settings or {})})
        self.services.transport = SocketTransport()
        self.services.node_id = node_id
        self.services.cluster_id = CLUSTER_ID
        self.services.advertised = Advertised(node_id)
        self.broker_endpoints = [PLAINTEXT]
        self.controller_endpoints = [CONTROLLER]
        self.directory: LogDirectory

    @property
    def controller(self) -> ControllerService:
        return self.services.controller

    @property
    def raft(self) -> RaftService:
        return self.controller.raft

    @property
    def image(self) -> MetadataImage:
        return self.controller.image

    def open_directory(self) -> LogDirectory:
        """The log directory, formatted."""
        identifiers = self.services.identifiers
        self.directory = LogDirectory.open(
            DIRECTORY,
            self.file_system,
            random_below=identifiers.random.randrange,
            report=self.services.log.warn,
            now_ms=self.clock.now_ms(),
        )
        if self.directory.properties is None:
            is_controller = "controller" in self.services.config.get("process.roles")
            format_directories(
                self.file_system,
                DIRECTORY if is_controller else None,
                [] if is_controller else [DIRECTORY],
                self.format,
                new_id=identifiers.uuid,
                now_ms=self.clock.now_ms(),
            )
            self.directory.properties = read_meta_properties(self.file_system, DIRECTORY)
        return self.directory

    def start(self) -> MetadataImage:
        """Start, and return the image with which the node serves."""
        self.open_directory()
        start_controller(self.services, self._node())
        self.services.channel = ControllerChannel(self.services, _start_nothing)
        self.services.producer_ids = ProducerIds(self.services)
        self.services.automatic_topics = AutomaticTopics(self.services)
        own = self.image.brokers.get(self.services.node_id)
        if own is not None:
            self.services.life = cast(
                BrokerLife, SimpleNamespace(incarnation_id=own.incarnation_id, broker_epoch=own.epoch)
            )
        return self.image

    def _node(self) -> Node:
        return Node(self.directory, [self.directory], False, self.broker_endpoints, self.controller_endpoints)

    def stop(self) -> None:
        """Stop as an operator would."""
        self.directory.close(broker_epoch=stop_controller(self.services, self._node()))

    def kill(self) -> None:
        """End as by ``kill -9``: what was written is there."""
        self.file_system.kill()

    def lose_power(self, chance: Random | None = None) -> None:
        """End as when the power fails: what was not fsynced is gone, or some sectors of it are."""
        self.file_system.lose_power(chance, sector_bytes=512)

    def perform(self, command: Command[Reply]) -> Reply:
        """Carry out a command here and now, up to its commit."""
        decision = command(self.raft.latest)
        if decision.records:
            self.raft.append(decision.records)
            self.raft.flush()
            self.raft.feed.image = self.raft.latest
        return decision.reply

    def call(self, api_key: int, version: int, *, listener: str = PLAINTEXT.name) -> Call:
        """A request as it reaches a handler."""
        connection = ConnectionState(
            1,
            Listener(listener, is_controller=listener == CONTROLLER.name),
            Address("10.0.0.7", 50_000),
            Address("10.0.0.1", 9092),
        )
        return Call(self.services, connection, api_key, version, 1, "test", self.clock.now_ms())

    async def ask(self, request: Message, answer: type[Message], version: int, **options: Any) -> Any:
        """The answer of the handler, through the wire form of request and answer.

        ``controller.run`` must be running for requests that change something.
        """
        api = APIS[request.api_key]
        call = self.call(request.api_key, version, **options)
        handler = api.controller_handler if call.listener.is_controller else api.handler
        module = import_module(f"broker.apis.{handler}")
        received = type(request).decode(request.encode(version), version)
        try:
            given = module.handle(received, call)
            if isinstance(given, Waiting):
                given = await _until_deadline(given)
        except Exception as error:
            code = getattr(error, "code", None)
            if code is None:
                raise
            build = getattr(module, "error_response", None)
            values: dict[str, Any] = {"error_code": code}
            given = build(received, code) if build else answer(**values)
        if isinstance(given, bytes):
            return answer.decode(given, version)
        parts = given.encode_parts(version)
        body = b"".join(part.read() if isinstance(part, FileRange) else part for part in parts)
        return answer.decode(body, version)


async def _until_deadline(waiting: Waiting[Any]) -> Any:
    """The answer, given in time as a connection sees to it."""
    with trio.move_on_at(math.inf if waiting.deadline is None else waiting.deadline):
        return await waiting.wait()
    waiting.expire()
    return waiting.result()
