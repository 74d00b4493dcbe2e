"""What is known of a replica before its folder is looked into."""

from enum import Enum
from typing import NamedTuple


class Kind(Enum):
    """What a replica's folder is for, as its name says."""

    LIVE = "replica"
    METADATA = "metadata log"
    FUTURE = "copy under way"
    STRAY = "stray"


class Topic(NamedTuple):
    """A topic as the metadata log has it."""

    topic_id: bytes
    partition_count: int
    is_compacted: bool


class ReplicaFacts(NamedTuple):
    """One replica; it travels to the process that checks it, and so has only plain values."""

    path: str
    topic: str
    """Perhaps cut short, if the folder is marked."""
    partition: int
    kind: Kind = Kind.LIVE
    was_clean: bool = False
    """The log directory has the mark of a clean stop."""
    recovery_point: int = 0
    log_start: int | None = None
    high_watermark: int | None = None
    cleaned_to: int | None = None
    """Up to where the cleaner has been."""
    is_cluster_known: bool = False
    """Whether there was a metadata log to learn of topics from."""
    expected: Topic | None = None
    """The topic of this name there."""
    may_have_gaps: bool = False
    """Offsets may be missing: brokers compact topics whatever these say."""

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}"
