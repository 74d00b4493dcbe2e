"""The settings that both brokers run with while they are compared."""

from typing import Final

from compat.oracle.kafka import SMALL_NODE

COMPARED: Final = {
    **SMALL_NODE,
    "node.id": "1",
    "offsets.topic.num.partitions": "1",
    "group.min.session.timeout.ms": "100",
    "log.retention.ms": "-1",
}
"""One partition of group offsets, so that one coordinator answers for every group; sessions short enough to be
waited for; and records of a time long past, which must stay."""
