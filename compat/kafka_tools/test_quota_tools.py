"""Kafka 4.4's tool for quotas prints here what it prints of Kafka."""

from pathlib import Path

import pytest

from compat.broker_process import running_broker
from compat.kafka_tools.several_tools import run_tools
from compat.oracle.java import run_tool

pytestmark = pytest.mark.slow

TOLD = (
    (
        "--alter --add-config producer_byte_rate=1024,consumer_byte_rate=2048.0 --user alice",
        "Completed updating config for user alice.",
    ),
    (
        "--alter --add-config request_percentage=12.5 --user alice --client app",
        "Completed updating config for client app.",
    ),
    (
        "--alter --add-config controller_mutation_rate=10 --entity-type users --entity-default",
        "Completed updating default config for users in the cluster.",
    ),
    (
        "--alter --add-config consumer_byte_rate=4096 --client-defaults",
        "Completed updating default config for clients in the cluster.",
    ),
    (
        "--alter --add-config connection_creation_rate=500 --ip 192.0.2.1",
        "Completed updating config for ip 192.0.2.1.",
    ),
    (
        "--alter --add-config connection_creation_rate=700 --ip-defaults",
        "Completed updating default config for ips in the cluster.",
    ),
    (
        "--describe --entity-type users",
        """\
Quota configs for the default user-principal are controller_mutation_rate=10.0
Quota configs for user-principal 'alice' are consumer_byte_rate=2048.0, producer_byte_rate=1024.0""",
    ),
    (
        "--describe --entity-type users --entity-type clients",
        "Quota configs for user-principal 'alice', client-id 'app' are request_percentage=12.5",
    ),
    (
        "--describe --entity-type clients --entity-default",
        "Quota configs for the default client-id are consumer_byte_rate=4096.0",
    ),
    (
        "--describe --entity-type ips",
        """\
Quota configs for the default ip are connection_creation_rate=700.0
Quota configs for ip '192.0.2.1' are connection_creation_rate=500.0""",
    ),
    ("--describe --ip 192.0.2.2", ""),
    (
        "--alter --delete-config consumer_byte_rate --add-config producer_byte_rate=77 --user alice",
        "Completed updating config for user alice.",
    ),
    (
        "--describe --user alice",
        "Quota configs for user-principal 'alice' are producer_byte_rate=77.0",
    ),
)
"""Commands, and what they print of Apache Kafka."""


def test_quotas_are_given_shown_and_taken(kafka_jars: Path, tmp_path: Path) -> None:
    with running_broker(tmp_path) as broker:
        commands = [("kafka-configs", *words.split()) for words, _ in TOLD]
        printed = [text.strip() for text in run_tools(broker.address, *commands)]
        wrong = ("--alter", "--add-config", "producer_byte_rate=-5", "--user", "alice")
        refused = run_tool("kafka-configs", *wrong, bootstrap=broker.address)
    assert dict(zip((words for words, _ in TOLD), printed, strict=True)) == dict(TOLD)
    assert refused.exit_code == 1
    assert "InvalidRequestException: Quota producer_byte_rate must be greater than 0" in refused.errors
