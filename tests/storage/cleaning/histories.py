"""Random histories of one log: what is written, when it is cleaned, and what changes in between."""

from random import Random
from typing import Any, Final, NamedTuple

HOUR_MS: Final = 3_600_000
DAY_MS: Final = 24 * HOUR_MS
LONG_MAX: Final = (1 << 63) - 1
EXPIRATION_MS: Final = 20 * DAY_MS
"""After which producers are forgotten."""
BEGIN_MS: Final = 100 * DAY_MS

KEYS: Final = 7
CODECS: Final = ("gzip", "snappy", "lz4", "zstd")

SAFE_INDEX_BYTES: Final = 10_000

ALONE_BYTES: Final = 1
TOGETHER_BYTES: Final = 1 << 20
"""A segment size at which no two segments are made into one, and one at which all are."""

MAY_BE_REFUSED: Final = ("write", "end", "delete")
"""A producer whose state has expired may not go on; and what was refused is missing later."""


class Step(NamedTuple):
    """One thing that happens: a method of whoever plays it, and what it is called with."""

    name: str
    facts: dict[str, Any]


class History(NamedTuple):
    """A log's life.  It says everything: both sides play it without any chance of their own."""

    name: str
    keys_max: int
    """So many keys the cleaner remembers at once."""
    steps: list[Step]

    @property
    def rounds(self) -> int:
        """How often the cleaner has its turn."""
        return sum(step.name == "clean" for step in self.steps)


def make_history(seed: str) -> History:
    return _Making(seed).history()


class _Producer:
    """Writes with or without sequences, in transactions or not."""

    def __init__(self, chance: Random, producer_id: int) -> None:
        self.producer_id = producer_id
        self.epoch = chance.randrange(3)
        self.sequence = 0
        self.is_transactional = producer_id % 2 == 0
        self.is_coordinator = self.is_transactional and chance.random() < 0.2
        """A group coordinator, which writes offsets in transactions of others, and always sequence 0."""
        self.bumps_epochs = chance.random() < 0.6
        """Each marker has an epoch of its own: transactions v2 (KIP-890)."""
        self.is_open = False


class _Making:
    def __init__(self, seed: str) -> None:
        self._chance = chance = Random(seed)
        self._seed = seed
        self._steps: list[Step] = []
        self._now_ms = BEGIN_MS
        self._log_end = 0
        self._leader_epoch = 0
        self._coordinator_epoch = 0
        self._written = 0
        self._has_expired = False
        self._is_packed = chance.random() < 0.4
        """Batches of all codecs.  Sizes depend on the compressor then, so nothing may depend on sizes."""
        self._producers = [_Producer(chance, number) for number in range(chance.randrange(1, 6))]
        self._settings = self._choose_settings()
        self._is_timeless = chance.random() < 0.1
        self._keys_max = chance.choice([1000, 1000, 1000, 3, 4, 12])
        # Where a round that ends early has left off, Kafka takes committed records for those of an aborted
        # transaction that ended before, and so keeps older ones that it need not keep.
        self._aborts = self._keys_max > KEYS
        self._writes_without_keys = "compact" not in self._settings["cleanup.policy"]

    def history(self) -> History:
        chance = self._chance
        self._move_clock(0)
        self._configure()
        self._add("lead", epoch=0)
        for _ in range(chance.randrange(2, 6)):
            for _ in range(chance.randrange(4, 30)):
                self._happen()
            self._clean()
        return History(self._seed, self._keys_max, self._steps)

    def _add(self, name: str, **facts: Any) -> None:
        self._steps.append(Step(name, facts))

    def _choose_settings(self) -> dict[str, Any]:
        chance = self._chance
        policy = chance.choice(["compact"] * 5 + ["compact,delete"] * 2 + ["delete"] * 2)
        # Kafka's cleaner gives up on a log whose segments have small indexes that are full.
        index_bytes = chance.choice([50, 120, SAFE_INDEX_BYTES]) if policy == "delete" else SAFE_INDEX_BYTES
        return {
            "cleanup.policy": policy,
            "internal.segment.bytes": chance.choice([600, 1500, 4000]),
            "segment.ms": chance.choice([7 * DAY_MS, HOUR_MS]),
            "segment.index.bytes": SAFE_INDEX_BYTES if self._is_packed else index_bytes,
            "index.interval.bytes": chance.choice([0, 100, 400, 4096]),
            "min.cleanable.dirty.ratio": 0.0 if self._is_packed else chance.choice([0.0, 0.0, 0.3, 0.5]),
            "min.compaction.lag.ms": chance.choice([0, 0, 0, HOUR_MS // 2]),
            "max.compaction.lag.ms": chance.choice([LONG_MAX, LONG_MAX, HOUR_MS]),
            "delete.retention.ms": chance.choice([0, 1, HOUR_MS, DAY_MS]),
            "retention.ms": chance.choice([-1, HOUR_MS, 5 * HOUR_MS]),
            "retention.bytes": -1 if self._is_packed else chance.choice([-1, 500, 3000]),
            "message.timestamp.type": chance.choice(["CreateTime"] * 4 + ["LogAppendTime"]),
        }

    def _configure(self, **changes: Any) -> None:
        self._add("configure", settings={**self._settings, **changes})

    # What happens between two turns of the cleaner

    def _happen(self) -> None:
        chance = self._chance
        what = chance.random()
        if what < 0.75:
            self._write()
        elif what < 0.88:
            self._move_clock(chance.choice([1, 1000, 60_000, HOUR_MS]))
        elif what < 0.90:
            self._add("roll")
        elif what < 0.92:
            self._leader_epoch += chance.randrange(1, 3)
            self._add("lead", epoch=self._leader_epoch)
        elif what < 0.94:
            self._add("delete", before=chance.randrange(self._log_end + 1))
        elif what < 0.96:
            self._restart(chance.random() < 0.5)
        elif what < 0.965:
            self._move_clock(EXPIRATION_MS)
            self._add("expire")
            self._has_expired = True
        elif what < 0.98 and self._settings["segment.index.bytes"] == SAFE_INDEX_BYTES:
            self._change_policy()
        else:
            self._coordinator_epoch += 1

    def _restart(self, is_clean: bool) -> None:
        if self._settings["segment.index.bytes"] != SAFE_INDEX_BYTES:
            return  # Kafka's indexes have fewer entries after that, and are full later
        # Recovery brings producers back from the batches that it reads, which are not the same on both sides.
        self._add("restart", is_clean=is_clean or self._has_expired)

    def _move_clock(self, ms: int) -> None:
        self._now_ms += ms
        self._add("clock", now_ms=self._now_ms)

    def _change_policy(self) -> None:
        policy = self._chance.choice(["compact", "compact,delete", "delete"])
        self._settings["cleanup.policy"] = policy
        self._writes_without_keys = policy == "delete"
        self._configure()

    def _write(self) -> None:
        chance = self._chance
        producer = chance.choice([None, *self._producers, *self._producers])
        if producer is None or not producer.is_transactional:
            self._send(producer)
        elif not producer.is_open and chance.random() < 0.1:
            self._end(producer)  # it has written to other partitions only
        else:
            for _ in range(chance.randrange(1, 3)):
                self._send(producer)
            producer.is_open = True
            if chance.random() < 0.7:
                self._end(producer)

    def _send(self, producer: _Producer | None) -> None:
        chance = self._chance
        if producer is not None and not producer.is_open and chance.random() < 0.05:
            producer.epoch += 1
            producer.sequence = 0
        records = [self._record() for _ in range(chance.choice([1, 1, 2, 3, 6]))]
        facts: dict[str, Any] = {"records": records}
        if self._is_packed and chance.random() < 0.8:
            facts["codec"] = chance.choice(CODECS)
        if producer is not None:
            facts["producer"] = [producer.producer_id, producer.epoch]
            facts["sequence"] = producer.sequence
            if producer.is_coordinator:
                facts["is_coordinator"] = True
            else:
                producer.sequence += len(records)
            if producer.is_transactional:
                facts["is_transactional"] = True
        self._add("write", **facts)
        self._log_end += len(records)

    def _record(self) -> list[Any]:
        """Key, the number and the size of its value (no number: no value), its time, and its headers."""
        chance = self._chance
        self._written += 1
        number = chance.randrange(KEYS)
        key: str | None = f"k{number}" if number else "a key that is longer than a digest"
        if number == 1:
            key = ""
        if self._writes_without_keys and chance.random() < 0.3:
            key = None
        size = chance.choice([0, 4, 10, 60])
        value = None if chance.random() < 0.25 else [self._written, size]
        time_ms = -1 if self._is_timeless else self._now_ms - chance.choice([0, 0, 5, HOUR_MS, 3 * HOUR_MS])
        return [key, value, time_ms, chance.choice([0, 0, 0, 1])]

    def _end(self, producer: _Producer) -> None:
        chance = self._chance
        if producer.bumps_epochs:
            producer.epoch += 1
            producer.sequence = 0
        self._add(
            "end",
            producer=[producer.producer_id, producer.epoch],
            is_commit=not self._aborts or chance.random() < 0.6,
            coordinator_epoch=self._coordinator_epoch,
            transactions_version=2 if producer.bumps_epochs else 1,
            time_ms=self._now_ms,
        )
        producer.is_open = False
        self._log_end += 1

    # The cleaner

    def _clean(self) -> None:
        """Its turn; sometimes a second one, when delete horizons have passed."""
        chance = self._chance
        if self._is_packed:
            self._configure(**{"internal.segment.bytes": chance.choice([ALONE_BYTES, TOGETHER_BYTES])})
        self._add("clean")
        if chance.random() < 0.5:
            self._move_clock(chance.choice([1, HOUR_MS, DAY_MS]))
            self._add("clean")
        if self._is_packed:
            self._configure()
        if chance.random() < 0.2:
            self._restart(chance.random() < 0.7)
