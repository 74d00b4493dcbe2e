"""What the members of a consumer group read together: topics by name, and by regular expressions."""

from collections.abc import Iterable, Mapping, Set
from typing import NamedTuple

from broker.groups.consumer_member import ConsumerMember


class ResolvedRegex(NamedTuple):
    """Which topics a regular expression matched, and when that was looked up."""

    topics: Set[str]
    version: int
    """Of the metadata, as an offset of its log."""
    timestamp_ms: int
    """Wall time."""


class Subscriptions:
    """Counts, so that what one member changes costs no look at the others.

    A topic counts once for every member that names it, and once for every expression that matches it.
    """

    def __init__(self) -> None:
        self.by_name: dict[str, int] = {}
        self.by_regex: dict[str, int] = {}
        self.regexes: dict[str, int] = {}
        """Members by their regular expression, resolved or not."""

    def copy(self) -> "Subscriptions":
        other = Subscriptions()
        other.by_name = self.by_name.copy()
        other.by_regex = self.by_regex.copy()
        other.regexes = self.regexes.copy()
        return other

    def topics(self) -> Set[str]:
        """Every topic that somebody reads, whether it exists or not."""
        return self.by_name.keys() | self.by_regex.keys()

    def __contains__(self, topic: object) -> bool:
        return topic in self.by_name or topic in self.by_regex

    def replace(self, old: ConsumerMember | None, new: ConsumerMember | None) -> None:
        """A member has come, gone, or changed its mind."""
        old_names = frozenset[str]() if old is None else old.topic_names
        new_names = frozenset[str]() if new is None else new.topic_names
        if old_names != new_names:
            count_names(self.by_name, old_names, -1)
            count_names(self.by_name, new_names, 1)
        old_regex = None if old is None else old.topic_regex
        new_regex = None if new is None else new.topic_regex
        if old_regex != new_regex:
            if old_regex:
                count_names(self.regexes, (old_regex,), -1)
            if new_regex:
                count_names(self.regexes, (new_regex,), 1)

    def resolve(self, old: Set[str], new: Set[str]) -> None:
        """An expression matches other topics than before."""
        count_names(self.by_regex, old, -1)
        count_names(self.by_regex, new, 1)

    def are_homogeneous(self, member_count: int) -> bool:
        """Whether all members read the same topics."""
        if not self.regexes:
            return all(count == member_count for count in self.by_name.values()) and not self.by_regex
        if next(iter(self.regexes.values())) != member_count:
            return False
        return not self.by_name and all(count == 1 for count in self.by_regex.values())


def count_names(counts: dict[str, int], names: Iterable[str], change: int) -> None:
    """``change`` times more each of these names is in ``counts``, where none is with a count of zero."""
    for name in names:
        count = counts.get(name, 0) + change
        if count:
            counts[name] = count
        else:
            del counts[name]


def topics_of(member: ConsumerMember, resolved: Mapping[str, ResolvedRegex]) -> Set[str]:
    """What one member reads; of an expression that is not resolved yet, nothing."""
    if member.topic_regex:
        regex = resolved.get(member.topic_regex)
        if regex is not None:
            return member.topic_names | regex.topics if member.topic_names else regex.topics
    return member.topic_names
