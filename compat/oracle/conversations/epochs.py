"""OffsetForLeaderEpoch: where leader epochs ended."""

from compat.oracle.conversation import conversation
from compat.oracle.grouping import by_topic
from compat.oracle.preparing import NOWHERE
from compat.oracle.talk import Talk
from protocol.api_keys import ApiKey
from protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

CONSUMER = -1


def end_of(
    *places: tuple[str, int, int], current: int = -1, replica: int = CONSUMER
) -> OffsetForLeaderEpochRequest:
    """Places are topic, partition and the epoch whose end is wanted."""
    return OffsetForLeaderEpochRequest(
        replica_id=replica,
        topics=[
            OffsetForLeaderTopic(
                topic=name,
                partitions=[
                    OffsetForLeaderPartition(
                        partition=index, leader_epoch=epoch, current_leader_epoch=current
                    )
                    for index, epoch in partitions
                ],
            )
            for name, partitions in by_topic(places)
        ],
    )


@conversation(ApiKey.OFFSET_FOR_LEADER_EPOCH)
def ends(talk: Talk) -> None:
    topic = talk.topic("t", 2)
    talk.produce(topic, "a", "b", "c")
    for epoch in (0, 1, 7, -1, -5):
        talk.ask(f"epoch {epoch}", end_of((topic.name, 0, epoch)))
        talk.ask(f"epoch {epoch} of an empty partition", end_of((topic.name, 1, epoch)))
    talk.ask("the current epoch", end_of((topic.name, 0, 0), current=0))
    talk.ask("a current epoch to come", end_of((topic.name, 0, 0), current=3))
    talk.ask("nowhere", end_of())
    talk.ask("unknown topic", end_of((NOWHERE.name, 0, 0)))
    talk.ask("unknown partition", end_of((topic.name, 5, 0)))
    talk.ask("several", end_of((topic.name, 1, 0), (NOWHERE.name, 0, 0), (topic.name, 0, 0)))
    talk.ask("the same twice", end_of((topic.name, 0, 0), (topic.name, 0, 3)))
    twice = end_of((topic.name, 0, 0), (NOWHERE.name, 0, 0))
    twice.topics += end_of((topic.name, 1, 0), (NOWHERE.name, 1, 0)).topics
    talk.ask("topics named twice", twice)
    empty = end_of((topic.name, 0, 0))
    empty.topics += [OffsetForLeaderTopic(topic=topic.name), OffsetForLeaderTopic(topic=NOWHERE.name)]
    talk.ask("topics without partitions", empty)
    for replica in (1, 9, -2):
        talk.ask(f"replica {replica}", end_of((topic.name, 0, 0), replica=replica))
