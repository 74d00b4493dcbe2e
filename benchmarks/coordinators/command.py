"""``python -m benchmarks coordinators``: what groups and transactions cost, beside Apache Kafka.

Each part starts its brokers in turn in empty folders, one at a time.  Needs Java.  Best on a machine that
does nothing else.
"""

import argparse
from collections.abc import Sequence
from functools import partial

from benchmarks.coordinators import idle, rebalances, report, throughput
from benchmarks.parts import BESIDE_KAFKA, Part, run_command
from benchmarks.parts import measure as measure_parts
from benchmarks.peers import results, steps

SECONDS = 360

REBALANCES = "Rebalances"
THROUGHPUT = "Transactions and share groups"
IDLE = "Ten thousand idle groups"


def parts(share: float) -> list[Part]:
    """With less than all of the amounts there is no crowd of the largest size."""
    sizes: Sequence[int] = rebalances.SIZES if share >= 1 else rebalances.SIZES[:-1]
    return [
        Part(
            REBALANCES,
            [
                steps.less(name(protocol, size), "ms")
                for protocol in rebalances.CROWDS
                for size in sizes
                for name in (rebalances.joins, rebalances.leaves)
            ],
            BESIDE_KAFKA,
            partial(rebalances.rebalances_round, sizes=sizes, share=share),
            settings=rebalances.SETTINGS,
        ),
        Part(
            THROUGHPUT,
            [steps.more(throughput.transactions(count), "1/s") for count in throughput.PRODUCERS],
            BESIDE_KAFKA,
            partial(throughput.transactions_round, share=share),
        ),
        Part(
            THROUGHPUT,
            [steps.more(throughput.shared_records(count), "1/s") for count in throughput.MEMBERS],
            BESIDE_KAFKA,
            partial(throughput.share_groups_round, share=share),
        ),
        Part(
            IDLE,
            [
                steps.less(idle.FORM, "s"),
                steps.less(idle.MEMORY, "MiB"),
                steps.less(idle.START, "s"),
                steps.less(idle.START_MEMORY, "MiB"),
            ],
            BESIDE_KAFKA,
            partial(idle.idle_groups_round, share=share),
            settings=idle.SETTINGS,
        ),
    ]


def measure(options: argparse.Namespace) -> results.Results:
    return measure_parts(options, parts(options.share), BESIDE_KAFKA)


def main(arguments: list[str]) -> int:
    return run_command(
        arguments,
        measure,
        report.update_readme,
        name="coordinators",
        description=__doc__,
        sections="rebalances,transactions,idle",
        seconds=SECONDS,
    )
