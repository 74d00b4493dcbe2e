"""Gigabytes of segments that no flush has covered, and the start that has to check them all."""

import os
import shutil
from pathlib import Path

from benchmarks.librdkafka import Load, new_topic, produce
from benchmarks.storage.brokers import StoredBroker, timed
from benchmarks.storage.partitions import start_until_served, wait_until_connected

PARTITIONS = 10
RECORD_BYTES = 1000
SEGMENT = f"{0:020d}.log"
EPOCHS = "leader-epoch-checkpoint"

SPEED = "recovery of unflushed segments, not in the page cache"
CHECKPOINTS = (".kafka_cleanshutdown", "recovery-point-offset-checkpoint")


def recovery_round(broker: StoredBroker, segment_bytes: int) -> dict[str, float]:
    """Megabytes a second of a start with ten unflushed segments, without the time of a start with none.

    One segment is produced, and then copied to the other partitions.
    """
    broker.launch()
    wait_until_connected(broker)
    topic = new_topic(broker.address, PARTITIONS)
    produce(broker.address, topic, Load(RECORD_BYTES, segment_bytes // RECORD_BYTES // 1000 * 1000, "none"))
    broker.stop()
    base_seconds = timed(lambda: start_until_served(broker, topic))
    broker.stop()
    first = broker.data / f"{topic}-0"
    total = 0
    for number in range(PARTITIONS):
        folder = broker.data / f"{topic}-{number}"
        for name in (SEGMENT, EPOCHS) if number else ():
            shutil.copyfile(first / name, folder / name)
        total += (folder / SEGMENT).stat().st_size
    for checkpoint in CHECKPOINTS:
        (broker.data / checkpoint).unlink(missing_ok=True)
    forget(sorted(broker.data.glob(f"{topic}-*/{SEGMENT}")))
    seconds = timed(lambda: start_until_served(broker, topic)) - base_seconds
    broker.kill()
    return {SPEED: total / 1e6 / max(seconds, 0.001)}


def forget(files: list[Path]) -> None:
    """Drop files from the page cache, as far as they are on the device."""
    for path in files:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)
