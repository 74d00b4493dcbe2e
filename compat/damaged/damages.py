"""The damages: what is done to the files of a topic's one partition while no broker runs.

Every partition has twelve batches of three records, in segments that begin at offsets 0, 9, 18 and 27, and
was closed properly.  What was not flushed is said by the checkpoint of recovery points.
"""

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

BATCHES: Final = 12
RECORDS_PER_BATCH: Final = 3
RECORDS: Final = BATCHES * RECORDS_PER_BATCH
BASES: Final = (0, 9, 18, 27)

LENGTH: Final = 8
MAGIC: Final = 16
PAYLOAD: Final = 100
"""Positions in a batch; the last one lies inside the first record."""

CLEAN_SHUTDOWN: Final = ".kafka_cleanshutdown"
RECOVERY_POINTS: Final = "recovery-point-offset-checkpoint"
LOG_STARTS: Final = "log-start-offset-checkpoint"
HIGH_WATERMARKS: Final = "replication-offset-checkpoint"
CLEANER_OFFSETS: Final = "cleaner-offset-checkpoint"


class Replica:
    """The folder of one partition, and the log directory that it lies in."""

    def __init__(self, data: Path, topic: str) -> None:
        self.data = data
        self.topic = topic
        self.folder = data / f"{topic}-0"

    def file(self, base: int, suffix: str = ".log") -> Path:
        return self.folder / f"{base:020d}{suffix}"

    @property
    def epochs(self) -> Path:
        return self.folder / "leader-epoch-checkpoint"

    @property
    def topic_id(self) -> Path:
        return self.folder / "partition.metadata"

    def position(self, base: int, batch: int) -> int:
        """Where the batch with this number, counted from 0, begins in a segment."""
        content = self.file(base).read_bytes()
        position = 0
        for _ in range(batch):
            (length,) = struct.unpack_from(">i", content, position + LENGTH)
            position += length + 12
        return position

    def write(self, path: Path, position: int, data: bytes) -> None:
        with path.open("r+b") as file:
            file.seek(position)
            file.write(data)

    def damage(self, base: int, batch: int, field: int, data: bytes) -> None:
        """Overwrite something in a batch."""
        self.write(self.file(base), self.position(base, batch) + field, data)

    def cut(self, path: Path, size: int) -> None:
        with path.open("r+b") as file:
            file.truncate(size)

    def append(self, path: Path, data: bytes) -> None:
        with path.open("ab") as file:
            file.write(data)

    def copy(self, base: int, suffix: str) -> "Replica":
        """Let a segment's files have the suffix that a cleaner gives them, too."""
        for kind in (".log", ".index", ".timeindex"):
            content = self.file(base, kind).read_bytes()
            self.file(base, kind + suffix).write_bytes(content)
        return self

    def remove(self, base: int, *suffixes: str) -> "Replica":
        """Remove a segment, or some of its files."""
        for suffix in suffixes or (".log", ".index", ".timeindex"):
            self.file(base, suffix).unlink()
        return self

    def remove_snapshots(self) -> None:
        for path in self.folder.glob("*.snapshot"):
            path.unlink()

    def checkpoint(self, name: str, offset: int) -> None:
        """Let a checkpoint of the directory say this of the partition."""
        path = self.data / name
        lines = path.read_text().splitlines()[2:] if path.exists() else []
        kept = [line for line in lines if not line.startswith(f"{self.topic} 0 ")]
        entries = [*kept, f"{self.topic} 0 {offset}"]
        path.write_text("\n".join(["0", str(len(entries)), *entries, ""]))


class Damage(NamedTuple):
    """One thing that is wrong."""

    name: str
    apply: Callable[[Replica], object]
    recovery_point: int | None = None
    """None: the stop was a clean one."""
    is_alone: bool = False
    """Whatever it does concerns the whole directory, so that no other damage can be looked at beside it."""


def _ones(count: int) -> bytes:
    return b"\xff" * count


FLUSHED: Final = 27
"""The recovery point when all but the last segment was flushed."""

_EVERYWHERE: Final[list[tuple[str, Callable[[Replica], object]]]] = [
    ("nothing", lambda at: None),
    ("a bad crc in the first segment", lambda at: at.damage(0, 1, PAYLOAD, b"\xee\xee")),
    ("a bad crc in the last segment", lambda at: at.damage(27, 1, PAYLOAD, b"\xee\xee")),
    ("a bad crc in the last batch", lambda at: at.damage(27, 2, PAYLOAD, b"\xee\xee")),
    ("a huge length in a middle segment", lambda at: at.damage(9, 1, LENGTH, b"\x7f\xff\xff\xff")),
    ("a negative length in a middle segment", lambda at: at.damage(9, 1, LENGTH, _ones(4))),
    ("a short length in a middle segment", lambda at: at.damage(9, 1, LENGTH, b"\0\0\0\x14")),
    ("an unknown format in a middle segment", lambda at: at.damage(9, 1, MAGIC, b"\x63")),
    ("an old format in a middle segment", lambda at: at.damage(9, 1, MAGIC, b"\x01")),
    ("a huge length in the last segment", lambda at: at.damage(27, 1, LENGTH, b"\x7f\xff\xff\xff")),
    ("an unknown format in the last segment", lambda at: at.damage(27, 1, MAGIC, b"\x63")),
    ("zeros over a batch of a middle segment", lambda at: at.damage(9, 1, 0, bytes(700))),
    ("zeros over a batch of the last segment", lambda at: at.damage(27, 1, 0, bytes(700))),
    ("zeros behind the last batch", lambda at: at.append(at.file(27), bytes(4096))),
    ("garbage behind the last batch", lambda at: at.append(at.file(27), _ones(300))),
    ("a torn last batch", lambda at: at.cut(at.file(27), at.position(27, 2) + 200)),
    ("a torn header of the last batch", lambda at: at.cut(at.file(27), at.position(27, 2) + 30)),
    ("a torn last batch of a middle segment", lambda at: at.cut(at.file(9), at.position(9, 2) + 200)),
    ("an empty first segment", lambda at: at.cut(at.file(0), 0)),
    ("an empty middle segment", lambda at: at.cut(at.file(9), 0)),
    ("an empty last segment", lambda at: at.cut(at.file(27), 0)),
    ("no middle segment", lambda at: at.remove(9)),
    ("no first segment", lambda at: at.remove(0)),
    ("no last segment", lambda at: at.remove(27)),
    ("no segments", lambda at: [at.remove(base) for base in BASES]),
    ("an offset below its segment", lambda at: at.damage(27, 1, 0, struct.pack(">q", 3))),
    ("an offset that is too high", lambda at: at.damage(27, 1, 0, struct.pack(">q", 1 << 40))),
    ("no offset index", lambda at: at.remove(9, ".index")),
    ("no time index", lambda at: at.remove(9, ".timeindex")),
    ("no indexes", lambda at: at.remove(9, ".index", ".timeindex")),
    ("no indexes of the last segment", lambda at: at.remove(27, ".index", ".timeindex")),
    ("an offset index that lies", lambda at: at.write(at.file(9, ".index"), 4, struct.pack(">i", 77))),
    (
        "an offset index that leads behind the end",
        lambda at: at.write(at.file(9, ".index"), 4, struct.pack(">i", 99_999)),
    ),
    ("an offset index of zeros", lambda at: at.file(9, ".index").write_bytes(bytes(16))),
    ("an offset index of garbage", lambda at: at.file(9, ".index").write_bytes(_ones(21))),
    ("a last offset index of garbage", lambda at: at.file(27, ".index").write_bytes(_ones(21))),
    ("a time index of garbage", lambda at: at.file(9, ".timeindex").write_bytes(_ones(29))),
    ("a transaction index of garbage", lambda at: at.file(9, ".txnindex").write_bytes(_ones(34))),
    ("no producer snapshots", lambda at: at.remove_snapshots()),
    ("no last producer snapshot", lambda at: at.remove(RECORDS, ".snapshot")),
    ("a last producer snapshot of garbage", lambda at: at.file(RECORDS, ".snapshot").write_bytes(b"x" * 60)),
    ("a torn last producer snapshot", lambda at: at.cut(at.file(RECORDS, ".snapshot"), 20)),
    ("a producer snapshot behind the end", lambda at: at.file(99, ".snapshot").write_bytes(b"x")),
    ("no list of epochs", lambda at: at.epochs.unlink()),
    ("an empty list of epochs", lambda at: at.epochs.write_text("")),
    ("a list of epochs that lies", lambda at: at.epochs.write_text("0\n2\n0 0\n5 30\n")),
    ("a list with an epoch behind the end", lambda at: at.epochs.write_text("0\n2\n0 0\n5 99\n")),
    ("cleaned files", lambda at: at.copy(9, ".cleaned")),
    ("swap files beside the old ones", lambda at: at.copy(9, ".swap")),
    ("swap files without the old ones", lambda at: at.copy(9, ".swap").remove(9)),
    (
        "a swap file whose index was not renamed yet",
        lambda at: at.copy(9, ".swap").remove(9).file(9, ".index.swap").rename(at.file(9, ".index.cleaned")),
    ),
    (
        "a swap file that is a segment already",
        lambda at: at.copy(9, ".swap").remove(9).file(9, ".log.swap").rename(at.file(9)),
    ),
    ("swap files above cleaned ones", lambda at: at.copy(9, ".cleaned").copy(18, ".swap")),
    ("swap files below cleaned ones", lambda at: at.copy(9, ".swap").copy(18, ".cleaned")),
    ("deleted files", lambda at: at.copy(9, ".deleted")),
    ("an index without a segment", lambda at: at.file(77, ".index").write_bytes(b"")),
    ("a file of another name", lambda at: (at.folder / "notes.txt").write_text("hello")),
    ("a log start in the log", lambda at: at.checkpoint(LOG_STARTS, 10)),
    ("a log start behind the end", lambda at: at.checkpoint(LOG_STARTS, 50)),
    ("a high watermark in the log", lambda at: at.checkpoint(HIGH_WATERMARKS, 10)),
    ("a high watermark behind the end", lambda at: at.checkpoint(HIGH_WATERMARKS, 99)),
    ("a recovery point behind the end", lambda at: at.checkpoint(RECOVERY_POINTS, 99)),
]
"""Tried after a clean stop, and after one that was none."""


_ONCE: Final[list[tuple[str, Callable[[Replica], object]]]] = [
    ("a list of epochs of garbage", lambda at: at.epochs.write_text("hello\n")),
    ("a list of epochs with a wrong count", lambda at: at.epochs.write_text("0\n7\n0 0\n")),
    ("no topic id", lambda at: at.topic_id.unlink()),
    ("an empty topic id", lambda at: at.topic_id.write_text("")),
    ("a topic id of garbage", lambda at: at.topic_id.write_text("hello\n")),
    (
        "the topic id of another",
        lambda at: at.topic_id.write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAABBB"),
    ),
    (
        "a topic id of zeros",
        lambda at: at.topic_id.write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA"),
    ),
    ("a segment without a number", lambda at: (at.folder / f"{at.topic}-0.log").write_text("hello")),
    ("a swap file without a number", lambda at: (at.folder / f"{at.topic}-0.log.swap").write_text("hello")),
]
"""Tried after a clean stop only."""


def _garbage(name: str) -> Callable[[Replica], object]:
    return lambda at: (at.data / name).write_bytes(b"\xff\xfegarbage\n")


_ALONE: Final[list[tuple[str, Callable[[Replica], object]]]] = [
    ("recovery points of garbage", _garbage(RECOVERY_POINTS)),
    ("log starts of garbage", _garbage(LOG_STARTS)),
    ("high watermarks of garbage", _garbage(HIGH_WATERMARKS)),
    ("cleaner offsets of garbage", _garbage(CLEANER_OFFSETS)),
    ("a folder without a dash", lambda at: (at.data / "folder").mkdir()),
    ("a folder without a number", lambda at: (at.data / "folder-x").mkdir()),
    ("a folder that begins with a dash", lambda at: (at.data / "-1").mkdir()),
    ("a folder of no topic", lambda at: (at.data / "nothing-0").mkdir()),
    ("garbage in a clean shutdown file", _garbage(CLEAN_SHUTDOWN)),
]
"""What concerns the whole directory."""


def all_damages() -> list[Damage]:
    """Every one of them, each with a name of its own."""
    together = [Damage(name, apply) for name, apply in [*_EVERYWHERE, *_ONCE]]
    together += [Damage(f"unclean, {name}", apply, FLUSHED) for name, apply in _EVERYWHERE]
    together += [
        Damage(f"unclean and never flushed, {name}", apply, 0)
        for name, apply in _EVERYWHERE
        if "first segment" in name or "middle segment" in name or "snapshot" in name or "epoch" in name
    ]
    together += [
        Damage(
            "unclean, all flushed, a bad crc in the last segment",
            lambda at: at.damage(27, 1, PAYLOAD, b"\xee\xee"),
            RECORDS,
        ),
    ]
    alone = [Damage(f"alone, {name}", apply, None, True) for name, apply in _ALONE]
    return together + alone
