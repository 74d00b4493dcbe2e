"""Settings of topics, and the broker's defaults of them."""

from collections.abc import Iterator

import pytest

from broker.clock import BrokerClock
from broker.config.definitions import ConfigError, Definition, Scope, Update, definition, definitions, find
from protocol.error_codes import ErrorCode
from protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from protocol.records.builder import build_batch
from protocol.records.compression import Compression
from storage.config import LogConfig
from tests.broker.config.acting.whole_broker import (
    BROKER,
    TOPIC,
    WholeBroker,
    one_record,
    whole_broker,
)

# How topics come and go.


@pytest.mark.acts("num.partitions")
async def test_a_topic_whose_maker_does_not_say_how_large_it_is(clock: BrokerClock) -> None:
    async with whole_broker(clock, {"num.partitions": "3"}) as broker:
        await broker.create(partitions=-1)
        assert len(broker.services.image.topics["t"].partitions) == 3


@pytest.mark.acts("default.replication.factor")
async def test_more_replicas_than_brokers(clock: BrokerClock) -> None:
    async with whole_broker(clock, {"default.replication.factor": "2"}) as broker:
        topic = CreatableTopic(name="t", num_partitions=1, replication_factor=-1)
        answer = await broker.ask(CreateTopicsRequest(topics=[topic], timeout_ms=1000), CreateTopicsResponse)
        assert answer.topics[0].error_code == ErrorCode.INVALID_REPLICATION_FACTOR


@pytest.mark.acts("auto.create.topics.enable")
@pytest.mark.parametrize("enabled", ["true", "false"])
async def test_asking_for_a_topic_may_make_it(clock: BrokerClock, enabled: str) -> None:
    async with whole_broker(clock, {"auto.create.topics.enable": enabled}) as broker:
        request = MetadataRequest(topics=[MetadataRequestTopic(name="t")], allow_auto_topic_creation=True)
        await broker.ask(request, MetadataResponse)
        await broker.create("u")  # by when a topic asked for before is there
        assert ("t" in broker.services.image.topics) == (enabled == "true")


@pytest.mark.acts("delete.topic.enable")
async def test_topics_may_have_to_stay(clock: BrokerClock) -> None:
    async with whole_broker(clock, {"delete.topic.enable": "false"}) as broker:
        await broker.create()
        answer = await broker.ask(
            DeleteTopicsRequest(topics=[DeleteTopicState(name="t")], timeout_ms=1000), DeleteTopicsResponse
        )
        assert answer.responses[0].error_code == ErrorCode.TOPIC_DELETION_DISABLED


# What may be produced, and what becomes of it.

WORDS = b" ".join(b"%d bottles, %d of them green" % (n, n * n * 7919 % 10007) for n in range(2000))


def stored_bytes(broker: WholeBroker) -> int:
    return broker.leader().log.segments[0].size_bytes


@pytest.mark.acts("compression.type")
@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd", "uncompressed"])
async def test_the_topic_chooses_the_codec(clock: BrokerClock, codec: str) -> None:
    async with whole_broker(clock) as broker:
        await broker.create(settings={"compression.type": codec})
        sent = build_batch([(1, b"key", WORDS, ())], compression=Compression.GZIP)
        assert (await broker.produce(sent)).error_code == 0
        (batch,) = await broker.batches()
        assert Compression(batch.codec_number).name.lower() == codec.replace("uncompressed", "none")


@pytest.mark.acts("compression.gzip.level", "compression.lz4.level", "compression.zstd.level")
@pytest.mark.parametrize(("codec", "low", "high"), [("gzip", 1, 9), ("lz4", 1, 17), ("zstd", -100, 19)])
async def test_how_hard_it_tries_is_set(clock: BrokerClock, codec: str, low: int, high: int) -> None:
    async with whole_broker(clock) as broker:
        await broker.create(settings={"compression.type": codec})
        sizes = []
        for level in (low, high):
            await broker.alter(TOPIC, "t", {f"compression.{codec}.level": str(level)})
            before = stored_bytes(broker)
            assert (await broker.produce(one_record(WORDS))).error_code == 0
            sizes.append(stored_bytes(broker) - before)
        assert sizes[1] < sizes[0] < len(WORDS)


@pytest.mark.acts("max.message.bytes", "message.max.bytes")
async def test_a_batch_may_be_too_large(clock: BrokerClock) -> None:
    async with whole_broker(clock, {"message.max.bytes": "100"}) as broker:
        await broker.create()
        assert (await broker.produce(one_record(bytes(200)))).error_code == ErrorCode.MESSAGE_TOO_LARGE
        await broker.alter(TOPIC, "t", {"max.message.bytes": "1000"})
        assert (await broker.produce(one_record(bytes(200)))).error_code == 0


@pytest.mark.acts("message.timestamp.type")
async def test_records_may_have_the_broker_s_time(clock: BrokerClock) -> None:
    async with whole_broker(clock) as broker:
        await broker.create(settings={"message.timestamp.type": "LogAppendTime"})
        clock.advance(1_000_000)
        answer = await broker.produce(one_record(timestamp=5))
        assert abs(answer.log_append_time_ms - clock.now_ms()) < 60_000


@pytest.mark.acts("message.timestamp.before.max.ms", "message.timestamp.after.max.ms")
@pytest.mark.parametrize(("setting", "sign"), [("before", -1), ("after", 1)])
async def test_times_may_be_too_far_away(clock: BrokerClock, setting: str, sign: int) -> None:
    async with whole_broker(clock) as broker:
        await broker.create(settings={f"message.timestamp.{setting}.max.ms": "3600000"})
        for hours, code in ((0.5, 0), (1.5, ErrorCode.INVALID_TIMESTAMP)):
            timestamp = clock.now_ms() + sign * round(hours * 3_600_000)
            assert (await broker.produce(one_record(timestamp=timestamp))).error_code == code


# Segments and their files.


def segment_count(broker: WholeBroker) -> int:
    return len(broker.leader().log.segments)


@pytest.mark.acts("segment.bytes", "internal.segment.bytes")
@pytest.mark.parametrize(
    ("setting", "value", "record"), [("segment.bytes", 1 << 20, 600_000), ("internal.segment.bytes", 200, 60)]
)
async def test_a_segment_is_full(clock: BrokerClock, setting: str, value: int, record: int) -> None:
    async with whole_broker(clock) as broker:
        await broker.create(settings={setting: str(value)})
        for _ in range(2):
            await broker.produce(one_record(bytes(record)))
        assert segment_count(broker) == 2


@pytest.mark.acts("segment.ms")
async def test_a_segment_is_old(clock: BrokerClock) -> None:
    async with whole_broker(clock) as broker:
        await broker.create(settings={"segment.ms": "60000"})
        for minutes, count in ((0, 1), (0.9, 1), (0.2, 2)):
            clock.advance(round(minutes * 60_000))
            await broker.produce(one_record(timestamp=clock.now_ms()))
            assert segment_count(broker) == count


@pytest.mark.acts("segment.jitter.ms")
async def test_a_segment_may_end_early(clock: BrokerClock) -> None:
    async with whole_broker(clock) as broker:
        week = 7 * 86_400_000
        for number in range(8):
            topic = f"t{number}"
            await broker.create(topic, settings={"segment.jitter.ms": str(week)})
            await broker.produce(one_record(timestamp=clock.now_ms()), topic=topic)
        clock.advance(week // 2)
        counts = set()
        for number in range(8):
            await broker.produce(one_record(timestamp=clock.now_ms()), topic=f"t{number}")
            counts.add(len(broker.leader(f"t{number}").log.segments))
        assert counts == {1, 2}


@pytest.mark.acts("index.interval.bytes", "segment.index.bytes")
async def test_an_index_is_full(clock: BrokerClock) -> None:
    async with whole_broker(clock) as broker:
        await broker.create(settings={"index.interval.bytes": "1", "segment.index.bytes": "24"})
        await broker.create("u", settings={"segment.index.bytes": "24"})
        for topic in ("t", "u"):
            for _ in range(6):
                await broker.produce(topic=topic)
        assert segment_count(broker) > 1
        assert len(broker.leader("u").log.segments) == 1


@pytest.mark.acts("flush.messages")
async def test_what_is_flushed_with_every_record(clock: BrokerClock) -> None:
    async with whole_broker(clock) as broker:
        await broker.create(settings={"flush.messages": "3"})
        points = []
        for _ in range(6):
            await broker.produce()
            points.append(broker.leader().log.recovery_point)
        assert points == [0, 0, 3, 3, 3, 6]


# Where topics get what they do not say themselves.


def another_value(known: Definition) -> str:
    """A valid value of a setting that is not its default."""
    candidates: list[str] = ["true", "false", "compact", "LogAppendTime", "gzip", "0.25"]
    if isinstance(known.default, int):
        candidates += [str(known.default - 1), str(known.default + 1)]
    candidates += ["7", "5000000"]
    for text in candidates:
        try:
            if known.parse(text) != known.default:
                return text
        except ConfigError:
            continue
    raise AssertionError(f"no other value for {known}")


def inherited() -> Iterator[tuple[Definition, Definition]]:
    """Each topic setting that acts, with each broker setting that gives its default."""
    for known in definitions(Scope.TOPIC):
        if known.is_heeded:
            for name, _ in known.synonyms:
                yield known, definition(Scope.BROKER, name)


async def test_a_running_log_follows_the_cluster_the_broker_and_its_topic(clock: BrokerClock) -> None:
    """In the order of their weight, without a restart, and back again."""
    async with whole_broker(clock) as broker:
        await broker.create()
        leader = broker.leader()
        for own, giver in inherited():
            if giver.update is not Update.CLUSTER_WIDE:
                continue
            text, before = another_value(giver), leader.settings[own.name]
            expected = own.parse(text)
            if own.name == "min.insync.replicas":
                continue  # what ELR makes of it is told elsewhere
            for kind, resource, name in (
                (BROKER, "", giver.name),
                (BROKER, "1", giver.name),
                (TOPIC, "t", own.name),
            ):
                await broker.alter(kind, resource, {name: text})
                assert leader.settings[own.name] == expected, (name, resource)
                assert attributes(leader.log.config) == attributes(LogConfig.from_settings(leader.settings))
                await broker.alter(kind, resource, {name: None})
            assert leader.settings[own.name] == before, own.name


def attributes(config: LogConfig) -> list[object]:
    return [getattr(config, name) for name in LogConfig.__slots__]


GIVERS = (
    "compression.gzip.level",
    "compression.lz4.level",
    "compression.type",
    "compression.zstd.level",
    "log.cleaner.delete.retention.ms",
    "log.cleaner.max.compaction.lag.ms",
    "log.cleaner.min.cleanable.ratio",
    "log.cleaner.min.compaction.lag.ms",
    "log.cleanup.policy",
    "log.flush.interval.messages",
    "log.flush.interval.ms",
    "log.flush.scheduler.interval.ms",
    "log.index.interval.bytes",
    "log.index.size.max.bytes",
    "log.message.timestamp.after.max.ms",
    "log.message.timestamp.before.max.ms",
    "log.message.timestamp.type",
    "log.retention.bytes",
    "log.retention.hours",
    "log.retention.minutes",
    "log.retention.ms",
    "log.roll.hours",
    "log.roll.jitter.hours",
    "log.roll.jitter.ms",
    "log.roll.ms",
    "log.segment.bytes",
    "log.segment.delete.delay.ms",
    "max.decompressed.message.bytes",
    "message.max.bytes",
    "min.insync.replicas",
    "unclean.leader.election.enable",
)


@pytest.mark.acts(*GIVERS)
async def test_a_broker_s_own_settings_give_the_defaults(clock: BrokerClock) -> None:
    givers = {giver.name: (own, giver) for own, giver in inherited()}
    assert sorted(givers) == list(GIVERS)
    for name, (own, giver) in givers.items():
        text = another_value(giver)
        async with whole_broker(clock, {name: text}) as broker:
            await broker.create()
            factor = dict(own.synonyms)[name]
            value = giver.parse(text)
            expected = value * factor if isinstance(value, int) and factor > 1 else value
            assert broker.leader().settings[own.name] == expected, name


def test_units_weigh_more_the_finer_they_are() -> None:
    for known in definitions(Scope.TOPIC):
        factors = [factor for _, factor in known.synonyms]
        assert factors == sorted(factors)
        assert all(find(Scope.BROKER, name) is not None for name, _ in known.synonyms)
