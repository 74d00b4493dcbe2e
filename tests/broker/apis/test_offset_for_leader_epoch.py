"""OffsetForLeaderEpoch, against what Kafka 4.4 answered to the same requests."""

import pytest

from protocol.error_codes import ErrorCode
from protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tests.broker.partitions.one_broker import OneBroker, one_broker, some_batch


def ask(
    broker: OneBroker,
    leader_epoch: int,
    *,
    current: int = -1,
    partition: int = 0,
    topic: str = "t",
    version: int = 4,
) -> EpochEndOffset:
    asked = OffsetForLeaderPartition(
        partition=partition, current_leader_epoch=current, leader_epoch=leader_epoch
    )
    request = OffsetForLeaderEpochRequest(topics=[OffsetForLeaderTopic(topic=topic, partitions=[asked])])
    reply = broker.ask(request, version).topics[0].partitions[0]
    assert isinstance(reply, EpochEndOffset)
    return reply


async def filled(broker: OneBroker) -> None:
    """Three records of epoch 0, none of epoch 1, three of epoch 2; partition 1 has none at all."""
    topic_id = broker.create_topic("t", partitions=2)
    broker.produce("t", some_batch(3))
    broker.change_leader(topic_id, 1)
    broker.change_leader(topic_id, 1)
    broker.produce("t", some_batch(3))


@pytest.mark.parametrize("version", [2, 3, 4])
@pytest.mark.parametrize(
    ("epoch", "answer"),
    [(0, (0, 3)), (1, (0, 3)), (2, (2, 6)), (3, (-1, -1)), (-1, (-1, -1)), (-2, (-2, 0))],
)
async def test_where_epochs_end(epoch: int, answer: tuple[int, int], version: int) -> None:
    async with one_broker() as broker:
        await filled(broker)
        reply = ask(broker, epoch, version=version)
        assert (reply.error_code, reply.leader_epoch, reply.end_offset) == (0, *answer)


async def test_an_empty_log_knows_its_leader_s_epoch() -> None:
    async with one_broker() as broker:
        broker.create_topic("t", leader_epoch=2)
        answers = [ask(broker, epoch) for epoch in (1, 2, 3)]
        assert [(reply.leader_epoch, reply.end_offset) for reply in answers] == [(1, 0), (2, 0), (-1, -1)]


@pytest.mark.parametrize(
    ("current", "code"),
    [
        (-1, 0),
        (2, 0),
        (0, ErrorCode.FENCED_LEADER_EPOCH),
        (-2, ErrorCode.FENCED_LEADER_EPOCH),
        (5, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
async def test_current_leader_epoch(current: int, code: int) -> None:
    async with one_broker() as broker:
        await filled(broker)
        reply = ask(broker, 0, current=current)
        known = code == 0
        assert (reply.error_code, reply.leader_epoch, reply.end_offset) == (
            code,
            0 if known else -1,
            3 if known else -1,
        )


async def test_unknown_partitions() -> None:
    async with one_broker() as broker:
        await filled(broker)
        for topic, partition in (("t", 9), ("u", 0)):
            reply = ask(broker, 0, topic=topic, partition=partition)
            assert reply == EpochEndOffset(
                error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, partition=partition
            )
