"""Which of the members' protocols a generation uses: one that all support, by vote (Kafka's rules)."""

from collections.abc import Iterable, Sequence

from broker.groups.java_order import in_java_order


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
    # The order of the table breaks a tie, so members whose preferences differ get the same protocol as there.
    return next(name for name in in_java_order(votes) if votes[name] == most)
