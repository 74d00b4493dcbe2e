"""The parts of the comparison, and the small readers that they stand on."""

from pathlib import Path

import pytest

from benchmarks.parts import choose
from benchmarks.storage import command, compaction
from benchmarks.storage.brokers import StoredBroker


def test_every_figure_is_measured_once() -> None:
    names = [figure.name for part in command.parts(1) for figure in part.figures]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("words", "sections"),
    [
        ("partitions", {command.PARTITIONS}),
        ("recovery,append", {command.RECOVERY, command.APPEND}),
        ("none", set()),
    ],
)
def test_parts_can_be_chosen(words: str, sections: set[str]) -> None:
    assert {part.section for part in choose(command.parts(1), words)} == sections


class Files(StoredBroker):
    """No more than a folder."""

    pid = 0

    def __init__(self, folder: Path, settings: dict[str, str] | None = None) -> None:
        self.data = folder

    def launch(self) -> None: ...

    def stop(self) -> None: ...

    def kill(self) -> None: ...


def test_how_far_a_cleaner_has_come_stands_in_its_checkpoint(tmp_path: Path) -> None:
    broker = Files(tmp_path)
    assert compaction.cleaned_up_to(broker, "t") == -1
    (tmp_path / compaction.CHECKPOINT).write_text("0\n2\nother 0 7\nt 0 42\n")
    assert compaction.cleaned_up_to(broker, "t") == 42
    assert compaction.cleaned_up_to(broker, "none") == -1
