"""What a broker answered in all conversations, and the files that keep it.

A file is made to be read::

    # the name of a conversation

    what a step is called
        Produce 3-8: {"responses": …}
        Produce 9-13: {"responses": …}
        Heartbeat 4 in rounds 4-9: {"error_code": "UNKNOWN_MEMBER_ID"}

Consecutive rounds with the same outcome share a line; it names the versions asked, and the rounds where those
are others.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Final, NamedTuple

from compat.oracle.brief import Json

FOLDER: Final = Path(__file__).resolve().parent / "recorded"

_OUTCOME = re.compile(r"    (\w+) (-?\d+)(?:-(\d+))?(?: in rounds? (\d+)(?:-(\d+))?)?: (.*)")


class Place(NamedTuple):
    """Where in a recording an outcome stands."""

    subject: str
    conversation: str
    step: str
    round: int

    def __str__(self) -> str:
        return f"{self.subject}: {self.conversation}: {self.step}: round {self.round}"


class Told(NamedTuple):
    """What came of one request."""

    api: str
    version: int
    outcome: Json
    """A dict is an answer; a text says why there is none."""


Recording = dict[Place, Told]
"""In the order in which the conversations are defined, and their steps are first made."""


def write(recording: Recording, folder: Path = FOLDER) -> None:
    """Make the files of ``folder`` hold ``recording`` and nothing else."""
    folder.mkdir(exist_ok=True)
    for path in folder.glob("*.txt"):
        path.unlink()
    for subject, places in groupby(recording, key=lambda place: place.subject):
        lines = _lines({place: recording[place] for place in places})
        (folder / f"{subject}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def read(folder: Path = FOLDER) -> Recording:
    """What the files of ``folder`` hold."""
    recording: Recording = {}
    for path in sorted(folder.glob("*.txt")):
        conversation = step = ""
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.startswith("# "):
                conversation = line.removeprefix("# ")
            elif (found := _OUTCOME.fullmatch(line)) is not None:
                api, outcome = found[1], json.loads(found[6])
                for turn, version in _rounds(*found.group(2, 3, 4, 5)):
                    recording[Place(path.stem, conversation, step, turn)] = Told(api, version, outcome)
            elif line:
                step = line
    return recording


def _rounds(
    first: str, last: str | None, first_round: str | None, last_round: str | None
) -> Iterator[tuple[int, int]]:
    """The rounds that a line tells of, each with its version."""
    low, high = int(first), int(last or first)
    begin = low if first_round is None else int(first_round)
    end = high if first_round is None else int(last_round or first_round)
    for turn in range(begin, end + 1):
        yield turn, min(max(turn, low), high)


def _lines(recording: Recording) -> Iterator[str]:
    """What one file holds."""
    for conversation, places in groupby(recording, key=lambda place: place.conversation):
        yield f"# {conversation}\n"
        for step, rounds in groupby(places, key=lambda place: place.step):
            yield step
            for run in _runs((place.round, recording[place]) for place in rounds):
                yield f"    {_heading(run)}: {json.dumps(run[0][1].outcome, ensure_ascii=False)}"
        yield ""


def _runs(told: Iterable[tuple[int, Told]]) -> Iterator[list[tuple[int, Told]]]:
    """Rounds that can share a line."""
    run: list[tuple[int, Told]] = []
    for turn, each in told:
        if run and not _continues(*run[-1], turn, each):
            yield run
            run = []
        run.append((turn, each))
    if run:
        yield run


def _continues(last_turn: int, last: Told, turn: int, told: Told) -> bool:
    """Whether a round follows another with the same outcome, in the version that a line then implies."""
    rises = (last.version, told.version) == (last_turn, turn)
    return (
        turn == last_turn + 1
        and (rises or told.version == last.version)
        and json.dumps(told.outcome) == json.dumps(last.outcome)  # JSON tells 1 from true
    )


def _heading(run: Sequence[tuple[int, Told]]) -> str:
    (first_round, first), (last_round, last) = run[0], run[-1]
    rounds = range_text(first_round, last_round)
    versions = range_text(first.version, last.version)
    if rounds == versions:
        return f"{first.api} {versions}"
    return f"{first.api} {versions} in round{'' if first_round == last_round else 's'} {rounds}"


def range_text(first: int, last: int) -> str:
    """A range of versions as Kafka writes it."""
    return str(first) if first == last else f"{first}-{last}"
