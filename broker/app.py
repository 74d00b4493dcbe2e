"""The whole broker: what it opens, in which order, and how it ends.

Each ``async with`` below is one layer; leaving them is the shutdown order.  Clients are let in last
and sent away first, and the log directories are closed when nothing can write to them any more.
"""

import math
import signal
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import NamedTuple

import trio

from broker import limits
from broker.apis.table import served
from broker.clock import BrokerClock
from broker.config.broker_config import BrokerConfig
from broker.config.dynamic import DynamicSettings
from broker.config.listeners import ListenerAddress
from broker.config.value_types import ConfigError
from broker.controller.automatic_topics import AutomaticTopics
from broker.controller.start import Node, start_controller, stop_controller
from broker.controller.topic_news import TopicNews
from broker.errors import KafkaError, StartupError
from broker.groups.service import open_groups
from broker.identifiers import Identifiers
from broker.life.channel import open_channel
from broker.life.service import open_life
from broker.logs import Level, Log
from broker.metadata.endpoints import Advertised
from broker.metadata.feed import Publish
from broker.metadata.image import Endpoint, MetadataImage, ResourceType
from broker.metadata.producer_ids import ProducerIds
from broker.metadata.replay import MetadataChanges
from broker.network.binding import Binding, Door, ListenError
from broker.network.call import Address, Listener
from broker.network.dispatch import Dispatcher
from broker.network.listener import Network, serve_listeners
from broker.network.nodes import Nodes
from broker.network.settings import NetworkSettings
from broker.network.transport import SocketTransport
from broker.node_directories import NodeDirectories, asks_for_cluster_id, hold_directories, identify
from broker.open_files import OpenFiles, current_limit, raise_limit, share
from broker.partitions.manager import open_partitions
from broker.quotas.addresses import address_limits, hosts_to_look_up, look_up
from broker.quotas.desk import ClientQuotas
from broker.raft.service import QuorumMismatch
from broker.raft.voter_changes import open_voter_changes
from broker.raft.voters import VoterEndpoint
from broker.services import Services
from broker.share.coordinator import open_share_coordinator
from broker.share.host import open_share_host
from broker.stopping import STOPPING, heeded_signals
from broker.telemetry.service import TelemetryService
from broker.transactions.service import open_transactions
from storage.errors import DiskFailure, StorageError
from storage.filesystem import FileSystem, RealFileSystem
from storage.heap import keep_freed_memory

THREAD_SWITCH_SECONDS = 0.0005
"""How long a thread that checks records in Python may keep the loop waiting; Python's own is ten times that.
Beside two producers of compressed batches it made a third client's median four times shorter."""

EXPECTED_FAILURES = (StartupError, ConfigError, ListenError, QuorumMismatch, StorageError, KafkaError)
"""What can be wrong with settings, ports, files and the disk.  Each says it in one line."""


class Ready(NamedTuple):
    """Where a started broker can be reached."""

    brokers: Sequence[tuple[Listener, Address]]
    controllers: Sequence[tuple[Listener, Address]]
    directories: Sequence[str]


def run(
    config: BrokerConfig,
    *,
    cluster_id: str | None = None,
    levels: Mapping[str, Level] | None = None,
    on_ready: Callable[[Ready], None],
    file_system: FileSystem | None = None,
) -> int:
    """Serve until SIGTERM, SIGINT or SIGHUP; return the process's exit status.

    ``cluster_id`` is for directories that are not formatted yet; a directory that belongs to another
    cluster is refused.  ``levels`` are those of loggers that do not begin with their own.
    """
    sys.setswitchinterval(THREAD_SWITCH_SECONDS)
    keep_freed_memory()
    raise_limit()
    clock = BrokerClock()
    log = Log(now_ms=clock.now_ms)
    log.set_levels(levels or {})
    services = Services()
    services.clock = clock
    services.log = log
    services.identifiers = Identifiers()
    services.transport = SocketTransport()
    try:
        trio.run(
            _run_until_signal,
            services,
            config,
            cluster_id,
            on_ready,
            file_system or RealFileSystem(),
            clock=clock,
        )
    except BaseExceptionGroup as group:
        failures, others = group.split(EXPECTED_FAILURES)
        if others is not None or failures is None:
            log.failure("the broker stops, because something failed that should not", group)
        else:
            log.error("; ".join(dict.fromkeys(map(str, _leaves(failures)))))
        return 1
    except EXPECTED_FAILURES as failure:
        log.error(str(failure))
        return 1
    log.info("stopped")
    return 0


async def _run_until_signal(
    services: Services,
    config: BrokerConfig,
    cluster_id: str | None,
    on_ready: Callable[[Ready], None],
    file_system: FileSystem,
) -> None:
    stop = trio.Event()
    token = trio.lowlevel.current_trio_token()

    def begin_to_stop(number: int) -> None:
        if not stop.is_set():
            services.log.info(f"stopping after {signal.Signals(number).name}")
            stop.set()

    def handle(number: int, _frame: object) -> None:
        # Who asks twice would kill what cleans up behind a stopped broker; who asks without end would
        # interrupt one handler by the next until the stack is full.
        for each in STOPPING:
            signal.signal(each, signal.SIG_IGN)
        token.run_sync_soon(begin_to_stop, number)

    before = {each: signal.signal(each, handle) for each in heeded_signals()}
    try:
        await serve(services, config, stop, cluster_id=cluster_id, on_ready=on_ready, file_system=file_system)
    finally:
        for each, handler in before.items():
            if signal.getsignal(each) is handle:
                signal.signal(each, handler)


async def serve(
    services: Services,
    config: BrokerConfig,
    stop: trio.Event,
    *,
    cluster_id: str | None = None,
    on_ready: Callable[[Ready], None],
    file_system: FileSystem,
) -> None:
    """Start, call ``on_ready``, and serve until ``stop`` is set.

    ``services`` brings clock, log, identifiers and transport and is completed here.  Being
    cancelled is a crash: no marker of a clean stop is written.
    """
    services.config = config
    settings = NetworkSettings.from_config(config)
    open_files = _share_descriptors(settings, services.log)
    roles = config.get("process.roles")
    with hold_directories(services, file_system, open_files_max=open_files.of_logs_max) as directories:
        bound = services.transport.listen(_bindings(config), settings)
        try:
            voters = [
                VoterEndpoint(name, host, port)
                for name, host, port, _ in _endpoints(config.advertised_controllers, bound)
            ]
            if cluster_id is None and asks_for_cluster_id(services, directories):
                cluster_id = await _asked_cluster_id(services, stop)
                if cluster_id is None:
                    return
            identify(services, directories, voters, cluster_id, file_system)
            node = _node(services, directories, bound)
            start_controller(services, node)
            _prepare(services)
            async with (
                _starting(services.config) as starting,
                _running(services) as background,
                open_channel(services) as services.channel,
                open_voter_changes(services) as services.voter_changes,
                AsyncExitStack() as opened,
            ):

                async def let_in(*, on_controller: bool) -> None:
                    doors = [door for door in bound if door.listener.is_controller == on_controller]
                    await opened.enter_async_context(
                        _serving(services, doors, settings, open_files.connections_max, background)
                    )

                # Before anything waits for a leader: to become one, others may need this node's vote.
                if "controller" in roles:
                    await let_in(on_controller=True)
                if "broker" not in roles:
                    starting.deadline = math.inf
                    on_ready(_ready(bound, directories))
                    await stop.wait()
                elif await _open_broker(services, node, directories, opened, stop):
                    # Until the cluster names this broker, clients would be told of no broker at all.
                    if services.life.serves or await _finishes_before(stop, services.life.serve):
                        await let_in(on_controller=False)
                        starting.deadline = math.inf
                        on_ready(_ready(bound, directories))
                        await stop.wait()
                    # While it still serves: others take over what it leads.
                    await services.life.leave()
                await services.quorum.leave()
        finally:
            for door in bound:
                door.close()
        broker_epoch = stop_controller(services, node)
        _close(directories, broker_epoch, services)


async def _asked_cluster_id(services: Services, stop: trio.Event) -> str | None:
    """Of the controllers that the settings name; None if ``stop`` is set before one has answered."""
    from broker.raft.discovery import find_cluster_id  # once in the life of a directory

    found: list[str] = []

    async def ask() -> None:
        found.append(await find_cluster_id(services))

    return found[0] if await _finishes_before(stop, ask) else None


def _prepare(services: Services) -> None:
    """What handlers find without a task of its own; it follows what is published."""
    config, image = services.config, services.image
    services.nodes = Nodes(services)
    services.advertised = Advertised(services.node_id, _unaddressed(config))
    services.automatic_topics = AutomaticTopics(services)
    services.producer_ids = ProducerIds(services)
    services.telemetry = TelemetryService(services)
    services.quotas = quotas = ClientQuotas(config, services.clock)
    quotas.load(image)
    services.metadata.on_publish(quotas.publish)
    dynamic = DynamicSettings(config, services.log)
    dynamic.load(image)
    services.metadata.on_publish(dynamic.publish)
    services.metadata.on_publish(TopicNews(services.log, image).publish)
    if unaddressed := _unaddressed(config):
        services.metadata.on_publish(_warning_of_company(services, unaddressed))


def _warning_of_company(services: Services, unaddressed: Sequence[str]) -> Publish:
    """Say once by which address others come to this broker, when it is not alone and was given none."""
    is_said = False

    def publish(image: MetadataImage, changes: MetadataChanges) -> None:
        nonlocal is_said
        own = image.brokers.get(services.node_id)
        if is_said or own is None or len(image.brokers) == 1:
            return
        is_said = True
        named = [
            f"{listener.name} at {Address(listener.host, listener.port)}"
            for listener in own.endpoints
            if listener.name in unaddressed
        ]
        services.log.warn(
            f"not the only broker any more: the others and their clients look for {', '.join(named)}, "
            "because neither listeners nor advertised.listeners names a host"
        )

    return publish


async def _open_broker(
    services: Services, node: Node, directories: NodeDirectories, opened: AsyncExitStack, stop: trio.Event
) -> bool:
    """Open everything that serves clients; return whether they may come in, False after ``stop``.

    A broker whose controller is elsewhere has to know the cluster first, and that the cluster knows it.
    """
    enter = opened.enter_async_context
    services.life = await enter(open_life(services, node))
    if not services.quorum.is_leader:
        services.log.info("waiting for the metadata of the cluster")
        for known in (services.quorum.wait_caught_up, services.life.wait_caught_up):
            if not await _finishes_before(stop, known):
                return False
    services.partitions = await enter(open_partitions(services, directories))
    services.groups = await enter(open_groups(services))
    services.transactions = await enter(open_transactions(services))
    services.share_coordinator = await enter(open_share_coordinator(services))
    services.share = await enter(open_share_host(services))
    return True


async def _finishes_before(stop: trio.Event, function: Callable[[], Awaitable[None]]) -> bool:
    """Whether ``function`` came to its end before ``stop`` was set; otherwise it is cancelled."""
    has_finished = False
    async with trio.open_nursery() as nursery:

        async def give_up() -> None:
            await stop.wait()
            nursery.cancel_scope.cancel()

        nursery.start_soon(give_up)
        await function()
        has_finished = True
        nursery.cancel_scope.cancel()
    return has_finished


def _share_descriptors(settings: NetworkSettings, log: Log) -> OpenFiles:
    """Who may have how many of the process's descriptors; a line if that is little."""
    limit = current_limit()
    if limit < limits.OPEN_FILES_MIN:
        raise StartupError(
            f"this process may open {limit} files, and a broker needs {limits.OPEN_FILES_MIN} or more: "
            "raise the limit (ulimit -n)"
        )
    open_files = share(limit)
    if open_files.connections_max < min(settings.connections.connections_max, limits.CONNECTIONS_EXPECTED):
        log.warn(
            f"this process may open {limit} files (ulimit -n), which is enough for "
            f"{open_files.connections_max} connections at once; more clients have to wait"
        )
    return open_files


@asynccontextmanager
async def _starting(config: BrokerConfig) -> AsyncIterator[trio.CancelScope]:
    """Raises StartupError if ``server.max.startup.time.ms`` is over before the deadline has been lifted."""
    limit_ms: int = config.get("server.max.startup.time.ms")
    with trio.CancelScope(deadline=trio.current_time() + limit_ms / 1000) as scope:
        yield scope
    if scope.cancelled_caught:
        raise StartupError(f"not up after server.max.startup.time.ms={limit_ms}")


@asynccontextmanager
async def _running(services: Services) -> AsyncIterator[trio.Nursery]:
    """Quorum and controller at work.  When their disk fails, everything above them is cancelled."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(services.quorum.run)
        nursery.start_soon(services.controller.run)
        yield nursery
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def _serving(
    services: Services,
    doors: Sequence[Door],
    settings: NetworkSettings,
    sockets_max: int,
    background: trio.Nursery,
) -> AsyncIterator[None]:
    """Let in and serve who comes to these listeners, which are all the controller's or all the broker's."""
    dispatcher = Dispatcher(
        services,
        served(
            on_controller=any(door.listener.is_controller for door in doors),
            unstable_versions=services.config.get("unstable.api.versions.enable"),
        ),
    )
    async with serve_listeners(
        doors,
        lambda listener: dispatcher,
        settings,
        log=services.log,
        run_blocking=services.run_blocking,
        sockets_max=sockets_max,
    ) as network:
        _apply_addresses(network, services, background)
        services.metadata.on_publish(_adjusting(network, services, background))
        yield


def _adjusting(network: Network, services: Services, background: trio.Nursery) -> Publish:
    """How many connections there may be follows the broker's dynamic settings, and quotas of addresses."""

    def publish(image: MetadataImage, changes: MetadataChanges) -> None:
        if changes.quotas:
            _apply_addresses(network, services, background)
        if any(kind == ResourceType.BROKER for kind, _ in changes.configs):
            try:
                network.apply(NetworkSettings.from_config(services.config))
            except ConfigError as error:
                services.log.warn(f"the limits of connections stay as they are: {error}")

    return publish


def _apply_addresses(network: Network, services: Services, background: trio.Nursery) -> None:
    """Let quotas of addresses hold at once, and those of names when somebody has said where they are."""
    network.apply_addresses(address_limits(services.image))
    hosts = hosts_to_look_up(services.image)
    if not hosts:
        return

    async def look_up_and_apply() -> None:
        # A resolver that does not answer must not keep the broker from stopping.
        await trio.to_thread.run_sync(look_up, hosts, services.log, abandon_on_cancel=True)
        network.apply_addresses(address_limits(services.image))

    background.start_soon(look_up_and_apply)


def _bindings(config: BrokerConfig) -> list[Binding]:
    controllers = config.controller_listener_names
    return [
        Binding(Listener(address.name, address.name in controllers), address.host, address.port)
        for address in config.listeners
    ]


def _unaddressed(config: BrokerConfig) -> list[str]:
    """Listeners on every interface for which no address is advertised."""
    if config.advertised_listeners is not None:
        return []
    return [address.name for address in config.broker_listeners if _is_everywhere(address.host)]


def _is_everywhere(host: str) -> bool:
    return host in ("", "0.0.0.0", "::")


def _node(services: Services, directories: NodeDirectories, bound: Sequence[Door]) -> Node:
    config = services.config
    return Node(
        metadata_directory=directories.metadata,
        directories=directories.online,
        has_offline=bool(directories.offline),
        broker_endpoints=_endpoints(config.advertised_brokers, bound),
        controller_endpoints=_endpoints(config.advertised_controllers, bound),
    )


def _endpoints(addresses: Sequence[ListenerAddress], bound: Sequence[Door]) -> list[Endpoint]:
    """The addresses to register, with the ports that were really bound and a name for "everywhere"."""
    ports = {opened.listener.name: opened.address.port for opened in bound}
    return [
        Endpoint(
            address.name,
            socket.gethostname() if _is_everywhere(address.host) else address.host,
            address.port or ports[address.name],
        )
        for address in addresses
    ]


def _close(directories: NodeDirectories, broker_epoch: int, services: Services) -> None:
    """Close what is left.  A directory that fails in its last moment keeps no other from its mark."""
    for directory in directories.held:
        try:
            directory.close(
                broker_epoch=broker_epoch,
                run_jobs=services.run_jobs,
                leaves_mark=directory in directories.online,
            )
        except DiskFailure as failure:
            if directory is directories.metadata:
                raise
            services.log.error(f"{directory.path} will be recovered by the next start: {failure}")


def _ready(bound: Sequence[Door], directories: NodeDirectories) -> Ready:
    return Ready(
        [(opened.listener, opened.address) for opened in bound if not opened.listener.is_controller],
        [(opened.listener, opened.address) for opened in bound if opened.listener.is_controller],
        [directory.path for directory in directories.online],
    )


def _leaves(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(error)
        else:
            yield error
