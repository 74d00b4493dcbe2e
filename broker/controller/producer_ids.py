"""Blocks of producer ids: each is given to one broker, once."""

from typing import Final, NamedTuple

from broker.controller.brokers import registered
from broker.controller.decision import Decision
from broker.metadata.image import MetadataImage
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.stored.metadata_records import ProducerIdsRecord

BLOCK_SIZE: Final = 1000

_ID_MAX: Final = (1 << 63) - 1


class ProducerIdBlock(NamedTuple):
    """``size`` consecutive ids from ``first``."""

    first: int
    size: int


def allocate_producer_ids(
    image: MetadataImage, broker_id: int, broker_epoch: int
) -> Decision[ProducerIdBlock]:
    """The next block, for this incarnation of a broker.

    Raises STALE_BROKER_EPOCH, or UNKNOWN_SERVER_ERROR when there are none left.
    """
    registered(image, broker_id, broker_epoch)
    first = image.next_producer_id
    if first > _ID_MAX - BLOCK_SIZE:
        raise KafkaError(
            ErrorCode.UNKNOWN_SERVER_ERROR, "All producer ids that a long can hold have been given out."
        )
    record = ProducerIdsRecord(
        broker_id=broker_id, broker_epoch=broker_epoch, next_producer_id=first + BLOCK_SIZE
    )
    return Decision([(record, 0)], ProducerIdBlock(first, BLOCK_SIZE))
