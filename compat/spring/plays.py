"""What applications of Spring Kafka make of records."""

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count
from typing import Final

from compat.scenarios.python.checks import expect, expect_that
from compat.scenarios.python.client import Record
from compat.scenarios.python.passage import numbered, wait_for_heard
from compat.scenarios.python.records import START_MS
from compat.scenarios.python.registry import Play
from compat.scenarios.python.stage import Stage, partitions_of, take_nothing, wait_for
from compat.scenarios.remote.process import RemoteError
from compat.spring.program import Applications
from compat.spring.scene import Scene

TIMES_TRIED: Final = 3
"""Before a record that fails is given up."""


def records(scene: Scene, thread_count: int, consumer: dict[str, str] | None = None) -> None:
    scene.create(scene.input, partition_count=3)
    threads = {"threads": str(thread_count)}
    application = scene.start("Listeners$Records", consumer=consumer, properties=threads)
    each_has = [3 // thread_count] * thread_count
    wait_for(lambda: application.call("assigned") == each_has, f"{thread_count} threads have partitions")
    scene.send(numbered(60), partition_count=3)
    wait_for(lambda: len(application.heard()) >= 60, "60 records are heard")
    heard = application.heard()
    for partition in range(3):
        of_partition = [each for each in heard if each["partition"] == partition]
        expect([each["value"] for each in of_partition], numbered(60)[partition::3], "values of a partition")
        expect([each["offset"] for each in of_partition], list(range(20)), "offsets")
        expect(len({each["by"] for each in of_partition}), 1, "threads that hear a partition")
    expect(len({each["by"] for each in heard}), thread_count, "threads")
    application.close()
    expect(scene.committed(3), [20, 20, 20], "committed offsets")


def shares_work(scene: Scene) -> None:
    scene.create(scene.input, partition_count=4)
    sent = count()

    def send() -> list[str]:
        some = [f"value{next(sent)}" for _ in range(40)]
        scene.send(some, partition_count=4)
        return some

    first = scene.start("Listeners$Records", properties={"threads": "1"})
    wait_for(lambda: first.call("assigned") == [4], "the first one has all partitions")
    wanted = send()
    second = scene.start("Listeners$Records", properties={"threads": "1"})
    wait_for(
        lambda: [each.call("assigned") for each in (first, second)] == [[2], [2]],
        "both have two partitions",
    )
    wanted += send()
    wait_for(lambda: len(first.heard()) + len(second.heard()) >= 80, "80 records are heard")
    by_second = second.values()
    expect_that(by_second, "the second application heard nothing")
    second.close()
    wait_for(lambda: first.call("assigned") == [4], "the first one has all partitions again")
    wanted += send()
    wait_for(lambda: len(first.heard()) + len(by_second) >= 120, "120 records are heard")
    expect(Counter(first.values() + by_second), Counter(wanted), "what both heard")


def batches(scene: Scene) -> None:
    scene.create(scene.input)
    sent = [*numbered(5), "again", *numbered(14, "more")]
    scene.send(sent)
    application = scene.start("Listeners$Batches")
    wait_for_heard(application, [*sent[:6], *sent[5:]])
    heard = application.heard()
    expect([each["value"] for each in heard if each["by"] == "refused"], ["again"], "refused")
    expect({each["together"] for each in heard[:6]}, {20}, "records at once, at first")
    expect(heard[-1]["offset"], 19, "last offset")
    scene.wait_until_committed([20])


def by_hand(scene: Scene) -> None:
    scene.create(scene.input)
    scene.send([*numbered(6), *numbered(4, "later")])
    first = scene.start("Listeners$ByHand")
    wait_for_heard(first, [*numbered(6), *numbered(4, "later")])
    first.close()
    expect(scene.committed(), [6], "committed offset")
    second = scene.start("Listeners$ByHand")
    wait_for_heard(second, numbered(4, "later"))


def pauses(scene: Scene) -> None:
    scene.create(scene.input, scene.output)
    application = scene.start(
        "Listeners$Records", consumer={"max.poll.interval.ms": "1000"}, properties={"threads": "1"}
    )
    scene.send(numbered(5))
    wait_for_heard(application, numbered(5))
    application.call("pause")
    wait_for(lambda: application.call("is_paused"), "it is paused")
    scene.send(numbered(5, "more"))
    idle = scene.stage.consumer()
    idle.assign(partitions_of(scene.output, 1))
    expect(take_nothing(idle, polls=15), [], "what comes while it is silent for longer than it may poll")
    expect(application.values(), numbered(5), "values that were heard before it goes on")
    application.call("resume")
    wait_for_heard(application, [*numbered(5), *numbered(5, "more")])


def seeks(scene: Scene) -> None:
    scene.create(scene.input)
    application = scene.start("Listeners$Seeking")
    sent = numbered(10)
    scene.send(sent)
    wait_for_heard(application, sent)
    application.call("seek_to_beginning")
    wait_for_heard(application, sent * 2)
    application.call("seek_to_time", time_ms=START_MS + 6500)
    wait_for_heard(application, [*sent * 2, *sent[7:]])
    application.call("seek_back", records=2)
    wait_for_heard(application, [*sent * 2, *sent[7:], *sent[8:]])


def pattern(scene: Scene) -> None:
    scene.create(f"{scene.input}-first")
    scene.stage.send(f"{scene.input}-first", [Record(b"first")])
    application = scene.start("Listeners$Pattern", consumer={"metadata.max.age.ms": "300"})
    wait_for_heard(application, ["first"])
    scene.create(f"{scene.input}-second")
    scene.stage.send(f"{scene.input}-second", [Record(b"second")])
    wait_for_heard(application, ["first", "second"])


def share_group(scene: Scene) -> None:
    scene.create(scene.input)
    scene.stage.admin.change_settings("group", scene.group, put={"share.auto.offset.reset": "earliest"})
    scene.send(["value0", "reject1", "release2", "value3"])
    application = scene.start("Listeners$Sharing")
    wait_for(lambda: len(application.heard()) >= 5, "five records are heard")
    expect(
        Counter((each["by"], each["value"]) for each in application.heard()),
        Counter(
            [
                ("accepted", "value0"),
                ("rejected", "reject1"),
                ("released", "release2"),
                ("accepted", "release2"),
                ("accepted", "value3"),
            ]
        ),
        "what was heard",
    )
    application.close()
    scene.send(["value4"])
    second = scene.start("Listeners$Sharing")
    wait_for_heard(second, ["value4"])


def backs_off(scene: Scene, configuration: str) -> None:
    dead = f"{scene.input}-dlt"
    scene.create(scene.input, dead)
    sent = [*numbered(5), "bad", *numbered(5, "more")]
    scene.send(sent)
    application = scene.start(configuration)
    wait_for_heard(application, [*sent[:5], *["bad"] * TIMES_TRIED, *sent[6:]])
    scene.wait_until_committed([len(sent)])
    (letter,) = scene.stage.take(dead, 1)
    expect(letter.value, b"bad", "dead letter")
    expect_headers(
        letter.headers, {"topic": scene.input.encode(), "offset": (5).to_bytes(8, "big")}, "dlt-original"
    )


def expect_headers(headers: list[tuple[str, bytes | None]], wanted: dict[str, bytes], kind: str) -> None:
    found = dict(headers)
    for name, value in wanted.items():
        expect(found.get(f"kafka_{kind}-{name}"), value, f"header of the {name}")


def retries(scene: Scene) -> None:
    scene.create(scene.input)
    scene.send(["value0", "bad1", "once2", "value3"])
    application = scene.start("Failing$Retrying")
    wait_for(lambda: len(application.heard()) >= 8, "eight records are heard")
    first, second, dead = (f"{scene.input}-{kind}" for kind in ("retry-100", "retry-200", "dlt"))
    expect(
        Counter((each["by"], each["topic"], each["value"]) for each in application.heard()),
        Counter(
            [
                *(("heard", scene.input, value) for value in ("value0", "bad1", "once2", "value3")),
                ("heard", first, "bad1"),
                ("heard", first, "once2"),
                ("heard", second, "bad1"),
                ("buried", dead, "bad1"),
            ]
        ),
        "what was heard",
    )
    for topic in (first, second, dead):
        expect(len(scene.stage.admin.describe_topic(topic)), 2, f"partitions of {topic}")
    (letter,) = scene.stage.take(dead, 1, partition_count=2)
    expect_headers(
        letter.headers, {"topic": scene.input.encode(), "offset": (1).to_bytes(8, "big")}, "original"
    )


def exactly_once(scene: Scene) -> None:
    scene.create(scene.input, scene.output)
    sent = [*numbered(10), "fail", *numbered(10, "more"), "fail again", "last"]
    scene.send(sent)
    application = scene.start("Transactions$Forwarding", producer={"transactional.id": scene.group})
    scene.wait_until_committed([len(sent)])
    expect(scene.taken(scene.output, len(sent)), sent, "what is committed")
    everything = Counter(scene.taken(scene.output, len(sent) + 2, committed_only=False))
    expect(everything - Counter(sent), Counter(["fail", "fail again"]), "what was aborted")
    expect(application.values().count("fail"), 2, "times that a value was heard at which it failed")


def exactly_once_crash(scene: Scene) -> None:
    scene.create(scene.input, scene.output)
    sent = [*numbered(5), "hang", *numbered(5, "more")]
    scene.send(sent)
    producer = {"transactional.id": scene.group}
    with scene.elsewhere() as applications:
        crashing = scene.start(
            "Transactions$Forwarding",
            applications=applications,
            producer=producer,
            properties={"hangs": "true"},
        )
        wait_for(lambda: "hang" in crashing.values(), "it hangs amid a transaction")
        expect(scene.committed(), [5], "committed offset amid a transaction")
        applications.kill()
    scene.start("Transactions$Forwarding", producer=producer)
    scene.wait_until_committed([len(sent)])
    expect(scene.taken(scene.output, len(sent)), sent, "what is committed")
    everything = Counter(scene.taken(scene.output, len(sent) + 1, committed_only=False))
    expect(everything - Counter(sent), Counter(["hang"]), "what was aborted")


def template_transactions(scene: Scene) -> None:
    scene.create(scene.output)
    application = scene.start("Transactions$Sending", producer={"transactional.id": scene.group})
    application.call("send", values=["one", "two"])
    try:
        application.call("send", values=["three", "fail", "four"])
    except RemoteError as failure:
        expect_that("as it is meant to" in str(failure), f"it failed with {failure}")
    else:
        expect_that(False, "it did not fail")
    application.call("send", values=["five"])
    expect(scene.taken(scene.output, 3), ["one", "two", "five"], "what is committed")
    everything = scene.taken(scene.output, 5, committed_only=False)
    expect(everything, ["one", "two", "three", "fail", "five"], "everything")


def replies(scene: Scene) -> None:
    scene.create(scene.input, scene.output)
    application = scene.start("Templates$Asking")
    with ThreadPoolExecutor(8) as pool:
        ask = partial(application.call, "ask", patience_ms=30_000)
        answers = list(pool.map(lambda value: ask(value=value), numbered(30)))
    expect(answers, numbered(30, "VALUE"), "answers")
    try:
        application.call("ask", value="silent", patience_ms=300)
    except RemoteError as failure:
        expect_that("KafkaReplyTimeoutException" in str(failure), f"it failed with {failure}")
    else:
        expect_that(False, "who is silent has answered")


def declares_topics(scene: Scene) -> None:
    application = scene.start("Templates$Declaring")
    for partition_count, retention_ms in ((2, 3_600_000), (4, 7_200_000)):
        application.call("declare", topic=scene.input, partitions=partition_count, retention_ms=retention_ms)
        scene.stage.wait_until_served(scene.input, partition_count)
        expect(len(scene.stage.admin.describe_topic(scene.input)), partition_count, "partitions")
        settings = scene.stage.admin.describe_settings("topic", scene.input)
        expect(settings["retention.ms"], str(retention_ms), "retention.ms")


BEHAVIOURS: Final[dict[str, Callable[[Scene], None]]] = {
    "records": partial(records, thread_count=3),
    "records-new-protocol": partial(records, thread_count=1, consumer={"group.protocol": "consumer"}),
    "shares-work": shares_work,
    "batches": batches,
    "by-hand": by_hand,
    "pauses": pauses,
    "seeks": seeks,
    "pattern": pattern,
    "share-group": share_group,
    "backs-off": partial(backs_off, configuration="Failing$Records"),
    "backs-off-batches": partial(backs_off, configuration="Failing$Batches"),
    "retries": retries,
    "exactly-once": exactly_once,
    "exactly-once-crash": exactly_once_crash,
    "template-transactions": template_transactions,
    "replies": replies,
    "declares-topics": declares_topics,
}
"""By the names of ``scenarios.toml``."""


def plays(applications: Applications) -> dict[str, Play]:
    """A function for each scenario."""

    def play(behaviour: Callable[[Scene], None]) -> Play:
        def play_on(stage: Stage) -> None:
            with Scene(stage, applications) as scene:
                behaviour(scene)

        return play_on

    return {name: play(behaviour) for name, behaviour in BEHAVIOURS.items()}
