"""Small files that are read and written whole; what the file system refuses names the file."""

from storage.errors import DiskFailure
from storage.filesystem import FileSystem


def read_small_file(file_system: FileSystem, path: str) -> bytes | None:
    """The content; None if there is no such file.  Raises DiskFailure."""
    try:
        return file_system.read_file(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise DiskFailure(path, "read", error) from error


def write_small_file(file_system: FileSystem, path: str, content: bytes) -> None:
    """Replace the file, and return when it is on the device.  Raises DiskFailure."""
    try:
        file_system.write_durably(path, content)
    except OSError as error:
        raise DiskFailure(path, "write", error) from error
