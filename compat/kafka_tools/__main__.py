"""``python -m compat.kafka_tools``: what Kafka's command line tools say of Kafka and of us.

record    play the transcripts to a new Kafka, twice, and keep what its tools say (read the diff)
compare   play them to a new Ottla, and show where that differs

Those of clusters are played to three nodes.  A second word, ``nodes`` or ``clusters``, chooses.
"""

import sys
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple

from compat.kafka_tools.comparing import differences, judge
from compat.kafka_tools.playing import (
    Stage,
    kafka_cluster_stage,
    kafka_stage,
    ottla_cluster_stage,
    ottla_stage,
    play,
)
from compat.kafka_tools.transcript import CLUSTER_FOLDER, FOLDER, Transcript, read, subjects, write
from compat.oracle.jars import KafkaMissing

Transcripts = dict[str, Transcript]


Open = Callable[[Path], AbstractContextManager[Stage]]


class Kind(NamedTuple):
    """Transcripts of one folder, and who plays them."""

    folder: Path
    kafka: Open
    ottla: Open

    def read(self) -> Transcripts:
        return {subject: read(subject, self.folder) for subject in subjects(self.folder)}


KINDS = {
    "nodes": Kind(FOLDER, kafka_stage, ottla_stage),
    "clusters": Kind(CLUSTER_FOLDER, kafka_cluster_stage, ottla_cluster_stage),
}


def played_by(stage: Open, transcripts: Transcripts) -> Transcripts:
    with tempfile.TemporaryDirectory() as folder, stage(Path(folder)) as opened:
        return play(opened, transcripts)


def record(kind: Kind) -> bool:
    """Whether a second Kafka says what the first one did."""
    transcripts = kind.read()
    recorded = played_by(kind.kafka, transcripts)
    for subject, transcript in recorded.items():
        write(subject, transcript, kind.folder)
    unstable = list(differences(recorded, played_by(kind.kafka, transcripts)))
    print("\n".join(unstable))
    return not unstable


def compare(kind: Kind) -> bool:
    """Whether Ottla says what Kafka was recorded to say."""
    transcripts = kind.read()
    found = list(judge(transcripts, played_by(kind.ottla, transcripts)))
    print("\n".join(found))
    return not found


def main() -> int:
    deeds = {"record": record, "compare": compare}
    deed, *chosen = sys.argv[1:] or [""]
    if deed not in deeds or not KINDS.keys() >= set(chosen):
        print(__doc__, file=sys.stderr)
        return 2
    try:
        done = [deeds[deed](KINDS[kind]) for kind in chosen or KINDS]
        return 0 if all(done) else 1
    except KafkaMissing as missing:
        print(missing, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
