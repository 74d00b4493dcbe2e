"""Produce records, consume them again, and say what is not as it was."""

from collections.abc import Sequence

from compat.scenarios.python.client import LONG_TIMEOUT_SECONDS, Client, Record
from compat.scenarios.python.records import differences
from compat.scenarios.python.stage import Stage

PARTITION_COUNT = 3


def round_trip(
    client: Client, address: str, sent: Sequence[Record], *, codec: str = "none", idempotent: bool = True
) -> list[str]:
    """In words, what of ``sent`` did not come back as it was from a new topic."""
    with Stage(client, address) as stage:
        topic = stage.topic(PARTITION_COUNT)
        places = stage.send(topic, sent, codec=codec, idempotent=idempotent)
        taken = stage.take(
            topic, len(sent), partition_count=PARTITION_COUNT, patience_seconds=LONG_TIMEOUT_SECONDS
        )
    return differences(sent, places, taken)
