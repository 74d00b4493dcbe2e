"""Every library with every codec, idempotent and not: ``python -m compat.clients --records 100000``."""

import argparse
import random
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from compat.broker_process import running_broker
from compat.clients import CODECS, LIBRARIES
from compat.clients.library import make_samples
from compat.clients.round_trip import differences


@contextmanager
def address_of(bootstrap: str | None) -> Iterator[str]:
    """The address given, or that of a broker of our own."""
    if bootstrap is not None:
        yield bootstrap
        return
    with tempfile.TemporaryDirectory() as folder, running_broker(Path(folder)) as broker:
        yield broker.address


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m compat.clients", description=__doc__)
    parser.add_argument("--bootstrap", help="host:port of a broker; one is started if this is left out")
    parser.add_argument("--records", type=int, default=100_000, help="records in each run (%(default)s)")
    parser.add_argument("--library", choices=sorted(LIBRARIES), action="append", help="only this one")
    options = parser.parse_args()
    samples = make_samples(options.records, random.Random(1))
    failed = 0
    with address_of(options.bootstrap) as address:
        for name in options.library or LIBRARIES:
            library = LIBRARIES[name]
            for codec in CODECS:
                for idempotent in (False, True):
                    topic = f"round-trip-{uuid.uuid4()}"
                    began = time.perf_counter()
                    library.create_topic(address, topic, 3)
                    found = differences(library, address, topic, samples, codec=codec, idempotent=idempotent)
                    seconds = time.perf_counter() - began
                    failed += bool(found)
                    kind = "idempotent" if idempotent else "plain"
                    verdict = "; ".join(found) or "all records came back"
                    print(f"{name:16} {codec:7} {kind:11} {seconds:7.1f} s  {verdict}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
