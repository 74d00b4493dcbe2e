"""What is measured of every broker, in the order of the table.

A step runs in a process of its own (``isolated.py``) and gives the values of its figures.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from benchmarks import fairness, librdkafka, start_and_memory
from benchmarks.peers import busy_connections, kafka_tools, many_partitions
from compat.processes import cpu_seconds


class Figure(NamedTuple):
    """One line of the table."""

    name: str
    unit: str
    more_is_better: bool


class Target(NamedTuple):
    """The broker that is measured, and the share (above 0, up to 1) of the full amounts to do it with."""

    address: str
    pid: int
    share: float

    def amount(self, full: int) -> int:
        """That share of ``full``, in whole thousands."""
        return max(1000, int(full * self.share) // 1000 * 1000)


class Step(NamedTuple):
    """Figures that are measured together, and after how long that has failed."""

    title: str
    section: str
    figures: tuple[Figure, ...]
    measure: Callable[[Target], dict[str, float]]
    seconds_max: float = 60


def less(name: str, unit: str) -> Figure:
    return Figure(name, unit, more_is_better=False)


def more(name: str, unit: str) -> Figure:
    return Figure(name, unit, more_is_better=True)


START = "Start and memory"
CLIENT = "librdkafka as client"
PROCESSOR = "The broker's processor time"
TOOLS = "Kafka's own tools as clients"
CONNECTIONS = "Connections"
PARTITIONS = "Ten thousand partitions"

FIRST_RECORD = less("start to first acknowledged record", "ms")
IDLE_MEMORY = less("memory, idle after one record", "MiB")
PEAK_MEMORY = less("memory, peak of the whole round", "MiB")

LOADS = (
    ("1 KB", librdkafka.Load(1000, 200_000, "none")),
    ("1 KB, lz4", librdkafka.Load(1000, 200_000, "lz4")),
    ("100 B", librdkafka.Load(100, 500_000, "none")),
    ("100 B, lz4", librdkafka.Load(100, 500_000, "lz4")),
    ("1 KB, 100 partitions", librdkafka.Load(1000, 200_000, "none", partitions=100)),
)


def warm_up(target: Target) -> dict[str, float]:
    """Give compilers and caches of the broker something to do before anything is timed."""
    for load in (librdkafka.Load(1000, 50_000, "none"), librdkafka.Load(100, 50_000, "none")):
        librdkafka.throughput_round(target.address, "", load, None)
    librdkafka.small_requests_round(target.address, 10_000)
    return {}


def synchronous(target: Target) -> dict[str, float]:
    return librdkafka.synchronous_round(target.address, target.amount(3000), 1000)


def end_to_end(target: Target) -> dict[str, float]:
    return librdkafka.end_to_end_round(target.address, target.amount(3000), 1000)


def small_requests(target: Target) -> dict[str, float]:
    return librdkafka.small_requests_round(target.address, target.amount(50_000))


def throughput(label: str, load: librdkafka.Load, target: Target) -> dict[str, float]:
    scaled = load._replace(record_count=target.amount(load.record_count))
    return librdkafka.throughput_round(target.address, label, scaled, partial(cpu_seconds, target.pid))


def idle_connections(target: Target) -> dict[str, float]:
    return start_and_memory.connections_round(target.address, target.pid)


def busy(target: Target) -> dict[str, float]:
    return busy_connections.busy_round(target.address, 5 * target.share)


def beside_busy_producers(target: Target) -> dict[str, float]:
    return fairness.fairness_round(target.address, target.amount(2000))


def tool_throughput(label: str, load: librdkafka.Load, target: Target) -> dict[str, float]:
    scaled = load._replace(record_count=target.amount(load.record_count))
    return kafka_tools.throughput_round(target.address, label, scaled)


def tool_end_to_end(target: Target) -> dict[str, float]:
    return kafka_tools.end_to_end_round(target.address, target.amount(5000))


def ten_thousand(target: Target) -> dict[str, float]:
    return many_partitions.partitions_round(target.address, target.pid)


IDLE_CONNECTIONS = Step(
    "idle connections",
    START,
    (less("memory of 1,000 idle connections", "MiB"),),
    idle_connections,
)
"""Before any load: afterwards a runtime with a heap hides it in memory that it has already."""

WARM_UP = Step("warm-up", CLIENT, (), warm_up)

LATENCY = (
    Step(
        "synchronous",
        CLIENT,
        (less("synchronous record, p50", "ms"), less("synchronous record, p99", "ms")),
        synchronous,
        20,
    ),
    Step(
        "end to end",
        CLIENT,
        (less("end to end, p50", "ms"), less("end to end, p99", "ms")),
        end_to_end,
        20,
    ),
    Step("small requests", CLIENT, (more("one-record requests", "1/s"),), small_requests, 30),
)

THROUGHPUT = tuple(
    Step(
        f"throughput, {label}",
        CLIENT,
        (
            more(f"produce {label}", "MB/s"),
            more(f"consume {label}", "MB/s"),
            less(f"broker's CPU, produce {label}", "s/GB"),
            less(f"broker's CPU, consume {label}", "s/GB"),
        ),
        partial(throughput, label, load),
        40,
    )
    for label, load in LOADS
)

TOOL_LOADS = (
    ("1 KB", librdkafka.Load(1000, 250_000, "none")),
    ("1 KB, lz4", librdkafka.Load(1000, 250_000, "lz4")),
    ("100 B", librdkafka.Load(100, 1_000_000, "none")),
    ("1 KB, 100 partitions", librdkafka.Load(1000, 250_000, "none", partitions=100)),
)

TOOL_STEPS = (
    *(
        Step(
            f"tools, {label}",
            TOOLS,
            (more(f"producer-perf-test {label}", "MB/s"), more(f"consumer-perf-test {label}", "MB/s")),
            partial(tool_throughput, label, load),
            30,
        )
        for label, load in TOOL_LOADS
    ),
    Step("tools, end to end", TOOLS, (less("end-to-end latency, average", "ms"),), tool_end_to_end, 30),
)

CONNECTION_STEPS = (
    Step(
        "busy connections",
        CONNECTIONS,
        (
            more("100 busy connections, one-record requests", "1/s"),
            less("100 busy connections, p50", "ms"),
            less("100 busy connections, p99", "ms"),
        ),
        busy,
        30,
    ),
    Step(
        "fairness",
        CONNECTIONS,
        (
            less("one record by socket, p50", "ms"),
            less("one record beside two busy producers, p50", "ms"),
            less("the same as a multiple", "ratio"),
            more("the two busy producers", "MB/s"),
        ),
        beside_busy_producers,
        60,
    ),
)

TEN_THOUSAND = Step(
    "10,000 partitions",
    PARTITIONS,
    (
        less("create 10,000 partitions", "s"),
        less("one record into each of 10,000 partitions", "s"),
        less("memory of 10,000 partitions with a record", "MiB"),
    ),
    ten_thousand,
    120,
)


HEADLINES = frozenset(
    {
        FIRST_RECORD.name,
        IDLE_MEMORY.name,
        PEAK_MEMORY.name,
        "memory of 1,000 idle connections",
        "synchronous record, p50",
        "synchronous record, p99",
        "end to end, p50",
        "end to end, p99",
        "one-record requests",
        "produce 1 KB",
        "consume 1 KB",
        "produce 1 KB, lz4",
        "consume 1 KB, lz4",
        "produce 100 B",
        "consume 100 B",
        "broker's CPU, produce 1 KB",
        "broker's CPU, consume 1 KB",
        "producer-perf-test 1 KB",
        "consumer-perf-test 1 KB",
        "producer-perf-test 100 B",
        "consumer-perf-test 100 B",
        "end-to-end latency, average",
        "100 busy connections, one-record requests",
        "100 busy connections, p99",
        "one record beside two busy producers, p50",
        "the same as a multiple",
        "create 10,000 partitions",
        "one record into each of 10,000 partitions",
    }
)
"""The figures that README shows; a table of all is printed from the same file."""


def steps(*, with_ten_thousand: bool = False) -> tuple[Step, ...]:
    """All steps, in the order in which they are run."""
    last = (TEN_THOUSAND,) if with_ten_thousand else ()
    return (IDLE_CONNECTIONS, WARM_UP, *LATENCY, *THROUGHPUT, *TOOL_STEPS, *CONNECTION_STEPS, *last)
