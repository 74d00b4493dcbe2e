"""Where Kafka's tools say something else of us, and why.  Nothing else may differ, and all of this must."""

from typing import Final

OLD_LEVELS: Final = {
    "SupportedMinVersion: 3.3-IV3": "SupportedMinVersion: 4.0-IV3",
    "only supports versions 7-33": "only supports versions 25-33",
}
"""Metadata levels older than that of Kafka 4.0 are not written: what Kafka says of them, and what we do."""

NO_FILE_YET: Final = "while a segment is written to, its indexes are kept in memory, and have no files"

OTHERWISE: Final = {
    "kafka-dump-log --files <data>/filed-0/00000000000000000000.index --index-sanity-check": NO_FILE_YET,
    "kafka-dump-log --files <data>/filed-0/00000000000000000000.timeindex": NO_FILE_YET,
}
"""Commands of which we answer something else altogether."""
