"""The driver of Flink's connector; ``compat.scenarios.python.driver`` says how it is called."""

import tempfile
from pathlib import Path

from compat.flink.catalogue import flink_catalogue
from compat.flink.plays import plays
from compat.flink.program import running_cluster
from compat.flink.scene import Flink
from compat.scenarios.python.driver import Repertoire, end, run


def main() -> int:
    with tempfile.TemporaryDirectory() as folder, running_cluster(Path(folder)) as cluster:
        repertoire = Repertoire(flink_catalogue().scenarios, plays(cluster))
        return run(Flink(cluster.version), None, repertoire)


if __name__ == "__main__":
    end(main())
