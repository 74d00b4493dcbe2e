"""What a run found, as a file that tables are printed from."""

import json
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.peers.steps import Figure

FOLDER = Path(__file__).resolve().parent.parent / "results"


class Spread(NamedTuple):
    """The middle of several values, and how far they reach."""

    median: float
    lowest: float
    highest: float


def spread(values: Sequence[float]) -> Spread:
    return Spread(statistics.median(values), min(values), max(values))


class Row(NamedTuple):
    """A figure of all brokers: a value for each round, None where that round gave none, and why."""

    section: str
    figure: Figure
    values: dict[str, list[float | None]]
    failures: dict[str, str]

    def of(self, broker: str) -> Spread | None:
        """The broker's own values, or None if it never gave one."""
        found = [value for value in self.values.get(broker, []) if value is not None]
        return spread(found) if found else None

    def ratio(self, broker: str, peer: str) -> Spread | None:
        """``broker`` / ``peer``, round by round, or None if no round has both."""
        pairs = zip(self.values.get(broker, []), self.values.get(peer, []), strict=False)
        ratios = [mine / theirs for mine, theirs in pairs if mine is not None and theirs]
        return spread(ratios) if ratios else None

    def is_ahead(self, broker: str, peer: str) -> bool:
        """Whether the middle of the ratios speaks for ``broker``."""
        ratio = self.ratio(broker, peer)
        if ratio is None:
            return False
        return ratio.median > 1 if self.figure.more_is_better else ratio.median < 1


class Results(NamedTuple):
    """One run: when, where, of what, and the rows of its table."""

    date: str
    machine: str
    versions: dict[str, str]
    rounds: int
    is_quick: bool
    rows: list[Row]

    @property
    def brokers(self) -> list[str]:
        return list(self.versions)


class Collector:
    """Takes values and failures as they come, and gives the rows in the order of the figures."""

    def __init__(self, figures: Mapping[Figure, str], brokers: Sequence[str]) -> None:
        self._rows = {
            figure.name: Row(section, figure, {broker: [] for broker in brokers}, {})
            for figure, section in figures.items()
        }

    def begin_round(self, broker: str) -> None:
        for row in self._rows.values():
            row.values[broker].append(None)

    def add(self, broker: str, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            self._rows[name].values[broker][-1] = value

    def fail(self, broker: str, figures: Sequence[Figure], reason: str) -> None:
        """The figures had no value in this round; the first reason is the one that is kept."""
        for figure in figures:
            self._rows[figure.name].failures.setdefault(broker, reason)

    def rows(self) -> list[Row]:
        """Those that anything was tried for."""
        return [
            row
            for row in self._rows.values()
            if row.failures or any(value is not None for each in row.values.values() for value in each)
        ]


def write(results: Results, path: Path) -> None:
    rows = [
        {
            "section": row.section,
            "figure": row.figure.name,
            "unit": row.figure.unit,
            "more_is_better": row.figure.more_is_better,
            "values": {
                broker: [None if value is None else float(f"{value:.4g}") for value in each]
                for broker, each in row.values.items()
            },
            "failures": row.failures,
        }
        for row in results.rows
    ]
    document = {**results._asdict(), "rows": rows}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def read(path: Path) -> Results:
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    rows = [
        Row(
            row["section"],
            Figure(row["figure"], row["unit"], row["more_is_better"]),
            row["values"],
            row["failures"],
        )
        for row in document.pop("rows")
    ]
    return Results(rows=rows, **document)


def joined(before: Results, after: Results) -> Results:
    """The rows of two runs of the same brokers on the same machine and day; those of the later one count.

    Raises ValueError if they have not that in common.
    """
    for name in ("date", "machine", "versions", "is_quick"):
        was, now = getattr(before, name), getattr(after, name)
        if was != now:
            raise ValueError(f"figures of {name.replace('_', ' ')} {was} and {now} do not go together")
    again = {row.figure.name for row in after.rows}
    return after._replace(
        rounds=max(before.rounds, after.rounds),
        rows=[*(row for row in before.rows if row.figure.name not in again), *after.rows],
    )


def newest(folder: Path = FOLDER) -> Path | None:
    """The committed results that README shows: their files are named after their day."""
    return max(folder.glob("*.json"), default=None)


def newest_of_each_section(folder: Path) -> list[Results]:
    """What the files of ``folder`` have to say, the newest first, without what a newer one knows better.

    They are named after their day; further ones of the same day have a letter behind it.
    """
    known: set[str] = set()
    found = []
    for path in sorted(folder.glob("*.json"), key=lambda path: path.stem, reverse=True):
        results = read(path)
        rows = [row for row in results.rows if row.section not in known]
        known.update(row.section for row in rows)
        if rows:
            found.append(results._replace(rows=rows))
    return found
