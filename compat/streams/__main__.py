"""``python -m compat.streams [SEED]``: let Kafka Streams count words on Apache Kafka, and on Ottla."""

import random
import sys
import tempfile
import time
from pathlib import Path

from compat.broker_process import running_broker
from compat.oracle.jars import KafkaMissing
from compat.oracle.kafka import kafka_node
from compat.streams.counting import SETTINGS, count_words


def count_on_kafka(folder: Path, seed: int) -> None:
    with kafka_node(folder / "broker", SETTINGS) as node:
        count_words(node.bootstrap, folder / "applications", seed)


def count_on_ottla(folder: Path, seed: int) -> None:
    with running_broker(folder / "broker", SETTINGS) as broker:
        count_words(broker.address, folder / "applications", seed)


def main() -> int:
    seed = int(sys.argv[1]) if sys.argv[1:] else random.SystemRandom().getrandbits(32)
    print(f"seed {seed}", flush=True)
    for name, count in (("Apache Kafka", count_on_kafka), ("Ottla", count_on_ottla)):
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            try:
                count(Path(folder), seed)
            except KafkaMissing as missing:
                print(missing, file=sys.stderr)
                return 1
        print(f"{name}: every word is counted once, in {time.monotonic() - began:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
