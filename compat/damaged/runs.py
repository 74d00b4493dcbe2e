"""Brokers started on damaged copies of one directory, and what was seen of them."""

import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from compat.broker_process import BrokerProcess
from compat.damaged.damages import CLEAN_SHUTDOWN, RECOVERY_POINTS, Damage, Replica, all_damages
from compat.damaged.examine import Seen, visiting
from compat.oracle.kafka import KafkaNode

RECORDED: Final = Path(__file__).resolve().parent / "recorded.json"

DOES_NOT_START: Final = "does not start"

Results = dict[str, Any]
"""What was seen, by the name of the damage; a text if the broker did not start."""


class Run(Protocol):
    """A broker on the directory of a node."""

    address: str

    def __init__(self, node: KafkaNode) -> None: ...

    def start(self) -> None:
        """Raises RuntimeError if it ends instead."""

    def end(self) -> None: ...


class Kafka:
    """Apache Kafka itself."""

    def __init__(self, node: KafkaNode) -> None:
        self._node = node
        self.address = node.bootstrap

    def start(self) -> None:
        self._node.start()

    def end(self) -> None:
        self._node.kill()


class Ottla:
    """Our broker, with the identity and the addresses of the node."""

    def __init__(self, node: KafkaNode) -> None:
        self._process = ottla_on(node)
        self.address = node.bootstrap

    def start(self) -> None:
        self._process.start()

    def end(self) -> None:
        if self._process.is_running:
            self._process.kill()


def ottla_on(node: KafkaNode) -> BrokerProcess:
    broker = BrokerProcess(node.folder / "ottla", node.settings)
    broker.data = node.data
    broker.address = node.bootstrap
    return broker


def examine(folder: Path, kind: type[Run], damages: Sequence[Damage] | None = None) -> Results:
    """Damage copies of a directory, start a broker on each, and look at every partition."""
    damages = all_damages() if damages is None else damages
    together = [
        [damage for damage in damages if not damage.is_alone and damage.recovery_point is None],
        [damage for damage in damages if not damage.is_alone and damage.recovery_point is not None],
    ]
    results: Results = {}
    for number, group in enumerate(together):
        topics = {damage.name: f"t{place}" for place, damage in enumerate(group)}
        original = folder / f"original-{number}"
        _make(original, list(topics.values()))
        results |= _try_copies(original, kind, group, topics)
    original = folder / "original-alone"
    _make(original, ["t0"])
    for damage in damages:
        if damage.is_alone:
            results |= _try_copies(original, kind, [damage], {damage.name: "t0"})
    return {damage.name: results[damage.name] for damage in damages}


def _try_copies(original: Path, kind: type[Run], group: Sequence[Damage], topics: dict[str, str]) -> Results:
    """All of a group together, in copies without those that keep the broker from starting."""
    results: Results = {}
    left = list(group)
    while left:
        copy = original.with_name("copy")
        shutil.copytree(original, copy)
        try:
            results |= _try(copy, kind, left, topics)
            left = []
        except RuntimeError as error:
            kept_it = _culprit(str(error), left, topics)
            results[kept_it.name] = DOES_NOT_START
            left.remove(kept_it)
        finally:
            shutil.rmtree(copy)
    return results


def _culprit(said: str, group: Sequence[Damage], topics: dict[str, str]) -> Damage:
    """The damage that kept a broker from starting, which is in the last line that names a partition."""
    if len(group) == 1:
        return group[0]
    named = {topics[damage.name]: damage for damage in group}
    for topic in reversed(re.findall(r"\b(t\d+)-0\b", said)):
        if topic in named:
            return named[topic]
    raise RuntimeError(f"one of these damages should stand alone: {said}")


def _make(folder: Path, topics: list[str]) -> None:
    node = KafkaNode(folder)
    process = ottla_on(node)
    process.start()
    try:
        with visiting(node.bootstrap) as visitor:
            visitor.make(topics)
    finally:
        assert process.stop() == 0


def _try(folder: Path, kind: type[Run], group: Sequence[Damage], topics: dict[str, str]) -> Results:
    """Raises RuntimeError if the broker does not start."""
    node = KafkaNode(folder)
    for damage in group:
        replica = Replica(node.data, topics[damage.name])
        if damage.recovery_point is not None:
            (node.data / CLEAN_SHUTDOWN).unlink(missing_ok=True)
            replica.checkpoint(RECOVERY_POINTS, damage.recovery_point)
        damage.apply(replica)
    run = kind(node)
    try:
        run.start()
        with visiting(run.address) as visitor:
            return {damage.name: visitor.look(topics[damage.name]) for damage in group}
    finally:
        run.end()


def read() -> Results:
    """What Kafka was recorded to do."""
    recorded: Results = json.loads(RECORDED.read_text(encoding="utf-8"))
    return recorded


def write(results: Results) -> None:
    RECORDED.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


class Difference(NamedTuple):
    """A fact in which Ottla differs from Kafka."""

    damage: str
    fact: str
    seen: Any
    recorded: Any

    def __str__(self) -> str:
        return f"{self.damage}: {self.fact} is {self.seen}, not {self.recorded}"


def differences(recorded: Results, results: Results) -> list[Difference]:
    """All of them, explained or not."""
    found = []
    for name, expected in recorded.items():
        seen = json.loads(json.dumps(results.get(name)))
        if not isinstance(expected, dict) or not isinstance(seen, dict):
            if isinstance(expected, dict) or isinstance(seen, dict):
                found.append(Difference(name, "start", _short(seen), _short(expected)))
            continue
        found += [
            Difference(name, fact, seen.get(fact), value)
            for fact, value in expected.items()
            if seen.get(fact) != value
        ]
    return found


def _short(seen: Seen | str | None) -> str:
    return "starts" if isinstance(seen, dict) else str(seen)
