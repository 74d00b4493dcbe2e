"""Requests name a topic once, with all that is asked of its partitions."""

from collections.abc import Iterable, Iterator
from typing import Any


def by_topic(places: Iterable[tuple[Any, ...]]) -> Iterator[tuple[Any, list[Any]]]:
    """Places that begin with the same topic, together: the topic, and the rest of each place."""
    grouped: dict[Any, list[Any]] = {}
    for topic, *rest in places:
        grouped.setdefault(topic, []).append(rest)
    yield from grouped.items()
