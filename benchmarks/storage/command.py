"""``python -m benchmarks storage``: what storage costs, beside Apache Kafka and beside an earlier Ottla.

Each part starts its brokers in turn in empty folders, one at a time.  Needs Java, and twelve gigabytes of
disk.  Best on a machine that does nothing else: ``--only partitions,recovery`` takes ten minutes there, and
``--only compaction,append`` as long; with the same ``--json`` both go into one file.
"""

import argparse
from functools import partial

from benchmarks.parts import BESIDE_KAFKA, Part, run_command
from benchmarks.parts import measure as measure_parts
from benchmarks.peers import results, steps
from benchmarks.storage import compaction, partitions, recovery, report
from benchmarks.storage.brokers import EarlierOttla, StoredBroker, StoredKafka, StoredOttla

SECONDS = 1500
APPEND_ROUNDS = 3

FULL_SEGMENT_BYTES = 1_000_000_000
FULL_TOPICS = 10
FULL_COMPACTED_BYTES = 500_000_000

BESIDE_BEFORE: tuple[type[StoredBroker], ...] = (StoredOttla, EarlierOttla)

PARTITIONS = "Ten thousand partitions"
RECOVERY = "Recovery after an unclean stop"
COMPACTION = "Compaction"
APPEND = "Append and fetch"

COMPACTED = (("1 KB", 1000, "none"), ("100 B", 100, "none"), ("1 KB, lz4", 1000, "lz4"))
APPENDED = tuple(step for step in steps.THROUGHPUT if step.title.endswith((" 1 KB", " 1 KB, lz4", " 100 B")))


def parts(share: float) -> list[Part]:
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
        Part(
            APPEND,
            step.figures,
            BESIDE_BEFORE,
            partial(append_round, step=step, share=share),
            rounds=APPEND_ROUNDS,
        )
        for step in APPENDED
    ]
    return measured


def append_round(broker: StoredBroker, step: steps.Step, share: float) -> dict[str, float]:
    broker.launch()
    partitions.wait_until_connected(broker)
    target = steps.Target(broker.address, broker.pid, share)
    steps.WARM_UP.measure(target)
    return step.measure(target)


def measure(options: argparse.Namespace) -> results.Results:
    return measure_parts(options, parts(options.share), (StoredOttla, StoredKafka, EarlierOttla))


def main(arguments: list[str]) -> int:
    return run_command(
        arguments,
        measure,
        report.update_readme,
        name="storage",
        description=__doc__,
        sections=f"partitions,recovery,compaction,append (which has {APPEND_ROUNDS} rounds)",
        seconds=SECONDS,
    )
