"""What becomes of topics, in the log: a line for what was created, enlarged or deleted at once."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from broker.metadata.image import MetadataImage, TopicImage
from storage.wording import counted

if TYPE_CHECKING:
    from broker.logs import Log
    from broker.metadata.replay import MetadataChanges

NAMED_MAX: Final = 10
"""More topics at once are only counted."""


class TopicNews:
    """Compares each published image with the one before."""

    def __init__(self, log: "Log", image: MetadataImage) -> None:
        self._log = log
        self._before = image

    def publish(self, image: MetadataImage, changes: "MetadataChanges") -> None:
        """Tell what a new image says of topics.  Leaders and places that change are no news."""
        before, self._before = self._before, image
        if before.offset < 0:
            return  # the first image of another node's cluster: all of it is new here, and none elsewhere
        if changes.deleted_topics:
            self._tell("deleted", (topic.name for topic in changes.deleted_topics.values()))
        created: list[str] = []
        enlarged: list[str] = []
        for topic in changes.topics.values():
            old = before.topics_by_id.get(topic.id)
            if old is None:
                created.append(_described(topic))
            elif len(old.partitions) != len(topic.partitions):
                enlarged.append(_described(topic))
        self._tell("created", created)
        self._tell("enlarged", enlarged)

    def _tell(self, what: str, topics: Iterable[str]) -> None:
        topics = list(topics)
        if topics:
            more = len(topics) - NAMED_MAX
            named = ", ".join(topics[:NAMED_MAX]) + (f", and {more} more" if more > 0 else "")
            self._log.info(f"{what} topic{'s' * (len(topics) != 1)} {named}")


def _described(topic: TopicImage) -> str:
    return f"{topic.name} ({counted(len(topic.partitions), 'partition')})"
