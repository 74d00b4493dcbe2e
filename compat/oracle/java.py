"""Starting a Java class out of Kafka's jars."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from compat.oracle.jars import HERE, find_jars, find_java

TOOLS = {
    "kafka-acls": "org.apache.kafka.tools.AclCommand",
    "kafka-broker-api-versions": "org.apache.kafka.tools.BrokerApiVersionsCommand",
    "kafka-client-metrics": "org.apache.kafka.tools.ClientMetricsCommand",
    "kafka-cluster": "org.apache.kafka.tools.ClusterTool",
    "kafka-configs": "org.apache.kafka.tools.ConfigCommand",
    "kafka-console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "kafka-console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "kafka-console-share-consumer": "org.apache.kafka.tools.consumer.ConsoleShareConsumer",
    "kafka-consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "kafka-consumer-perf-test": "org.apache.kafka.tools.ConsumerPerformance",
    "kafka-delegation-tokens": "org.apache.kafka.tools.DelegationTokenCommand",
    "kafka-delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "kafka-dump-log": "org.apache.kafka.tools.DumpLogSegments",
    "kafka-e2e-latency": "org.apache.kafka.tools.EndToEndLatency",
    "kafka-features": "org.apache.kafka.tools.FeatureCommand",
    "kafka-get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "kafka-groups": "org.apache.kafka.tools.GroupsCommand",
    "kafka-jmx": "org.apache.kafka.tools.JmxTool",
    "kafka-leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
    "kafka-log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "kafka-metadata-quorum": "org.apache.kafka.tools.MetadataQuorumCommand",
    "kafka-producer-perf-test": "org.apache.kafka.tools.ProducerPerformance",
    "kafka-reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "kafka-replica-verification": "org.apache.kafka.tools.ReplicaVerificationTool",
    "kafka-share-consumer-perf-test": "org.apache.kafka.tools.ShareConsumerPerformance",
    "kafka-share-groups": "org.apache.kafka.tools.consumer.group.ShareGroupCommand",
    "kafka-storage": "kafka.tools.StorageTool",
    "kafka-streams-application-reset": "org.apache.kafka.tools.StreamsResetter",
    "kafka-streams-groups": "org.apache.kafka.tools.streams.StreamsGroupCommand",
    "kafka-topics": "org.apache.kafka.tools.TopicCommand",
    "kafka-transactions": "org.apache.kafka.tools.TransactionsCommand",
    "kafka-verifiable-consumer": "org.apache.kafka.tools.VerifiableConsumer",
    "kafka-verifiable-producer": "org.apache.kafka.tools.VerifiableProducer",
    "kafka-verifiable-share-consumer": "org.apache.kafka.tools.VerifiableShareConsumer",
}
"""The names by which Kafka's ``bin`` folder knows its tools, and the classes behind them."""

QUICK_START = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto")
"""A tool lives for a second: compile little, and keep the second core free."""


class ToolResult(NamedTuple):
    """What a tool said."""

    exit_code: int
    output: str
    errors: str


def java_command(
    main_class: str,
    *arguments: str,
    heap_mebibytes: int = 256,
    options: Sequence[str] = (),
    beside: Sequence[str] = (),
    jars: Path | None = None,
) -> list[str]:
    """The command line that runs ``main_class``, which is Kafka's or on the class path ``beside``.

    ``jars``: a folder of another Kafka's.  Raises KafkaMissing.
    """
    return [
        str(find_java()),
        f"-Xmx{heap_mebibytes}m",
        *options,
        f"-Dlog4j2.configurationFile={HERE / 'log4j2.xml'}",
        "-cp",
        os.pathsep.join([*beside, f"{jars or find_jars()}/*"]),
        main_class,
        *arguments,
    ]


def run_tool(
    tool: str,
    *arguments: str,
    bootstrap: str | None = None,
    text: str = "",
    folder: Path | None = None,
    timeout_seconds: float = 120,
) -> ToolResult:
    """Run one of ``TOOLS`` with ``text`` as its input, against ``bootstrap`` if it talks to a broker."""
    address = () if bootstrap is None else ("--bootstrap-server", bootstrap)
    done = subprocess.run(
        java_command(TOOLS[tool], *address, *arguments, options=QUICK_START),
        input=text,
        capture_output=True,
        text=True,
        timeout=timeout_seconds,
        cwd=folder,
        check=False,
    )
    return ToolResult(done.returncode, done.stdout, done.stderr)
