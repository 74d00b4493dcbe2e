"""Whatever bytes a file has, it is shown, or what is wrong with it; and the check of its directory ends."""

from random import Random

import pytest

from storage.dumping.files import Wanted, dump_file
from tests.storage.verification.directories import DATA, EVENTS, METADATA_LOG, Directory

PATHS = [
    f"{EVENTS}/00000000000000000026.log",
    f"{EVENTS}/00000000000000000026.index",
    f"{EVENTS}/00000000000000000026.timeindex",
    f"{EVENTS}/00000000000000000075.txnindex",
    f"{EVENTS}/00000000000000000077.snapshot",
    f"{EVENTS}/leader-epoch-checkpoint",
    f"{EVENTS}/partition.metadata",
    f"{METADATA_LOG}/00000000000000000000.log",
    f"{METADATA_LOG}/00000000000000000006-0000000001.checkpoint",
    f"{METADATA_LOG}/quorum-state",
    f"{DATA}/meta.properties",
    f"{DATA}/recovery-point-offset-checkpoint",
    f"{DATA}/.kafka_cleanshutdown",
]
HOSTILE = [
    b"",
    bytes(10_000),
    b"\xff" * 10_000,
    b"\x02" * 10_000,
    b"[" * 20_000,
    b'{"data_version":1,"leaderId":1e999,"leaderEpoch":[],"votedId":0,"votedDirectoryId":5}',
    b"version=1\ncluster.id=\\uZZZZ\nnode.id=99999999999999999999\ndirectory.id=\\u12",
    b"0\n99999999999999999999\n",
    b"0\n1\nt 99999999999999999999 1\n",
    b"version: 0\ntopic_id: \xf0\x9f\x90\x98\n",
]


@pytest.fixture(scope="module")
def directory() -> Directory:
    directory = Directory()
    directory.fill()
    return directory


def look(directory: Directory, path: str, content: bytes) -> None:
    before = directory.read(path)
    directory.put(path, content)
    try:
        for item in dump_file(directory.file_system, path, Wanted(shows_records=True), lambda count: None):
            assert isinstance(item["kind"], str)
        directory.findings()
    finally:
        directory.put(path, before)


@pytest.mark.parametrize("path", PATHS)
def test_hostile_content(directory: Directory, path: str) -> None:
    for content in HOSTILE:
        look(directory, path, content)


@pytest.mark.parametrize("path", PATHS)
def test_random_changes(directory: Directory, path: str, chance: Random) -> None:
    content = directory.read(path)
    for _ in range(12):
        changed = bytearray(content)
        for _ in range(chance.randrange(1, 6)):
            at = chance.randrange(len(changed) + 1)
            kind = chance.randrange(4)
            if kind == 0:
                changed[at : at + 1] = bytes((chance.randrange(256),))
            elif kind == 1:
                changed[at : at + 4] = chance.choice((bytes(4), b"\x7f\xff\xff\xff", b"\xff\xff\xff\xfe"))
            elif kind == 2:
                del changed[at : at + chance.randrange(100)]
            else:
                start = chance.randrange(len(changed) + 1)
                changed[at:at] = changed[start : start + chance.randrange(200)]
        look(directory, path, bytes(changed))
