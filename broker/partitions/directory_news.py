"""What the controller is told of this broker's log directories beside who lies where."""

from collections.abc import Collection
from typing import TYPE_CHECKING

import trio

from broker.controller.brokers import known_broker
from broker.controller.start import topic_rules
from broker.errors import KafkaError
from broker.metadata.features import writes_cordoned_directories
from broker.partitions.assignments import RETRY_SECONDS

if TYPE_CHECKING:
    from broker.controller.decision import Decision
    from broker.metadata.image import MetadataImage
    from broker.services import Services


async def report_offline(services: "Services", directory_id: bytes) -> None:
    """A directory has failed.  Raises KafkaError if that cannot be told in ``log.dir.failure.timeout.ms``."""
    from broker.controller.directories import take_directories_offline

    def command(image: "MetadataImage") -> "Decision[None]":
        epoch = known_broker(image, services.node_id).epoch
        rules = topic_rules(services, image)
        return take_directories_offline(image, services.node_id, epoch, [directory_id], rules)

    give_up_at = trio.current_time() + services.config.get("log.dir.failure.timeout.ms") / 1000
    while True:
        try:
            await services.controller.perform(command)
            return
        except KafkaError as error:
            if trio.current_time() >= give_up_at:
                raise
            services.log.warn_seldom(f"a directory's failure could not be noted yet: {error}")
            await trio.sleep(RETRY_SECONDS)


def report_cordoned(services: "Services", cordoned: Collection[bytes]) -> None:
    """These directories take no new replicas (KIP-1066); nothing is told that is known."""
    broker = services.image.brokers.get(services.node_id)
    if (
        broker is None
        or not writes_cordoned_directories(services.image.metadata_version)
        or set(cordoned) == set(broker.cordoned_directories or ())
    ):
        return
    from broker.controller.directories import cordon_directories

    def command(image: "MetadataImage") -> "Decision[None]":
        epoch = known_broker(image, services.node_id).epoch
        return cordon_directories(image, services.node_id, epoch, sorted(cordoned))

    def done(outcome: KafkaError | None) -> None:
        if outcome is not None:
            services.log.error(f"the controller does not know which directories are cordoned: {outcome}")

    services.controller.submit(command, done)
