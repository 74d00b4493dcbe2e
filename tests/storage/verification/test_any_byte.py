"""Any byte of any file is changed: the check tells, or the byte is shown to mean nothing."""

import re
from collections.abc import Iterator
from random import Random

import pytest

from protocol.records.batch import read_batches
from storage.verification.facts import ReplicaFacts
from storage.verification.findings import Finding, Totals
from storage.verification.replica import CheckedReplica
from storage.verification.verify import check_one, verify
from tests.storage.verification.directories import COMPACTED, DATA, METADATA_LOG, OLD, Directory

CHANGES = 120


def all_files(directory: Directory) -> list[str]:
    found = []
    for name in directory.file_system.list_names(DATA):
        if name in directory.file_system.list_directories(DATA):
            found += directory.names(f"{DATA}/{name}", "")
        else:
            found.append(f"{DATA}/{name}")
    return found


SPACE = b" \t\n\r\x0b\x0c\x1c\x1d\x1e\x1f"
"""What separates words and lines of text files; readers do not care which of them it is."""

NUMBER = re.compile(rb"\d+")


def means_nothing(path: str, before: bytes, position: int, after: bytes) -> bool:
    """Whether no reader of the file would do anything else because of the change.

    Everything else must be found: all of a log, of its indexes, of producer and metadata snapshots.
    """
    name = path.rpartition("/")[2]
    if name.endswith(".deleted") or name == ".lock":
        return True  # nobody reads them
    if name.endswith(".log"):
        return may_be_any_number(path, before, position)
    if name == ".kafka_cleanshutdown":
        return True  # that it exists is what counts; the broker's last epoch is known to nobody else
    if not name.endswith(("checkpoint", "meta.properties", "partition.metadata", "quorum-state")):
        return False
    if before[position : position + 1] in SPACE and after[position : position + 1] in SPACE:
        return True
    if name.endswith("-offset-checkpoint"):
        # Where a log begins, and up to where it was flushed and committed, may be any offset that it has.
        return becomes_another_possible_line(before, after, highest=ENDS)
    if name == "leader-epoch-checkpoint" and path.startswith(METADATA_LOG):
        return list(map(int, NUMBER.findall(after)))[2:] == [0, 0]  # a start puts it right
    if name == "leader-epoch-checkpoint":
        return says_the_same_of_epochs(path, before, after)
    if name == "partition.metadata":
        # Any version is accepted that is not negative, and of the last of 22 letters two bits count.
        return before.index(b"\n") > position >= len(b"version: ") or position == len(before) - 1
    if name == "meta.properties":
        return says_the_same_of_a_node(before, position, after[position : position + 1])
    if name == "quorum-state":
        # Who leads and whom this node voted for; the epoch must not be older than the log's.
        return means_an_election(after)
    return False


def says_the_same_of_a_node(before: bytes, position: int, now: bytes) -> bool:
    """Of a comment, of the cluster's name, which nothing else repeats, or another spelling of the same."""
    line = before.split(b"\n")[before.count(b"\n", 0, position)]
    was = before[position : position + 1]
    return (
        line.startswith((b"#", b"cluster.id="))
        or (line.startswith(b"version=") and was == b"1" and now == b"0")  # both may have these properties
        or (was == b"=" and now == b":")
        or (position == len(before) - 1 and now == b"\\")  # it continues a line that has no more
        or position == len(before) - 2  # of the last of 22 letters two bits count
        or now == b"#"
    )


LOG_START_OF_OLD = 41


def may_be_any_number(path: str, before: bytes, position: int) -> bool:
    """Whether the byte is of a header's field that no CRC covers, and that nothing else tells.

    Those are the offset of a batch in a compacted log, as long as the order holds, and the epoch of records
    that are not served any more.
    """
    for batch in read_batches(before):
        place = position - batch.position
        if path.startswith(COMPACTED) and 0 <= place < 8:
            return True
        if path.startswith(OLD) and 12 <= place < 16:
            return batch.next_offset <= LOG_START_OF_OLD
    return False


FIRST_BATCHES = {OLD: LOG_START_OF_OLD, COMPACTED: 3}


def says_the_same_of_epochs(path: str, before: bytes, after: bytes) -> bool:
    """Whether just the start of the first epoch has moved, to where nothing is that can be asked for."""
    old, new = NUMBER.findall(before), NUMBER.findall(after)
    first_batch = FIRST_BATCHES.get(path.rpartition("/")[0], 0)
    return len(old) == len(new) and old[:3] + old[4:] == new[:3] + new[4:] and int(new[3]) <= first_batch


ENDS = {b"old": 80, b"events": 77, b"compacted": 26}


def becomes_another_possible_line(before: bytes, after: bytes, *, highest: dict[bytes, int]) -> bool:
    lines = list(zip(before.split(b"\n"), after.split(b"\n"), strict=False))
    changed = [(old, new) for old, new in lines if old != new]
    if len(changed) != 1 or before.count(b"\n") != after.count(b"\n"):
        return False
    old, new = (line.split() for line in changed[0])
    return len(new) == 3 and old[:2] == new[:2] and new[2].isdigit() and int(new[2]) <= highest[new[0]]


def means_an_election(text: bytes) -> bool:
    import json

    try:
        state = json.loads(text)
        return bool(state["leaderEpoch"] >= 1 and state["data_version"] in (0, 1))
    except (ValueError, KeyError, TypeError):
        return False


class Check:
    """The check of a directory in which one file at a time is another.

    What a replica comes to depends on its files and on the facts about it alone, since it may be checked in a
    process of its own: those that are as they were are not looked at again.
    """

    def __init__(self, directory: Directory) -> None:
        self.directory = directory
        self._known: dict[ReplicaFacts, CheckedReplica] = {}
        self.sound = self.findings("")

    def findings(self, changed: str) -> list[Finding]:
        """What is found when nothing but this file has changed."""

        def check_all(replicas: list[ReplicaFacts]) -> Iterator[CheckedReplica]:
            for facts in replicas:
                if changed.startswith(f"{facts.path}/"):
                    yield self._check_one(facts)
                else:
                    if facts not in self._known:
                        self._known[facts] = self._check_one(facts)
                    yield self._known[facts]

        parts = verify(self.directory.file_system, [DATA], check_all, Totals())
        return [finding for part in parts for finding in part]

    def _check_one(self, facts: ReplicaFacts) -> CheckedReplica:
        return check_one(self.directory.file_system, facts, lambda count: None)

    def change(self, path: str, position: int, value: int) -> None:
        before = self.directory.read(path)
        after = before[:position] + bytes((value,)) + before[position + 1 :]
        self.directory.patch(path, position, bytes((value,)))
        found = self.findings(path)
        self.directory.patch(path, position, before[position : position + 1])
        if found == self.sound:
            assert means_nothing(path, before, position, after), (path, position, before[position], value)


@pytest.fixture(scope="module")
def check() -> Check:
    directory = Directory()
    directory.fill()
    return Check(directory)


def test_what_is_not_looked_at_again_would_come_to_the_same(check: Check) -> None:
    assert check.sound == check.directory.findings()[0]
    for path in all_files(check.directory):
        if before := check.directory.read(path):
            check.directory.put(path, b"x" + before[1:])
            assert check.findings(path) == check.directory.findings()[0]
            check.directory.put(path, before)


def test_a_changed_byte_is_told_or_means_nothing(check: Check, chance: Random) -> None:
    files = [(path, len(check.directory.read(path))) for path in all_files(check.directory)]
    for _ in range(CHANGES):
        path, size = chance.choice([(path, size) for path, size in files if size])
        position = chance.randrange(size)
        change = chance.choice((1 << chance.randrange(8), chance.randrange(1, 256)))
        check.change(path, position, check.directory.read(path)[position] ^ change)


@pytest.mark.slow
def test_a_changed_bit_in_every_tenth_byte(check: Check, chance: Random) -> None:
    for path in all_files(check.directory):
        content = check.directory.read(path)
        for position in range(chance.randrange(10), len(content), 10):
            check.change(path, position, content[position] ^ 1 << chance.randrange(8))


def test_a_file_that_is_cut_off_is_told_or_was_cut_between_entries(check: Check, chance: Random) -> None:
    directory = check.directory
    files = [path for path in all_files(directory) if directory.read(path) and not path.endswith(".deleted")]
    for path in files:
        before = directory.read(path)
        size = chance.randrange(len(before))
        directory.put(path, before[:size])
        found = check.findings(path)
        directory.put(path, before)
        if found == check.sound:
            assert may_be_so_short(path, before, size), (path, len(before), size)


def may_be_so_short(path: str, before: bytes, size: int) -> bool:
    """Whether a shorter file is as good, or was written to be replaced."""
    name = path.rpartition("/")[2]
    if before[:size] == before.rstrip(SPACE) and not name.endswith(".log"):
        return True  # the last line's end
    if name == "leader-epoch-checkpoint" and says_the_same_of_epochs(path, before, before[:size]):
        return True
    if name.endswith(".index"):
        return size % 8 == 0  # entries are hints where to look
    if METADATA_LOG in path and name.endswith((".timeindex", "leader-epoch-checkpoint")):
        return True  # made anew by every start
    if name in (".kafka_cleanshutdown", "log-start-offset-checkpoint"):
        return True
    if name == "meta.properties":
        return before[:size].count(b"=") == before.count(b"=")
    # An empty list is one without entries, and any number may become a shorter one.
    return name.endswith("-offset-checkpoint") and (size <= 2 or before.count(b"\n", 0, size) >= 4)
