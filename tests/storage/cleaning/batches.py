"""The batches of a history, as they reach a leader."""

from collections.abc import Sequence
from typing import Any

from protocol.records.builder import NewRecord, build_batch
from protocol.records.compression import Compression
from protocol.records.control import EndTransactionMarker, build_end_transaction_marker

HEADER = (b"h", b"1")


class Batches:
    """Makes them; whoever plays a history keeps one."""

    def __init__(self) -> None:
        self.leader_epoch = 0

    def data(
        self,
        records: Sequence[Sequence[Any]],
        *,
        codec: str = "none",
        producer: tuple[int, int] = (-1, -1),
        sequence: int = -1,
        is_transactional: bool = False,
    ) -> bytearray:
        return build_batch(
            [_record(*record) for record in records],
            compression=Compression[codec.upper()],
            producer_id=producer[0],
            producer_epoch=producer[1],
            base_sequence=sequence,
            is_transactional=is_transactional,
        )

    def marker(
        self, producer: tuple[int, int], *, is_commit: bool, coordinator_epoch: int, time_ms: int
    ) -> bytearray:
        return build_end_transaction_marker(
            EndTransactionMarker(is_commit, coordinator_epoch),
            producer_id=producer[0],
            producer_epoch=producer[1],
            timestamp=time_ms,
        )


def _record(key: str | None, value: tuple[int, int] | None, time_ms: int, header_count: int) -> NewRecord:
    return (
        time_ms,
        None if key is None else key.encode(),
        None if value is None else str(value[0]).rjust(value[1], ".").encode() if value[1] else b"",
        [HEADER] * header_count,
    )
