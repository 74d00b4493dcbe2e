"""What is in flight of one partition for a share group; random histories are beside this."""

from broker.share.acquiring import AcquireMode, Offsets
from broker.share.partition import Acknowledgement, AcknowledgeType, SharePartition, ShareSettings

LOCK_MS = 100


def test_what_the_log_has_lost_meanwhile_is_not_looked_for() -> None:
    """Its acknowledgement was refused, and its lock has ended: nobody could get anything any more."""
    partition = SharePartition(ShareSettings(record_lock_duration_ms=LOCK_MS, record_locks_max=10))
    partition.load(0, 0, ())
    for first in (0, 5):
        fetched = [Offsets(first, first + 4)]
        partition.acquire("ann", AcquireMode.BATCH_OPTIMIZED, 5, 5, first, fetched, (), now_ms=0)
    accepted = partition.acknowledge("ann", [Acknowledgement(0, 4, [AcknowledgeType.ACCEPT])], now_ms=0)
    partition.move_to(5)
    partition.finish(accepted, LOCK_MS, is_stored=False)
    assert partition.next_fetch_offset == 10
