"""The cluster as this node knows it: the latest committed image, and who follows it.

Where the records come from is not told apart here: from the controller in this process, or from another node.
"""

from collections.abc import Callable

from broker.metadata.features import KRAFT_VERSION
from broker.metadata.image import MetadataImage
from broker.metadata.replay import MetadataChanges

Publish = Callable[[MetadataImage, MetadataChanges], None]
"""Takes the newly committed image and what is new in it; may not raise."""


class MetadataFeed:
    """What is committed is published here, in order, and nothing else is.

    Everything is called in the Trio thread.
    """

    def __init__(self, image: MetadataImage, *, kraft_version: int = 0) -> None:
        self.image = image
        self.kraft_version = kraft_version
        """The level of kraft.version, which no image holds: it is KRaft's own note."""
        self._listeners: list[Publish] = []

    @property
    def finalized_features(self) -> dict[str, int]:
        """The levels above 0 of all features, kraft.version included."""
        features = dict(self.image.features)
        if self.kraft_version:
            features[KRAFT_VERSION] = self.kraft_version
        return features

    def on_publish(self, listener: Publish) -> None:
        """Call ``listener`` for every image from the next one on, in order of registration."""
        self._listeners.append(listener)

    def publish(self, image: MetadataImage, changes: MetadataChanges) -> None:
        """``image`` is committed, and differs from the one before by ``changes``."""
        self.image = image
        for listener in self._listeners:
            listener(image, changes)
