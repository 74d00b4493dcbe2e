"""A broker that leads a partition with replicas on others, which a test plays, as it does the controller."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast

import trio

from broker.life.channel import ControllerChannel
from broker.partitions.leader import Leader
from protocol.error_codes import ErrorCode
from protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionResponsePartitionData,
    AlterPartitionResponseTopicData,
)
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData, ReplicaState
from protocol.stored.metadata_records import PartitionChangeRecord
from tests.broker.partitions.one_broker import OneBroker, one_broker, produce_request


class HeldChannel:
    """A controller that answers when a test says so."""

    def __init__(self) -> None:
        self.requests: list[AlterPartitionRequest] = []
        self._answers, self._source = trio.open_memory_channel[AlterPartitionResponse](10)

    async def ask(self, request: AlterPartitionRequest, *, timeout_seconds: float) -> AlterPartitionResponse:
        self.requests.append(request)
        return await self._source.receive()

    def accept(self) -> None:
        """Do what was asked last."""
        self._answer(0)

    def refuse(self, code: ErrorCode) -> None:
        self._answer(code)

    def refuse_all(self, code: ErrorCode) -> None:
        self._answers.send_nowait(AlterPartitionResponse(error_code=code))

    def _answer(self, code: int) -> None:
        self._answers.send_nowait(
            AlterPartitionResponse(
                topics=[
                    AlterPartitionResponseTopicData(
                        topic_id=topic.topic_id,
                        partitions=[
                            AlterPartitionResponsePartitionData(
                                partition_index=asked.partition_index,
                                error_code=code,
                                leader_id=1,
                                leader_epoch=asked.leader_epoch,
                                isr=[member.broker_id for member in asked.new_isr_with_epochs],
                                partition_epoch=asked.partition_epoch + 1,
                            )
                            for asked in topic.partitions
                        ],
                    )
                    for topic in self.requests[-1].topics
                ]
            )
        )


class Replicated:
    """Broker 1 leads partition 0 of a topic that has replicas on 2 and 3, too."""

    def __init__(self, broker: OneBroker, isr: Sequence[int], settings: Mapping[str, str]) -> None:
        self.broker = broker
        self.controller = HeldChannel()
        broker.channel = cast(ControllerChannel, self.controller)
        for broker_id in (2, 3, 4):
            broker.register(broker_id)
        self.topic_id = broker.create_topic(
            "t", replicas=(1, 2, 3), isr=isr, leader_epoch=5, settings=settings
        )
        self.leader: Leader = broker.partitions.leader("t", 0)

    def produce(self, *, acks: int = -1, timeout_ms: int = 1000) -> Any:
        request = produce_request("t", acks=acks)
        request.timeout_ms = timeout_ms
        return self.broker.ask(request, 9)

    def fetch(
        self,
        replica_id: int,
        offset: int,
        *,
        epoch: int = 5,
        last_epoch: int = -1,
        broker_epoch: int = -1,
        max_wait_ms: int = 0,
        log_start: int = 0,
    ) -> Any:
        """What a follower is answered; a ``Waiting`` if it has to wait."""
        wanted = FetchPartition(
            partition=0,
            fetch_offset=offset,
            current_leader_epoch=epoch,
            last_fetched_epoch=last_epoch,
            log_start_offset=log_start,
            partition_max_bytes=1 << 20,
        )
        request = FetchRequest(
            replica_state=ReplicaState(replica_id=replica_id, replica_epoch=broker_epoch),
            max_wait_ms=max_wait_ms,
            min_bytes=1,
            topics=[FetchTopic(topic_id=self.topic_id, partitions=[wanted])],
        )
        return self.broker.ask(request, 17)

    def fetched(self, replica_id: int, offset: int, **options: Any) -> PartitionData:
        answer = self.fetch(replica_id, offset, **options)
        (topic,) = answer.responses
        (data,) = topic.partitions
        assert isinstance(data, PartitionData)
        return data

    @property
    def high_watermark(self) -> int:
        return self.leader.log.high_watermark

    def change(self, **changes: Any) -> None:
        self.broker.apply(PartitionChangeRecord(partition_id=0, topic_id=self.topic_id, **changes))


@asynccontextmanager
async def replicated(
    isr: Sequence[int] = (1, 2, 3),
    settings: Mapping[str, str] | None = None,
    *,
    of_broker: Mapping[str, str] | None = None,
) -> AsyncGenerator[Replicated]:
    """``settings`` are those of the topic."""
    async with one_broker(of_broker) as broker:
        yield Replicated(broker, isr, settings or {})
