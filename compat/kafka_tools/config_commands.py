"""What ``kafka-configs`` prints about every kind of resource: recorded from Apache Kafka 4.4.0.

``python -m compat.kafka_tools.config_commands 127.0.0.1:9092`` records anew, from a Kafka at that address.
It leaves the topic ``settings-t`` there, and nothing else.
"""

import json
import sys
from pathlib import Path
from typing import NamedTuple

from compat.kafka_tools.several_tools import tool_runner

RECORDED = Path(__file__).with_name("config_commands.json")

TOPIC = "--entity-type topics --entity-name settings-t"
GROUP = "--entity-type groups --entity-name settings-g"
METRICS = "--entity-type client-metrics --entity-name settings-m"
BROKER = "--entity-type brokers --entity-name 1"
EVERY_BROKER = "--entity-type brokers --entity-default"
LOGGERS = "--entity-type broker-loggers --entity-name 1"

CREATE = "--create --topic settings-t --partitions 1"

COMMANDS = (
    f"--describe {TOPIC}",
    f"--describe --all {TOPIC}",
    f"--alter {TOPIC} --add-config retention.ms=5000,cleanup.policy=[compact,delete]",
    f"--describe {TOPIC}",
    f"--alter {TOPIC} --add-config retention.ms=x",
    f"--alter {TOPIC} --add-config nope=x",
    f"--alter {TOPIC} --add-config min.compaction.lag.ms=5,max.compaction.lag.ms=4",
    f"--alter {TOPIC} --delete-config segment.ms",
    f"--alter {TOPIC} --delete-config retention.ms,cleanup.policy",
    f"--describe {TOPIC}",
    "--describe --entity-type topics --entity-name no-such-topic",
    "--alter --entity-type topics --entity-name no-such-topic --add-config retention.ms=5",
    f"--describe {GROUP}",
    f"--describe --all {GROUP}",
    f"--alter {GROUP} --add-config consumer.session.timeout.ms=50000",
    f"--describe {GROUP}",
    f"--alter {GROUP} --add-config consumer.session.timeout.ms=1",
    f"--alter {GROUP} --add-config nope=1",
    f"--alter {GROUP} --delete-config consumer.session.timeout.ms",
    f"--describe {METRICS}",
    f"--describe --all {METRICS}",
    f"--alter {METRICS} --add-config interval.ms=5000,match=[client_id=a.*]",
    f"--describe {METRICS}",
    f"--alter {METRICS} --add-config interval.ms=5",
    f"--alter {METRICS} --add-config match=[client=a]",
    f"--alter {METRICS} --add-config nope=5",
    f"--alter {METRICS} --delete-config interval.ms,match",
    f"--describe {BROKER}",
    f"--describe {EVERY_BROKER}",
    "--describe --entity-type brokers --entity-name 2",
    "--describe --entity-type brokers --entity-name x",
    f"--alter {BROKER} --add-config log.dirs=/x",
    f"--alter {BROKER} --add-config num.io.threads=1000",
    f"--alter {BROKER} --add-config log.cleaner.threads=x",
    f"--alter {BROKER} --add-config listener.name.x.log.cleaner.threads=x",
    f"--alter {EVERY_BROKER} --add-config listeners=PLAINTEXT://:1",
    f"--alter {EVERY_BROKER} --delete-config min.insync.replicas",
    "--describe --entity-type broker-loggers --entity-name 2",
    f"--alter {LOGGERS} --add-config root=NOPE",
    f"--alter {LOGGERS} --add-config no.such.logger=INFO",
    f"--alter {LOGGERS} --delete-config root",
)


class Outcome(NamedTuple):
    """How a command ended, and the lines that it wrote to either output, in alphabetical order."""

    code: int
    lines: list[str]


def outcomes(address: str) -> list[Outcome]:
    """What becomes of each command at the broker there."""
    found = []
    with tool_runner() as runner:
        runner.run("kafka-topics", "--bootstrap-server", address, *CREATE.split())
        for command in COMMANDS:
            done = runner.run("kafka-configs", "--bootstrap-server", address, *command.split())
            lines = (done.output + done.errors).replace(address, "BROKER").split("\n")
            told = [line for line in lines if line and not line.startswith(("\t", "SLF4J", "["))]
            found.append(Outcome(done.exit_code, sorted(told)))
    return found


def recorded() -> list[Outcome]:
    """What became of them at Kafka."""
    return [Outcome(each["code"], each["lines"]) for each in json.loads(RECORDED.read_text(encoding="utf-8"))]


if __name__ == "__main__":
    told = [
        {"command": command, **outcome._asdict()}
        for command, outcome in zip(COMMANDS, outcomes(sys.argv[1]), strict=True)
    ]
    RECORDED.write_text(f"{json.dumps(told, indent=1, ensure_ascii=False)}\n", encoding="utf-8")
