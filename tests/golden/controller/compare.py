"""Play scenes that chance makes up to a controller of Kafka's and to ours.

``python -m tests.golden.controller.compare`` needs Java and the jars; ``--first N --seeds 1`` repeats a seed.
Prints where the two part for the first time in each scene; exit status 1 if they do.
"""

import argparse
import json
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeAlias

import trio

from tests.golden.controller.chance import perform_by_chance
from tests.golden.controller.chance_odd import perform_odd
from tests.golden.controller.chance_requests import perform_requests
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

Perform: TypeAlias = Callable[[Play, int], Awaitable[None]]

SCENES: Mapping[str, Perform] = {
    "brokers": perform_by_chance,
    "odd": perform_odd,
    "requests": perform_requests,
}
"""What is played, by a seed."""


class Done(Exception):
    """There is nothing more to compare with."""


class Compared(list[Any]):
    """Lines that are held against others as they come, each scene from its own beginning.

    Once the two have parted, what follows in the scene differs, too, and there may be more of it, or less.
    """

    def __init__(self, play: Play, theirs: Sequence[Any], *, in_order: bool) -> None:
        super().__init__()
        self._play = play
        self._theirs: dict[str, list[Any]] = {}
        for line in theirs:
            if "scene" in line:
                present = self._theirs.setdefault(line["scene"], [])
            else:
                present.append(line)
        self._in_order = in_order
        self._scene = ""
        self._has_parted = False
        self.differences: list[str] = []

    def append(self, line: Any) -> None:
        if "scene" in line:
            self.clear()
            self._scene, self._has_parted = line["scene"], False
            return
        super().append(line)
        number, theirs = len(self), self._theirs[self._scene]
        if self._has_parted:
            return
        if number > len(theirs):
            raise Done  # where theirs has fallen
        mine, other = json.loads(json.dumps(line)), theirs[number - 1]
        if not self._in_order:
            mine, other = _sorted(mine), _sorted(other)
        if mine != other:
            self._has_parted = True
            self.differences.append(
                f"{self._scene}, line {number}: {self._play.asked}\n  ours:  {mine}\n  Kafka: {other}"
            )


def _sorted(told: Any) -> Any:
    """The same whatever order rows come in: Kafka's hash tables have their own."""
    if isinstance(told, dict):
        return {name: _sorted(value) for name, value in told.items()}
    if isinstance(told, list):
        return sorted(map(_sorted, told), key=str)
    return told


def compare(seeds: Sequence[int], cluster: str, scenes: str = "brokers") -> list[str]:
    """Where the controllers part.  Where Kafka's falls over, the next seeds begin with another one."""
    format_arguments, formatted = CLUSTERS[cluster]
    perform = SCENES[scenes]
    left = list(seeds)
    differences: list[str] = []
    while left:
        played: list[int] = []

        async def act(play: Play, played: list[int] = played) -> None:
            while left:
                played.append(left.pop(0))
                await perform(play, played[-1])

        try:
            theirs = record(act, *format_arguments)
        except KafkaFell as fell:
            theirs = fell.play
            sys.stdout.write(f"Kafka's controller falls over seed {played[-1]}\n")
        lines = json.loads(json.dumps(theirs.lines))

        async def again(play: Play, played: Sequence[int] = played, lines: Sequence[Any] = lines) -> None:
            play.lines = compared = Compared(play, lines, in_order=scenes != "requests")
            try:
                for seed in played:
                    await perform(play, seed)
            except Done:
                pass
            differences.extend(compared.differences)

        trio.run(lambda again=again: play_ours(again, **formatted))  # type: ignore[misc]
    return differences


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.golden.controller.compare")
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--seeds", type=int, default=20, help="how many")
    parser.add_argument("--cluster", choices=CLUSTERS, default="newest")
    parser.add_argument("--scenes", choices=SCENES, default="brokers", help="what is played")
    options = parser.parse_args()
    seeds = range(options.first, options.first + options.seeds)
    differences = compare(seeds, options.cluster, options.scenes)
    sys.stdout.write("".join(f"{line}\n" for line in differences))
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
