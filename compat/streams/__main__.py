"""The driver of Kafka Streams; ``compat.scenarios.python.driver`` says how it is called."""

import tempfile
from pathlib import Path

from compat.scenarios.python.driver import Repertoire, end, run
from compat.streams.catalogue import streams_catalogue
from compat.streams.plays import KafkaStreams, plays
from compat.streams.program import running_applications


def main() -> int:
    with tempfile.TemporaryDirectory() as folder, running_applications(Path(folder)) as applications:
        repertoire = Repertoire(streams_catalogue().scenarios, plays(applications, Path(folder)))
        return run(KafkaStreams(applications.version), None, repertoire)


if __name__ == "__main__":
    end(main())
