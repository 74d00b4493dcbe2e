"""What ShareFetch and ShareAcknowledge have in common: whom they serve, and acknowledgements."""

from collections.abc import Sequence
from typing import Any, Final

from broker.coordination.tickets import Ticket
from broker.metadata.features import SHARE_VERSION
from broker.network.call import Call
from broker.share.partition import Acknowledgement, AcknowledgeType
from broker.share.service import Acknowledged
from broker.share.sessions import SessionKey, TopicPartition
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError

MEMBER_ID_LENGTH_MAX: Final = 36


def check_enabled(call: Call) -> None:
    """Raise UNSUPPORTED_VERSION unless the cluster has share groups."""
    if call.services.image.features.get(SHARE_VERSION, 0) < 1:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)


def check_member(group_id: str | None, member_id: str | None) -> SessionKey:
    """Who asks; raises INVALID_REQUEST if that cannot be said."""
    if group_id is None or not member_id or len(member_id) > MEMBER_ID_LENGTH_MAX:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    return SessionKey(group_id, member_id)


def begin_acknowledging(
    call: Call, key: SessionKey, topics: Sequence[Any], *, may_renew: bool, is_renewal: bool
) -> dict[TopicPartition, Ticket[Acknowledged]]:
    """Acknowledge what a request names: for each partition, where the outcome will be.

    ``topics`` are those of either request.  A partition that is named twice is taken as it is named last.
    ``may_renew`` is whether the request's version knows that, ``is_renewal`` whether the request says so.
    Partitions without acknowledgements are passed over, unless there are others with some: so does Kafka.
    """
    named = {
        TopicPartition(topic.topic_id, partition.partition_index): [
            Acknowledgement(batch.first_offset, batch.last_offset, batch.acknowledge_types)
            for batch in partition.acknowledgement_batches
        ]
        for topic in topics
        for partition in topic.partitions
    }
    service = call.services.share.service
    tickets: dict[TopicPartition, Ticket[Acknowledged]] = {}
    takes_any = False
    empty = []
    for partition, acknowledgements in named.items():
        error = fault_in(call, partition, acknowledgements, may_renew=may_renew, is_renewal=is_renewal)
        if error is not ErrorCode.NONE:
            tickets[partition] = settled(error)
        elif acknowledgements:
            tickets[partition] = service.acknowledge(key, partition, acknowledgements)
            takes_any = True
        else:
            empty.append(partition)
    if takes_any:
        tickets.update((partition, settled(ErrorCode.NONE)) for partition in empty)
    return tickets


def settled(error: ErrorCode) -> Ticket[Acknowledged]:
    ticket: Ticket[Acknowledged] = Ticket(Acknowledged)
    ticket.settle(Acknowledged(error))
    return ticket


def fault_in(
    call: Call,
    partition: TopicPartition,
    acknowledgements: Sequence[Acknowledgement],
    *,
    may_renew: bool,
    is_renewal: bool,
) -> ErrorCode:
    """What is wrong with acknowledgements, before anybody looks at the records."""
    topic = call.services.image.topics_by_id.get(partition.topic_id)
    if topic is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    if not are_well_formed(acknowledgements, may_renew=may_renew, is_renewal=is_renewal):
        return ErrorCode.INVALID_REQUEST
    if not 0 <= partition.partition < len(topic.partitions):
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.NONE


def are_well_formed(
    acknowledgements: Sequence[Acknowledgement], *, may_renew: bool, is_renewal: bool
) -> bool:
    """Whether ranges are in order, with one type or as many as there are offsets."""
    highest = AcknowledgeType.RENEW if may_renew else AcknowledgeType.REJECT
    last_offset = -1
    for first, last, types in acknowledgements:
        if first > last or first < last_offset or not types:
            return False
        if len(types) > 1 and len(types) != last - first + 1:
            return False
        if min(types) < 0 or max(types) > highest or (AcknowledgeType.RENEW in types and not is_renewal):
            return False
        last_offset = last
    return True
