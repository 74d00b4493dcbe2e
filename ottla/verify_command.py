"""``ottla verify``: check log directories that no broker uses, and say in words what is wrong."""

import argparse
import json
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack

from ottla.output import run_printing, write_line
from ottla.progress import Progress, size_text
from storage import paths
from storage.errors import DirectoryLocked, DiskFailure
from storage.verification.facts import ReplicaFacts
from storage.verification.findings import Finding, Severity, Totals
from storage.verification.log_dir import is_log_directory
from storage.verification.read_only import ReadOnlyFileSystem
from storage.verification.replica import CheckedReplica
from storage.verification.verify import check_one, verify

EXIT_SOUND = 0
EXIT_DAMAGED = 1

BYTES_WORTH_A_PROCESS = 64 << 20
"""With fewer bytes to read the work is done before other processes have started."""

PROCESSES_BY_ITSELF_MAX = 8
"""How many it starts if nobody says."""

PROCESSES_MAX = 64

_PLURALS = {"directories": "directory", "partitions": "partition", "segments": "segment", "records": "record"}


def verify_directories(arguments: Sequence[str]) -> int:
    """Run the command; returns its exit status."""
    options = read_options(arguments)
    return run_printing("verify", lambda: _verify(options), as_json=options.json)


def read_options(arguments: Sequence[str]) -> argparse.Namespace:
    """Parse the command line; ends the process for ``--help`` and mistakes."""
    parser = argparse.ArgumentParser(
        prog="ottla verify",
        description="Checks log directories that no broker uses. Only reads, and tells every file that is "
        "not as it should be.",
        epilog="Exit status: 0 if nothing is damaged (what a start mends by itself is a note), 1 if "
        "something is, 2 if it could not be checked, such as when a broker uses the directory, or if nothing "
        "is there to be checked.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "directories", nargs="+", metavar="DIR", help="log directories (log.dirs) of one broker"
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help="an object a line: findings with severity, path, position and text, then the summary",
    )
    parser.add_argument(
        "--processes",
        type=_process_count,
        default=None,
        metavar="N",
        help="how many work side by side; default: one for each processor, at most 8",
    )
    return parser.parse_args(arguments)


def _process_count(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= PROCESSES_MAX:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 to {PROCESSES_MAX}")
    return int(text)


def _verify(options: argparse.Namespace) -> int:
    file_system = ReadOnlyFileSystem()
    directories = list(dict.fromkeys(os.path.normpath(path) for path in options.directories))
    totals = Totals()
    counts = dict.fromkeys(Severity, 0)
    with ExitStack() as held:
        for path in directories:
            _check_is_directory(path)
            if os.path.exists(os.path.join(path, "cluster.json")):
                one = FileNotFoundError(
                    0, "it holds a cluster: name what is one node's, such as node-1/data in it"
                )
                raise DiskFailure(path, "check", one)
            lock = file_system.lock(os.path.join(path, paths.LOCK))
            if lock is None:
                raise DirectoryLocked(path)
            held.callback(lock.release)
        if not any(is_log_directory(file_system, path) for path in directories):
            nothing = FileNotFoundError(0, "neither meta.properties nor a partition is in it")
            raise DiskFailure(directories[0], "check", nothing)
        progress = Progress(_bytes_to_read(file_system, directories))
        runner = _Runner(file_system, progress, options.processes)
        held.callback(runner.close)
        held.callback(progress.hide)
        for findings in verify(file_system, directories, runner.check_all, totals):
            if findings:
                progress.hide()
            for finding in findings:
                counts[finding.severity] += 1
                write_line(_as_json(finding) if options.json else _as_text(finding))
    write_line(_summary_json(totals, counts) if options.json else _summary(totals, counts))
    return EXIT_DAMAGED if counts[Severity.DAMAGE] else EXIT_SOUND


def _check_is_directory(path: str) -> None:
    try:
        is_directory = stat.S_ISDIR(os.stat(path).st_mode)
    except FileNotFoundError:
        is_directory = False
    except OSError as error:
        raise DiskFailure(path, "check", error) from error
    if not is_directory:
        raise DiskFailure(path, "check", NotADirectoryError(0, "it is no directory"))


def _bytes_to_read(file_system: ReadOnlyFileSystem, directories: Iterable[str]) -> int:
    """Of all segments; what cannot be seen is told later."""
    total = 0
    for path in directories:
        for name in file_system.list_directories(path):
            try:
                with os.scandir(os.path.join(path, name)) as entries:
                    total += sum(entry.stat().st_size for entry in entries if entry.name.endswith(paths.LOG))
            except OSError:
                continue
    return total


class _Runner:
    """Checks replicas here, or in other processes once there is enough to do."""

    def __init__(self, file_system: ReadOnlyFileSystem, progress: Progress, processes: int | None) -> None:
        self._file_system = file_system
        self._progress = progress
        self._processes = processes
        self._held = ExitStack()

    def check_all(self, replicas: list[ReplicaFacts]) -> Iterator[CheckedReplica]:
        count = min(len(replicas), self._processes or min(_processors(), PROCESSES_BY_ITSELF_MAX))
        if count > 1 and (self._processes or self._progress.total >= BYTES_WORTH_A_PROCESS):
            from storage.verification.workers import Workers

            workers = self._held.enter_context(Workers(count, self._progress.moved))
            yield from workers.check_all(replicas)
        else:
            for facts in replicas:
                yield check_one(self._file_system, facts, self._progress.moved)

    def close(self) -> None:
        self._held.close()


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _as_text(finding: Finding) -> str:
    where = finding.path if finding.position is None else f"{finding.path}, byte {finding.position}"
    return f"{finding.severity.value}: {where}: {finding.text}"


def _as_json(finding: Finding) -> str:
    return json.dumps(
        {
            "kind": "finding",
            "severity": finding.severity.value,
            "path": finding.path,
            "position": finding.position,
            "text": finding.text,
        }
    )


def _summary(totals: Totals, counts: dict[Severity, int]) -> str:
    looked_at = ", ".join(
        f"{getattr(totals, plural)} {singular if getattr(totals, plural) == 1 else plural}"
        for plural, singular in _PLURALS.items()
    )
    damaged, noted = counts[Severity.DAMAGE], counts[Severity.NOTE]
    found = "nothing is damaged" if not damaged else f"{damaged} finding{'s' * (damaged > 1)} of damage"
    notes = f", {noted} note{'s' * (noted > 1)}" if noted else ""
    return f"{looked_at}, {size_text(totals.bytes)}: {found}{notes}"


def _summary_json(totals: Totals, counts: dict[Severity, int]) -> str:
    looked_at = {name: getattr(totals, name) for name in sorted(totals.__slots__)}
    found = {severity.value: count for severity, count in counts.items()}
    return json.dumps({"kind": "summary", **looked_at, **found})
