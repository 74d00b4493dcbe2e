"""How much of transactions a producer understands."""

from enum import Enum


class Client(Enum):
    """What the version of a request that writes in a transaction shows about whoever sends it (KIP-890)."""

    OLD = "before TRANSACTION_ABORTABLE"
    ABORTS = "knows TRANSACTION_ABORTABLE"
    ADDS = "leaves it to the broker to add partitions"
    """Transactions v2: the partition need not be in the transaction yet."""

    @classmethod
    def of(cls, version: int, *, aborts_from: int, adds_from: int) -> "Client":
        if version >= adds_from:
            return cls.ADDS
        return cls.ABORTS if version >= aborts_from else cls.OLD
