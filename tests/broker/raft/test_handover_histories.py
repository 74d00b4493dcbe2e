"""Two controllers with everything that can happen to them, by chance: each history is one seed."""

from random import Random

import pytest
import trio

from broker.raft.voter_changes import KRaftVersions
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from tests.broker.raft.test_handover import Pair, Voting, made, make
from tests.broker.raft.wires import Wires

SEEDS = range(12)

STEPS = 60

MAKE_SECONDS = 3.0


class History:
    """What was done, by one chance, and what must hold all the time."""

    def __init__(self, pair: Pair, wires: Wires, seed: int) -> None:
        self.pair = pair
        self.wires = wires
        self.chance = Random(seed)
        self.nodes = [pair.first, pair.second]
        self.down: set[int] = set()
        self.leaders: dict[int, int] = {}
        """By epoch."""
        self.acknowledged: list[str] = []
        self.said: list[str] = []

    def check(self) -> None:
        """One leader an epoch."""
        for node in self.nodes:
            if node.services.node_id not in self.down and node.quorum.is_leader:
                leader = self.leaders.setdefault(node.quorum.epoch, node.services.node_id)
                assert leader == node.services.node_id, f"two lead epoch {node.quorum.epoch}"

    def active(self) -> Voting | None:
        found = [
            node
            for node in self.nodes
            if node.services.node_id not in self.down and node.controller.is_active
        ]
        return self.chance.choice(found) if found else None

    async def step(self) -> None:
        action = self.chance.choice(
            [
                self.wait,
                self.wait,
                self.cut,
                self.crash,
                self.start,
                self.make,
                self.make,
                self.add,
                self.remove,
            ]
        )
        self.said.append(f"{trio.current_time():.2f} {action.__name__}")
        await action()
        self.check()

    async def wait(self) -> None:
        await trio.sleep(self.chance.random() * 4)

    async def cut(self) -> None:
        """Let a line break, or mend."""
        self.wires.cut ^= {self.chance.choice(self.nodes).at}

    async def crash(self) -> None:
        node = self.chance.choice(self.nodes)
        if node.services.node_id in self.down:
            return
        self.down.add(node.services.node_id)
        with_power = self.chance.random() < 0.5
        self.said.append(f"    {node.services.node_id} {'keeps' if with_power else 'loses'} power")
        del self.wires.nodes[node.at]
        node.end()
        if with_power:
            node.kill()
        else:
            node.lose_power(self.chance)

    async def start(self) -> None:
        if self.down:
            node_id = self.chance.choice(sorted(self.down))
            self.down.remove(node_id)
            self.pair.start(self.nodes[node_id - 1])
            await trio.sleep(0.001)  # until it can be asked

    async def make(self) -> None:
        """A note in the metadata, which may not be acknowledged, or after it was made."""
        name = f"t{len(self.said)}"
        if await self.is_noted(name):
            self.said.append(f"    {name}")
            self.acknowledged.append(name)

    async def is_noted(self, name: str) -> bool:
        node = self.active()
        if node is None:
            return False
        try:
            with trio.move_on_after(MAKE_SECONDS) as scope:
                await make(node, name)
        except KafkaError:
            return False
        return not scope.cancelled_caught

    async def add(self) -> None:
        await self.change_voters(is_new=True)

    async def remove(self) -> None:
        await self.change_voters(is_new=False)

    async def change_voters(self, *, is_new: bool) -> None:
        leader, node = self.active(), self.chance.choice(self.nodes)
        if leader is None:
            return
        change = self.pair.add if is_new else self.pair.remove
        with trio.move_on_after(MAKE_SECONDS):
            code = await change(node, leader)
            self.said.append(f"    {node.services.node_id}: {code.name}")

    def states(self) -> list[str]:
        """How the nodes stand, for who reads of a failure."""
        return [
            f"node {node.services.node_id}: epoch {quorum.epoch}, leader {quorum.leader_id}, "
            f"voters {[voter.id for voter in quorum.voters]}, log of epoch {quorum.log.last_epoch} up to "
            f"{quorum.log.end_offset}, committed {quorum.high_watermark}, published {node.image.offset}"
            for node in self.nodes
            for quorum in (node.quorum,)
        ]

    async def finish(self) -> None:
        """Let everything be well again, and find all that was acknowledged."""
        self.wires.cut.clear()
        while self.down:
            await self.start()
        with trio.fail_after(60):
            while not await self.is_noted("last"):  # noqa: ASYNC110  # as in ``Pair.until``
                await trio.sleep(0.1)
        await self.pair.until(lambda: all("last" in made(node) for node in self.nodes))
        self.check()
        for node in self.nodes:
            assert set(self.acknowledged) <= made(node)
        end = min(node.quorum.high_watermark for node in self.nodes)
        logs = [list(node.quorum.log.batches(node.quorum.log.log.log_start, end)) for node in self.nodes]
        shared = min(len(log) for log in logs)
        assert [bytes(batch.data) for batch in logs[0][-shared:]] == [
            bytes(batch.data) for batch in logs[1][-shared:]
        ]


@pytest.mark.parametrize("seed", SEEDS)
async def test_a_history(seed: int, monkeypatch: pytest.MonkeyPatch, autojump_clock: object) -> None:
    async def kraft_versions(host: str, port: int) -> KRaftVersions:
        return KRaftVersions((0, 1), ErrorCode.NONE)

    monkeypatch.setattr("broker.raft.voter_changes.ask_kraft_versions", kraft_versions)
    wires = Wires(monkeypatch)
    async with trio.open_nursery() as nursery:
        history = History(Pair(wires, nursery), wires, seed)
        try:
            await trio.sleep(0.6)
            for _ in range(STEPS):
                await history.step()
            await history.finish()
        except BaseException as error:
            error.add_note("\n".join([f"seed {seed}:", *history.said, *history.states()]))
            raise
        nursery.cancel_scope.cancel()
