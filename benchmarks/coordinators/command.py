"""``python -m benchmarks coordinators``: what groups and transactions cost, beside Apache Kafka.

Each part starts its brokers in turn in empty folders, one at a time.  Needs Java.  Best on a machine that
does nothing else.
"""

import argparse
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from benchmarks.coordinators import idle, rebalances, report, throughput
from benchmarks.peers import machine, results, steps
from benchmarks.peers.tables import text_table
from benchmarks.storage.brokers import version_of
from benchmarks.storage.command import BESIDE_KAFKA, Part, measure_part

SECONDS = 360
ROUNDS = 1

REBALANCES = "Rebalances"
THROUGHPUT = "Transactions and share groups"
IDLE = "Ten thousand idle groups"


def parts(share: float, names: str | None) -> list[Part]:
    """All parts, or those whose section contains one of the words in ``names``.

    With less than all of the amounts there is no crowd of the largest size.
    """
    sizes: Sequence[int] = rebalances.SIZES if share >= 1 else rebalances.SIZES[:-1]
    measured = [
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
    if names is None:
        return measured
    words = names.lower().split(",")
    return [part for part in measured if any(word in part.section.lower() for word in words)]


def measure(options: argparse.Namespace) -> results.Results:
    chosen = parts(options.share, options.only)
    figures = {figure: part.section for part in chosen for figure in part.figures}
    names = [kind.name for kind in BESIDE_KAFKA]
    collector = results.Collector(figures, names)
    deadline = time.monotonic() + options.seconds
    for number in range(options.rounds):
        for name in names:
            collector.begin_round(name)
        for part in chosen:
            for kind in part.kinds if number % 2 == 0 else part.kinds[::-1]:
                measure_part(part, kind, collector, deadline)
    return results.Results(
        date=machine.today(),
        machine=options.machine or machine.machine(),
        versions={name: version_of(name) for name in names},
        rounds=options.rounds,
        is_quick=options.share < 1,
        rows=collector.rows(),
    )


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks coordinators", description=__doc__)
    parser.add_argument("--share", type=float, default=1, help="of the full amounts, above 0 (1)")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"({ROUNDS})")
    parser.add_argument("--only", metavar="WORDS", help="sections: rebalances,transactions,idle")
    parser.add_argument(
        "--seconds", type=float, default=SECONDS, help=f"begin nothing after this ({SECONDS})"
    )
    parser.add_argument("--machine", metavar="WORDS", help="what the results call the machine")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write or add the results into this file")
    parser.add_argument("--show", type=Path, metavar="FILE", help="run nothing: print the table of a file")
    parser.add_argument(
        "--readme", action="store_true", help="run nothing: bring README's block up to the newest results"
    )
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    if options.show:
        print(text_table(results.read(options.show)))
    elif options.readme:
        report.update_readme()
    else:
        found = measure(options)
        print(text_table(found))
        if options.json:
            if options.json.exists():
                found = results.joined(results.read(options.json), found)
            results.write(found, options.json)
    return 0
