"""Settings that librdkafka's clients need to keep what they promise."""

from typing import Final

IDEMPOTENT: Final[dict[str, str | int | float | bool]] = {
    "enable.idempotence": True,
    "acks": "all",
    # With more, librdkafka takes a new epoch when a leader that is just elected has refused one and is out
    # of order with the next, and writes again what was written (its issue 4953).
    "max.in.flight.requests.per.connection": 1,
}
"""Of a producer that doubles nothing, even when leaders change."""
