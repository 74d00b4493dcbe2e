"""Commands as somebody would type them, and what Kafka's tools answer: files to be read, and to be written.

A file is a conversation with one broker, which all files share::

    # topics are made, and not twice

    @ plan.json {"version": 1}

    $ kafka-topics --create --topic a
      Created topic a.
    = 0

    $ kafka-console-producer --topic a
    < a line
    = 0

``$`` begins a command, which is given ``--bootstrap-server <broker>``; ``%`` one that is taken as it stands,
``~`` one whose lines come in no order, so that they are sorted, and ``?`` one that measures something.  ``<``
is what it reads, two spaces and ``!`` are what it prints, the latter for errors; ``=`` is its exit code.
``@`` makes a file in ``<folder>``; a backslash and ``n`` in it end a line.  Commands and files are written by
hand; everything else comes from ``python -m compat.kafka_tools record``.

Conversations with a cluster of three nodes are in a folder of their own.  ``-`` says there what happens
between the commands: ``- rest`` waits until all replicas are in sync and none is on its way, ``- stop 3``
and ``- start 3`` do that to a node.
"""

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

FOLDER: Final = Path(__file__).resolve().parent / "transcripts"
CLUSTER_FOLDER: Final = Path(__file__).resolve().parent / "cluster_transcripts"

UNORDERED: Final = "~"
AS_IT_STANDS: Final = "%"
FIGURES: Final = "?"
COMMAND: Final = f"${AS_IT_STANDS}{UNORDERED}{FIGURES}"


class Command(NamedTuple):
    """One command, and what it is to read."""

    kind: str
    """One of the signs with which commands begin."""
    line: str
    text: str = ""

    @property
    def words(self) -> list[str]:
        """Tool and arguments, with names for what differs from one broker to the next."""
        tool, *arguments = shlex.split(self.line)
        if self.kind == AS_IT_STANDS:
            return [tool, *arguments]
        return [tool, "--bootstrap-server", "<broker>", *arguments]


class Remark(NamedTuple):
    """A line that is kept as it is."""

    line: str


class File(NamedTuple):
    """A file that commands need."""

    name: str
    content: str


class Deed(NamedTuple):
    """Something that happens to the cluster."""

    name: str
    node: int | None = None

    @property
    def line(self) -> str:
        return self.name if self.node is None else f"{self.name} {self.node}"


class Said(NamedTuple):
    """What a command printed, with names for what differs, and its exit code."""

    output: tuple[str, ...]
    errors: tuple[str, ...]
    exit_code: int

    def lines(self) -> Iterator[str]:
        for line in self.output:
            yield f"  {line}"
        for line in self.errors:
            yield f"! {line}"
        yield f"= {self.exit_code}"


class Entry(NamedTuple):
    """One step of a transcript; ``said`` is None until a command has been recorded."""

    step: Command | File | Remark | Deed
    said: Said | None = None


Transcript = list[Entry]


def subjects(folder: Path = FOLDER) -> list[str]:
    """The names of all transcripts, in the order in which they are played."""
    return sorted(path.stem for path in folder.glob("*.txt"))


def read(subject: str, folder: Path = FOLDER) -> Transcript:
    """The transcript as it is kept."""
    return parse((folder / f"{subject}.txt").read_text().splitlines())


def write(subject: str, transcript: Transcript, folder: Path = FOLDER) -> None:
    (folder / f"{subject}.txt").write_text("\n".join(shown(transcript)) + "\n")


def parse(lines: Iterable[str]) -> Transcript:
    """Raises ValueError for a line that means nothing."""
    entries: Transcript = []
    output: list[str] = []
    errors: list[str] = []
    for line in lines:
        sign, rest = line[:1], line[2:]
        if sign in ("", "#"):
            entries.append(Entry(Remark(line)))
        elif sign == "@":
            name, _, content = rest.partition(" ")
            entries.append(Entry(File(name, content)))
        elif sign == "-":
            name, _, node = rest.partition(" ")
            entries.append(Entry(Deed(name, int(node) if node else None)))
        elif sign in COMMAND:
            entries.append(Entry(Command(sign, rest)))
            output, errors = [], []
        elif not entries or not isinstance(command := entries[-1].step, Command):
            raise ValueError(f"a line that belongs to no command: {line!r}")
        elif sign == "<":
            entries[-1] = Entry(command._replace(text=f"{command.text}{rest}\n"))
        elif sign == " ":
            output.append(rest)
        elif sign == "!":
            errors.append(rest)
        elif sign == "=":
            entries[-1] = Entry(command, Said(tuple(output), tuple(errors), int(rest)))
        else:
            raise ValueError(f"a line that means nothing: {line!r}")
    return entries


def shown(transcript: Transcript) -> Iterator[str]:
    """The lines that ``parse`` understands."""
    for step, said in transcript:
        if isinstance(step, Remark):
            yield step.line
        elif isinstance(step, Deed):
            yield f"- {step.line}"
        elif isinstance(step, File):
            yield f"@ {step.name} {step.content}"
        else:
            yield f"{step.kind} {step.line}"
            for line in step.text.splitlines():
                yield f"< {line}"
            if said is not None:
                yield from said.lines()


_CALLS = re.compile(r"\s+(at |\.\.\. \d+ more)")
_LOGGED = re.compile(r"SLF4J:|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d+ (WARN|ERROR|FATAL) \w+: ")
"""What is logged beside: only if a library for it is among the jars, and if it began in this command."""
_BLANKS = re.compile(r"\s+")
_FIGURE = re.compile(r"\d+(\.\d+)?")
_A_SET = re.compile(
    r"(?<=Valid states are: ).*|(?<=takes one of these options: ).*|(?<=only supports operations \[)[^]]*"
)
_SETTINGS = re.compile(r"(?<= Configs: )\S.*")
_NEXT_SETTING = re.compile(r",(?=[a-z.]+=)")
_OPTIONS = re.compile(r"Option +Description")
_NAMELESS: Final = (
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "<uuid>"),
    (re.compile(r"(?<![\w-])(?=[\w-]*\d)(?=[\w-]*[A-Z])(?=[\w-]*[a-z])[\w-]{22}(?![\w-])"), "<id>"),
    (re.compile(r"(?<=TopicId: )[\w-]{22}|(?<=directory.id=)[\w-]{22}|(?<=directoryId=)[\w-]{22}"), "<id>"),
    (re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d[.,:]\d+Z?"), "<time>"),
    (re.compile(r"(?<!\d)1[6-9]\d{11}(?!\d)"), "<time>"),
    (re.compile(r"@[0-9a-f]{6,8}\b"), "@<hash>"),
    (re.compile(r"(?<=-consumer-)\d+|(?<=crc: )\d+|(?<= Epoch: )\d+"), "<number>"),
    (re.compile(r"Call\(callName=(\w+\(api=\w+\)).*attempt\(s\)"), r"<no answer to \1>"),
    (re.compile(r"Timed out waiting for a node assignment. Call: (\w+\(api=\w+\))"), r"<no answer to \1>"),
)
"""What no two runs have in common."""

TOLD_TO_END: Final = "<end>"
"""Stands in lines that a tool prints only because it is not let end Java."""


def told(text: str, names: Mapping[str, str], kind: str) -> tuple[str, ...]:
    """What a tool printed, line by line, as it can be compared.

    That is without the width of columns, without Java's calls and the descriptions of options, and without
    what no two runs have in common.  ``names``: what to call things that are this broker's own.
    """
    lines = []
    for line in _without_options(text.splitlines()):
        line = _BLANKS.sub(" ", line).strip()
        for known, name in names.items():
            line = line.replace(known, name)
        for pattern, name in _NAMELESS:
            line = pattern.sub(name, line)
        if kind == FIGURES:
            line = _FIGURE.sub("<number>", line)
        line = _A_SET.sub(lambda found: ", ".join(sorted(found[0].split(", "))), line)
        lines.append(_SETTINGS.sub(lambda found: ",".join(sorted(_NEXT_SETTING.split(found[0]))), line))
    while lines and not lines[-1]:
        lines.pop()
    return tuple(sorted(lines) if kind == UNORDERED else lines)


def _without_options(lines: Iterable[str]) -> Iterator[str]:
    in_usage = False
    for line in lines:
        if _OPTIONS.match(line):
            return
        in_usage = (in_usage or line.startswith("usage:")) and ": error: " not in line
        is_noise = _CALLS.match(line) or _LOGGED.match(line) or TOLD_TO_END in line
        if not in_usage and not is_noise:
            yield line
