"""Benchmarks of several parts: each starts its brokers in turn, in empty folders, one at a time."""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from benchmarks.peers import machine, results, steps
from benchmarks.peers.tables import text_table
from benchmarks.storage.brokers import StoredBroker, StoredKafka, StoredOttla, version_of
from compat.oracle.jars import KafkaMissing

ROUNDS = 1

BESIDE_KAFKA: tuple[type[StoredBroker], ...] = (StoredOttla, StoredKafka)


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
        rounds: int | None = None,
    ) -> None:
        """``rounds`` are how many there are whatever is asked for; None for what is asked for."""
        self.section = section
        self.figures = list(figures)
        self.kinds = kinds
        self.measure = measure
        self.settings = settings
        self.rounds = rounds

    def run(self, kind: type[StoredBroker]) -> dict[str, float]:
        with tempfile.TemporaryDirectory(prefix="ottla-storage-") as folder:
            broker = kind(Path(folder), self.settings)
            try:
                return self.measure(broker)
            finally:
                broker.kill()


def choose(parts: Sequence[Part], words: str | None) -> Sequence[Part]:
    """Those whose section contains one of the words, which commas part; None is for all."""
    if words is None:
        return parts
    wanted = words.lower().split(",")
    return [part for part in parts if any(word in part.section.lower() for word in wanted)]


def measure(
    options: argparse.Namespace, parts: Sequence[Part], kinds: Sequence[type[StoredBroker]]
) -> results.Results:
    """The parts that ``options`` choose, round by round."""
    parts = choose(parts, options.only)
    figures = {figure: part.section for part in parts for figure in part.figures}
    names = [kind.name for kind in kinds]
    collector = results.Collector(figures, names)
    deadline = time.monotonic() + options.seconds
    rounds_of = {part: part.rounds or options.rounds for part in parts}
    for number in range(max([options.rounds, *rounds_of.values()])):
        for name in names:
            collector.begin_round(name)
        for part in parts:
            if number < rounds_of[part]:
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


def run_command(
    arguments: list[str],
    measure: Callable[[argparse.Namespace], results.Results],
    update_readme: Callable[[], None],
    *,
    name: str,
    description: str | None,
    sections: str,
    seconds: float,
) -> int:
    """``python -m benchmarks NAME``: measure and print, or do one of the things that run nothing."""
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks {name}", description=description)
    parser.add_argument("--share", type=float, default=1, help="of the full amounts, above 0 (1)")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"({ROUNDS})")
    parser.add_argument("--only", metavar="WORDS", help=f"sections: {sections}")
    parser.add_argument(
        "--seconds", type=float, default=seconds, help=f"begin nothing after this ({seconds:g})"
    )
    parser.add_argument("--machine", metavar="WORDS", help="what the results call the machine")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write or add the results into this file")
    parser.add_argument("--show", type=Path, metavar="FILE", help="run nothing: print the table of a file")
    parser.add_argument(
        "--readme", action="store_true", help="run nothing: bring README's block up to the newest results"
    )
    options = parser.parse_args(arguments)
    if options.show:
        print(text_table(results.read(options.show)))
    elif options.readme:
        update_readme()
    else:
        found = measure(options)
        print(text_table(found))
        if options.json:
            if options.json.exists():
                found = results.joined(results.read(options.json), found)
            results.write(found, options.json)
    return 0
