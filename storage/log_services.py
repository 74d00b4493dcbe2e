"""What all logs of one directory share."""

from collections.abc import Callable

from storage.descriptors import Descriptors
from storage.filesystem import FileSystem
from storage.removals import Removals

Report = Callable[[str], None]
"""Takes one line for the operator: what was found damaged, cut or rebuilt, naming file and position."""


class LogServices:
    """The file system and its open files, chance, and where news goes."""

    __slots__ = ("descriptors", "file_system", "producer_expiration_ms", "random_below", "removals", "report")

    def __init__(
        self,
        file_system: FileSystem,
        *,
        random_below: Callable[[int], int],
        report: Report,
        open_files_max: int = 512,
        producer_expiration_ms: int = 86_400_000,
    ) -> None:
        self.file_system = file_system
        self.descriptors = Descriptors(file_system, open_files_max)
        self.removals = Removals(file_system)
        self.random_below = random_below
        """``random_below(n)`` gives an integer from 0 to n - 1."""
        self.report = report
        self.producer_expiration_ms = producer_expiration_ms
        """``producer.id.expiration.ms``, as it is now."""
