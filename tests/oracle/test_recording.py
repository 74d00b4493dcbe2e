"""Recordings survive being written and read, and can be read by people."""

from pathlib import Path

import pytest

from compat.oracle.recording import FOLDER, Place, Recording, Told, read, write

ANSWER = {"error_code": "UNKNOWN_MEMBER_ID", "text": 'with "quotes", a\nline, and é'}

SMALL: Recording = {
    Place("groups", "one member", "heartbeat: of nobody", 0): Told("Heartbeat", 0, ANSWER),
    Place("groups", "one member", "heartbeat: of nobody", 1): Told("Heartbeat", 1, ANSWER),
    Place("groups", "one member", "heartbeat: of nobody", 2): Told("Heartbeat", 2, {}),
    Place("groups", "one member", "heartbeat: of nobody", 4): Told("Heartbeat", 4, {}),
    Place("groups", "one member", "heartbeat: of nobody", 5): Told("Heartbeat", 4, {}),
    Place("groups", "two members", "sync", 3): Told("SyncGroup", 3, "closed"),
    Place("groups", "two members", "describe", 3): Told("DescribeGroups", 6, {"n": True}),
    Place("groups", "two members", "describe", 4): Told("DescribeGroups", 6, {"n": 1}),
    Place("versions", "odd ones", "below all", 7): Told("Produce", -1, "closed"),
    **{Place("versions", "odd ones", "rising", turn): Told("Fetch", turn, {}) for turn in (4, 5, 6)},
    **{Place("versions", "odd ones", "held", turn): Told("Fetch", max(5, turn), {}) for turn in (3, 4, 5, 6)},
    **{Place("versions", "odd ones", "crossed", turn): Told("Fetch", 20 - turn, {}) for turn in (8, 9)},
}

GROUPS = """\
# one member

heartbeat: of nobody
    Heartbeat 0-1: {"error_code": "UNKNOWN_MEMBER_ID", "text": "with \\"quotes\\", a\\nline, and é"}
    Heartbeat 2: {}
    Heartbeat 4 in rounds 4-5: {}

# two members

sync
    SyncGroup 3: "closed"
describe
    DescribeGroups 6 in round 3: {"n": true}
    DescribeGroups 6 in round 4: {"n": 1}

"""


def test_a_recording_is_read_as_it_was_written(tmp_path: Path) -> None:
    write(SMALL, tmp_path)
    again = read(tmp_path)
    assert list(again.items()) == list(SMALL.items())
    assert type(again[Place("groups", "two members", "describe", 3)].outcome["n"]) is bool


def test_what_is_written_can_be_read_by_people(tmp_path: Path) -> None:
    write(SMALL, tmp_path)
    assert (tmp_path / "groups.txt").read_text() == GROUPS
    assert sorted(path.name for path in tmp_path.iterdir()) == ["groups.txt", "versions.txt"]


def test_subjects_that_are_gone_leave_no_file(tmp_path: Path) -> None:
    write(SMALL, tmp_path)
    write({place: told for place, told in SMALL.items() if place.subject == "versions"}, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["versions.txt"]


@pytest.mark.slow
def test_the_committed_recording_is_written_the_same_again(tmp_path: Path, recording: Recording) -> None:
    write(recording, tmp_path)
    for path in FOLDER.glob("*.txt"):
        assert (tmp_path / path.name).read_text() == path.read_text()


def test_nothing_random_is_recorded() -> None:
    text = "".join(path.read_text() for path in FOLDER.glob("*.txt"))
    assert "127.0.0.1:" not in text
    assert "<?>" not in text
    assert "/tmp" not in text
