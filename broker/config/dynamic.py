"""Dynamic settings reach the running broker: it follows what the metadata says of it."""

from typing import TYPE_CHECKING

from broker.config.broker_config import BrokerConfig
from broker.config.definitions import Scope, Update, find
from broker.metadata.image import MetadataImage, ResourceType

if TYPE_CHECKING:
    from broker.logs import Log
    from broker.metadata.replay import MetadataChanges


class DynamicSettings:
    """Keeps ``config`` in step with published images.

    Must see an image before those that ask ``config`` for its consequences: the first listener.
    """

    def __init__(self, config: BrokerConfig, log: "Log") -> None:
        self._config = config
        self._log = log
        self._broker = str(config.node_id)

    def load(self, image: MetadataImage) -> None:
        """Take over what the image says of this broker and of all of them."""
        before = {*self._config.dynamic_default.items(), *self._config.dynamic_broker.items()}
        default = image.config(ResourceType.BROKER, "")
        broker = image.config(ResourceType.BROKER, self._broker)
        for complaint in self._config.apply_dynamic(default, broker):
            self._log.warn(complaint)
        for name, _ in sorted({*default.items(), *broker.items()} - before):
            known = find(Scope.BROKER, name)
            if known is not None and known.update is not Update.READ_ONLY and known.reason is not None:
                from broker.config.reasons import REASONS

                self._log.info(f"the dynamic setting {name} has no effect here: {REASONS[known.reason]}")

    def publish(self, image: MetadataImage, changes: "MetadataChanges") -> None:
        """Follow a newly committed image."""
        resources = {(ResourceType.BROKER, ""), (ResourceType.BROKER, self._broker)}
        if not resources.isdisjoint(changes.configs):
            self.load(image)
