"""How far partitions reach, whoever leads them."""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Final

import trio

from broker.errors import ErrorCode, KafkaError, error_code_of
from broker.network.node_client import NodeUnreachable
from broker.share.state_questions import RETRIES_MAX, RETRY_SECONDS
from protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from storage.errors import StorageError

if TYPE_CHECKING:
    from broker.services import Services

Place = tuple[bytes, int]
"""A topic by its id, and the number of a partition."""

LATEST: Final = -1
NO_REPLICA: Final = -1


async def high_watermarks(services: "Services", places: Collection[Place]) -> Mapping[Place, int | ErrorCode]:
    """The high watermark of each partition, or why nobody tells it."""
    found: dict[Place, int | ErrorCode] = {}
    elsewhere: dict[int, dict[tuple[str, int], Place]] = {}
    for place in places:
        topic = services.image.topics_by_id.get(place[0])
        if topic is None or not 0 <= place[1] < len(topic.partitions):
            found[place] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            continue
        leader = topic.partitions[place[1]].leader
        if leader == services.node_id:
            found[place] = _here(services, place)
        elif services.image.is_alive(leader):
            elsewhere.setdefault(leader, {})[topic.name, place[1]] = place
        else:
            found[place] = ErrorCode.LEADER_NOT_AVAILABLE
    async with trio.open_nursery() as nursery:
        for leader, wanted in elsewhere.items():
            nursery.start_soon(_ask, services, leader, wanted, found)
    return found


def _here(services: "Services", place: Place) -> int | ErrorCode:
    try:
        return services.partitions.leader(*place).log.high_watermark
    except (KafkaError, StorageError) as error:
        return error_code_of(error)


async def _ask(
    services: "Services",
    leader: int,
    wanted: Mapping[tuple[str, int], Place],
    found: dict[Place, int | ErrorCode],
) -> None:
    topics: dict[str, ListOffsetsTopic] = {}
    for name, partition in wanted:
        if name not in topics:
            topics[name] = ListOffsetsTopic(name=name)
        topics[name].partitions.append(ListOffsetsPartition(partition_index=partition, timestamp=LATEST))
    request = ListOffsetsRequest(replica_id=NO_REPLICA, topics=list(topics.values()))
    for attempt in range(RETRIES_MAX + 1):
        if attempt:
            await trio.sleep(RETRY_SECONDS)
        try:
            answer: ListOffsetsResponse = await services.nodes.ask(
                leader, request, timeout_seconds=services.config.get("request.timeout.ms") / 1000
            )
            break
        except NodeUnreachable:
            if attempt == RETRIES_MAX:
                found.update(dict.fromkeys(wanted.values(), ErrorCode.NETWORK_EXCEPTION))
                return
    for topic in answer.topics:
        for each in topic.partitions:
            place = wanted.get((topic.name, each.partition_index))
            if place is not None:
                code = ErrorCode(each.error_code)
                found[place] = each.offset if code is ErrorCode.NONE else code
    for place in wanted.values():
        found.setdefault(place, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
