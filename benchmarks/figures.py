"""A figure is several rounds of the same measurement; what is shown is their median and their spread."""

import statistics
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple


class Figure(NamedTuple):
    """One line of the table."""

    name: str
    unit: str
    values: list[float]

    @property
    def median(self) -> float:
        return statistics.median(self.values)


Measurement = Callable[[], dict[str, float]]
"""One round: values by the names of their figures."""


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which ``share`` (0 to 1) of the values lie."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def gather(units: dict[str, str], rounds: Iterable[dict[str, float]]) -> list[Figure]:
    """Figures out of rounds, in the order of ``units``; a figure that no round gave is left out."""
    collected = list(rounds)
    figures = [
        Figure(name, unit, [values[name] for values in collected if name in values])
        for name, unit in units.items()
    ]
    return [figure for figure in figures if figure.values]


def table(figures: Sequence[Figure]) -> str:
    """The figures as text, one a line."""
    rows = [("figure", "median", "lowest", "highest", "unit")]
    rows += [
        (figure.name, shown(figure.median), shown(min(figure.values)), shown(max(figure.values)), figure.unit)
        for figure in figures
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    lines = []
    for name, *numbers, unit in rows:
        cells = [number.rjust(width) for number, width in zip(numbers, widths[1:4], strict=True)]
        lines.append("  ".join([name.ljust(widths[0]), *cells, unit]).rstrip())
    lines.insert(1, "-" * max(len(line) for line in lines))
    return "\n".join(lines)


def shown(value: float) -> str:
    """Three digits that matter, or all of a large whole number."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) >= 0.001 or value == 0 else f"{value:.1e}"
