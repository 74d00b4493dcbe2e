"""The driver of Kafka Connect; ``compat.scenarios.python.driver`` says how it is called."""

import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from compat.connect.catalogue import connect_catalogue
from compat.connect.plays import KafkaConnect, plays
from compat.connect.workers import running_worker
from compat.scenarios.python.driver import Repertoire, end, run


def main() -> int:
    address = sys.argv[sys.argv.index("--bootstrap") + 1]
    with tempfile.TemporaryDirectory() as name, ExitStack() as running:
        folder = Path(name)
        lone, again, one, other = (
            running.enter_context(running_worker(folder / worker, address, f"{folder.name}-{cluster}"))
            for worker, cluster in (
                ("lone", "lone"),
                ("again", "again"),
                ("one", "pair"),
                ("other", "pair"),
            )
        )
        version, *_ = [worker.version() for worker in (lone, again, one, other)]
        repertoire = Repertoire(connect_catalogue().scenarios, plays(lone, again, (one, other), folder))
        return run(KafkaConnect(version), None, repertoire)


if __name__ == "__main__":
    end(main())
