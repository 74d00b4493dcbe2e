"""OffsetForLeaderEpoch (23): where a leader epoch ended, so that a reader can notice truncation."""

from broker.network.call import Call
from protocol.errors import KafkaError
from protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)


def handle(request: OffsetForLeaderEpochRequest, call: Call) -> OffsetForLeaderEpochResponse:
    partitions = call.services.partitions
    if partitions.missing:
        partitions.require_made(
            (topic.topic, asked.partition) for topic in request.topics for asked in topic.partitions
        )
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[look_up(call, topic.topic, asked) for asked in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def look_up(call: Call, topic: str, asked: OffsetForLeaderPartition) -> EpochEndOffset:
    """The end of the epoch asked for.  An epoch that the log never had is no error: -1 and -1."""
    reply = EpochEndOffset(partition=asked.partition)
    try:
        key = topic, asked.partition
        leader = call.services.partitions.leader_for(key, asked.current_leader_epoch)
        leader.check_epoch(asked.current_leader_epoch)
    except KafkaError as error:
        reply.error_code = error.code
    else:
        reply.leader_epoch, reply.end_offset = leader.log.end_offset_for_epoch(asked.leader_epoch)
    return reply
