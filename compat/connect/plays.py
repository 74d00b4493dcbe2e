"""What connectors make of records, whoever stops and crashes meanwhile."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from compat.connect.workers import CLIENT, PATIENCE_SECONDS, Worker
from compat.python_confluent_kafka.client import ConfluentKafka
from compat.scenarios.python.checks import expect
from compat.scenarios.python.client import Committed, Consumer, Partition, Record
from compat.scenarios.python.registry import Play
from compat.scenarios.python.stage import Stage, partitions_of
from compat.waiting import wait_until

PARTITIONS: Final = 2
EXACTLY_ONCE: Final = {"exactly.once.support": "required"}


class KafkaConnect(ConfluentKafka):
    """What connectors read is sent, and what they write is taken, by librdkafka."""

    name = CLIENT

    def __init__(self, version: str) -> None:
        self.version = version


class Numbers:
    """What a consumer of what is committed gets of a source that counts."""

    def __init__(self, stage: Stage, topic: str, partition_count: int = PARTITIONS) -> None:
        partitions = partitions_of(topic, partition_count)
        self._reader: Consumer = stage.consumer(committed_only=True)
        self._reader.assign(partitions)
        self._reader.seek_to_beginning(partitions)
        self.taken: dict[int, list[int]] = {partition.number: [] for partition in partitions}

    def look(self) -> dict[int, list[int]]:
        for record in self._reader.poll(0.2):
            self.taken[record.place.partition].append(int(record.value or b"-1"))
        return self.taken

    def wait_for_more(self, partition_count: int = PARTITIONS) -> None:
        """On every partition, or the first of them."""
        before = {number: len(taken) for number, taken in self.look().items() if number < partition_count}
        wait_for(
            lambda: all(len(self.look()[number]) > count for number, count in before.items()), "numbers come"
        )

    def wait_for_the_end(self) -> None:
        """Until nothing comes any more."""
        before = -1

        def is_over() -> bool:
            nonlocal before
            last, before = before, sum(map(len, self.look().values()))
            return last == before

        wait_for(is_over, "no numbers come any more")

    def expect_each_once(self) -> None:
        for number, taken in self.taken.items():
            expect(taken, list(range(len(taken))), f"numbers on partition {number}")


def wait_for(holds: Callable[[], object], what: str) -> None:
    wait_until(holds, what, patience_seconds=PATIENCE_SECONDS)


def count_exactly_once(stage: Stage, worker: Worker) -> None:
    topic, name = stage.topic(PARTITIONS), stage.new_name("source")
    worker.run(name, "Numbers", {"topic": topic, **EXACTLY_ONCE}, tasks=PARTITIONS)
    numbers = Numbers(stage, topic)
    numbers.wait_for_more()
    numbers.wait_for_more()
    worker.call("PUT", f"/connectors/{name}/pause")
    worker.wait_for(name, "PAUSED", PARTITIONS)
    numbers.wait_for_the_end()
    numbers.expect_each_once()
    worker.call("DELETE", f"/connectors/{name}")


def set_a_source_back(stage: Stage, worker: Worker) -> None:
    topic, name = stage.topic(), stage.new_name("source")
    offsets = f"/connectors/{name}/offsets"
    worker.run(name, "Numbers", {"topic": topic, **EXACTLY_ONCE}, tasks=1)
    numbers = Numbers(stage, topic, 1)

    def stop() -> dict[str, object]:
        """What is known of its offset then."""
        numbers.wait_for_more()
        worker.call("PUT", f"/connectors/{name}/stop")
        worker.wait_for(name, "STOPPED", 0)
        numbers.wait_for_the_end()
        (known,) = worker.call("GET", offsets)["offsets"]
        expect(known["offset"], {"next": numbers.taken[0][-1] + 1}, "offset")
        return dict(known)

    def expect_to_go_on(first: int) -> None:
        count = len(numbers.taken[0])
        worker.call("PUT", f"/connectors/{name}/resume")
        wait_for(lambda: len(numbers.look()[0]) > count, "numbers go on")
        expect(numbers.taken[0][count], first, "the number that comes next")

    known = stop()
    numbers.expect_each_once()
    worker.call("PATCH", offsets, {"offsets": [{**known, "offset": {"next": 3}}]})
    expect_to_go_on(3)
    stop()
    worker.call("DELETE", offsets)
    expect_to_go_on(0)
    worker.call("DELETE", f"/connectors/{name}")


def run_a_sink(
    stage: Stage,
    worker: Worker,
    topic: str,
    folder: Path,
    *,
    tasks: int,
    settings: Mapping[str, str] | None = None,
) -> tuple[str, Path]:
    name = stage.new_name("sink")
    kept = folder / f"{name}.lines"
    worker.run(name, "Kept", {"topics": topic, "file": str(kept), **(settings or {})}, tasks=tasks)
    return name, kept


def lines_of(kept: Path) -> list[tuple[int, ...]]:
    """Partition, offset and value of each record that a sink got."""
    if not kept.exists():
        return []
    return [tuple(map(int, line.split())) for line in kept.read_text().splitlines()]


def read_with_a_sink(stage: Stage, worker: Worker, folder: Path) -> None:
    topic = stage.topic(PARTITIONS)

    def send(first: int, end: int) -> None:
        stage.send(
            topic,
            [
                Record(b"%d" % value, partition=number)
                for number in range(PARTITIONS)
                for value in range(first, end)
            ],
        )

    send(0, 10)
    name, kept = run_a_sink(stage, worker, topic, folder, tasks=PARTITIONS)
    wait_for(lambda: len(lines_of(kept)) >= 10 * PARTITIONS, "the sink has what was there")
    send(10, 20)
    wait_for(lambda: len(lines_of(kept)) >= 20 * PARTITIONS, "the sink has what was sent")
    wanted = [(number, value, value) for number in range(PARTITIONS) for value in range(20)]
    expect(sorted(lines_of(kept)), wanted, "records in the file")
    places = {partition: Committed(20) for partition in partitions_of(topic, PARTITIONS)}
    wait_for(lambda: offsets_of(stage, name) == places, "the sink has committed")
    worker.call("DELETE", f"/connectors/{name}")


def offsets_of(stage: Stage, name: str) -> Mapping[Partition, Committed]:
    return stage.admin.group_offsets(f"connect-{name}")


def set_a_sink_back(stage: Stage, worker: Worker, folder: Path) -> None:
    topic = stage.topic()
    stage.send(topic, [Record(b"%d" % value) for value in range(20)])
    name, kept = run_a_sink(stage, worker, topic, folder, tasks=1)
    wait_for(lambda: len(lines_of(kept)) >= 20, "the sink has what was there")
    worker.call("PUT", f"/connectors/{name}/stop")
    worker.wait_for(name, "STOPPED", 0)
    place = {"kafka_topic": topic, "kafka_partition": 0}
    offsets = f"/connectors/{name}/offsets"
    known = [{"partition": place, "offset": {"kafka_offset": 20}}]
    expect(worker.call("GET", offsets)["offsets"], known, "offsets")
    worker.call("PATCH", offsets, {"offsets": [{"partition": place, "offset": {"kafka_offset": 15}}]})
    worker.call("PUT", f"/connectors/{name}/resume")
    wait_for(lambda: len(lines_of(kept)) >= 25, "the sink has what comes again")
    expect([offset for _, offset, _ in lines_of(kept)[20:]], list(range(15, 20)), "offsets that come again")
    worker.call("DELETE", f"/connectors/{name}")


def take_over_from_a_crashed_worker(stage: Stage, one: Worker, other: Worker) -> None:
    topic, name = stage.topic(PARTITIONS), stage.new_name("source")
    one.run(name, "Numbers", {"topic": topic, **EXACTLY_ONCE}, tasks=PARTITIONS)
    wait_for(lambda: set(one.places(name)) == {one.id, other.id}, "each worker has a task")
    numbers = Numbers(stage, topic)
    numbers.wait_for_more()
    other.kill()
    wait_for(lambda: one.places(name) == [one.id] * PARTITIONS, "the other worker has both tasks")
    one.wait_for(name, "RUNNING", PARTITIONS)
    numbers.wait_for_more()
    one.call("PUT", f"/connectors/{name}/pause")
    one.wait_for(name, "PAUSED", PARTITIONS)
    numbers.wait_for_the_end()
    numbers.expect_each_once()


def create_topics(stage: Stage, worker: Worker) -> None:
    topic, name = stage.new_name("topic"), stage.new_name("source")
    created = {"partitions": "3", "replication.factor": "1", "cleanup.policy": "compact"}
    settings = {f"topic.creation.default.{setting}": value for setting, value in created.items()}
    worker.run(name, "Numbers", {"topic": topic, **EXACTLY_ONCE, **settings}, tasks=PARTITIONS)
    wait_for(lambda: topic in stage.admin.list_topics(), "the topic is created")
    own = {f"{worker.cluster}-{kind}": count for kind, count in (("config", 1), ("offset", 5), ("status", 5))}
    for each, partition_count in {topic: 3, **own}.items():
        stage.wait_until_served(each, partition_count)
        expect(len(stage.admin.describe_topic(each)), partition_count, f"partitions of {each}")
        policy = stage.admin.describe_settings("topic", each)["cleanup.policy"]
        expect(policy, "compact", f"cleanup policy of {each}")
    worker.call("DELETE", f"/connectors/{name}")


def fence_what_ran_before(stage: Stage, worker: Worker) -> None:
    topic, name = stage.topic(PARTITIONS), stage.new_name("source")
    settings = {"connector.class": "Numbers", "topic": topic, **EXACTLY_ONCE}
    worker.run(name, "Numbers", settings, tasks=PARTITIONS)
    numbers = Numbers(stage, topic)
    numbers.wait_for_more()
    for tasks in (1, PARTITIONS):
        worker.call("PUT", f"/connectors/{name}/config", {**settings, "tasks.max": str(tasks)})
        worker.wait_for(name, "RUNNING", tasks)
        numbers.wait_for_more(tasks)
    worker.call("PUT", f"/connectors/{name}/pause")
    worker.wait_for(name, "PAUSED", PARTITIONS)
    numbers.wait_for_the_end()
    numbers.expect_each_once()
    worker.call("DELETE", f"/connectors/{name}")


def pass_on_dead_letters(stage: Stage, worker: Worker, folder: Path) -> None:
    topic, dead = stage.topic(), stage.new_name("dead")
    stage.send(topic, [Record(b"{" if value in {3, 7} else b"%d" % value) for value in range(10)])
    settings = {
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": dead,
        "errors.deadletterqueue.topic.replication.factor": "1",
        "errors.deadletterqueue.context.headers.enable": "true",
    }
    name, kept = run_a_sink(stage, worker, topic, folder, tasks=1, settings=settings)
    wait_for(lambda: len(lines_of(kept)) >= 8, "the sink has what can be read")
    expect([value for *_, value in lines_of(kept)], [0, 1, 2, 4, 5, 6, 8, 9], "values in the file")
    letters = stage.take(dead, 2)
    expect([letter.value for letter in letters], [b"{", b"{"], "dead letters")
    for letter, offset in zip(letters, (b"3", b"7"), strict=True):
        headers = dict(letter.headers)
        found = headers["__connect.errors.topic"], headers["__connect.errors.offset"]
        expect(found, (topic.encode(), offset), "where a dead letter comes from")
    worker.call("DELETE", f"/connectors/{name}")


def pause_a_sink(stage: Stage, worker: Worker, folder: Path) -> None:
    topic = stage.topic()

    def send(first: int, end: int) -> None:
        stage.send(topic, [Record(b"%d" % value) for value in range(first, end)])

    send(0, 5)
    name, kept = run_a_sink(stage, worker, topic, folder, tasks=1)
    wait_for(lambda: len(lines_of(kept)) >= 5, "the sink has what was there")
    worker.call("PUT", f"/connectors/{name}/pause")
    worker.wait_for(name, "PAUSED", 1)
    send(5, 10)
    stage.take(topic, 10)
    expect(len(lines_of(kept)), 5, "records in the file while it is paused")
    worker.call("PUT", f"/connectors/{name}/resume")
    wait_for(lambda: len(lines_of(kept)) >= 10, "the sink has what came meanwhile")
    worker.call("POST", f"/connectors/{name}/restart?includeTasks=true")
    send(10, 15)
    wait_for(lambda: len(lines_of(kept)) >= 15, "the sink goes on")
    worker.wait_for(name, "RUNNING", 1)
    expect(lines_of(kept), [(0, value, value) for value in range(15)], "records in the file")
    worker.call("DELETE", f"/connectors/{name}")


def start_a_worker_again(stage: Stage, worker: Worker, folder: Path) -> None:
    topic, name = stage.topic(), stage.new_name("source")
    worker.run(name, "Numbers", {"topic": topic, **EXACTLY_ONCE}, tasks=1)
    committed_only = {"consumer.override.isolation.level": "read_committed"}
    sink, kept = run_a_sink(stage, worker, topic, folder, tasks=1, settings=committed_only)
    wait_for(lambda: len(lines_of(kept)) >= 20, "the sink has numbers")
    worker.stop()
    count = len(lines_of(kept))
    worker.start()
    worker.version()
    for each in (name, sink):
        worker.wait_for(each, "RUNNING", 1)
    wait_for(lambda: len(lines_of(kept)) >= count + 20, "the sink has more numbers")
    worker.call("PUT", f"/connectors/{name}/pause")
    worker.wait_for(name, "PAUSED", 1)
    values = [value for *_, value in lines_of(kept)]
    expect(values, list(range(len(values))), "numbers in the file")


def plays(lone: Worker, again: Worker, pair: tuple[Worker, Worker], folder: Path) -> dict[str, Play]:
    """A function for each scenario; one starts its worker again, one needs a cluster of two workers."""
    return {
        "source": lambda stage: count_exactly_once(stage, lone),
        "source-offsets": lambda stage: set_a_source_back(stage, lone),
        "sink": lambda stage: read_with_a_sink(stage, lone, folder),
        "sink-offsets": lambda stage: set_a_sink_back(stage, lone, folder),
        "crash": lambda stage: take_over_from_a_crashed_worker(stage, *pair),
        "topics": lambda stage: create_topics(stage, lone),
        "fences": lambda stage: fence_what_ran_before(stage, lone),
        "dead-letters": lambda stage: pass_on_dead_letters(stage, lone, folder),
        "pauses": lambda stage: pause_a_sink(stage, lone, folder),
        "restart": lambda stage: start_a_worker_again(stage, again, folder),
    }
