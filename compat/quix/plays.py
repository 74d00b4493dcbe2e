"""What applications of Quix Streams make of records, whoever comes, goes and crashes meanwhile."""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from compat.python_confluent_kafka.client import ConfluentKafka
from compat.quix.program import CLIENT, Process
from compat.scenarios.python.checks import expect
from compat.scenarios.python.client import Record, TakenRecord
from compat.scenarios.python.records import START_MS
from compat.scenarios.python.registry import Play
from compat.scenarios.python.stage import Stage, partitions_of
from compat.waiting import wait_until

PARTITIONS: Final = 2
KEYS: Final = ("ottla", "elli", "valli", "franz")
PATIENCE_SECONDS: Final = 80.0


class QuixStreams(ConfluentKafka):
    """What applications read is sent, and what they write is taken, by librdkafka."""

    name = CLIENT

    def __init__(self, version: str) -> None:
        self.version = version


class Scene:
    """The topics and the group of a scenario, and its applications."""

    def __init__(self, stage: Stage, folder: Path) -> None:
        self.stage = stage
        self.group = stage.new_name("group")
        self.input = stage.topic(PARTITIONS)
        self.output = stage.topic(PARTITIONS)
        partitions = partitions_of(self.output, PARTITIONS)
        self._reader = stage.consumer(committed_only=True)
        self._reader.assign(partitions)
        self._reader.seek_to_beginning(partitions)
        self._folder = folder
        self._running = ExitStack()
        self._sent: Counter[str] = Counter()
        self.taken: list[TakenRecord] = []

    def __enter__(self) -> "Scene":
        return self

    def __exit__(self, *_: object) -> None:
        self._running.close()

    def start(self, topology: str = "counting", *, exactly_once: bool = False) -> Process:
        """An application that has no state yet."""
        process = Process(
            {
                "address": self.stage.address,
                "group": self.group,
                "in": self.input,
                "out": self.output,
                "folder": str(self._folder / self.stage.new_name("state")),
                "guarantee": "exactly-once" if exactly_once else "at-least-once",
                "producer": {"transaction.timeout.ms": 3000} if exactly_once else {},
                "commit_interval_seconds": 2.0 if topology == "hanging" else 0.1,
                "topology": topology,
            }
        )
        self._running.callback(process.stop)
        return process

    def send(self, times: int) -> None:
        """So many records with each key, each key on a partition of its own."""
        records = [
            Record(key.encode(), key.encode(), partition=number % PARTITIONS)
            for _ in range(times)
            for number, key in enumerate(KEYS)
        ]
        self.stage.send(self.input, records)
        self._sent.update(dict.fromkeys(KEYS, times))

    def look(self) -> int:
        self.taken += self._reader.poll(0.1)
        return len(self.taken)

    def wait_for(self, count: int) -> None:
        wait_until(
            lambda: self.look() >= count, f"{count} records come out", patience_seconds=PATIENCE_SECONDS
        )

    def by_key(self) -> dict[str, list[int]]:
        """What came out."""
        found: defaultdict[str, list[int]] = defaultdict(list)
        for record in self.taken:
            found[(record.key or b"").decode()].append(json.loads(record.value or b"null"))
        return dict(found)

    def expect_counts(self) -> None:
        """Wait until all that was sent is counted."""
        self.wait_for(self._sent.total())
        self.look()
        wanted = {key: list(range(1, times + 1)) for key, times in self._sent.items()}
        expect(self.by_key(), wanted, "counts of keys")

    def topics_like(self, *words: str) -> Sequence[str]:
        """Topics of the application whose names begin alike."""
        start = "__".join(words)
        return [topic for topic in self.stage.admin.list_topics() if topic.startswith(start)]


def counts(scene: Scene) -> None:
    scene.send(10)
    process = scene.start()
    scene.expect_counts()
    process.stop()
    (changelog,) = scene.topics_like("changelog", scene.group)
    admin = scene.stage.admin
    expect(len(admin.describe_topic(changelog)), PARTITIONS, "partitions of the changelog")
    settings = admin.describe_settings("topic", changelog)
    expect(settings["cleanup.policy"], "compact", "cleanup policy of the changelog")
    places = dict.fromkeys(partitions_of(scene.input, PARTITIONS), 20)
    committed = admin.group_offsets(scene.group)
    expect({partition: each.offset for partition, each in committed.items()}, places, "committed offsets")


def restores(scene: Scene) -> None:
    scene.send(5)
    first = scene.start()
    scene.expect_counts()
    first.stop()
    scene.send(5)
    scene.start()
    scene.expect_counts()


def members(scene: Scene) -> list[int]:
    """How many partitions of the input each member of the group has; those of the changelog go with them."""
    described = scene.stage.admin.describe_group(scene.group)
    return sorted(
        sum(partition.topic == scene.input for partition in member.assigned or ())
        for member in described.members
    )


def wait_for_members(scene: Scene, wanted: list[int]) -> None:
    wait_until(lambda: members(scene) == wanted, f"members have {wanted}", patience_seconds=PATIENCE_SECONDS)


def shares(scene: Scene) -> None:
    scene.start()
    scene.send(5)
    scene.expect_counts()
    wait_for_members(scene, [2])
    second = scene.start()
    wait_for_members(scene, [1, 1])
    scene.send(5)
    scene.expect_counts()
    second.stop()
    wait_for_members(scene, [2])
    scene.send(5)
    scene.expect_counts()


def regroups(scene: Scene) -> None:
    values = ("red", "blue", "red", "green", "red")
    scene.stage.send(
        scene.input,
        [
            Record(value.encode(), b"key%d" % number, partition=number % 2)
            for number, value in enumerate(values)
        ],
    )
    scene.start("regrouping")
    scene.wait_for(len(values))
    expect(scene.by_key(), {"red": [1, 2, 3], "blue": [1], "green": [1]}, "counts of values")
    (repartition,) = scene.topics_like("repartition", scene.group)
    expect(
        len(scene.stage.admin.describe_topic(repartition)), PARTITIONS, "partitions of the repartition topic"
    )


def windows(scene: Scene) -> None:
    base = START_MS - START_MS % 10_000
    scene.start("windows")

    def send(*seconds: int) -> None:
        records = [Record(b"x", b"key", timestamp_ms=base + 1000 * each, partition=0) for each in seconds]
        scene.stage.send(scene.input, records)

    send(0, 1, 9, 9, 10, 12)
    scene.wait_for(1)
    send(25)
    scene.wait_for(2)
    scene.look()
    expect(scene.by_key(), {"key": [4, 2]}, "counts of windows")


def crash(scene: Scene) -> None:
    everything = scene.stage.consumer()
    everything.assign(partitions_of(scene.output, PARTITIONS))
    everything.seek_to_beginning(partitions_of(scene.output, PARTITIONS))
    scene.send(2)
    process = scene.start("hanging", exactly_once=True)
    scene.expect_counts()
    scene.send(3)
    seen: list[TakenRecord] = []

    def see_more_than_is_committed() -> bool:
        seen.extend(everything.poll(0.1))
        return len(seen) >= scene.look() + 2

    wait_until(see_more_than_is_committed, "it hangs amid a transaction", patience_seconds=PATIENCE_SECONDS)
    process.kill()
    scene.start(exactly_once=True)
    scene.expect_counts()


BEHAVIOURS: Final[dict[str, Callable[[Scene], None]]] = {
    "counts": counts,
    "restores": restores,
    "shares": shares,
    "regroups": regroups,
    "windows": windows,
    "crash": crash,
}
"""By the names of ``scenarios.toml``."""


def plays(folder: Path) -> dict[str, Play]:
    """A function for each scenario; states of applications are kept in the folder."""

    def play(behaviour: Callable[[Scene], None]) -> Play:
        def play_on(stage: Stage) -> None:
            with Scene(stage, folder) as scene:
                behaviour(scene)

        return play_on

    return {name: play(behaviour) for name, behaviour in BEHAVIOURS.items()}
