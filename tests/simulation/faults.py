"""What can befall a cluster."""

import errno
from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Final, NamedTuple

import trio

if TYPE_CHECKING:
    from tests.simulation.node import Node
    from tests.simulation.world import World


class Fault(NamedTuple):
    """One of ``FAULTS``; ``node`` is whom it befalls, and the rest comes from its own seed."""

    at: float
    name: str
    node: int
    seed: int

    def __str__(self) -> str:
        return f"{self.at:6.3f} s: {self.name}, node {self.node} ({self.seed})"


Begin = Callable[["World", Fault, trio.Nursery], None]


class Kind(NamedTuple):
    """``weight`` says how often it happens, beside the others."""

    begin: Begin
    weight: int
    came_later: bool
    """Chosen on its own, so that seeds from before its time show what they showed."""


FAULTS: Final[dict[str, Kind]] = {}


def fault(
    weight: int, *, came_later: bool = False
) -> Callable[[Callable[["World", "Node", Random, trio.Nursery], None]], None]:
    def add(happen: Callable[["World", "Node", Random, trio.Nursery], None]) -> None:
        def begin(world: "World", fault: Fault, nursery: trio.Nursery) -> None:
            happen(world, world.nodes[fault.node - 1], Random(fault.seed), nursery)

        FAULTS[happen.__name__] = Kind(begin, weight, came_later)

    return add


async def start_later(node: "Node", seconds: float) -> None:
    await trio.sleep(seconds)
    node.start()


def absence(chance: Random) -> float:
    """For how many seconds a node is away: for a moment, or until it is missed, or for long."""
    return chance.choice((0.01, 0.5, 3.0)) * chance.uniform(0.5, 1.5)


@fault(3)
def kill(world: "World", node: "Node", chance: Random, nursery: trio.Nursery) -> None:
    """As ``kill -9``; it comes back at once, or later."""
    kill_if_it_may(world, node, chance, nursery)


@fault(3)
def kill_while_it_writes(world: "World", node: "Node", chance: Random, nursery: trio.Nursery) -> None:
    """The same in the middle of what it does with its disk."""
    node.disk.interrupt(chance.randint(1, 40), lambda: kill_if_it_may(world, node, chance, nursery))


def kill_if_it_may(world: "World", node: "Node", chance: Random, nursery: trio.Nursery) -> None:
    if world.may_be_killed():
        node.kill()
        nursery.start_soon(start_later, node, absence(chance))
    else:
        world.note("to be killed now would be too much")


@fault(2)
def lose_power(world: "World", node: "Node", chance: Random, nursery: trio.Nursery) -> None:
    """Its machine stops, and forgets what was not fsynced: only when nobody else lacks anything."""
    lose_power_if_it_may(world, node, chance, nursery)


@fault(2)
def lose_power_while_it_writes(world: "World", node: "Node", chance: Random, nursery: trio.Nursery) -> None:
    """The same in the middle of what it does with its disk."""
    node.disk.interrupt(chance.randint(1, 40), lambda: lose_power_if_it_may(world, node, chance, nursery))


def lose_power_if_it_may(world: "World", node: "Node", chance: Random, nursery: trio.Nursery) -> None:
    if world.fsyncs or world.all_are_in_sync():
        node.lose_power(chance)
        world.note_lost_power()
        nursery.start_soon(start_later, node, absence(chance))
    else:
        world.note("to lose power now would be too much")


@fault(2)
def stop(world: "World", node: "Node", chance: Random, nursery: trio.Nursery) -> None:
    """A graceful restart."""

    async def restart() -> None:
        await node.stop()
        await trio.sleep(chance.uniform(0, 1))
        node.start()

    nursery.start_soon(restart)


@fault(3)
def pause(world: "World", node: "Node", chance: Random, nursery: trio.Nursery) -> None:
    """Nothing gets to or from it for a while."""

    async def resume() -> None:
        await trio.sleep(chance.choice((0.3, 3.0)) * chance.uniform(0.5, 1.5))
        world.network.resume(node.host)

    world.network.pause(node.host)
    nursery.start_soon(resume)


@fault(4)
def part(world: "World", node: "Node", chance: Random, nursery: trio.Nursery) -> None:
    """It is parted from another node, in one direction or both."""
    other = chance.choice(world.nodes)
    if other is node:
        return
    ways = [(node.host, other.host), (other.host, node.host)][: chance.randint(1, 2)]

    async def mend() -> None:
        await trio.sleep(chance.choice((0.3, 3.0)) * chance.uniform(0.5, 1.5))
        for way in ways:
            world.network.unblock(*way)

    for way in ways:
        world.network.block(*way)
    nursery.start_soon(mend)


@fault(5)
def cut(world: "World", node: "Node", chance: Random, nursery: trio.Nursery) -> None:
    """Its connections to another host break, at once or while something is under way."""
    hosts = [*world.brokers, *(f"10.0.1.{number}" for number in range(1, 7))]
    if (sends := chance.randrange(20)) == 0:
        world.network.cut(node.host, chance.choice(hosts))
    else:
        world.network.cut_later(node.host, chance.choice(hosts), sends)


@fault(3)
def reassign(world: "World", node: "Node", chance: Random, nursery: trio.Nursery) -> None:
    """A partition gets other replicas, or some in another order; two or three of them."""
    if world.admin is not None and len(world.nodes) > 1:
        replicas = chance.sample([each.id for each in world.nodes], chance.randint(2, 3))
        nursery.start_soon(world.admin.reassign, chance.choice(world.partitions), replicas)


@fault(1)
def refuse(world: "World", node: "Node", chance: Random, nursery: trio.Nursery) -> None:
    """Its disk refuses an operation."""
    if not world.may_be_killed():
        return
    # What a failed fsync should have written is lost for good, which is as if power had failed.
    operation = chance.choice(("write", "open", "rename", "sync" if world.fsyncs else "write"))
    node.disk.refuse(operation, errno.EIO, after=chance.randrange(20))

    async def come_back() -> None:
        await trio.sleep(2)
        node.disk.leave_alone()
        node.start()

    nursery.start_soon(come_back)


@fault(3, came_later=True)
def suspend(world: "World", node: "Node", chance: Random, nursery: trio.Nursery) -> None:
    """Its process stands still for a while, as with SIGSTOP."""
    nursery.start_soon(node.suspend, chance.choice((0.3, 3.0)) * chance.uniform(0.5, 1.5))


@fault(1, came_later=True)
def fill_disk(world: "World", node: "Node", chance: Random, nursery: trio.Nursery) -> None:
    """Its disk takes only so much more, and then nothing, until somebody makes room."""
    if not world.may_be_killed():  # where the metadata do not fit, the process ends
        return
    node.disk.fill(chance.choice((0, 100, 1000, 5000)))

    async def make_room() -> None:
        await trio.sleep(chance.uniform(0.5, 4))
        node.disk.capacity = None
        node.start()

    nursery.start_soon(make_room)
