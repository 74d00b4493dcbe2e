"""A piece of a log that was found, but not read."""

from storage.errors import DiskFailure
from storage.filesystem import File


class FileRange:
    """Bytes ``position`` to ``position + size_bytes`` of an open file: what a fetch sends.

    The file stays readable for as long as this object lives, whatever happens to the log meanwhile
    (closing, rolling, deletion), and its bytes in this range do not change, except by truncation
    of a diverged replica.  Safe to use from a thread.
    """

    __slots__ = ("base_offset", "file", "position", "size_bytes")

    def __init__(self, file: File, position: int, size_bytes: int, base_offset: int) -> None:
        self.file = file
        self.position = position
        self.size_bytes = size_bytes
        self.base_offset = base_offset
        """Offset of the first record asked for; its batch, which the range starts with, may begin below."""

    def __repr__(self) -> str:
        return f"FileRange({self.file.path!r}, position {self.position}, {self.size_bytes} bytes)"

    def fileno(self) -> int | None:
        """The descriptor for ``sendfile``; None for a file that lives in memory: use ``read``."""
        return self.file.fileno()

    def read(self) -> bytes:
        """All bytes of the range.  Raises ``DiskFailure``."""
        return self.read_first(self.size_bytes)

    def read_cached(self) -> bytes | bytearray | None:
        """The same if that takes no waiting for the disk, else None.  Raises ``DiskFailure``."""
        try:
            return self.file.read_cached(self.size_bytes, self.position)
        except OSError as error:
            raise DiskFailure(self.file.path, "read", error) from error

    def read_first(self, size_bytes: int) -> bytes:
        """So many bytes from the beginning of the range, which has as many.  Raises ``DiskFailure``."""
        try:
            return self.file.pread(size_bytes, self.position)
        except OSError as error:
            raise DiskFailure(self.file.path, "read", error) from error

    def is_cached(self) -> bool:
        """Whether reading would not wait for the disk, judged by the first and the last page.

        True where the operating system cannot tell.
        """
        return self.file.is_cached(self.position, 1) and self.file.is_cached(
            self.position + self.size_bytes - 1, 1
        )
