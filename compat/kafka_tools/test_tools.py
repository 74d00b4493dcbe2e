"""Kafka 4.4's command line tools do on our broker what an operator expects of them.

OTTLA_TEST_BOOTSTRAP names another broker to run them against, such as Kafka's own.
"""

import json
import re
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from compat.oracle.java import run_tool
from compat.python_clients import CLIENTS
from compat.scenarios.python.records import sample_records
from compat.scenarios.python.stage import Stage

pytestmark = pytest.mark.slow

RunTool = Callable[..., str]


@pytest.fixture
def tool(kafka_jars: Path, address: str) -> RunTool:
    """Runs a tool against the broker and gives what it printed."""

    def run(name: str, *arguments: str, text: str = "") -> str:
        done = run_tool(name, *arguments, bootstrap=address, text=text)
        assert done.exit_code == 0, done.output + done.errors
        return done.output

    return run


@pytest.fixture
def topic() -> str:
    return f"tools-{uuid.uuid4()}"


def fill(address: str, topic: str, count: int) -> None:
    """Create a topic of one partition with ``count`` records."""
    with Stage(CLIENTS["confluent-kafka"], address) as stage:
        stage.topic(name=topic)
        stage.send(topic, sample_records(count))


def test_topics_are_created_described_altered_and_deleted(tool: RunTool, topic: str) -> None:
    settings = ("--config", "retention.ms=60000", "--config", "cleanup.policy=delete")
    made = tool("kafka-topics", "--create", "--topic", topic, "--partitions", "3", *settings)
    assert f"Created topic {topic}." in made
    assert topic in tool("kafka-topics", "--list").split()
    described = tool("kafka-topics", "--describe", "--topic", topic)
    assert "PartitionCount: 3" in described
    assert "retention.ms=60000" in described
    assert described.count("Leader: ") == 3
    tool("kafka-topics", "--alter", "--topic", topic, "--partitions", "5")
    assert "PartitionCount: 5" in tool("kafka-topics", "--describe", "--topic", topic)
    tool("kafka-topics", "--delete", "--topic", topic)
    assert topic not in tool("kafka-topics", "--list").split()


def test_creating_a_topic_twice_is_refused_in_kafka_s_words(
    kafka_jars: Path, tool: RunTool, address: str, topic: str
) -> None:
    tool("kafka-topics", "--create", "--topic", topic)
    again = run_tool("kafka-topics", "--create", "--topic", topic, bootstrap=address)
    assert again.exit_code != 0
    assert f"Topic '{topic}' already exists." in again.output + again.errors


def test_the_console_producer_and_consumer_pass_lines_on(tool: RunTool, topic: str) -> None:
    tool("kafka-topics", "--create", "--topic", topic)
    lines = [f"line {number}" for number in range(50)]
    tool("kafka-console-producer", "--topic", topic, text="\n".join(lines) + "\n")
    read = ("--topic", topic, "--from-beginning", "--max-messages", "50", "--timeout-ms", "30000")
    assert tool("kafka-console-consumer", *read).splitlines() == lines


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_the_console_producer_compresses_with_java_s_codecs(tool: RunTool, topic: str, codec: str) -> None:
    tool("kafka-topics", "--create", "--topic", topic)
    lines = [f"line {number} of many that are alike" for number in range(200)]
    compress = ("--compression-codec", codec, "--topic", topic)
    tool("kafka-console-producer", *compress, text="\n".join(lines) + "\n")
    read = ("--topic", topic, "--from-beginning", "--max-messages", "200", "--timeout-ms", "30000")
    assert tool("kafka-console-consumer", *read).splitlines() == lines


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_groups_are_described_reset_and_deleted(
    tool: RunTool, topic: str, address: str, protocol: str
) -> None:
    fill(address, topic, 40)
    group = f"group-{uuid.uuid4()}"
    read = ("--topic", topic, "--group", group, "--from-beginning", "--max-messages", "15")
    # The console consumer commits when it ends: what it was given, not all that it fetched.
    by_protocol = ("--command-property", f"group.protocol={protocol}", "--timeout-ms", "30000")
    tool("kafka-console-consumer", *read, *by_protocol)
    assert group in tool("kafka-consumer-groups", "--list", "--type", protocol).split()
    assert rows_of(tool("kafka-consumer-groups", "--describe", "--group", group), topic) == [
        ["0", "15", "40", "25"]
    ]
    reset = ("--group", group, "--topic", topic, "--reset-offsets", "--to-offset", "30", "--execute")
    tool("kafka-consumer-groups", *reset)
    assert rows_of(tool("kafka-consumer-groups", "--describe", "--group", group), topic) == [
        ["0", "30", "40", "10"]
    ]
    state = tool("kafka-consumer-groups", "--describe", "--group", group, "--state")
    assert "Empty" in state
    tool("kafka-consumer-groups", "--delete-offsets", "--group", group, "--topic", topic)
    tool("kafka-consumer-groups", "--delete", "--group", group)
    assert group not in tool("kafka-consumer-groups", "--list").split()


def rows_of(description: str, topic: str) -> list[list[str]]:
    """Partition, current offset, end offset and lag of a topic, out of a group's description."""
    rows = [line.split() for line in description.splitlines()]
    return [row[2:6] for row in rows if topic in row]


def test_settings_of_topics_and_brokers_are_changed(tool: RunTool, topic: str, address: str) -> None:
    tool("kafka-topics", "--create", "--topic", topic)
    of_topic = ("--entity-type", "topics", "--entity-name", topic)
    tool("kafka-configs", "--alter", *of_topic, "--add-config", "retention.ms=12345,max.message.bytes=2000")
    described = tool("kafka-configs", "--describe", *of_topic)
    assert "retention.ms=12345" in described
    assert "max.message.bytes=2000" in described
    tool("kafka-configs", "--alter", *of_topic, "--delete-config", "retention.ms")
    assert "retention.ms" not in tool("kafka-configs", "--describe", *of_topic)
    everywhere = ("--entity-type", "brokers", "--entity-default")
    tool("kafka-configs", "--alter", *everywhere, "--add-config", "log.retention.ms=7654321")
    assert "log.retention.ms=7654321" in tool("kafka-configs", "--describe", *everywhere)
    tool("kafka-configs", "--alter", *everywhere, "--delete-config", "log.retention.ms")
    node = broker_ids(tool("kafka-broker-api-versions"))[0]
    everything = tool(
        "kafka-configs", "--describe", "--entity-type", "brokers", "--entity-name", node, "--all"
    )
    assert "log.retention.hours=168" in everything


def broker_ids(api_versions: str) -> list[str]:
    return re.findall(r"\(id: (\d+) ", api_versions)


def test_offsets_are_told_and_records_deleted(
    tool: RunTool, topic: str, address: str, tmp_path: Path
) -> None:
    fill(address, topic, 30)
    ask = ("kafka-get-offsets", "--topic", topic)
    assert tool(*ask).split() == [f"{topic}:0:30"]
    assert tool(*ask, "--time", "earliest").split() == [f"{topic}:0:0"]
    assert tool(*ask, "--time", "max-timestamp").split() == [f"{topic}:0:29"]
    plan = {"version": 1, "partitions": [{"topic": topic, "partition": 0, "offset": 12}]}
    plan_file = tmp_path / "plan.json"
    plan_file.write_text(json.dumps(plan))
    assert "low_watermark: 12" in tool("kafka-delete-records", "--offset-json-file", str(plan_file))
    assert tool(*ask, "--time", "earliest").split() == [f"{topic}:0:12"]


def test_log_directories_are_described(tool: RunTool, topic: str, address: str) -> None:
    fill(address, topic, 100)
    printed = tool("kafka-log-dirs", "--describe", "--topic-list", topic)
    found = json.loads(printed[printed.index("{") :])
    (broker,) = found["brokers"]
    (partition,) = [partition for directory in broker["logDirs"] for partition in directory["partitions"]]
    assert partition["partition"] == f"{topic}-0"
    assert partition["size"] > 1000
    assert partition["offsetLag"] == 0


def test_api_versions_are_all_known_to_kafka_s_tool(tool: RunTool) -> None:
    printed = tool("kafka-broker-api-versions")
    assert "Produce(0): 0 to 13" in printed
    assert "Fetch(1): 4 to 18" in printed
    assert "UNKNOWN" not in printed


def test_producer_and_consumer_performance_tools_finish(tool: RunTool, topic: str, address: str) -> None:
    tool("kafka-topics", "--create", "--topic", topic, "--partitions", "2")
    load = ("--num-records", "5000", "--record-size", "200", "--throughput", "-1", "--topic", topic)
    printed = tool("kafka-producer-perf-test", *load)
    assert "5000 records sent" in printed
    classic = ("--command-property", "group.protocol=classic", "--timeout", "30000")
    assert "5000" in tool("kafka-consumer-perf-test", "--topic", topic, "--num-records", "5000", *classic)


def test_transactions_are_listed_described_and_aborted(tool: RunTool, address: str, topic: str) -> None:
    fill(address, topic, 5)
    name = f"transaction of {topic}"
    with Stage(CLIENTS["confluent-kafka"], address) as stage:
        producer = stage.transactional_producer(name, timeout_ms=600_000)
        producer.begin()
        producer.send(topic, sample_records(3))
        listed = tool("kafka-transactions", "list", "--transactional-id-pattern", re.escape(name))
        assert "Ongoing" in listed
        assert f"{topic}-0" in tool("kafka-transactions", "describe", "--transactional-id", name)
        place = ("--topic", topic, "--partition", "0")
        assert open_since(tool, *place) == ["5"]
        hanging = tool("kafka-transactions", "find-hanging", "--broker-id", "1")
        assert topic not in hanging, "its coordinator knows it, and it is young"
        tool("kafka-transactions", "abort", *place, "--start-offset", "5")
        assert open_since(tool, *place) == ["None"]


def open_since(tool: RunTool, *place: str) -> list[str]:
    """Where the transactions of a partition's producers start."""
    heading, *lines = tool("kafka-transactions", "describe-producers", *place).splitlines()
    assert heading.split()[-1] == "CurrentTransactionStartOffset"
    return [line.split()[-1] for line in lines if line.strip()]
