"""What one does with kcat."""

import json
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from compat.c_kcat.command import CLIENT, SOON, Done, Running, run
from compat.python_confluent_kafka.client import ConfluentKafka
from compat.scenarios.python.checks import expect, expect_subset, expect_that
from compat.scenarios.python.client import CODECS, Record
from compat.scenarios.python.records import START_MS
from compat.scenarios.python.registry import Play
from compat.scenarios.python.stage import Stage, values, wait_for
from compat.scenarios.python.stored import stored_batches

BATCHES = ("-X", "linger.ms=100")
"""Batches of many records: kcat reads its input line by line."""


class Kcat(ConfluentKafka):
    """What kcat is not asked to do on a stage is done by a newer librdkafka."""

    name = CLIENT

    def __init__(self, version: str) -> None:
        self.version = version


PLAYS: Final[dict[str, Play]] = {}


def plays(name: str) -> Callable[[Play], Play]:
    """Says that a function carries out the scenario ``name``."""

    def register(function: Play) -> Play:
        PLAYS[name] = function
        return function

    return register


def produce(stage: Stage, topic: str, lines: Sequence[str], *arguments: str) -> None:
    text = "".join(f"{line}\n" for line in lines)
    run(stage.address, "-P", "-t", topic, *arguments, given=text.encode())


def consume(stage: Stage, topic: str, *arguments: str) -> list[dict[str, Any]]:
    """The records of a topic, from the beginning if nothing else is said, to the end."""
    where = () if "-o" in arguments else ("-o", "beginning")
    return run(stage.address, "-C", "-q", "-J", "-e", "-t", topic, *SOON, *where, *arguments).records()


def payloads(records: Sequence[dict[str, Any]]) -> list[str | None]:
    return [record["payload"] for record in records]


def numbered(count: int, *, first: int = 0, partition: int | None = None) -> list[Record]:
    return [Record(b"%d" % number, partition=partition) for number in range(first, first + count)]


@contextmanager
def running(stage: Stage, *arguments: str, given: bytes | None = None) -> Iterator[Running]:
    """A kcat that is interrupted at the end, if it has not ended by itself."""
    with tempfile.TemporaryDirectory() as folder:
        started = Running(stage.address, Path(folder), *arguments, given=given)
        try:
            yield started
        finally:
            started.interrupt()


def codec_play(codec: str) -> Play:
    def produce_lines(stage: Stage) -> None:
        topic = stage.topic()
        pairs = [(f"key-{number % 7}", f"value {number}") for number in range(200)]
        codec_arguments = [] if codec == "none" else ["-z", codec]
        lines = [f"{key}:{value}" for key, value in pairs]
        produce(stage, topic, lines, "-K:", *codec_arguments, *BATCHES)
        found = consume(stage, topic)
        expect([record["offset"] for record in found], list(range(200)), "offsets")
        expect([(record["key"], record["payload"]) for record in found], pairs, "keys and values")
        stored = {batch.codec for batch in stored_batches(stage.address, topic) if batch.record_count > 50}
        expect(stored, {codec}, "codecs of the large stored batches")

    return produce_lines


for each in CODECS:
    plays(f"codec-{each}")(codec_play(each))


@plays("acks")
def produce_with_acks(stage: Stage) -> None:
    topic = stage.topic()
    for acks in ("0", "1", "all"):
        produce(stage, topic, [acks], "-X", f"topic.acks={acks}")
    expect(values(stage.take(topic, 3)), [b"0", b"1", b"all"], "values")


@plays("headers")
def produce_headers(stage: Stage) -> None:
    topic = stage.topic()
    produce(stage, topic, ["x"], "-H", "twice=1", "-H", "twice=2", "-H", "empty=", "-H", "null")
    (record,) = consume(stage, topic)
    expect(record["headers"], ["twice", "1", "twice", "2", "empty", "", "null", None], "headers")
    (taken,) = stage.take(topic, 1)
    wanted = [("twice", b"1"), ("twice", b"2"), ("empty", b""), ("null", None)]
    expect(taken.headers, wanted, "headers to another client")


@plays("nulls")
def produce_nulls(stage: Stage) -> None:
    topic = stage.topic()
    produce(stage, topic, ["key:"], "-K:", "-Z")
    produce(stage, topic, ["key:"], "-K:")
    produce(stage, topic, [":value"], "-K:", "-Z")
    wanted = [(b"key", None), (b"key", b""), (None, b"value")]
    expect([(record.key, record.value) for record in stage.take(topic, 3)], wanted, "keys and values")
    found = [(record["key"], record["payload"]) for record in consume(stage, topic)]
    expect(found, [("key", None), ("key", ""), (None, "value")], "what kcat tells")


@plays("partition")
def produce_to_a_partition(stage: Stage) -> None:
    topic = stage.topic(3)
    produce(stage, topic, ["key:1", "key:2"], "-K:", "-p", "2")
    found = [(record["partition"], record["payload"]) for record in consume(stage, topic)]
    expect(found, [(2, "1"), (2, "2")], "partitions and values")


@plays("files")
def produce_files(stage: Stage) -> None:
    topic = stage.topic()
    contents = [bytes(range(250)) * 3600, b"two\nlines\n"]
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / name for name in ("large", "small")]
        for file, content in zip(files, contents, strict=True):
            file.write_bytes(content)
        run(stage.address, "-P", "-t", topic, *files)
    expect(values(stage.take(topic, 2, fetch_bytes_max=4_000_000)), contents, "values")


@plays("too-large")
def produce_what_is_too_large(stage: Stage) -> None:
    topic = stage.topic(settings={"max.message.bytes": "20000"})
    refused = run(stage.address, "-P", "-t", topic, given=b"x" * 25_000, check=False)
    expect(refused.exit_code, 1, "exit status")
    expect_that("Message size too large" in refused.errors, f"kcat says {refused.errors!r}")


@plays("idempotence")
def produce_idempotently(stage: Stage) -> None:
    topic = stage.topic()
    lines = [str(number) for number in range(500)]
    produce(stage, topic, lines, "-X", "enable.idempotence=true", "-X", "batch.num.messages=100", *BATCHES)
    expect(payloads(consume(stage, topic)), lines, "values")
    batches = stored_batches(stage.address, topic)
    expect_that(len(batches) >= 5, "there are too few batches")
    expect(len({batch.producer_id for batch in batches}), 1, "producer ids")
    expect_that(batches[0].producer_id >= 0, "the batches have no producer id")
    for before, after in pairwise(batches):
        expect(after.base_sequence, before.base_sequence + before.record_count, "a sequence number")


@plays("transaction")
def produce_in_a_transaction(stage: Stage) -> None:
    topic = stage.topic()
    lines = [str(number) for number in range(20)]
    produce(stage, topic, lines, "-X", f"transactional.id={stage.new_name('transaction')}")
    expect(payloads(consume(stage, topic, "-X", "isolation.level=read_committed")), lines, "values")
    taken = stage.take(topic, 20, committed_only=True)
    expect(values(taken), [line.encode() for line in lines], "values to another client")


@plays("transaction-aborted")
def abort_a_transaction(stage: Stage) -> None:
    topic = stage.topic()
    identity = f"transactional.id={stage.new_name('transaction')}"
    lines = "".join(f"{number} {'x' * 100}\n" for number in range(3000))  # kcat reads much at a time
    with running(stage, "-P", "-t", topic, "-X", identity, given=lines.encode()) as producing:
        uncommitted = stage.take(topic, 100)
        producing.interrupt()

    def produces() -> bool:
        """On a busy machine kcat does not wait until what is open has been aborted."""
        done = run(stage.address, "-P", "-t", topic, "-X", identity, given=b"after\nthat\n", check=False)
        if done.exit_code:
            expect_that("another concurrent operation" in done.errors, f"kcat says {done.errors!r}")
        return not done.exit_code

    wait_for(produces, "kcat has its transaction")
    found = payloads(consume(stage, topic, "-X", "isolation.level=read_committed"))
    expect(found, ["after", "that"], "values that are committed")
    everything = payloads(consume(stage, topic, "-X", "isolation.level=read_uncommitted"))
    expect_subset([record.value.decode() for record in uncommitted if record.value], everything, "everything")


@plays("from-beginning")
def consume_from_the_beginning(stage: Stage) -> None:
    topic = stage.topic(3)
    stage.send(topic, [record for number in range(3) for record in numbered(10, partition=number)])
    found = consume(stage, topic)
    expect(len(found), 30, "records")
    for number in range(3):
        of_partition = [record for record in found if record["partition"] == number]
        expect(payloads(of_partition), [str(each) for each in range(10)], f"values of {number}")


@plays("from-end")
def consume_from_the_end(stage: Stage) -> None:
    topic = stage.topic()
    producer = stage.producer()
    producer.send(topic, numbered(10))
    arguments = ("-C", "-u", "-J", "-t", topic, "-o", "end", *SOON)
    with running(stage, *arguments) as consuming:
        consuming.wait_for(lambda kcat: "Reached end" in kcat.errors(), "the end is reached")
        producer.send(topic, numbered(2, first=10))
        consuming.wait_for(lambda kcat: len(kcat.records()) >= 2, "two records come")
        expect(payloads(consuming.records()), ["10", "11"], "values")


@plays("last-records")
def consume_the_last_records(stage: Stage) -> None:
    topic = stage.topic()
    stage.send(topic, numbered(10))
    expect(payloads(consume(stage, topic, "-o", "-3")), ["7", "8", "9"], "values")


@plays("from-offset")
def consume_from_an_offset(stage: Stage) -> None:
    topic = stage.topic()
    stage.send(topic, numbered(10))
    expect(payloads(consume(stage, topic, "-o", "7")), ["7", "8", "9"], "values")


@plays("from-timestamp")
def consume_a_span_of_time(stage: Stage) -> None:
    topic = stage.topic()
    stage.send(topic, [Record(b"%d" % each, timestamp_ms=START_MS + 10 * each) for each in range(10)])
    found = consume(stage, topic, "-o", f"s@{START_MS + 25}", "-o", f"e@{START_MS + 60}")
    expect(payloads(found), ["3", "4", "5"], "values")
    expect([record["ts"] for record in found], [START_MS + 10 * each for each in (3, 4, 5)], "timestamps")


@plays("counted")
def consume_a_number_of_records(stage: Stage) -> None:
    topic = stage.topic()
    stage.send(topic, numbered(10))
    expect(payloads(consume(stage, topic, "-c", "4")), ["0", "1", "2", "3"], "values")


@plays("format")
def consume_in_a_format(stage: Stage) -> None:
    topic = stage.topic()
    records = [
        Record(b"value", b"key", [("a", b"1"), ("b", b"2")], timestamp_ms=START_MS),
        Record(None, b"other", timestamp_ms=START_MS + 1),
    ]
    stage.send(topic, records)
    form = "%t %p %o %T %K %k %S %s %h|"
    done = run(stage.address, "-C", "-q", "-e", "-t", topic, "-o", "beginning", "-f", form, *SOON)
    wanted = f"{topic} 0 0 {START_MS} 3 key 5 value a=1,b=2|{topic} 0 1 {START_MS + 1} 5 other -1  |"
    expect(done.output.decode(), wanted, "what is printed")


@plays("codecs")
def consume_every_codec(stage: Stage) -> None:
    topic = stage.topic()
    for number, codec in enumerate(CODECS):
        stage.send(topic, numbered(100, first=100 * number), codec=codec, linger_ms=100)
    expect(payloads(consume(stage, topic)), [str(each) for each in range(500)], "values")


@plays("missing-topic")
def miss_a_topic(stage: Stage) -> None:
    topic = stage.new_name("topic")
    failed = run(stage.address, "-C", "-e", "-t", topic, check=False)
    expect(failed.exit_code, 1, "exit status")
    wanted = f"% ERROR: Topic {topic} error: Broker: Unknown topic or partition\n"
    expect(failed.errors, wanted, "what kcat says")


def join(stage: Stage, group: str, *arguments: str) -> Done:
    """Consume all there is as the only member of a group."""
    reset = ("-X", "auto.offset.reset=earliest")
    return run(stage.address, "-q", "-J", "-e", *SOON, *reset, "-G", group, *arguments)


@plays("group-goes-on")
def go_on_where_the_group_was(stage: Stage) -> None:
    topic, group = stage.topic(), stage.new_name("group")
    producer = stage.producer()
    for first, count in ((0, 10), (10, 5)):
        producer.send(topic, numbered(count, first=first))
        found = payloads(join(stage, group, topic).records())
        expect(found, [str(first + each) for each in range(count)], "values")


@plays("group-shares")
def share_partitions(stage: Stage) -> None:
    topic, group = stage.topic(4), stage.new_name("group")
    with ExitStack() as opened:
        arguments = ("-u", "-J", *SOON, "-X", "auto.offset.reset=earliest", "-G", group, topic)
        members = [opened.enter_context(running(stage, *arguments)) for _ in range(2)]
        for member in members:
            member.wait_for(lambda kcat: assigned(kcat) == 2, "a member has two partitions")
        stage.send(topic, [record for number in range(4) for record in numbered(20, partition=number)])
        for member in members:
            member.wait_for(lambda kcat: len(kcat.records()) >= 40, "each gets its records")
        found = [record for member in members for record in member.records()]
        expect(len(found), 80, "records")
        expect(len({(record["partition"], record["offset"]) for record in found}), 80, "different records")
        for member in members:
            of_member = Counter(record["partition"] for record in member.records())
            expect(sorted(of_member.values()), [20, 20], "records of a member, by partition")


def assigned(member: Running) -> int:
    """How many partitions a member has, as it says itself."""
    told = [line for line in member.errors().splitlines() if "assigned: " in line]
    return told[-1].count("[") if told else 0


@plays("group-pattern")
def join_for_a_pattern(stage: Stage) -> None:
    stem = stage.new_name("pattern")
    names = [stage.topic(name=f"{stem}.{end}") for end in ("one", "two", "other")]
    for name in names:
        stage.send(name, numbered(5))
    found = join(stage, stage.new_name("group"), f"^{stem}\\.(one|two)$").records()
    expect(Counter(record["topic"] for record in found), {names[0]: 5, names[1]: 5}, "records by topic")


@plays("list")
def list_brokers_and_topics(stage: Stage) -> None:
    topic = stage.topic(3)
    text = run(stage.address, "-L").output.decode()
    port = stage.address.rpartition(":")[2]
    expect_that(f":{port} (controller)\n" in text, "the broker is not listed as the controller")
    expect_that(f'  topic "{topic}" with 3 partitions:\n' in text, "the topic is not listed")
    told = json.loads(run(stage.address, "-L", "-J", "-t", topic).output)
    ((broker, address),) = [(each["id"], each["name"]) for each in told["brokers"]]
    expect(address.rpartition(":")[2], port, "port of the broker")
    (described,) = told["topics"]
    replicas = [{"id": broker}]
    wanted = [
        {"partition": number, "leader": broker, "replicas": replicas, "isrs": replicas} for number in range(3)
    ]
    expect(described["partitions"], wanted, "partitions")


@plays("list-missing")
def list_a_topic_that_is_not_there(stage: Stage) -> None:
    topic = stage.new_name("topic")
    text = run(stage.address, "-L", "-t", topic).output.decode()
    wanted = f'  topic "{topic}" with 0 partitions: Broker: Unknown topic or partition\n'
    expect_that(wanted in text, f"kcat says {text!r}")
    wait_for(lambda: topic in stage.admin.list_topics(), "the topic is made")


@plays("query")
def query_offsets(stage: Stage) -> None:
    topic = stage.topic(2)
    times = [(number, START_MS + 10 * each) for number in range(2) for each in range(5)]
    stage.send(topic, [Record(b"x", partition=number, timestamp_ms=each) for number, each in times])
    for time, offset in ((1, 0), (START_MS + 21, 3), (START_MS + 1000, -1)):
        asked = [argument for number in range(2) for argument in ("-t", f"{topic}:{number}:{time}")]
        told = run(stage.address, "-Q", *asked).output.decode().splitlines()
        expect(sorted(told), [f"{topic} [{number}] offset {offset}" for number in range(2)], "offsets")
