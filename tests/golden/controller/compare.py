"""Play scenes that chance makes up to a controller of Kafka's and to ours.

``python -m tests.golden.controller.compare`` needs Java and the jars; ``--first N --seeds 1`` repeats a seed.
Prints where the two part for the first time in each scene; exit status 1 if they do.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Any

import trio

from tests.golden.controller.chance import perform_by_chance
from tests.golden.controller.ours import play_ours
from tests.golden.controller.play import Play
from tests.golden.controller.record import KafkaFell, record

CLUSTERS: dict[str, tuple[Sequence[str], dict[str, Any]]] = {
    "newest": ((), {}),
    "without-elr": (
        ("--feature", "eligible.leader.replicas.version=0"),
        {"feature_levels": {"eligible.leader.replicas.version": 0}},
    ),
    "oldest": (("--release-version", "4.0-IV3"), {"metadata_version": 25}),
}
"""How both are formatted: arguments of kafka-storage, and of our node."""


class Done(Exception):
    """There is nothing more to compare with."""


class Compared(list[Any]):
    """Lines that are held against others as they come."""

    def __init__(self, theirs: Sequence[Any]) -> None:
        super().__init__()
        self._theirs = theirs
        self._scene = ""
        self._has_parted = False
        self.differences: list[str] = []

    def append(self, line: Any) -> None:
        super().append(line)
        number = len(self) - 1
        if number >= len(self._theirs):
            raise Done
        if "scene" in line:
            self._scene, self._has_parted = line["scene"], False
        mine, other = json.loads(json.dumps(line)), self._theirs[number]
        if mine != other and not self._has_parted:
            self._has_parted = True
            self.differences.append(f"{self._scene}, line {number}\n  ours:  {mine}\n  Kafka: {other}")


def compare(seeds: Sequence[int], cluster: str) -> list[str]:
    """Where the controllers part.  Where Kafka's falls over, the next seeds begin with another one."""
    format_arguments, formatted = CLUSTERS[cluster]
    left = list(seeds)
    differences: list[str] = []
    while left:
        played: list[int] = []

        async def act(play: Play, played: list[int] = played) -> None:
            while left:
                played.append(left.pop(0))
                await perform_by_chance(play, played[-1])

        try:
            theirs = record(act, *format_arguments)
        except KafkaFell as fell:
            theirs = fell.play
            sys.stdout.write(f"Kafka's controller falls over seed {played[-1]}\n")
        compared = Compared(json.loads(json.dumps(theirs.lines)))

        async def again(play: Play, played: Sequence[int] = played, compared: Compared = compared) -> None:
            play.lines = compared
            try:
                for seed in played:
                    await perform_by_chance(play, seed)
            except Done:
                return

        trio.run(lambda again=again: play_ours(again, **formatted))  # type: ignore[misc]
        differences += compared.differences
    return differences


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.golden.controller.compare")
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--seeds", type=int, default=20, help="how many")
    parser.add_argument("--cluster", choices=CLUSTERS, default="newest")
    options = parser.parse_args()
    differences = compare(range(options.first, options.first + options.seeds), options.cluster)
    sys.stdout.write("".join(f"{line}\n" for line in differences))
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
