"""``python -m benchmarks cluster``: what replication costs, and what a crash does, beside Apache Kafka.

Three nodes of each, one cluster at a time, in empty folders, with the same settings.  Needs Java.  Best on a
machine that does nothing else.
"""

import argparse
from collections.abc import Callable
from functools import partial
from typing import cast

from benchmarks.cluster import replication, report
from benchmarks.cluster.nodes import ThreeKafka, ThreeNodes, ThreeOttla
from benchmarks.parts import Part, run_command
from benchmarks.parts import measure as measure_parts
from benchmarks.peers import results, steps
from benchmarks.storage.brokers import StoredBroker

SECONDS = 900

REPLICATION = "Three replicas"
CRASHES = "Crashes"

CLUSTERS: tuple[type[StoredBroker], ...] = (ThreeOttla, ThreeKafka)

Measure = Callable[[StoredBroker], dict[str, float]]


def parts(share: float) -> list[Part]:
    figures = []
    for label, _ in replication.LOADS:
        figures.append(steps.more(replication.produce(label), "MB/s"))
        figures.append(steps.less(replication.processor(label), "s/GB"))
    figures += [steps.less(replication.RECORD_P50, "ms"), steps.less(replication.RECORD_P99, "ms")]
    return [
        Part(REPLICATION, figures, CLUSTERS, _of_three(partial(replication.throughput_round, share=share))),
        Part(
            CRASHES,
            [steps.less(replication.FAILOVER, "s"), steps.less(replication.CATCH_UP, "s")],
            CLUSTERS,
            _of_three(partial(replication.failover_round, share=share)),
        ),
    ]


def _of_three(measure_three: Callable[[ThreeNodes], dict[str, float]]) -> Measure:
    """``CLUSTERS`` are three nodes, all of them."""
    return cast("Measure", measure_three)


def measure(options: argparse.Namespace) -> results.Results:
    return measure_parts(options, parts(options.share), CLUSTERS)


def main(arguments: list[str]) -> int:
    return run_command(
        arguments,
        measure,
        report.update_readme,
        name="cluster",
        description=__doc__,
        sections="replicas,crashes",
        seconds=SECONDS,
    )
