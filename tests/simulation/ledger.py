"""What clients sent, what they were told about it, and what others have read."""

from typing import NamedTuple

Partition = tuple[str, int]


class Acknowledged(NamedTuple):
    """Records of which a broker has said that they are written; the offset is -1 if it did not say where."""

    partition: Partition
    base_offset: int
    values: tuple[bytes, ...]


class Transaction:
    """What was produced in a transaction, and how it ended, as far as its producer knows."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.values: dict[Partition, list[bytes]] = {}
        self.outcome: str = "open"
        """``open``, ``committed``, ``aborted``, or ``unknown``."""


class Ledger:
    """Keeps all of it."""

    def __init__(self) -> None:
        self.acknowledged: list[Acknowledged] = []
        self.sent: dict[bytes, Partition] = {}
        self.transactions: list[Transaction] = []
        self.of_transaction: dict[bytes, Transaction] = {}
        self.read: dict[str, dict[Partition, list[tuple[int, bytes]]]] = {}
        """By reader: offsets and values in the order in which they were read."""

    def reader(self, name: str) -> dict[Partition, list[tuple[int, bytes]]]:
        return self.read.setdefault(name, {})
