"""Everything of one simulation: the clock, the network, the nodes, and what has been noted of them."""

from collections.abc import Mapping, Sequence
from random import Random

import trio
from trio.testing import MockClock

from tests.simulation.clients import Admin
from tests.simulation.clock import START_MS
from tests.simulation.invariants import Watch
from tests.simulation.ledger import Ledger, Partition
from tests.simulation.network import Network
from tests.simulation.node import Node
from tests.simulation.timeline import Timeline

CLUSTER_ID = "c1mulat3dClusterOfOttla"

SETTINGS: Mapping[str, str] = {
    "log.dirs": "/data",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "min.insync.replicas": "2",
    "default.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "auto.create.topics.enable": "false",
    "broker.heartbeat.interval.ms": "500",
    "broker.session.timeout.ms": "2000",
    "replica.lag.time.max.ms": "2000",
    "replica.fetch.wait.max.ms": "500",
    "log.cleaner.enable": "false",
}
"""Of all nodes.  Time costs nothing here, but what happens again and again while it passes does."""

BROKER_PORT = 9092
CONTROLLER_PORT = 9093


STEPS_AT_ONCE_MAX = 30_000
"""Steps of tasks within one moment of the virtual clock."""


class Failure(Exception):
    """An invariant does not hold, or something happened that nobody expected."""


class Stillness(trio.abc.Instrument):
    """Sees that time goes on: a task that goes round and round would keep it from that."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._steps = 0
        self._seen = -1.0

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        now = self._world.trio_clock.current_time()
        if now != self._seen:
            self._seen = now
            self._steps = 0
        self._steps += 1
        if self._steps == STEPS_AT_ONCE_MAX:
            self._world.fail(Failure(f"time stands still: {STEPS_AT_ONCE_MAX} steps, and now {task.name}"))


class World:
    """``fail`` ends it.  ``lines`` is all that has happened, in order."""

    def __init__(self, seed: str, trio_clock: MockClock, nursery: trio.Nursery) -> None:
        self.seed = seed
        self.cluster_id = CLUSTER_ID
        self.trio_clock = trio_clock
        self.nursery = nursery
        self.lines: list[str] = []
        self.failure: BaseException | None = None
        self.timeline = Timeline(self.check)
        self.network = Network(self.timeline, Random(f"{seed} network"), self.note)
        self.ledger = Ledger()
        self.fsyncs = False
        """Whether each record is fsynced before it is acknowledged."""
        self._someone_lacks_records = False
        self.partitions: Sequence[Partition] = ()
        self.admin: Admin | None = None
        self.nodes: list[Node] = []
        self.watch = Watch(self)
        self.stillness = Stillness(self)

    def add_nodes(self, count: int, extra: Mapping[str, str]) -> None:
        """Node 1 is the controller, too; none is started."""
        self.nodes += [
            Node(self, number, {**SETTINGS, **settings_of(number, count), **extra})
            for number in range(1, count + 1)
        ]

    def note(self, line: str) -> None:
        """Something has happened."""
        self.lines.append(f"{trio.current_time():.6f} {line}")

    def fail(self, error: BaseException, cause: BaseException | None = None) -> None:
        """End the simulation."""
        if self.failure is None:
            if cause is not None:
                error.__cause__ = cause
            self.failure = error
            self.note(f"FAILED: {error}")
            self.nursery.cancel_scope.cancel()

    def check(self) -> None:
        """What must hold after every event."""
        if self.failure is None:
            try:
                self.watch.check()
            except Exception as error:
                self.fail(error)

    @property
    def now_ms(self) -> int:
        return START_MS + int(trio.current_time() * 1000)

    def note_lost_power(self) -> None:
        """Somebody may have lost records: nobody else may stop uncleanly for a while."""
        if not self.fsyncs:
            self._someone_lacks_records = True
            for node in self.nodes:
                node.disk.refuse_nothing()

    def may_be_killed(self) -> bool:
        """Whether a process may stop uncleanly, if its machine goes on."""
        self._someone_lacks_records = not self.nobody_lacks_records
        return not self._someone_lacks_records

    @property
    def nobody_lacks_records(self) -> bool:
        """Whether nobody has lost any with its power, or everybody has all of them again."""
        return not self._someone_lacks_records or self.all_are_in_sync()

    def all_are_in_sync(self) -> bool:
        """Whether all nodes run, and none of their replicas is out of sync."""
        if not all(node.is_ready for node in self.nodes):
            return False
        services = self.nodes[0].services
        assert services is not None
        return all(
            len(partition.isr) == len(partition.replicas)
            for topic in services.image.topics.values()
            for partition in topic.partitions
        )

    @property
    def brokers(self) -> Sequence[str]:
        """The hosts of all nodes."""
        return [node.host for node in self.nodes]


def settings_of(number: int, count: int) -> dict[str, str]:
    """What one node is started with beside the settings of all."""
    host = f"10.0.0.{number}"
    broker = f"PLAINTEXT://{host}:{BROKER_PORT}"
    settings = {
        "node.id": str(number),
        "controller.listener.names": "CONTROLLER",
        "advertised.listeners": broker,
    }
    if number == 1:
        settings["process.roles"] = "broker,controller"
        settings["listeners"] = f"{broker},CONTROLLER://{host}:{CONTROLLER_PORT}"
    else:
        settings["process.roles"] = "broker"
        settings["listeners"] = broker
    if count > 1:
        settings["controller.quorum.bootstrap.servers"] = f"10.0.0.1:{CONTROLLER_PORT}"
    return settings
