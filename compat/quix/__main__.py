"""The driver of Quix Streams; ``compat.scenarios.python.driver`` says how it is called."""

import tempfile
from pathlib import Path

from compat.quix.catalogue import quix_catalogue
from compat.quix.plays import QuixStreams, plays
from compat.quix.program import QUIX
from compat.scenarios.python.driver import Repertoire, end, run


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        repertoire = Repertoire(quix_catalogue().scenarios, plays(Path(folder)))
        return run(QuixStreams(QUIX.pinned_version()), None, repertoire)


if __name__ == "__main__":
    end(main())
