"""Which names a topic may have, and which topics are the cluster's own."""

import re
from typing import Final

from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError

GROUP_OFFSETS: Final = "__consumer_offsets"
TRANSACTION_STATE: Final = "__transaction_state"
SHARE_GROUP_STATE: Final = "__share_group_state"
CLUSTER_METADATA: Final = "__cluster_metadata"

INTERNAL_TOPICS: Final = frozenset((GROUP_OFFSETS, TRANSACTION_STATE, SHARE_GROUP_STATE))
"""What Metadata marks as internal.  The metadata log is not among them: no client ever sees it."""

NAME_LENGTH_MAX: Final = 249

_LEGAL: Final = re.compile(r"[a-zA-Z0-9._-]+")


def fault_in(name: str) -> str | None:
    """What is wrong with a topic name, in Kafka's words; None if nothing is."""
    if not name:
        return "the empty string is not allowed"
    if name in (".", ".."):
        return f"'{name}' is not allowed"
    if len(name) > NAME_LENGTH_MAX:
        return f"the length of '{name}' is longer than the max allowed length {NAME_LENGTH_MAX}"
    if _LEGAL.fullmatch(name) is None:
        return f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    return None


def check(name: str) -> None:
    """Raise INVALID_TOPIC_EXCEPTION unless a topic may be called ``name``."""
    fault = fault_in(name)
    if fault is not None:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {fault}")
