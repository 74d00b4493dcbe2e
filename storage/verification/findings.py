"""What a check comes to: findings, and how much was looked at."""

from enum import Enum
from typing import NamedTuple

FINDINGS_PER_FILE_MAX = 20
"""More of one file are only counted: a file that is damaged all over should not bury the others."""


class Severity(Enum):
    """How much a finding matters."""

    DAMAGE = "damage"
    """Something that was written is lost or wrong, or keeps a broker from starting."""
    NOTE = "note"
    """Nothing is lost by it: what a start mends by itself, and what an operator may want to know."""


class Finding(NamedTuple):
    """One thing that is not as it should be."""

    severity: Severity
    path: str
    position: int | None
    """The byte in the file, where one can be named."""
    text: str


class Totals:
    """How much was looked at."""

    __slots__ = ("bytes", "directories", "partitions", "records", "segments")

    def __init__(
        self,
        *,
        directories: int = 0,
        partitions: int = 0,
        segments: int = 0,
        bytes: int = 0,  # noqa: A002 - the word of the summary
        records: int = 0,
    ) -> None:
        self.directories = directories
        self.partitions = partitions
        self.segments = segments
        self.bytes = bytes
        self.records = records

    def add(self, other: "Totals") -> None:
        """Count in what another check has looked at."""
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


class Findings:
    """Gathers findings, not too many of one file."""

    __slots__ = ("_by_path", "_left_out", "found")

    def __init__(self) -> None:
        self.found: list[Finding] = []
        self._by_path: dict[str, int] = {}
        self._left_out: dict[str, tuple[Severity, int]] = {}

    def add(self, severity: Severity, path: str, text: str, position: int | None = None) -> None:
        count = self._by_path.get(path, 0)
        self._by_path[path] = count + 1
        if count < FINDINGS_PER_FILE_MAX:
            self.found.append(Finding(severity, path, position, text))
            return
        worst, more = self._left_out.get(path, (severity, 0))
        if severity is Severity.DAMAGE:
            worst = severity
        self._left_out[path] = worst, more + 1

    def damage(self, path: str, text: str, position: int | None = None) -> None:
        self.add(Severity.DAMAGE, path, text, position)

    def note(self, path: str, text: str, position: int | None = None) -> None:
        self.add(Severity.NOTE, path, text, position)

    def take(self) -> list[Finding]:
        """What was found, with a line for what was left out."""
        found = self.found
        for path, (severity, count) in self._left_out.items():
            found.append(Finding(severity, path, None, f"{count} more findings in this file"))
        self.found = []
        self._by_path = {}
        self._left_out = {}
        return found
