"""What a recording covers: each API in each version, with success and every error seen in Kafka."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from compat.oracle.apis import COVERED, api_of
from compat.oracle.empty_cells import EMPTY
from compat.oracle.outcomes import SUCCESS, results_of
from compat.oracle.recording import Recording
from protocol.api_keys import ApiKey
from protocol.schema import version_range

NONE_SEEN: Final = "·"
CELL_WIDTH: Final = 5
NAME_WIDTH: Final = 40


class Cell(NamedTuple):
    """One result of one API in one version."""

    api: str
    result: str
    version: int


class Grid(NamedTuple):
    """How often each result was recorded."""

    versions: Mapping[str, range]
    """Of every API that is judged."""
    counts: Mapping[Cell, int]

    def results(self, api: str) -> list[str]:
        """Success, the errors by their names, then the kinds of silence."""
        found = {cell.result for cell in self.counts if cell.api == api} - {SUCCESS}
        return [SUCCESS, *sorted(found, key=lambda result: (result.islower(), result))]

    def empty_cells(self) -> Iterator[Cell]:
        for api, versions in self.versions.items():
            for result in self.results(api):
                for version in versions:
                    cell = Cell(api, result, version)
                    if cell not in self.counts:
                        yield cell

    def unreasoned(self) -> list[Cell]:
        """Empty cells that nobody has given a reason for."""
        return [cell for cell in self.empty_cells() if reason_of(cell) is None]

    def stale_reasons(self) -> list[str]:
        """Reasons for cells that are not empty, or not there."""
        empty = set(self.empty_cells())
        return [
            f"{api} {result} {versions}"
            for (api, result), reasons in EMPTY.items()
            for versions in reasons
            if not {Cell(api, result, version) for version in version_range(versions)} <= empty
        ]

    def lines(self) -> Iterator[str]:
        """The grid, and under each API why some of its cells are empty."""
        for api, versions in self.versions.items():
            yield f"{api:{NAME_WIDTH}}" + "".join(f"{version:{CELL_WIDTH}}" for version in versions)
            for result in self.results(api):
                counts = (self.counts.get(Cell(api, result, version)) for version in versions)
                yield f"  {result:{NAME_WIDTH - 2}}" + "".join(
                    f"{count or NONE_SEEN:>{CELL_WIDTH}}" for count in counts
                )
            for result in self.results(api):
                for empty, reason in EMPTY.get((api, result), {}).items():
                    yield f"    {NONE_SEEN} {result} in {empty}: {reason}"
            yield ""


def make_grid(recording: Recording, keys: Sequence[ApiKey] = COVERED) -> Grid:
    """Count what is recorded of these APIs."""
    versions = {api.name: api.versions for api in map(api_of, keys)}
    counts: dict[Cell, int] = {}
    for told in recording.values():
        if told.version in versions.get(told.api, ()):
            for result in results_of(told.outcome):
                cell = Cell(told.api, result, told.version)
                counts[cell] = counts.get(cell, 0) + 1
    return Grid(versions, counts)


def reason_of(cell: Cell) -> str | None:
    """Why a cell is empty."""
    for versions, reason in EMPTY.get((cell.api, cell.result), {}).items():
        if cell.version in version_range(versions):
            return reason
    return None
