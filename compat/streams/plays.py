"""What applications of Kafka Streams make of records, whoever comes, goes and crashes meanwhile."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import cycle, islice
from pathlib import Path
from typing import Final

from compat.python_confluent_kafka.client import ConfluentKafka
from compat.scenarios.python.checks import expect, expect_subset, expect_that
from compat.scenarios.python.client import Record, TakenRecord
from compat.scenarios.python.records import START_MS
from compat.scenarios.python.registry import Play
from compat.scenarios.python.stage import Stage, partitions_of
from compat.streams.catalogue import PROTOCOLS
from compat.streams.program import CLIENT, PATIENCE_SECONDS, Applications, Instance, running_applications
from compat.waiting import wait_until

PARTITIONS: Final = 2
WORDS: Final = [f"word{number}" for number in range(12)]


class KafkaStreams(ConfluentKafka):
    """What goes into applications and comes out of them is sent and taken by librdkafka."""

    name = CLIENT

    def __init__(self, version: str) -> None:
        self.version = version


class Application:
    """One application on the stage, with its topics ``-in`` and ``-out``."""

    def __init__(self, stage: Stage, applications: Applications, folder: Path, protocol: str) -> None:
        self.stage = stage
        self.name = stage.new_name("application")
        self.protocol = protocol
        self._applications = applications
        self._folder = folder
        self._running = ExitStack()

    def __enter__(self) -> "Application":
        return self

    def __exit__(self, *_: object) -> None:
        self._running.close()

    def topic(self, kind: str, partition_count: int = PARTITIONS) -> str:
        return self.stage.topic(partition_count, name=f"{self.name}-{kind}")

    @property
    def input(self) -> str:
        return f"{self.name}-in"

    def start(
        self,
        topology: str,
        settings: dict[str, str] | None = None,
        *,
        when_it_fails: str = "SHUTDOWN_CLIENT",
        applications: Applications | None = None,
    ) -> Instance:
        """One more instance, which leaves at the end; one of another process ends with that."""
        name = self.stage.new_name("instance")
        told = {
            "bootstrap.servers": self.stage.address,
            "group.protocol": self.protocol,
            "producer.transaction.timeout.ms": "3000",
            **(settings or {}),
        }
        if self.protocol == "classic":
            told |= {"consumer.session.timeout.ms": "3000", "consumer.heartbeat.interval.ms": "300"}
        instance = Instance(
            applications or self._applications, name, self.name, topology, told, when_it_fails
        )
        if applications is None:
            self._running.callback(instance.leave)
        return instance

    @contextmanager
    def elsewhere(self) -> Iterator[Applications]:
        """A process of its own, which may crash."""
        with running_applications(self._folder / self.stage.new_name("process")) as applications:
            yield applications

    def set_standby_replicas(self, count: int) -> dict[str, str]:
        """Tell the broker; the settings that tell the instances, if it is theirs to know."""
        if self.protocol == "classic":
            return {"num.standby.replicas": str(count)}
        self._applications.call(
            "set_standby_replicas", "", address=self.stage.address, application=self.name, count=count
        )
        return {}


class Output:
    """What comes out of an application, to a consumer of what is committed, or of everything."""

    def __init__(self, application: Application, *, committed_only: bool = True) -> None:
        partitions = partitions_of(f"{application.name}-out", PARTITIONS)
        self._reader = application.stage.consumer(committed_only=committed_only)
        self._reader.assign(partitions)
        self._reader.seek_to_beginning(partitions)
        self.taken: list[TakenRecord] = []

    def look(self) -> int:
        """How many records have come so far."""
        self.taken += self._reader.poll(0.1)
        return len(self.taken)

    def wait_for(self, count: int) -> None:
        wait_until(
            lambda: self.look() >= count, f"{count} records come out", patience_seconds=PATIENCE_SECONDS
        )

    def wait_for_more(self) -> None:
        self.wait_for(len(self.taken) + 1)

    def by_key(self) -> dict[str, list[str]]:
        found: defaultdict[str, list[str]] = defaultdict(list)
        for record in self.taken:
            assert record.key is not None
            assert record.value is not None
            found[record.key.decode()].append(record.value.decode())
        return dict(found)


class Counting:
    """Lines go in, counts come out."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self._lines = application.topic("in")
        application.topic("out")
        self.output = Output(application)
        self._words = cycle(WORDS)
        self._sent: Counter[str] = Counter()

    def send(self, line_count: int) -> None:
        lines = [list(islice(self._words, 5)) for _ in range(line_count)]
        self._sent.update(word for line in lines for word in line)
        records = [
            Record(" ".join(line).encode(), partition=number % PARTITIONS)
            for number, line in enumerate(lines)
        ]
        self._application.stage.send(self._lines, records)

    def wait_for_all(self) -> None:
        """Wait until all words are counted, and hold the counts against what was sent."""
        self.output.wait_for(self._sent.total())
        self.output.look()
        wanted = {word: [str(count + 1) for count in range(times)] for word, times in self._sent.items()}
        expect(self.output.by_key(), wanted, "counts of words")


def counts(application: Application) -> None:
    counting = Counting(application)
    counting.send(60)
    application.start("count")
    counting.wait_for_all()
    repartition = f"{application.name}-words-repartition"
    changelog = f"{application.name}-counts-changelog"
    admin = application.stage.admin
    expect_subset({repartition, changelog}, admin.list_topics(), "internal topics")
    for topic in (repartition, changelog):
        expect(len(admin.describe_topic(topic)), PARTITIONS, f"partitions of {topic}")
    settings = admin.describe_settings("topic", changelog)
    expect(settings["cleanup.policy"], "compact", "cleanup policy of the changelog")


def shares(application: Application) -> None:
    counting = Counting(application)
    first = application.start("count")
    counting.send(30)
    first.wait_until_it_works(active=4)
    second = application.start("count")
    counting.send(30)
    for each in (first, second):
        each.wait_until_it_works(active=2)
    counting.send(30)
    counting.wait_for_all()
    second.leave()
    counting.send(30)
    first.wait_until_it_works(active=4)
    counting.wait_for_all()


def crash(application: Application) -> None:
    counting = Counting(application)
    with application.elsewhere() as applications:
        application.start("count", applications=applications)
        counting.send(60)
        counting.output.wait_for_more()
        counting.send(100)
        counting.output.wait_for_more()
        applications.kill()
    application.start("count")
    counting.wait_for_all()


def restores(application: Application) -> None:
    counting = Counting(application)
    first = application.start("count")
    counting.send(30)
    counting.wait_for_all()
    first.leave()
    counting.send(30)
    second = application.start("count")
    counting.wait_for_all()
    expect_that(second.look()["restored"] >= len(WORDS), "too little was restored")


def standby(application: Application) -> None:
    counting = Counting(application)
    settings = application.set_standby_replicas(1)
    first = application.start("count", settings)
    second = application.start("count", settings)
    for each in (first, second):
        each.wait_until_it_works(active=2, standby=1)
    counting.send(30)
    counting.wait_for_all()
    first.leave()
    second.wait_until_it_works(active=4)
    counting.send(30)
    counting.wait_for_all()


def repartition(application: Application) -> None:
    topic = application.topic("in")
    application.topic("out")
    application.start("repartition", {"repartition.purge.interval.ms": "200"})
    application.stage.send(topic, [Record(b"%d" % number, b"key%d" % number) for number in range(30)])
    output = Output(application)
    output.wait_for(30)
    output.look()
    expect(output.by_key(), {f"key{number}": [str(number)] for number in range(30)}, "what came out")
    thirds = f"{application.name}-thirds-repartition"
    expect(len(application.stage.admin.describe_topic(thirds)), 3, "partitions of the repartition topic")
    reader = application.stage.consumer()
    wait_until(
        lambda: any(first > 0 for first, _ in reader.bounds(partitions_of(thirds, 3)).values()),
        "records of the repartition topic are deleted",
    )


def windows(application: Application) -> None:
    topic = application.topic("in")
    application.topic("out")
    application.start("windows")
    output = Output(application)
    base = START_MS - START_MS % 10_000

    def send(*seconds: int) -> None:
        application.stage.send(
            topic, [Record(b"x", b"key", timestamp_ms=base + 1000 * each) for each in seconds]
        )

    send(0, 1, 9, 9)
    send(10, 12)
    output.wait_for(1)
    send(25)
    output.wait_for(2)
    output.look()
    expect(output.by_key(), {f"key@{base}": ["4"], f"key@{base + 10_000}": ["2"]}, "counts of windows")


def joins(application: Application) -> None:
    stage = application.stage
    topics = {kind: application.topic(kind) for kind in ("in", "table", "everywhere", "out")}
    stage.send(topics["everywhere"], [Record(b"Prague", b"cz"), Record(b"Vienna", b"at")])
    stage.send(topics["table"], [Record(b"cz", b"ottla"), Record(b"at", b"robert"), Record(b"de", b"dora")])
    instance = application.start("joins")
    instance.wait_until_it_works(active=2)
    output = Output(application)
    stage.send(topics["in"], [Record(b"1", b"ottla"), Record(b"2", b"nobody"), Record(b"3", b"dora")])
    output.wait_for(1)
    stage.send(topics["in"], [Record(b"4", b"robert")])
    output.wait_for(2)
    expect(
        output.by_key(),
        {"ottla": ["Prague cz 1"], "robert": ["Vienna at 4"]},
        "what was found in both tables",
    )


def fails(application: Application) -> None:
    topic = application.topic("in")
    application.topic("out")
    everything = Output(application, committed_only=False)
    committed = Output(application)
    records = [Record(b"%d" % number, b"key", partition=0) for number in range(10)]
    application.stage.send(topic, records)
    long = {"commit.interval.ms": "30000", "producer.transaction.timeout.ms": "60000"}
    instance = application.start("fails", long, when_it_fails="REPLACE_THREAD")
    everything.wait_for(10)
    expect(committed.look(), 0, "records that are committed too soon")
    application.stage.send(topic, [Record(b"fail", b"key", partition=0)])
    everything.wait_for(21)
    expect(len(instance.look()["failures"]), 1, "failures")
    instance.leave()
    committed.wait_for(11)
    values = [*map(str, range(10)), "fail"]
    expect(committed.by_key(), {"key": values}, "what is committed")
    expect(everything.by_key(), {"key": [*values[:10], *values]}, "everything")


def missing_topic(application: Application) -> None:
    instance = application.start("count")
    wait_until(lambda: instance.look()["state"] == "ERROR", "the instance fails")
    (failure,) = instance.look()["failures"]
    expect_that("MissingSourceTopicException" in failure, f"it fails with {failure}")


BEHAVIOURS: Final[dict[str, Callable[[Application], None]]] = {
    "counts": counts,
    "shares": shares,
    "crash": crash,
    "restores": restores,
    "standby": standby,
    "repartition": repartition,
    "windows": windows,
    "joins": joins,
    "fails": fails,
    "missing-topic": missing_topic,
}
"""By the names of ``scenarios.toml``."""


def plays(applications: Applications, folder: Path) -> dict[str, Play]:
    """A function for each scenario: a behaviour by a protocol."""

    def play(behaviour: Callable[[Application], None], protocol: str) -> Play:
        def play_on(stage: Stage) -> None:
            with Application(stage, applications, folder, protocol) as application:
                behaviour(application)

        return play_on

    return {
        f"{protocol}-{name}": play(behaviour, protocol)
        for protocol in PROTOCOLS
        for name, behaviour in BEHAVIOURS.items()
    }
