"""An image's records make the same image again, and the bytes that Kafka writes for them."""

import pytest

from broker.metadata.image import MetadataImage, empty_image
from broker.metadata.replay import Replay
from broker.metadata.snapshot import image_records
from protocol.records.batch import read_batches
from protocol.stored.metadata_records import (
    DelegationTokenRecord,
    RegisterControllerRecord,
    decode_metadata_record,
    encode_metadata_record,
)
from tests.broker.metadata.golden import LOGS, SNAPSHOTS, load_golden_snapshot, read_golden, replay_golden
from tests.broker.metadata.records import after


def rebuilt(image: MetadataImage) -> MetadataImage:
    """The image after a way through bytes."""
    replay = Replay(empty_image(image.cluster_id))
    values = [encode_metadata_record(record, version) for record, version in image_records(image)]
    records = [decode_metadata_record(value)[0] for value in values]
    replay.apply(records, offset=len(records) - 1, epoch=0)
    replay.skip_to(image.offset, image.epoch, image.timestamp_ms)
    replay.publish()
    return replay.image


@pytest.mark.parametrize("log", LOGS)
def test_the_round_trip(log: str) -> None:
    image = replay_golden(log)
    assert rebuilt(image).parts() == image.parts()


def test_the_round_trip_of_what_no_log_here_has() -> None:
    token = DelegationTokenRecord(owner="User:a", renewers=["User:b"], token_id="t")
    image = after(replay_golden("one_node"), token, RegisterControllerRecord(controller_id=7))
    assert rebuilt(image).parts() == image.parts()


@pytest.mark.parametrize(("log", "end_offset", "epoch"), SNAPSHOTS)
def test_the_bytes_are_kafka_s(log: str, end_offset: int, epoch: int) -> None:
    batches = read_batches(read_golden(f"{log}_snapshot_{end_offset}_{epoch}"))
    theirs = [record.value for batch in batches if not batch.is_control for record in batch.records()]
    # Kafka walks through hash tables, so its order within a kind of record says nothing.
    image = load_golden_snapshot(log, end_offset, epoch)
    ours = [encode_metadata_record(record, version) for record, version in image_records(image)]
    assert sorted(ours) == sorted(value or b"" for value in theirs)
