"""What can be wrong with record data."""

from protocol.errors import DecodeError


class CorruptRecords(DecodeError):
    """A batch or a record is not what the format allows: sizes, checksums, counts, payload."""


class UnsupportedMagic(CorruptRecords):
    """A whole entry of a format other than v2; ``magic`` is 0 or 1 for what Kafka wrote before 0.11."""

    def __init__(self, magic: int) -> None:
        super().__init__(f"record format {magic} is not supported")
        self.magic = magic


class BadCompression(CorruptRecords):
    """A compressed records section that its codec refuses."""


class RecordsTooLarge(CorruptRecords):
    """A records section that would grow beyond ``limit`` bytes when decompressed."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"records take more than {limit} bytes when decompressed")
        self.limit = limit
