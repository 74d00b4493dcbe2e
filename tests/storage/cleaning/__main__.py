"""``python -m tests.storage.cleaning compare --rounds 100 --seed 7``: what Kafka and we keep of logs.

Random histories of a log are played to Kafka's own log and cleaner and to ours; after each turn of the
cleaner the same must be left.  ``record`` keeps histories and what Kafka makes of them, for tests
without Java.  Both need Java and Kafka's jars.
"""

import argparse
import secrets
import sys
import tempfile
from pathlib import Path

from compat.oracle.jars import KafkaMissing
from tests.storage.cleaning import recorded
from tests.storage.cleaning.comparing import compare
from tests.storage.cleaning.histories import make_history
from tests.storage.cleaning.kafka import KafkaLogs


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.storage.cleaning", description=__doc__)
    parser.add_argument("action", choices=["compare", "record"])
    parser.add_argument("--rounds", type=int, default=100, help="turns of the cleaner (100)")
    parser.add_argument("--seed", default=str(secrets.randbits(32)), help="any text; by default a new one")
    parser.add_argument("--first", type=int, default=0, help="the number of the first history")
    arguments = parser.parse_args()
    try:
        with tempfile.TemporaryDirectory() as folder, KafkaLogs(Path(folder)) as kafka:
            if arguments.action == "record":
                recorded.record(kafka)
                return 0
            return _compare(kafka, arguments)
    except KafkaMissing as missing:
        print(missing, file=sys.stderr)
        return 1


def _compare(kafka: KafkaLogs, arguments: argparse.Namespace) -> int:
    print(f"{arguments.rounds} rounds from seed {arguments.seed}", flush=True)
    rounds = failed = 0
    number = arguments.first
    while rounds < arguments.rounds:
        history = make_history(f"{arguments.seed} {number}")
        compared = compare(kafka.play(history), history)
        rounds += compared.rounds
        if compared.differences:
            failed += 1
            print(
                f"history {number} differs after step {compared.step}; repeat with "
                f"--seed {arguments.seed} --first {number} --rounds 1"
            )
            print("\n".join(f"  {difference}" for difference in compared.differences))
        number += 1
    print(f"{failed} of {number - arguments.first} histories differ, in {rounds} rounds")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
