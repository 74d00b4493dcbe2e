"""``ottla dump``: what it prints for people and for machines, and its exit status."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ottla.dump_command import dump_files
from storage.filesystem import RealFileSystem
from tests.storage.verification.directories import TIME, Directory

ROOT = Path(__file__).resolve().parents[2]
LAST = "00000000000000000075"


class Dumped:
    """What the command made of some files."""

    def __init__(self, capsys: pytest.CaptureFixture[str], *words: str | Path) -> None:
        self.status = dump_files([str(word) for word in words])
        said = capsys.readouterr()
        self.lines = said.out.splitlines()
        self.errors = said.err


@pytest.fixture
def events(tmp_path: Path) -> Path:
    """A replica's folder, in a directory that a broker has closed."""
    directory = Directory(RealFileSystem(), str(tmp_path / "data"))
    directory.fill()
    return tmp_path / "data" / "events-0"


def test_lines_for_people(events: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = events / f"{LAST}.log"
    dumped = Dumped(capsys, "--records", path)
    when = f"{TIME} (2026-09-21T14:13:20.000Z)"
    assert (dumped.status, dumped.errors) == (0, "")
    assert dumped.lines[0] == str(path)
    producer = "producer 20 epoch 0 sequences 10 to 10"
    crc = dumped.lines[3].partition("CRC ")[2].partition(",")[0]
    assert dumped.lines[2].endswith(', ABORT, value EndTxnMarker v0 {"coordinatorEpoch": 0}')
    place = "byte 78: offsets 76 to 76, 1 record, 72 bytes, leader epoch 3"
    assert dumped.lines[3:] == [
        f"  {place}, CreateTime {when}, compression none, CRC {crc}, {producer}, transactional",
        f'    offset 76: {when}, sequence 10, key null, value "open"',
    ]


def test_lines_for_machines(events: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = events / f"{LAST}.log"
    dumped = Dumped(capsys, "--json", "--records", path, events / "leader-epoch-checkpoint")
    items = [json.loads(line) for line in dumped.lines]
    assert [item["kind"] for item in items] == ["batch", "record", "batch", "record"] + ["leaderEpoch"] * 4
    assert items[0]["file"] == str(path)
    assert items[3]["value"] == "open"


def test_other_files_have_one_line_an_entry(events: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dumped = Dumped(capsys, events / f"{LAST}.txnindex", events / "leader-epoch-checkpoint")
    assert dumped.lines[1:] == [
        "  version 0, producerId 20, firstOffset 70, lastOffset 75, lastStableOffset 76",
        str(events / "leader-epoch-checkpoint"),
        "  epoch 0, startOffset 0",
        "  epoch 1, startOffset 38",
        "  epoch 2, startOffset 46",
        "  epoch 3, startOffset 76",
    ]


def test_long_values_are_cut_for_people_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from protocol.records.builder import build_batch

    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(build_batch([(TIME, b"k", b"v" * 5000, ())]))
    assert Dumped(capsys, "--records", path).lines[2].endswith("v… (5002 letters)")
    assert json.loads(Dumped(capsys, "--json", "--records", path).lines[1])["value"] == "v" * 5000


def test_nothing_moves_the_cursor(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from protocol.records.builder import build_batch

    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(build_batch([(TIME, b"k\x1b[2J", "é\x9b1m\u202e".encode(), ())]))
    for words in (["--records"], ["--records", "--json"]):
        assert all(line.isprintable() for line in Dumped(capsys, *words, path).lines)
    assert 'key "k\\u001b[2J", value "é\\x9b1m\\u202e"' in Dumped(capsys, "--records", path).lines[2]


def test_damage_is_told_after_what_can_be_read(events: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = events / f"{LAST}.log"
    path.write_bytes(path.read_bytes()[:-1])
    dumped = Dumped(capsys, path)
    assert dumped.status == 1
    assert len(dumped.lines) == 3
    assert dumped.lines[2] == (
        "  DAMAGED at byte 78: a batch of 72 bytes, of which 71 are there; 71 bytes are passed over"
    )


def test_files_of_other_kinds_are_refused_and_the_rest_shown(
    events: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (events / "notes").write_text("")
    dumped = Dumped(capsys, events / "notes", events / "partition.metadata")
    assert dumped.status == 2
    assert dumped.errors == f"ottla dump: {events / 'notes'} is not named like a file of a log directory\n"
    assert dumped.lines[-1] == '  topicId "AAECAwQFBgcICQoLDA0ODw"'


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("nothing", "no such file"),
        (".", "it is a directory"),
        ("partition.metadata/file", "Not a directory"),  # as where a folder lets nobody in
    ],
)
def test_what_is_no_file_is_refused(
    events: Path, capsys: pytest.CaptureFixture[str], name: str, text: str
) -> None:
    path = events / name
    dumped = Dumped(capsys, path)
    assert (dumped.status, dumped.lines) == (2, [])
    assert dumped.errors == f"ottla dump: cannot dump {path}: {text}\n"


def test_one_bad_file_does_not_hide_the_others(events: Path, capsys: pytest.CaptureFixture[str]) -> None:
    missing, good = events / "00000000000000000777.log", events / "partition.metadata"
    dumped = Dumped(capsys, missing, good)
    assert dumped.status == 2
    assert dumped.errors == f"ottla dump: cannot dump {missing}: no such file\n"
    assert dumped.lines[-1] == '  topicId "AAECAwQFBgcICQoLDA0ODw"'
    dumped = Dumped(capsys, "--json", missing, good)
    assert (dumped.status, dumped.errors) == (2, "")
    failure, shown = [json.loads(line) for line in dumped.lines]
    assert failure == {
        "file": str(missing), "kind": "failure", "text": f"cannot dump {missing}: no such file",
    }  # fmt: skip
    assert shown["file"] == str(good)


@pytest.mark.parametrize("words", [[], ["--decode", "nothing", "file"], ["--unknown", "file"]])
def test_mistakes_are_told(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        dump_files(words)
    assert ended.value.code == 2
    assert "usage: ottla dump" in capsys.readouterr().err


@pytest.mark.slow
def test_a_reader_that_goes_away_is_no_error(events: Path) -> None:
    from protocol.records.builder import build_batch

    path = events / "00000000000000000900.log"
    path.write_bytes(
        b"".join(bytes(build_batch([(0, b"k", b"v" * 500, ())], base_offset=900 + n)) for n in range(5000))
    )
    command = f"{sys.executable} -m ottla dump --records {path} | head -2"
    done = subprocess.run(command, shell=True, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.stdout.count("\n"), done.stderr) == (2, "")


@pytest.mark.slow
def test_letters_that_the_terminal_does_not_know(events: Path, tmp_path: Path) -> None:
    from protocol.records.builder import build_batch

    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(build_batch([(TIME, b"k", "漢".encode(), ())]))
    done = subprocess.run(
        [sys.executable, "-m", "ottla", "dump", "--records", str(path)],
        cwd=ROOT,
        capture_output=True,
        env={"PYTHONIOENCODING": "ascii", "PATH": ""},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert b'value "\\u6f22"' in done.stdout
