"""What jobs of Flink make of records."""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from compat.flink.program import Cluster
from compat.flink.scene import Job, Scene
from compat.scenarios.python.checks import expect
from compat.scenarios.python.client import Partition, Record
from compat.scenarios.python.passage import numbered, wait_for_heard
from compat.scenarios.python.records import START_MS
from compat.scenarios.python.registry import Play
from compat.scenarios.python.stage import Stage, partitions_of, take_nothing, wait_for

POOLING: Final = "POOLING"
INCREMENTING: Final = "INCREMENTING"
"""How the connector names its transactions: with ids that it uses again, or with one for each checkpoint."""

WORDS: Final = ("ash", "beech", "cedar", "dogwood", "elm", "fir", "gum")


def expect_in_partitions(job: Job, wanted: Sequence[Sequence[str]]) -> None:
    """What it heard of each partition of its input, in order."""
    heard = job.heard()
    for partition, values in enumerate(wanted):
        of_partition = [each["value"] for each in heard if each["partition"] == partition]
        expect(of_partition, list(values), f"values of partition {partition}")
    expect(len(heard), sum(map(len, wanted)), "records that were heard")


def bounded(scene: Scene) -> None:
    scene.create(scene.input, partition_count=3)
    sent = numbered(60)
    scene.send(sent, partition_count=3)
    job = scene.start(until="latest", parallelism=2)
    job.wait_until_finished()
    expect_in_partitions(job, [sent[partition::3] for partition in range(3)])
    readers = {(each["partition"], each["by"]) for each in job.heard()}
    expect(len(readers), 3, "subtasks of partitions")
    expect({subtask for _, subtask in readers}, {0, 1}, "subtasks that heard something")


def times(scene: Scene) -> None:
    scene.create(scene.input, partition_count=3)
    sent = numbered(60)
    scene.send(sent, partition_count=3)
    job = scene.start(since=START_MS + 29_500, until=START_MS + 48_000)
    job.wait_until_finished()
    expect_in_partitions(job, [sent[partition:48:3][10:] for partition in range(3)])


def committed_offsets(scene: Scene) -> None:
    scene.create(scene.input, partition_count=2)
    sent = numbered(20)
    scene.send(sent, partition_count=2)
    scene.commit({1: 7})
    job = scene.start(since="committed", until="latest")
    job.wait_until_finished()
    expect_in_partitions(job, [sent[::2], sent[1::2][7:]])


def deleted_records(scene: Scene) -> None:
    scene.create(scene.input)
    sent = numbered(10)
    scene.send(sent)
    scene.commit({0: 2})
    scene.stage.admin.delete_records({Partition(scene.input, 0): 4})
    for since in ("committed", "earliest"):  # a job commits where it ends
        job = scene.start(since=since, until="latest")
        job.wait_until_finished()
        expect(job.values(), sent[4:], f"values since the {since} offset")


def committed_only(scene: Scene) -> None:
    scene.create(scene.input)
    producer = scene.stage.transactional_producer(scene.group)
    for count, word, end in (
        (5, "committed", producer.commit),
        (5, "aborted", producer.abort),
        (2, "more", producer.commit),
    ):
        producer.begin()
        producer.send(scene.input, [Record(value.encode()) for value in numbered(count, word)])
        end()
    # Behind a marker alone the connector does not see the end, which a job would then wait for.
    scene.send(["last"])
    wanted = [*numbered(5, "committed"), *numbered(2, "more"), "last"]
    read_committed = {"isolation.level": "read_committed"}
    job = scene.start(until="latest", consumer=read_committed)
    job.wait_until_finished()
    expect(job.values(), wanted, "values before a transaction is open")
    producer.begin()
    producer.send(scene.input, [Record(b"open")])
    again = scene.start(until="latest", consumer=read_committed)
    wait_for_heard(again, wanted)
    expect(again.state(), "RUNNING", "state while a transaction is open")
    producer.commit()
    again.wait_until_finished()
    expect(again.values(), [*wanted, "open"], "values after it was committed")


def checkpoints(scene: Scene) -> None:
    scene.create(scene.input, partition_count=3)
    sent = numbered(30)
    scene.send(sent, partition_count=3)
    job = scene.start(parallelism=2)
    wait_for(lambda: len(job.heard()) >= 30, "30 records are heard")
    expect(scene.committed(3), [0, 0, 0], "offsets that are committed before a checkpoint")
    job.checkpoint()
    scene.wait_until_committed([10, 10, 10])
    job.cancel()
    later = numbered(6, "later")
    scene.send(later, partition_count=3)
    other = scene.start(since="committed", until="latest")
    other.wait_until_finished()
    expect_in_partitions(other, [later[partition::3] for partition in range(3)])


def discovery(scene: Scene) -> None:
    scene.create(scene.input)
    scene.send(["first"])
    job = scene.start()
    wait_for_heard(job, ["first"])
    scene.stage.admin.create_partitions(scene.input, 3)
    scene.stage.wait_until_served(scene.input, 3)
    scene.send(numbered(9), partition_count=3)
    wait_for(lambda: len(job.heard()) >= 10, "ten records are heard")
    expect_in_partitions(job, [["first", *numbered(9)[::3]], numbered(9)[1::3], numbered(9)[2::3]])
    job.checkpoint()
    scene.wait_until_committed([4, 3, 3])


def pattern(scene: Scene) -> None:
    first, second, other = f"{scene.input}-first", f"{scene.input}-second", f"other-{scene.input}"
    scene.create(first, other)
    for topic in (first, other):
        scene.stage.send(topic, [Record(topic.encode())])
    job = scene.start(pattern=f"{scene.input}.*")
    wait_for_heard(job, [first])
    scene.create(second)
    scene.stage.send(second, [Record(second.encode())])
    wait_for_heard(job, [first, second])


def words(count: int) -> list[str]:
    return [WORDS[number % len(WORDS)] for number in range(count)]


def expect_counts(scene: Scene, sent: Sequence[str]) -> None:
    """How often each word came, as a job that counts has committed it: one after the other."""
    taken = scene.taken(scene.output, len(sent))
    counts = Counter(sent)
    for word, total in counts.items():
        wanted = [f"{word}={count + 1}" for count in range(total)]
        expect([value for value in taken if value.startswith(f"{word}=")], wanted, f"counts of {word}")
    expect(len(taken), len(sent), "counts")


def counts(scene: Scene) -> None:
    scene.create(scene.input, partition_count=3)
    scene.create(scene.output)
    job = scene.start(parallelism=2, counts=True, output=scene.output, transactions=POOLING, restarts=1)
    sent = words(60)
    scene.send(sent, partition_count=3)
    wait_for(lambda: len(job.heard()) >= 60, "60 records are heard")
    job.checkpoint()
    expect_counts(scene, sent)
    more = [*words(30), "fail", *words(30)]
    scene.send(more, partition_count=3)
    wait_for(lambda: job.values().count("fail=1") == 2, "it fails and goes on")
    every = Counter(sent + more)
    latest = {f"{word}={total}" for word, total in every.items()}
    wait_for(lambda: latest <= set(job.values()), "every word is counted")
    job.checkpoint()
    expect_counts(scene, sent + more)


def rescales(scene: Scene) -> None:
    scene.create(scene.input, partition_count=3)
    scene.create(scene.output)
    sent = words(60)
    scene.send(sent, partition_count=3)
    first = scene.start(counts=True, output=scene.output, transactions=POOLING)
    wait_for(lambda: len(first.heard()) >= 60, "60 records are heard")
    savepoint = first.stop()
    first.wait_until_finished()
    expect_counts(scene, sent)
    second = scene.start(
        counts=True, output=scene.output, transactions=POOLING, parallelism=3, checkpoint=savepoint
    )
    scene.send(sent, partition_count=3)
    wait_for(lambda: len(second.heard()) >= 60, "60 more records are heard")
    second.checkpoint()
    expect_counts(scene, sent + sent)
    expect({each["by"] for each in second.heard()}, {0, 1, 2}, "subtasks that heard something")


def pass_on_and_fail(scene: Scene, transactions: str | None) -> tuple[list[str], list[str]]:
    """What was sent, and what of it was sent since a checkpoint before the job failed and went on."""
    scene.create(scene.input, scene.output)
    before, since, after = numbered(10), numbered(5, "since"), ["fail", *numbered(5, "after")]
    job = scene.start(output=scene.output, transactions=transactions, restarts=1)
    scene.send(before)
    expect(scene.taken(scene.output, 10, committed_only=False), before, "everything before a checkpoint")
    if transactions is not None:
        expect(what_is_committed(scene), [], "what is committed before a checkpoint")
    job.checkpoint()
    expect(scene.taken(scene.output, 10), before, "what is committed at a checkpoint")
    scene.send(since)
    everything = scene.taken(scene.output, 15, committed_only=False)
    expect(everything, before + since, "everything after a checkpoint")
    scene.send(after)
    wait_for_heard(job, [*before, *since, "fail", *since, *after])
    job.checkpoint()
    return before + since + after, since


def what_is_committed(scene: Scene) -> list[bytes | None]:
    """What a consumer of what is committed gets of the output in a while."""
    consumer = scene.stage.consumer(committed_only=True)
    consumer.assign(partitions_of(scene.output, 1))
    return [record.value for record in take_nothing(consumer)]


def at_least_once(scene: Scene) -> None:
    sent, again = pass_on_and_fail(scene, None)
    expect(scene.taken(scene.output, len(sent + again)), [*sent[:15], *again, *sent[15:]], "everything")


def exactly_once(scene: Scene, transactions: str) -> None:
    sent, again = pass_on_and_fail(scene, transactions)
    expect(scene.taken(scene.output, len(sent)), sent, "what is committed")
    everything = Counter(scene.taken(scene.output, len(sent + again), committed_only=False))
    expect(everything - Counter(sent), Counter(again), "what was aborted")


def crash(scene: Scene, transactions: str) -> None:
    scene.create(scene.input, partition_count=2)
    scene.create(scene.output)
    before, since = numbered(10), [*numbered(9, "since"), "hang", *numbered(4, "after")]
    with scene.elsewhere() as cluster:
        crashing = scene.start(
            cluster=cluster, parallelism=2, output=scene.output, transactions=transactions, hangs=True
        )
        scene.send(before, partition_count=2)
        wait_for(lambda: len(crashing.heard()) >= 10, "ten records are heard")
        checkpoint = crashing.checkpoint()
        expect(Counter(scene.taken(scene.output, 10)), Counter(before), "what is committed at a checkpoint")
        scene.send(since, partition_count=2)
        wait_for(lambda: len(crashing.heard()) >= 22, "it hangs")
        scene.taken(scene.output, 21, committed_only=False)
        cluster.kill()
    job = scene.start(output=scene.output, transactions=transactions, checkpoint=checkpoint)
    wait_for(lambda: len(job.heard()) >= len(since), "it goes on")
    job.checkpoint()
    committed = scene.taken(scene.output, len(before + since))
    expect(Counter(committed), Counter(before + since), "what is committed")
    everything = Counter(scene.taken(scene.output, len(before + since) + 11, committed_only=False))
    aborted = Counter([*numbered(9, "since"), "after0", "after2"])
    expect(everything - Counter(before + since), aborted, "what was aborted")


BEHAVIOURS: Final[dict[str, Callable[[Scene], None]]] = {
    "bounded": bounded,
    "times": times,
    "committed-offsets": committed_offsets,
    "deleted-records": deleted_records,
    "committed-only": committed_only,
    "checkpoints": checkpoints,
    "discovery": discovery,
    "pattern": pattern,
    "counts": counts,
    "rescales": rescales,
    "at-least-once": at_least_once,
    "exactly-once": partial(exactly_once, transactions=POOLING),
    "exactly-once-new-ids": partial(exactly_once, transactions=INCREMENTING),
    "crash": partial(crash, transactions=POOLING),
    "crash-new-ids": partial(crash, transactions=INCREMENTING),
}
"""By the names of ``scenarios.toml``."""


def plays(cluster: Cluster) -> dict[str, Play]:
    """A function for each scenario."""

    def play(behaviour: Callable[[Scene], None]) -> Play:
        def play_on(stage: Stage) -> None:
            with Scene(stage, cluster) as scene:
                behaviour(scene)

        return play_on

    return {name: play(behaviour) for name, behaviour in BEHAVIOURS.items()}
