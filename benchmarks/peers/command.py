"""``make bench-peers``, or ``python -m benchmarks peers``: the table of Ottla beside its peers.

Each round starts every broker in turn in an empty folder, alone on the machine, and takes all figures of it.
Ratios are of the same round.  Best on a machine that does nothing else.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.peers import machine, results, tables
from benchmarks.peers.binaries import PeerMissing
from benchmarks.peers.brokers import BROKERS, Broker
from benchmarks.peers.isolated import OutOfTime, StepFailed, few_words, run_step
from benchmarks.peers.steps import (
    FIRST_RECORD,
    IDLE_MEMORY,
    PEAK_MEMORY,
    START,
    Figure,
    Step,
    Target,
    steps,
)
from compat.oracle.jars import KafkaMissing
from compat.processes import peak_resident_bytes, resident_bytes
from compat.raw_client import first_acknowledged

TIME_IS_UP = "the time was up"
README = Path(__file__).resolve().parent.parent.parent / "README.md"
MEBIBYTE = 1024 * 1024
IDLE_SECONDS = 1.0
START_TIMEOUT_SECONDS = 60
QUICK_SHARE = 0.2
QUICK_PATIENCE = 0.6
ROUNDS = 3
QUICK_ROUNDS = 1
SECONDS = 1380
QUICK_SECONDS = 280


class Comparison:
    """Runs rounds, and gathers what they give."""

    def __init__(
        self,
        brokers: list[type[Broker]],
        chosen: list[Step],
        *,
        share: float,
        patience: float,
        deadline: float,
    ) -> None:
        self._brokers = brokers
        self._steps = chosen
        self._share = share
        self._patience = patience
        self._deadline = deadline
        figures = {FIRST_RECORD: START, IDLE_MEMORY: START}
        for step in chosen:
            figures.update(dict.fromkeys(step.figures, step.section))
        figures = {
            **{name: START for name, section in figures.items() if section == START},
            PEAK_MEMORY: START,
            **figures,
        }
        self.collector = results.Collector(figures, [broker.name for broker in brokers])
        self._hopeless: set[tuple[str, str]] = set()
        """Broker and step that did not end: not tried again."""

    @property
    def figures(self) -> list[Figure]:
        return [FIRST_RECORD, IDLE_MEMORY, *(figure for step in self._steps for figure in step.figures)]

    def run_round(self, number: int) -> None:
        """Every broker once; the order moves on with the rounds, so that none always has the same place."""
        place = number % len(self._brokers)
        for kind in [*self._brokers[place:], *self._brokers[:place]]:
            self.collector.begin_round(kind.name)
            if (kind.name, "") in self._hopeless:
                continue
            if time.monotonic() > self._deadline:
                self.collector.fail(kind.name, [*self.figures, PEAK_MEMORY], TIME_IS_UP)
                continue
            began = time.monotonic()
            try:
                self._measure(kind)
            except (KafkaMissing, PeerMissing, RuntimeError, OSError, subprocess.SubprocessError) as error:
                say(f"{kind.name}: {error}")
                self._hopeless.add((kind.name, ""))
                self.collector.fail(kind.name, [*self.figures, PEAK_MEMORY], few_words(error))
            say(f"round {number + 1}, {kind.name}: {time.monotonic() - began:.0f} s")

    def _measure(self, kind: type[Broker]) -> None:
        """All steps on one broker; it is started anew after a step that failed."""
        todo = [step for step in self._steps if (kind.name, step.title) not in self._hopeless]
        peak = 0
        is_first = True
        while todo:
            with tempfile.TemporaryDirectory(prefix="ottla-peers-") as folder:
                broker = kind(Path(folder))
                broker.prepare()
                try:
                    self._start(broker, is_first=is_first)
                    todo = self._run_until_failure(broker, todo)
                    peak = max(peak, peak_resident_bytes(broker.pid))
                finally:
                    broker.end()
            is_first = False
        self.collector.add(kind.name, {PEAK_MEMORY.name: peak / MEBIBYTE})

    def _start(self, broker: Broker, *, is_first: bool) -> None:
        began = time.perf_counter()
        broker.launch()
        first_acknowledged(broker.address, "first", timeout_seconds=START_TIMEOUT_SECONDS)
        milliseconds = (time.perf_counter() - began) * 1000
        if is_first:
            time.sleep(IDLE_SECONDS)
            idle = resident_bytes(broker.pid) / MEBIBYTE
            self.collector.add(broker.name, {FIRST_RECORD.name: milliseconds, IDLE_MEMORY.name: idle})

    def _run_until_failure(self, broker: Broker, todo: list[Step]) -> list[Step]:
        """The steps that are left when one has failed."""
        target = Target(broker.address, broker.pid, self._share)
        for place, step in enumerate(todo):
            if time.monotonic() > self._deadline:
                for left in todo[place:]:
                    self.collector.fail(broker.name, left.figures, TIME_IS_UP)
                return []
            began = time.monotonic()
            try:
                self.collector.add(broker.name, run_step(step, target, self._patience))
            except StepFailed as failure:
                reason = str(failure) if broker.is_running else "the broker ended"
                say(f"  {broker.name}, {step.title}: fails: {reason}")
                self.collector.fail(broker.name, step.figures, reason)
                if isinstance(failure, OutOfTime):
                    self._hopeless.add((broker.name, step.title))
                return todo[place + 1 :]
            say(f"  {broker.name}, {step.title}: {time.monotonic() - began:.1f} s")
        return []


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def parse(arguments: list[str]) -> argparse.Namespace:
    names = ", ".join(broker.name for broker in BROKERS)
    parser = argparse.ArgumentParser(prog="python -m benchmarks peers", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one round of a fifth: a few minutes")
    parser.add_argument("--rounds", type=int, help=f"({ROUNDS}, or {QUICK_ROUNDS} with --quick)")
    parser.add_argument("--brokers", metavar="NAMES", help=f"separated by commas, out of: {names}")
    parser.add_argument("--only", metavar="TEXT", help="only the steps whose title contains this")
    parser.add_argument("--ten-thousand", action="store_true", help="also a topic of 10,000 partitions")
    parser.add_argument(
        "--patience",
        type=float,
        default=1,
        metavar="FACTOR",
        help="for the limits of time, when much else runs",
    )
    parser.add_argument("--machine", metavar="WORDS", help="what the results call the machine")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results into this file")
    parser.add_argument(
        "--seconds", type=float, help=f"begin nothing after this ({SECONDS}, or {QUICK_SECONDS} with --quick)"
    )
    parser.add_argument("--show", type=Path, metavar="FILE", help="run nothing: print the table of a file")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="run nothing: print README's block")
    parser.add_argument(
        "--readme", action="store_true", help="run nothing: bring README's block up to the newest results"
    )
    return parser.parse_args(arguments)


def choose_brokers(names: str | None) -> list[type[Broker]]:
    """Raises SystemExit on a name that there is not."""
    if names is None:
        return list(BROKERS)
    by_name = {broker.name.lower(): broker for broker in BROKERS}
    try:
        return [by_name[name.strip().lower()] for name in names.split(",")]
    except KeyError as error:
        raise SystemExit(f"there is no broker called {error}") from None


def choose_steps(text: str | None, *, with_ten_thousand: bool) -> list[Step]:
    """The steps to run; the warm-up is always one of them."""
    return [
        step
        for step in steps(with_ten_thousand=with_ten_thousand)
        if text is None or text in step.title or not step.figures
    ]


def compare(options: argparse.Namespace) -> results.Results:
    brokers = choose_brokers(options.brokers)
    rounds = options.rounds or (QUICK_ROUNDS if options.quick else ROUNDS)
    comparison = Comparison(
        brokers,
        choose_steps(options.only, with_ten_thousand=options.ten_thousand),
        share=QUICK_SHARE if options.quick else 1.0,
        patience=options.patience * (QUICK_PATIENCE if options.quick else 1.0),
        deadline=time.monotonic() + (options.seconds or (QUICK_SECONDS if options.quick else SECONDS)),
    )
    for number in range(rounds):
        comparison.run_round(number)
    return results.Results(
        date=machine.today(),
        machine=options.machine or machine.machine(),
        versions={broker.name: version_of(broker) for broker in brokers},
        rounds=rounds,
        is_quick=options.quick,
        rows=comparison.collector.rows(),
    )


def version_of(broker: type[Broker]) -> str:
    try:
        return broker.version()
    except (OSError, PeerMissing):
        return "unknown"


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    if options.show:
        print(tables.text_table(results.read(options.show)))
    elif options.markdown:
        print(tables.markdown(results.read(options.markdown)))
    elif options.readme:
        newest = results.newest()
        if newest is None:
            raise SystemExit(f"there are no results in {results.FOLDER}")
        block = tables.markdown(results.read(newest))
        README.write_text(tables.replace_block(README.read_text(encoding="utf-8"), block), encoding="utf-8")
    else:
        found = compare(options)
        print(tables.text_table(found))
        if options.json:
            results.write(found, options.json)
    return 0
