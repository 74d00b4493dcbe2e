"""What a controller's command comes to: records to append, and what to answer once they are committed.

Commands are plain functions that read the latest image and change nothing.  What their records mean
is decided by ``broker.metadata.replay`` alone.
"""

from collections.abc import Callable, Sequence
from typing import Final, Generic, NamedTuple, TypeVar

from broker.metadata.image import MetadataImage
from broker.metadata.records import VersionedRecord
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError

Reply = TypeVar("Reply")

RECORDS_MAX: Final = 10_000
"""Records of one user's command; beyond it Kafka refuses the whole request with POLICY_VIOLATION."""


RECORDS_PER_BATCH: Final = 10_000
"""Of a long decision."""


def check_count(records: Sequence[VersionedRecord]) -> None:
    """Raises POLICY_VIOLATION if these are more than one user's command may bring about."""
    if len(records) > RECORDS_MAX:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, "Unable to perform excessively large batch operation.")


class Decision(NamedTuple, Generic[Reply]):
    """``records`` become one batch: all of them are applied, or none."""

    records: Sequence[VersionedRecord]
    reply: Reply


class LongDecision(Decision[Reply]):
    """One whose records may be a great many: then they become several batches.

    Their order is all that matters: if not all of them are written, another controller finds out from the
    last one that is missing, and decides it again.
    """

    __slots__ = ()


Command = Callable[[MetadataImage], Decision[Reply]]
"""Raises ``KafkaError`` when it refuses as a whole."""
