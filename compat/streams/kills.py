"""``python -m compat.streams.kills [KILLS] [SEED]``: count words exactly once while Ottla is killed."""

import random
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from compat.broker_process import BrokerProcess, running_broker
from compat.oracle.jars import KAFKA_VERSION
from compat.scenarios.missing import ClientMissing
from compat.scenarios.python.stage import Stage
from compat.streams.catalogue import PROTOCOLS
from compat.streams.plays import Application, Counting, KafkaStreams
from compat.streams.program import SETTINGS, Applications, running_applications

INSTANCES: Final = 2
"""Of each application; there is one with each protocol."""

LINES: Final = 150


def count_while_killed(folder: Path, kills: int, seed: int) -> None:
    """Kill the broker amid counting, again and again.  Raises ClientMissing, and what is counted wrong."""
    with ExitStack() as opened:
        applications = opened.enter_context(running_applications(folder / "applications"))
        broker = opened.enter_context(running_broker(folder / "broker", SETTINGS))
        stage = opened.enter_context(Stage(KafkaStreams(KAFKA_VERSION), broker.address))
        counting = [start(stage, applications, folder, protocol) for protocol in PROTOCOLS]
        kill_often(broker, counting, kills, random.Random(seed))


def start(stage: Stage, applications: Applications, folder: Path, protocol: str) -> Counting:
    """An application that has counted something."""
    application = Application(stage, applications, folder, protocol)
    counting = Counting(application)
    counting.send(LINES)
    for _ in range(INSTANCES):
        application.start("count", {"producer.transaction.timeout.ms": "10000"})
    counting.wait_for_all()
    return counting


def kill_often(
    broker: BrokerProcess, counting: Sequence[Counting], kills: int, chance: random.Random
) -> None:
    for _ in range(kills):
        for each in counting:
            each.send(LINES)
        watched = chance.choice(counting).output
        watched.wait_for(len(watched.taken) + chance.randrange(LINES))
        broker.kill()
        broker.start()
        for each in counting:
            each.wait_for_all()


def main() -> int:
    kills = int(sys.argv[1]) if sys.argv[1:] else 20
    seed = int(sys.argv[2]) if sys.argv[2:] else random.SystemRandom().getrandbits(32)
    print(f"seed {seed}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        try:
            count_while_killed(Path(folder), kills, seed)
        except ClientMissing as missing:
            print(missing, file=sys.stderr)
            return 1
    print(f"every word is counted once, with {kills} kills")
    return 0


if __name__ == "__main__":
    sys.exit(main())
