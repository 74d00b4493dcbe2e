"""What a client library's share consumer (KIP-932) looks like to a scenario."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

from compat.scenarios.python.client import TakenRecord, not_offered

ACCEPT, RELEASE, REJECT = "accept", "release", "reject"
"""What a member can say of a record that it has."""


class SharedRecord(NamedTuple):
    """A record that a member has for a while."""

    record: TakenRecord
    delivery_count: int
    """How often the broker has given it to somebody, this time included."""


class ShareConsumer(ABC):
    """A member of a share group.

    An implicit one accepts what a poll gave with the next poll and with a commit; an explicit one says of
    each record what becomes of it before it polls again.
    """

    @abstractmethod
    def subscribe(self, topics: Sequence[str]) -> None: ...

    @abstractmethod
    def poll(self, wait_seconds: float = 0.1) -> list[SharedRecord]: ...

    @abstractmethod
    def acknowledge(self, record: TakenRecord, how: str) -> None:
        """Say what becomes of a record of the last poll; the broker hears of it later."""

    def renew(self, records: Sequence[TakenRecord]) -> None:
        """Have all records of the last poll for longer (KIP-1222), and wait for it.  Raises Refused."""
        not_offered("its share consumer cannot renew locks")

    @abstractmethod
    def commit(self) -> None:
        """Tell the broker all that was acknowledged, and wait for it.  Raises Refused."""

    @abstractmethod
    def close(self) -> None:
        """Leave the group, if that has not happened; records that nothing was said of go to others."""
