"""The benchmark table of one broker: ``make bench``, or ``python -m benchmarks``.

Without ``--bootstrap`` a broker is started in a temporary folder.  With it any broker can be measured;
``--pid`` adds what its process costs.  Compare ratios of one run, on a machine that does nothing else.
"""

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from benchmarks import codecs, fairness, librdkafka, start_and_memory
from benchmarks.figures import Figure, gather, table
from compat.broker_process import running_broker
from compat.processes import cpu_seconds

LOADS = (
    ("1 KB, none", 1000, "none", 200),
    ("1 KB, lz4", 1000, "lz4", 200),
    ("100 B, none", 100, "none", 50),
    ("100 B, lz4", 100, "lz4", 50),
)
"""Label, bytes of a value, codec, megabytes of a full round."""


class Step(NamedTuple):
    """One measurement: units by figure, what a round does, how many rounds."""

    title: str
    units: dict[str, str]
    measure: Callable[[], dict[str, float]]
    rounds: int


class Target(NamedTuple):
    """The broker that is measured; ``pid`` if its process is known."""

    address: str
    pid: int | None


@contextmanager
def target_of(options: argparse.Namespace) -> Iterator[Target]:
    if options.bootstrap:
        yield Target(options.bootstrap, options.pid)
        return
    with tempfile.TemporaryDirectory() as folder, running_broker(Path(folder)) as broker:
        yield Target(broker.address, broker.pid)


def throughput_steps(target: Target, *, quick: bool) -> Iterator[Step]:
    processor = partial(cpu_seconds, target.pid) if target.pid else None
    for label, size_bytes, codec, megabytes in LOADS:
        count = (megabytes // (4 if quick else 1)) * 1_000_000 // size_bytes
        yield Step(
            title=f"throughput, {label}",
            units={
                f"produce {label}": "MB/s",
                f"consume {label}": "MB/s",
                f"broker's CPU, produce {label}": "s/GB",
                f"broker's CPU, consume {label}": "s/GB",
            },
            measure=partial(
                librdkafka.throughput_round,
                target.address,
                label,
                librdkafka.Load(size_bytes, count, codec),
                processor,
            ),
            rounds=2 if quick else 5,
        )


def steps(target: Target, *, quick: bool, ours: bool) -> Iterator[Step]:
    """Everything that is measured, in the order of the table."""
    rounds = 2 if quick else 5
    if ours:
        yield Step(
            title="start",
            units={
                "import trio": "ms",
                "first acknowledged record": "ms",
                "first acknowledged record / import trio": "ratio",
                "graceful stop": "ms",
                "memory, idle after one record": "MiB",
            },
            measure=start_and_memory.start_round,
            rounds=3 if quick else 9,
        )
    if target.pid:
        yield Step(
            title="connections",
            units={"memory of 1,000 idle connections": "MiB"},
            measure=partial(start_and_memory.connections_round, target.address, target.pid),
            rounds=1,
        )
    count = 500 if quick else 2000
    yield Step(
        title="latency, synchronous",
        units={"synchronous record, p50": "ms", "synchronous record, p99": "ms"},
        measure=partial(librdkafka.synchronous_round, target.address, count, 1000),
        rounds=rounds,
    )
    yield Step(
        title="latency, end to end",
        units={"end to end, p50": "ms", "end to end, p99": "ms"},
        measure=partial(librdkafka.end_to_end_round, target.address, count, 1000),
        rounds=rounds,
    )
    yield Step(
        title="small requests",
        units={"one-record requests": "1/s"},
        measure=partial(librdkafka.small_requests_round, target.address, 10_000 if quick else 50_000),
        rounds=rounds,
    )
    yield from throughput_steps(target, quick=quick)
    yield Step(
        title="fairness",
        units={
            "one record by socket, p50": "ms",
            "one record beside two busy producers, p50": "ms",
            "the same as a multiple": "ratio",
            "the two busy producers": "MB/s",
        },
        measure=partial(fairness.fairness_round, target.address, 300 if quick else 1000),
        rounds=1 if quick else 3,
    )
    if ours:
        yield Step(
            title="codecs",
            units={
                "decode Produce v9, one partition": "µs",
                "encode Fetch response v13, one partition": "µs",
            },
            measure=codecs.codecs_round,
            rounds=rounds,
        )


def run(step: Step, deadline: float) -> list[Figure]:
    """The rounds of a step, fewer if the time is up, but one at least."""
    collected = []
    for number in range(step.rounds):
        if number and time.monotonic() > deadline:
            break
        show_progress(f"{step.title} {number + 1}/{step.rounds}")
        collected.append(step.measure())
    show_progress("")
    return gather(step.units, collected)


def show_progress(text: str) -> None:
    """A line that the next one replaces, for who watches a terminal."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds of less: about a minute")
    parser.add_argument("--bootstrap", metavar="HOST:PORT", help="measure this broker")
    parser.add_argument("--pid", type=int, help="the process of that broker")
    parser.add_argument("--only", metavar="TEXT", help="only the steps whose title contains this")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all rounds into this file, too")
    parser.add_argument(
        "--seconds", type=float, default=300, help="begin no second rounds after this (%(default)s)"
    )
    options = parser.parse_args(arguments)
    deadline = time.monotonic() + options.seconds
    figures: list[Figure] = []
    with target_of(options) as target:
        for step in steps(target, quick=options.quick, ours=not options.bootstrap):
            if options.only is None or options.only in step.title:
                figures += run(step, deadline)
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, librdkafka as client")
    print(table(figures))
    if options.json:
        options.json.write_text(json.dumps([figure._asdict() for figure in figures], indent=1) + "\n")
    return 0
