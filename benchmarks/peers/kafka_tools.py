"""Kafka's own performance tools as clients, with the settings they have by default."""

import re
import subprocess
from collections.abc import Sequence

from benchmarks.librdkafka import Load, new_topic
from compat.oracle.java import TOOLS, java_command

END_TO_END_CLASS = "org.apache.kafka.tools.EndToEndLatency"
TOOL_TIMEOUT_SECONDS = 120
"""For who calls this directly; a step of the comparison has a shorter limit of its own."""
HEAP_MEBIBYTES = 512

STEADY = re.compile(r"steady state records sent, ([0-9.]+) records/sec")
AVERAGE = re.compile(r"Avg latency: ([0-9.]+) ms")


def throughput_round(address: str, label: str, load: Load) -> dict[str, float]:
    """MB/s of ``kafka-producer-perf-test`` without its first fifth, and of ``kafka-consumer-perf-test``."""
    topic = new_topic(address, load.partitions)
    produced = run(
        TOOLS["kafka-producer-perf-test"],
        *("--bootstrap-server", address, "--topic", topic, "--throughput", "-1"),
        *("--num-records", str(load.record_count), "--record-size", str(load.size_bytes)),
        *("--warmup-records", str(load.record_count // 5)),
        *("--command-property", f"compression.type={load.codec}"),
    )
    values = {f"producer-perf-test {label}": steady_rate(produced) * load.size_bytes / 1e6}
    consumed = run(
        TOOLS["kafka-consumer-perf-test"],
        *("--bootstrap-server", address, "--topic", topic, "--num-records", str(load.record_count)),
    )
    values[f"consumer-perf-test {label}"] = fetch_rate(consumed, load.record_count) * load.size_bytes / 1e6
    return values


def end_to_end_round(address: str, count: int) -> dict[str, float]:
    """The average of ``kafka-e2e-latency`` with acks=all; its percentiles are whole milliseconds."""
    topic = new_topic(address)
    said = run(
        END_TO_END_CLASS,
        *("--bootstrap-server", address, "--topic", topic, "--num-records", str(count)),
        *("--producer-acks", "all", "--record-size", "1000"),
    )
    return {"end-to-end latency, average": _number(AVERAGE, said)}


def steady_rate(said: str) -> float:
    """Records per second of the producer's tool after its warm-up."""
    return _number(STEADY, said)


def fetch_rate(said: str, record_count: int) -> float:
    """Records per second of the consumer's tool, without the time that joining the group took."""
    lines = [line.split(", ") for line in said.splitlines() if line.count(", ") >= 9]
    if len(lines) < 2:
        raise RuntimeError("the consumer's tool printed no figures")
    row = dict(zip(lines[-2], lines[-1], strict=True))
    taken = int(row["data.consumed.in.nMsg"])
    if taken < record_count:
        raise RuntimeError(f"{taken} of {record_count} records came")
    return float(row["fetch.nMsg.sec"])


def run(main_class: str, *arguments: str) -> str:
    """What a tool prints.  Raises RuntimeError with its own words when it fails."""
    command = java_command(main_class, *arguments, heap_mebibytes=HEAP_MEBIBYTES)
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TOOL_TIMEOUT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise RuntimeError(f"no end within {TOOL_TIMEOUT_SECONDS} s") from error
    if done.returncode:
        raise RuntimeError(complaint([*done.stdout.splitlines(), *done.stderr.splitlines()]))
    return done.stdout


def complaint(lines: Sequence[str]) -> str:
    """The line that names an exception, or the last one."""
    for line in lines:
        if "Exception" in line and not line.startswith("\t"):
            return line.rpartition("Exception: ")[2].strip() or line.strip()
    return next((line.strip() for line in reversed(lines) if line.strip()), "nothing said")


def _number(pattern: re.Pattern[str], said: str) -> float:
    found = pattern.search(said)
    if found is None:
        raise RuntimeError("the tool printed no figures")
    return float(found[1])
