"""Settings that librdkafka's clients need to keep what they promise."""

from typing import Final

IDEMPOTENT: Final[dict[str, str | int | float | bool]] = {
    "enable.idempotence": True,
    "acks": "all",
    "max.in.flight.requests.per.connection": 1,
}
"""Of a producer that doubles as little as possible when leaders change.

When a leader that is just elected has refused a batch and is out of order with the next, librdkafka takes a
new epoch, and may write again what other partitions have already (its issue 4953). With one request in flight
a second one still waits behind it; so whoever must not double anything sends a batch only when the one before
is acknowledged.
"""
