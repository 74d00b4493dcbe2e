"""``python -m benchmarks storage``: what storage costs, beside Apache Kafka and beside an earlier Ottla.

Each part starts its brokers in turn in empty folders, one at a time.  Needs Java, and twelve gigabytes of
disk.  Best on a machine that does nothing else: ``--only partitions,recovery`` takes ten minutes there, and
``--only compaction,append`` as long; with the same ``--json`` both go into one file.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from benchmarks.peers import machine, results, steps
from benchmarks.peers.tables import text_table
from benchmarks.storage import compaction, partitions, recovery, report
from benchmarks.storage.brokers import EarlierOttla, StoredBroker, StoredKafka, StoredOttla, version_of
from compat.oracle.jars import KafkaMissing

SECONDS = 1500
ROUNDS = 1
APPEND_ROUNDS = 3

FULL_SEGMENT_BYTES = 1_000_000_000
FULL_TOPICS = 10
FULL_COMPACTED_BYTES = 500_000_000

BESIDE_KAFKA: tuple[type[StoredBroker], ...] = (StoredOttla, StoredKafka)
BESIDE_BEFORE: tuple[type[StoredBroker], ...] = (StoredOttla, EarlierOttla)

PARTITIONS = "Ten thousand partitions"
RECOVERY = "Recovery after an unclean stop"
COMPACTION = "Compaction"
APPEND = "Append and fetch"

COMPACTED = (("1 KB", 1000, "none"), ("100 B", 100, "none"), ("1 KB, lz4", 1000, "lz4"))
APPENDED = tuple(step for step in steps.THROUGHPUT if step.title.endswith((" 1 KB", " 1 KB, lz4", " 100 B")))


class Part:
    """Figures that are measured of the same brokers, one after the other."""

    def __init__(
        self,
        section: str,
        figures: Iterable[steps.Figure],
        kinds: tuple[type[StoredBroker], ...],
        measure: Callable[[StoredBroker], dict[str, float]],
        *,
        settings: dict[str, str] | None = None,
    ) -> None:
        self.section = section
        self.figures = list(figures)
        self.kinds = kinds
        self.measure = measure
        self.settings = settings

    def run(self, kind: type[StoredBroker]) -> dict[str, float]:
        with tempfile.TemporaryDirectory(prefix="ottla-storage-") as folder:
            broker = kind(Path(folder), self.settings)
            try:
                return self.measure(broker)
            finally:
                broker.kill()


def parts(share: float, names: str | None) -> list[Part]:
    """All parts, or those whose section contains one of the words in ``names``."""
    topics = max(1, int(FULL_TOPICS * share))
    measured = [
        Part(
            PARTITIONS,
            [
                steps.less(partitions.CREATE, "s"),
                steps.less(partitions.WRITE, "s"),
                steps.less(partitions.WRITTEN_MEMORY, "MiB"),
                steps.less(partitions.AFTER_KILL, "s"),
                steps.less(partitions.AFTER_KILL_MEMORY, "MiB"),
                steps.less(partitions.STOP, "s"),
                steps.less(partitions.AFTER_STOP, "s"),
                steps.less(partitions.AFTER_STOP_MEMORY, "MiB"),
            ],
            BESIDE_KAFKA,
            partial(partitions.partitions_round, topics_count=topics),
        ),
        Part(
            RECOVERY,
            [steps.more(recovery.SPEED, "MB/s")],
            BESIDE_KAFKA,
            partial(recovery.recovery_round, segment_bytes=int(FULL_SEGMENT_BYTES * share)),
        ),
    ]
    measured += [
        Part(
            COMPACTION,
            [steps.more(compaction.figure(label), "MB/s")],
            BESIDE_KAFKA,
            partial(
                compaction.compaction_round,
                label=label,
                size_bytes=size,
                total_bytes=int(FULL_COMPACTED_BYTES * share),
                codec=codec,
            ),
            settings=compaction.settings(int(FULL_COMPACTED_BYTES * share)),
        )
        for label, size, codec in COMPACTED
    ]
    measured += [
        Part(APPEND, step.figures, BESIDE_BEFORE, partial(append_round, step=step, share=share))
        for step in APPENDED
    ]
    if names is None:
        return measured
    words = names.lower().split(",")
    return [part for part in measured if any(word in part.section.lower() for word in words)]


def append_round(broker: StoredBroker, step: steps.Step, share: float) -> dict[str, float]:
    broker.launch()
    partitions.wait_until_connected(broker)
    target = steps.Target(broker.address, broker.pid, share)
    steps.WARM_UP.measure(target)
    return step.measure(target)


def measure(options: argparse.Namespace) -> results.Results:
    chosen = parts(options.share, options.only)
    figures = {figure: part.section for part in chosen for figure in part.figures}
    names = [kind.name for kind in (StoredOttla, StoredKafka, EarlierOttla)]
    collector = results.Collector(figures, names)
    deadline = time.monotonic() + options.seconds
    for number in range(max(options.rounds, APPEND_ROUNDS)):
        for name in names:
            collector.begin_round(name)
        for part in chosen:
            if number >= (APPEND_ROUNDS if part.section == APPEND else options.rounds):
                continue
            kinds = part.kinds if number % 2 == 0 else part.kinds[::-1]
            for kind in kinds:
                measure_part(part, kind, collector, deadline)
    return results.Results(
        date=machine.today(),
        machine=options.machine or machine.machine(),
        versions={name: version_of(name) for name in names},
        rounds=options.rounds,
        is_quick=options.share < 1,
        rows=collector.rows(),
    )


def measure_part(part: Part, kind: type[StoredBroker], collector: results.Collector, deadline: float) -> None:
    """Let a broker begin with a part before ``deadline``, and collect what it gave, or why nothing."""
    if time.monotonic() > deadline:
        collector.fail(kind.name, part.figures, "the time was up")
        return
    began = time.monotonic()
    try:
        collector.add(kind.name, part.run(kind))
    except (KafkaMissing, RuntimeError, OSError, subprocess.SubprocessError) as error:
        collector.fail(kind.name, part.figures, str(error).splitlines()[0])
        print(f"{part.section}, {kind.name}: {error}", file=sys.stderr)
    seconds = time.monotonic() - began
    print(
        f"{part.section} ({part.figures[0].name}), {kind.name}: {seconds:.0f} s", file=sys.stderr, flush=True
    )


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks storage", description=__doc__)
    parser.add_argument("--share", type=float, default=1, help="of the full amounts, above 0 (1)")
    parser.add_argument(
        "--rounds", type=int, default=ROUNDS, help=f"({ROUNDS}; appends have {APPEND_ROUNDS})"
    )
    parser.add_argument("--only", metavar="WORDS", help="sections: partitions,recovery,compaction,append")
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
