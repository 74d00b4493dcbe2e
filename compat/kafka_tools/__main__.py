"""``python -m compat.kafka_tools``: what Kafka's command line tools say of Kafka and of us.

record    play the transcripts to a new Kafka, twice, and keep what its tools say (read the diff)
compare   play them to a new Ottla, and show where that differs
"""

import sys
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from compat.kafka_tools.comparing import differences, judge
from compat.kafka_tools.playing import Stage, kafka_stage, ottla_stage, play
from compat.kafka_tools.transcript import Transcript, read, subjects, write
from compat.oracle.jars import KafkaMissing

Transcripts = dict[str, Transcript]


def played_by(
    stage: Callable[[Path], AbstractContextManager[Stage]], transcripts: Transcripts
) -> Transcripts:
    with tempfile.TemporaryDirectory() as folder, stage(Path(folder)) as opened:
        return play(opened, transcripts)


def record(transcripts: Transcripts) -> bool:
    """Whether a second Kafka says what the first one did."""
    recorded = played_by(kafka_stage, transcripts)
    for subject, transcript in recorded.items():
        write(subject, transcript)
    unstable = list(differences(recorded, played_by(kafka_stage, transcripts)))
    print("\n".join(unstable))
    return not unstable


def compare(transcripts: Transcripts) -> bool:
    """Whether Ottla says what Kafka was recorded to say."""
    found = list(judge(transcripts, played_by(ottla_stage, transcripts)))
    print("\n".join(found))
    return not found


def main() -> int:
    transcripts = {subject: read(subject) for subject in subjects()}
    try:
        match sys.argv[1:]:
            case ["record"]:
                return 0 if record(transcripts) else 1
            case ["compare"]:
                return 0 if compare(transcripts) else 1
    except KafkaMissing as missing:
        print(missing, file=sys.stderr)
        return 1
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
