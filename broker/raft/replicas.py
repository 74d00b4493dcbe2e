"""How far each node has copied the metadata log from this leader, and what is committed by that.

Voters count toward the high watermark, and everybody else who fetches is an observer.  Pure.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from protocol.uuids import ZERO_UUID

OBSERVER_SILENCE_MS: Final = 300_000
"""Who has not fetched for so long is no observer any more."""

CAUGHT_UP_WITHIN_MS: Final = 3_600_000
"""An observer that is to become a voter has caught up once and has fetched since then, as Kafka wants it."""

NEVER: Final = -1


class ReplicaKey(NamedTuple):
    """A node with the directory in which it keeps the metadata log (KIP-853)."""

    id: int
    directory_id: bytes = ZERO_UUID
    """Zero where nobody said: under kraft.version 0 directories do not count."""


class ReplicaProgress:
    """What one node's fetches have told."""

    __slots__ = ("_leader_end", "end_offset", "key", "last_caught_up_ms", "last_fetch_ms")

    def __init__(self, key: ReplicaKey) -> None:
        self.key = key
        self.end_offset = NEVER
        """Of its log: it has everything below.  -1 before its first fetch."""
        self.last_fetch_ms = NEVER
        self.last_caught_up_ms = NEVER
        """The latest time at which it had all that the leader had then."""
        self._leader_end = NEVER
        """The leader's end at the last fetch."""

    def note_fetch(self, offset: int, leader_end: int, now_ms: int) -> None:
        """It has fetched from ``offset`` on, while the leader's log ended at ``leader_end``."""
        if offset >= leader_end:
            self.last_caught_up_ms = max(self.last_caught_up_ms, now_ms)
        elif 0 < self._leader_end <= offset:
            self.last_caught_up_ms = max(self.last_caught_up_ms, self.last_fetch_ms)
        self._leader_end = leader_end
        self.last_fetch_ms = max(self.last_fetch_ms, now_ms)
        self.end_offset = offset


class Replicas:
    """The other nodes, as the leader of one epoch sees them."""

    def __init__(self, leader: ReplicaKey) -> None:
        self.leader = leader
        self._voters: dict[int, ReplicaProgress] = {}
        """By id, this leader not among them."""
        self._observers: dict[ReplicaKey, ReplicaProgress] = {}
        self._leader_votes = True

    @property
    def is_alone(self) -> bool:
        """Whether this leader is the only voter."""
        return self._leader_votes and not self._voters

    @property
    def voters(self) -> list[ReplicaProgress]:
        """Those beside the leader."""
        return list(self._voters.values())

    @property
    def leader_votes(self) -> bool:
        """False while a voter set is being committed from which this leader has been taken."""
        return self._leader_votes

    def set_voters(self, voters: Iterable[ReplicaKey]) -> None:
        """From now on these vote, whether that is committed or not; what is known of each stays known."""
        before = self._voters
        self._voters = {}
        self._leader_votes = False
        for key in voters:
            if key.id == self.leader.id and _matches(key, self.leader):
                self._leader_votes = True
                continue
            found = before.pop(key.id, None)
            if found is None or not _matches(key, found.key):
                found = self._observers.pop(key, None) or ReplicaProgress(key)
            found.key = key
            self._voters[key.id] = found
        for progress in before.values():
            self._observers.setdefault(progress.key, progress)

    def note_fetch(self, key: ReplicaKey, offset: int, leader_end: int, now_ms: int) -> bool:
        """A node has fetched; return whether it votes, so that more may be committed.

        A negative id is that of nobody who keeps a copy.
        """
        if key.id < 0:
            return False
        progress = self._voters.get(key.id)
        is_voter = progress is not None and _matches(progress.key, key)
        if progress is None or not is_voter:
            progress = self._observers.get(key)
            if progress is None:
                progress = self._observers[key] = ReplicaProgress(key)
        progress.note_fetch(offset, leader_end, now_ms)
        return is_voter

    def committed(self, leader_end: int) -> int:
        """The offset below which a majority has everything; this leader has flushed up to ``leader_end``."""
        ends = [progress.end_offset for progress in self._voters.values()]
        if self._leader_votes:
            ends.append(leader_end)
        ends.sort(reverse=True)
        return ends[len(ends) // 2] if ends else NEVER

    def observers(self, now_ms: int) -> list[ReplicaProgress]:
        """Who copies the log without a vote, and has not been silent for too long."""
        silent = [
            key
            for key, progress in self._observers.items()
            if now_ms - progress.last_fetch_ms >= OBSERVER_SILENCE_MS
        ]
        for key in silent:
            del self._observers[key]
        return list(self._observers.values())

    def is_caught_up(self, key: ReplicaKey, now_ms: int) -> bool:
        """Whether an observer has so much of the log that it may vote."""
        progress = self._observers.get(key)
        return (
            progress is not None
            and progress.last_caught_up_ms > 0
            and progress.last_fetch_ms > now_ms - CAUGHT_UP_WITHIN_MS
        )

    def by_progress(self) -> list[ReplicaKey]:
        """The other voters, the one with most of the log first: who is to lead after this leader."""
        voters = sorted(self._voters.values(), key=lambda progress: (-progress.end_offset, progress.key))
        return [progress.key for progress in voters]


def _matches(voter: ReplicaKey, key: ReplicaKey) -> bool:
    """Whether the voter is this replica: a voter whose directory nobody knows is anyone with its id."""
    return voter.id == key.id and voter.directory_id in (ZERO_UUID, key.directory_id)
