"""What a log wrote, for tests to read."""

from io import StringIO


class Lines(StringIO):
    """Stands in for standard error."""

    @property
    def lines(self) -> list[str]:
        """Each line without its time."""
        return [line[24:] for line in self.getvalue().splitlines()]
