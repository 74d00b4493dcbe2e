"""Proof that the coordinator knows of a transaction before its first batch is written (KIP-890)."""

from typing import Final


class Verification:
    """Stands between the question to the coordinator and the write that its answer allows.

    The log gives one out and knows it again by identity.  A marker or a batch of the same producer takes
    it back: an answer that comes later must not open a transaction that nobody will ever end.  Only the
    marker that ends the transaction before must not, see ``outlasts``.
    """

    __slots__ = ("began_ms", "lowest_sequence", "producer_epoch", "starts_at_zero")

    def __init__(self, producer_epoch: int, sequence: int, *, starts_at_zero: bool, began_ms: int) -> None:
        self.producer_epoch = producer_epoch
        self.lowest_sequence = sequence
        """Of all that were asked about: a later batch must not go in front of an earlier one."""
        self.starts_at_zero = starts_at_zero
        """The producer works by transactions v2, in which the first sequence after any end is 0."""
        self.began_ms = began_ms

    def outlasts(self, marker_epoch: int) -> bool:
        """Whether a marker ends the transaction before the one that was asked about.

        By transactions v2 the next transaction is of the epoch of that marker.  It may be asked about while
        the marker is still on its way, and the coordinator agrees only when that has been written.
        """
        return self.starts_at_zero and self.producer_epoch == marker_epoch

    def join(self, producer_epoch: int, sequence: int) -> None:
        """Another batch of the producer waits for the same answer."""
        if producer_epoch > self.producer_epoch:
            self.producer_epoch = producer_epoch
            self.lowest_sequence = sequence
        elif producer_epoch == self.producer_epoch:
            self.lowest_sequence = min(self.lowest_sequence, sequence)


VOUCHED: Final = Verification(-1, -1, starts_at_zero=False, began_ms=0)
"""In the place of a verification: none is asked for."""
