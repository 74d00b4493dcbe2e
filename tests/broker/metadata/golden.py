"""Metadata logs and snapshots that Apache Kafka 4.4.0 wrote."""

import base64
from collections.abc import Iterator
from pathlib import Path

from broker.metadata.image import MetadataImage, empty_image
from broker.metadata.replay import Replay
from broker.raft.batches import read_metadata_batch
from broker.raft.snapshots import parse_snapshot
from protocol.records.batch import RecordBatch, read_batches

FOLDER = Path(__file__).parents[2] / "golden" / "metadata"

LOGS = ("one_node", "three_brokers", "level_25")
"""Each has a log under this name."""

SNAPSHOTS = (("one_node", 74, 3), ("three_brokers", 70, 1), ("three_brokers", 191, 3))
"""Log, end offset and epoch."""


def read_golden(name: str) -> bytes:
    """The bytes of one file."""
    lines = (FOLDER / f"{name}.txt").read_text(encoding="ascii").splitlines()
    return base64.b64decode("".join(line for line in lines if not line.startswith("#")))


def golden_batches(log: str) -> Iterator[RecordBatch]:
    """Every batch of a log, in order."""
    for batch in read_batches(read_golden(f"{log}_log")):
        batch.check_crc()
        yield batch


def replay_golden(log: str, end_offset: int | None = None) -> MetadataImage:
    """The image after a log's records below ``end_offset``, or after all of them."""
    replay = Replay(empty_image("cluster"))
    for batch in golden_batches(log):
        if end_offset is not None and batch.base_offset >= end_offset:
            break
        if batch.is_control:
            replay.skip_to(batch.last_offset, batch.partition_leader_epoch, batch.max_timestamp)
        else:
            replay.apply(
                read_metadata_batch(batch),
                offset=batch.last_offset,
                epoch=batch.partition_leader_epoch,
                timestamp_ms=batch.max_timestamp,
            )
    replay.publish()
    return replay.image


def load_golden_snapshot(log: str, end_offset: int, epoch: int) -> MetadataImage:
    """The image that a snapshot holds."""
    name = f"{log}_snapshot_{end_offset}_{epoch}"
    snapshot = parse_snapshot(name, read_golden(name))
    replay = Replay(empty_image("cluster"))
    for messages in snapshot.batches:
        replay.apply(messages, offset=end_offset - 1, epoch=epoch, timestamp_ms=snapshot.timestamp_ms)
    replay.skip_to(end_offset - 1, epoch, snapshot.timestamp_ms)
    replay.publish()
    return replay.image
