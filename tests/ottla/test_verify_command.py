"""``ottla verify``: what it prints, its exit status, and what it leaves alone."""

import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla import verify_command
from ottla.verify_command import verify_directories
from storage.filesystem import RealFileSystem
from storage.verification import batch_reader
from tests.storage.verification.directories import Directory

ROOT = Path(__file__).resolve().parents[2]
SUMMARY = "1 directory, 4 partitions, 10 segments, 142 records, 11.6 KiB"


class Checked:
    """What the command made of some directories."""

    def __init__(self, capsys: pytest.CaptureFixture[str], *words: str | Path) -> None:
        self.status = verify_directories([str(word) for word in words])
        said = capsys.readouterr()
        self.lines = said.out.splitlines()
        self.errors = said.err


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A directory that a broker has closed."""
    directory = Directory(RealFileSystem(), str(tmp_path / "data"))
    directory.fill()
    for path in (tmp_path / "data").glob("*/*.deleted"):
        path.unlink()
    return tmp_path / "data"


def state_of(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {
        str(path): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_a_sound_directory(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = state_of(data)
    checked = Checked(capsys, data)
    assert checked.lines == [f"{SUMMARY}: nothing is damaged"]
    assert (checked.status, checked.errors) == (0, "")
    assert state_of(data) == before


def test_notes_are_no_damage(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (data / ".kafka_cleanshutdown").unlink()
    checked = Checked(capsys, data)
    assert checked.lines == [
        f"note: {data}: there is no mark of a clean stop: the next start will recover 3 logs",
        f"{SUMMARY}: nothing is damaged, 1 note",
    ]
    assert checked.status == 0


def damage(data: Path) -> Path:
    path = data / "events-0" / "00000000000000000000.log"
    content = bytearray(path.read_bytes())
    content[70] ^= 1
    path.write_bytes(content)
    return path


def test_damage_names_file_and_position(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = damage(data)
    checked = Checked(capsys, data)
    assert checked.status == 1
    assert checked.lines[0].startswith(f"damage: {path}, byte 0: the CRC is ")
    assert checked.lines[1].endswith(": 1 finding of damage")


def test_json_is_an_object_a_line(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = damage(data)
    checked = Checked(capsys, data, "--json")
    finding, summary = [json.loads(line) for line in checked.lines]
    assert finding.pop("text").startswith("the CRC is ")
    assert finding == {"kind": "finding", "severity": "damage", "path": str(path), "position": 0}
    assert summary.pop("bytes") > 10_000
    assert summary.pop("records") < 142
    assert summary == {
        "kind": "summary", "directories": 1, "partitions": 4, "segments": 10, "damage": 1, "note": 0,
    }  # fmt: skip


def test_a_directory_that_a_broker_uses_is_refused(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = (
        "import fcntl, sys\n"
        "file = open(sys.argv[1], 'r+')\n"
        "fcntl.lockf(file, fcntl.LOCK_EX)\n"
        "print('locked', flush=True)\n"
        "sys.stdin.read()\n"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", code, str(data / ".lock")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert holder.stdout is not None
        holder.stdout.readline()
        checked = Checked(capsys, data)
        as_json = Checked(capsys, data, "--json")
    finally:
        holder.communicate()
    text = f"log directory {data} is in use by another process"
    assert (checked.status, checked.lines) == (2, [])
    assert checked.errors == f"ottla verify: {text}\n"
    assert (as_json.status, as_json.errors) == (2, "")
    assert [json.loads(line) for line in as_json.lines] == [{"kind": "failure", "text": text}]


def test_a_broker_is_kept_out_meanwhile_and_another_check_is_not(
    data: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    outcomes = []

    def ask(*arguments: object) -> Iterator[object]:
        for kind in ("EX", "SH"):
            code = (
                "import fcntl, os, sys\n"
                "file = os.open(sys.argv[1], os.O_RDONLY if sys.argv[2] == 'SH' else os.O_RDWR)\n"
                "fcntl.lockf(file, getattr(fcntl, 'LOCK_' + sys.argv[2]) | fcntl.LOCK_NB)"
            )
            command = [sys.executable, "-c", code, str(data / ".lock"), kind]
            outcomes.append(subprocess.run(command, capture_output=True, check=False).returncode)
        yield []

    monkeypatch.setattr(verify_command, "verify", ask)
    assert Checked(capsys, data).status == 0
    assert outcomes == [1, 0]
    with (data / ".lock").open("r+") as file:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("nowhere", "it is no directory"),
        ("file", "it is no directory"),
        ("file/below", "Not a directory"),  # as where a folder lets nobody in
    ],
)
def test_what_is_no_directory_cannot_be_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, text: str
) -> None:
    (tmp_path / "file").write_text("")
    checked = Checked(capsys, tmp_path / name)
    assert checked.status == 2
    assert checked.errors == f"ottla verify: cannot check {tmp_path / name}: {text}\n"


def test_a_directory_in_which_nothing_is_cannot_be_checked(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    checked = Checked(capsys, empty)
    assert (checked.status, checked.lines) == (2, [])
    text = f"cannot check {empty}: neither meta.properties nor a partition is in it"
    assert checked.errors == f"ottla verify: {text}\n"
    checked = Checked(capsys, empty, "--json")
    assert (checked.status, checked.errors) == (2, "")
    assert [json.loads(line) for line in checked.lines] == [{"kind": "failure", "text": text}]
    checked = Checked(capsys, empty, data)
    assert checked.lines == [
        f"note: {empty}: was never formatted",
        f"{SUMMARY.replace('1 directory', '2 directories')}: nothing is damaged, 1 note",
    ]
    assert checked.status == 0


@pytest.mark.parametrize("words", [[], ["--nothing", "d"], ["d", "--processes", "0"]])
def test_mistakes_are_told(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        verify_directories(words)
    assert ended.value.code == 2
    assert "usage: ottla verify" in capsys.readouterr().err


def test_the_folder_of_a_cluster_is_not_one_brokers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "node-1" / "data").mkdir(parents=True)  # which looks like a partition
    (tmp_path / "cluster.json").touch()
    checked = Checked(capsys, tmp_path)
    assert checked.status == 2
    assert checked.errors == (
        f"ottla verify: cannot check {tmp_path}: "
        "it holds a cluster: name what is one node's, such as node-1/data in it\n"
    )


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_files_without_permission_are_named(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = data / "events-0" / "00000000000000000000.log"
    path.chmod(0)
    checked = Checked(capsys, data)
    assert f"damage: {path}: cannot be read: Permission denied" in checked.lines


def test_what_is_no_plain_file_is_not_waited_for(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    events = data / "events-0"
    log = events / "00000000000000000000.log"
    snapshot = events / "00000000000000000026.snapshot"
    index = events / "00000000000000000000.index"
    for path in (log, snapshot, index):
        path.unlink()
    os.mkfifo(log)
    snapshot.symlink_to(snapshot)
    index.symlink_to("/dev/zero")
    checked = Checked(capsys, data)
    assert f"damage: {log}: cannot be read: not a plain file" in checked.lines
    assert f"damage: {snapshot}: cannot be read: Too many levels of symbolic links" in checked.lines
    assert checked.status == 1


def test_files_may_lie_elsewhere(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (data / "events-0").rename(tmp_path / "elsewhere")
    (data / "events-0").symlink_to(tmp_path / "elsewhere")
    assert Checked(capsys, data).lines == [f"{SUMMARY}: nothing is damaged"]


def test_sizes_that_cannot_be_take_no_memory(
    data: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A header speaks of more bytes than are held at once, and the file, which is a hole, has them."""
    monkeypatch.setattr(batch_reader, "WHOLE_MAX", 2 << 20)
    path = data / "events-0" / "00000000000000000000.log"
    with path.open("r+b") as file:
        file.seek(8)
        file.write(b"\x00\x7f\xff\x00")
        file.truncate(9 << 20)
    checked = Checked(capsys, data)
    assert checked.status == 1
    assert checked.lines[0].startswith(f"damage: {path}, byte 0: the CRC is ")


@pytest.mark.slow
def test_other_processes_find_the_same_in_the_same_order(data: Path) -> None:
    damage(data)
    command = [sys.executable, "-m", "ottla", "verify", str(data)]
    alone, together = (
        subprocess.run(
            [*command, "--processes", count], cwd=ROOT, capture_output=True, text=True, check=False
        )
        for count in ("1", "3")
    )
    assert (alone.returncode, alone.stderr) == (1, "")
    assert (together.returncode, together.stdout, together.stderr) == (1, alone.stdout, "")


@pytest.mark.slow
def test_a_reader_that_goes_away_is_no_error(data: Path) -> None:
    for number in range(2000):
        (data / f"stray-{number}.txt").write_text("")
    command = f"{sys.executable} -m ottla verify {data} | head -1"
    done = subprocess.run(command, shell=True, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.stdout.count("\n"), done.stderr) == (1, "")
