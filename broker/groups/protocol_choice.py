"""Which of the members' protocols a generation uses: one that all support, by vote (Kafka's rules)."""

from collections.abc import Iterable, Sequence

from broker.coordination.partitioning import java_string_hash

_TABLE_SIZE_START = 16


def common_protocols(lists: Iterable[Sequence[str]]) -> set[str]:
    """The names that stand in every list; empty if there are no lists."""
    candidates: set[str] | None = None
    for names in lists:
        candidates = set(names) if candidates is None else candidates.intersection(names)
    return candidates or set()


def choose_protocol(lists: Sequence[Sequence[str]]) -> str:
    """Each member votes for the first common name of its list, and the most votes win.

    ``lists`` holds each member's protocols, the preferred one first; at least one name is common.
    """
    candidates = common_protocols(lists)
    votes: dict[str, int] = {}
    for names in lists:
        vote = next(name for name in names if name in candidates)
        votes[vote] = votes.get(vote, 0) + 1
    most = max(votes.values())
    return next(name for name in _as_java_iterates(votes) if votes[name] == most)


def _as_java_iterates(names: Iterable[str]) -> list[str]:
    """``names`` in the order of a Java ``HashMap`` into which they were put one after the other.

    Kafka lets that order break a tie, so members whose preferences differ get the same protocol here.
    """
    ordered = list(names)
    size = _TABLE_SIZE_START
    while len(ordered) > size * 3 // 4:
        size *= 2

    def bucket(name: str) -> int:
        hash_code = java_string_hash(name) & 0xFFFF_FFFF
        return (hash_code ^ hash_code >> 16) & (size - 1)

    return sorted(ordered, key=bucket)
