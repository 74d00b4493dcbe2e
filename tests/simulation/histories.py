"""Histories: what befalls a cluster and when, made from a seed, played, and cut short if one fails."""

from collections.abc import Sequence
from random import Random
from typing import Final, NamedTuple

import trio
import trio._core._run as trio_run
from trio.testing import MockClock

from tests.simulation.clients import Admin, Committer, Producer, Reader, TransactionalProducer
from tests.simulation.faults import FAULTS, Fault
from tests.simulation.ledger import Partition
from tests.simulation.world import World

TOPIC: Final = "t"

PEACE_SECONDS: Final = 60.0
"""Within this time after the last fault everything has to be as it should."""

FAULT_SECONDS: Final = 8.0
"""How long faults happen."""

BRIEF_SECONDS: Final = 1.5
"""The same where there is little time: a session outlasts it, so that most elections come in peace."""

FAULTS_MAX: Final = 6

LATER_FAULTS_MAX: Final = 2
"""Of the kinds that came later."""

FSYNCS_SHARE: Final = 0.25

FOUR_NODES_SHARE: Final = 0.25

REPLICAS: Final = 3

SOMETIMES: Final[tuple[dict[str, str], ...]] = (
    {
        "metadata.log.max.record.bytes.between.snapshots": "1500",
        "internal.metadata.log.segment.bytes": "2000",
        "internal.metadata.max.batch.size.in.bytes": "2000",
    },
    {"leader.imbalance.check.interval.seconds": "1"},
)
"""Settings that half of the histories have."""

SMALL_SEGMENTS: Final[dict[str, str]] = {"internal.segment.bytes": "1500", "index.interval.bytes": "100"}

TRIES_TO_SHORTEN: Final = 60


class History(NamedTuple):
    """All of it follows from these."""

    seed: str
    nodes: int
    seconds: float
    """How long faults happen."""
    fsyncs: bool
    """Whether each record is fsynced: then power may be lost at any time."""
    settings: tuple[tuple[str, str], ...]
    """Of all nodes, beside those that all histories have."""
    topic_settings: tuple[tuple[str, str], ...]
    faults: tuple[Fault, ...]

    def __str__(self) -> str:
        lines = [
            f"history {self.seed!r}, {self.nodes} nodes, {self.seconds} s, fsyncs {self.fsyncs}",
            *map(str, self.faults),
        ]
        return "\n    ".join(lines)


class Outcome(NamedTuple):
    """``failure`` is None if all is well."""

    failure: BaseException | None
    lines: Sequence[str]
    events: int
    acknowledged: int


def make_history(
    seed: str, *, nodes: int = 3, is_brief: bool = False, has_later_kinds: bool = True
) -> History:
    """The history of this seed, with or without the kinds of faults that came later."""
    seconds = BRIEF_SECONDS if is_brief else FAULT_SECONDS
    chance = Random(f"{seed} history")
    fsyncs = nodes == 1 or chance.random() < FSYNCS_SHARE
    if nodes == 3 and not is_brief and chance.random() < FOUR_NODES_SHARE:
        nodes = 4
    settings = [setting for some in SOMETIMES if chance.random() < 0.5 for setting in some.items()]
    if fsyncs:
        settings.append(("log.flush.interval.messages", "1"))
    topic_settings = tuple(SMALL_SEGMENTS.items()) if chance.random() < 0.5 else ()
    share = 0.5 if is_brief else 1
    faults = _faults(chance, round(FAULTS_MAX * share), seconds, nodes, came_later=False)
    if has_later_kinds:
        chance = Random(f"{seed} later kinds")
        faults += _faults(chance, round(LATER_FAULTS_MAX * share), seconds, nodes, came_later=True)
    return History(seed, nodes, seconds, fsyncs, tuple(settings), topic_settings, tuple(sorted(faults)))


def _faults(chance: Random, count_max: int, seconds: float, nodes: int, *, came_later: bool) -> list[Fault]:
    names = [name for name, kind in FAULTS.items() if kind.came_later == came_later]
    weights = [FAULTS[name].weight for name in names]
    faults = []
    for _ in range(chance.randint(0, count_max)):
        name = chance.choices(names, weights)[0]
        at = round(chance.uniform(0.1, seconds), 3)
        faults.append(Fault(at, name, chance.randint(1, nodes), chance.getrandbits(32)))
    return faults


def play(history: History) -> Outcome:
    """Let it happen."""
    trio_run._ALLOW_DETERMINISTIC_SCHEDULING = True  # type: ignore[misc]
    trio_run._r.seed(f"{history.seed} scheduler")
    clock = MockClock(autojump_threshold=0)
    return trio.run(_play, history, clock, clock=clock)


async def _play(history: History, clock: MockClock) -> Outcome:
    world: World | None = None
    async with trio.open_nursery() as nursery:
        world = World(history.seed, clock, nursery)
        trio.lowlevel.add_instrument(world.stillness)
        nursery.start_soon(world.timeline.run)
        nursery.start_soon(_direct, history, world)
    assert world is not None
    return Outcome(world.failure, world.lines, world.timeline.events, len(world.ledger.acknowledged))


async def _direct(history: History, world: World) -> None:
    try:
        await _acts(history, world)
    except Exception as error:
        world.fail(_leaf(error))
    world.nursery.cancel_scope.cancel()


def _leaf(error: BaseException) -> BaseException:
    """What went wrong, without the nurseries that it went through."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


async def _acts(history: History, world: World) -> None:
    replicas = min(history.nodes, REPLICAS)
    settings = {"min.insync.replicas": str(min(replicas, 2)), **dict(history.settings)}
    world.fsyncs = history.fsyncs
    world.add_nodes(history.nodes, settings)
    for node in world.nodes:
        node.start()
    partitions: list[Partition] = [(TOPIC, 0), (TOPIC, 1)]
    world.partitions = partitions
    world.admin = Admin(world, 9, "admin")
    with trio.fail_after(PEACE_SECONDS):
        await world.admin.create_topic(
            TOPIC, partitions=len(partitions), replicas=replicas, settings=dict(history.topic_settings)
        )
    committer = Committer(world, 5, partitions[0])
    producers = [Producer(world, 1, partitions), TransactionalProducer(world, 2, partitions)]
    readers = [Reader(world, 3 + number, partition) for number, partition in enumerate(partitions)]
    async with trio.open_nursery() as reading:
        for reader in readers:
            reading.start_soon(reader.run)
        async with trio.open_nursery() as producing:
            for run in (*(producer.run for producer in producers), committer.run):
                producing.start_soon(run)
            start = trio.current_time()
            async with trio.open_nursery() as mending:
                for fault in history.faults:
                    await trio.sleep_until(start + fault.at)
                    world.note(f"fault: {fault}")
                    FAULTS[fault.name].begin(world, fault, mending)
                await trio.sleep_until(start + history.seconds)
                for node in world.nodes:
                    node.disk.leave_alone()
                mending.cancel_scope.cancel()
            world.note("peace")
            world.network.heal()
            for node in world.nodes:
                await node.begin_peace()
            for producer in producers:
                producer.is_stopping = True
            committer.is_stopping = True
            producing.cancel_scope.deadline = trio.current_time() + PEACE_SECONDS
        if producing.cancel_scope.cancelled_caught:
            raise AssertionError(f"liveness: {PEACE_SECONDS} s after the last fault nothing can be produced")
        with trio.move_on_after(PEACE_SECONDS) as waiting:
            await _everything_is_read(world, readers)
        if waiting.cancelled_caught:
            raise AssertionError(f"liveness: {PEACE_SECONDS} s later the readers lack something")
        while not await committer.look():
            await committer.back_off()
        world.check()
        world.watch.check_at_the_end(readers)
        reading.cancel_scope.cancel()


async def _everything_is_read(world: World, readers: Sequence[Reader]) -> None:
    is_read = False
    while not is_read:
        await trio.sleep(0.2)
        is_read = world.watch.everything_is_read(readers)


def shortest(history: History, outcome: Outcome) -> tuple[History, Outcome]:
    """The same without the faults that do not matter, as far as that can be found out soon."""
    tries = TRIES_TO_SHORTEN
    changed = True
    while changed and tries:
        changed = False
        for index in range(len(history.faults)):
            if not tries:
                break
            tries -= 1
            shorter = history._replace(faults=history.faults[:index] + history.faults[index + 1 :])
            found = play(shorter)
            if found.failure is not None and type(found.failure) is type(outcome.failure):
                history, outcome = shorter, found
                changed = True
                break
    return history, outcome
