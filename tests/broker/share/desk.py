"""A broker with a topic, and what members of a share group do: on Trio's time, with real logs."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import trio

from broker.metadata.image import MetadataImage
from broker.network.waiting import Waiting
from broker.share.coordinator import open_share_coordinator
from broker.share.host import open_share_host
from protocol.error_codes import ErrorCode
from protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from protocol.messages.delete_groups import DeleteGroupsRequest
from protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
)
from protocol.messages.share_fetch import (
    AcknowledgementBatch,
    FetchPartition,
    FetchTopic,
    ShareFetchRequest,
)
from protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from protocol.stored.metadata_records import ConfigRecord, FeatureLevelRecord
from storage.memory_filesystem import MemoryFileSystem
from tests.broker.groups.group_broker import PARTITION_COUNT, GroupBroker, group_broker
from tests.broker.partitions.one_broker import answer_of, some_batch

GROUP = 32
LOCK_SECONDS = 30
ACCEPT, RELEASE, REJECT = 1, 2, 3


class Desk:
    """A broker with the topic ``t``, and what members of the group ``g`` do."""

    def __init__(self, broker: GroupBroker) -> None:
        self.broker = broker
        self.topic_id = b""

    async def ask(self, request: Any, version: int, client: str = "client") -> Any:
        return await answer_of(self.broker.begin(request, version, client))

    async def beat(self, member: str, epoch: int) -> Any:
        names = ["t"] if epoch == 0 else None
        request = ShareGroupHeartbeatRequest(
            group_id="g", member_id=member, member_epoch=epoch, subscribed_topic_names=names
        )
        answer = await self.ask(request, 1)
        assert not answer.error_code, answer
        return answer

    async def enter(self, member: str) -> None:
        epoch = (await self.beat(member, 0)).member_epoch
        while True:
            await trio.sleep(1)
            answer = await self.beat(member, epoch)
            if answer.member_epoch == epoch:
                return
            epoch = answer.member_epoch

    async def fetch(
        self,
        member: str,
        epoch: int,
        *acknowledged: tuple[int, int, int],
        error: ErrorCode = ErrorCode.NONE,
        wait_ms: int = 100,
    ) -> Any:
        """What ``member`` acquires: first and last offset, and how often it was delivered."""
        batches = [
            AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=[kind])
            for first, last, kind in acknowledged
        ]
        partition = FetchPartition(acknowledgement_batches=batches)
        request = ShareFetchRequest(
            group_id="g",
            member_id=member,
            share_session_epoch=epoch,
            max_wait_ms=wait_ms,
            min_bytes=1,
            max_records=100,
            batch_size=100,
            topics=[FetchTopic(topic_id=self.topic_id, partitions=[partition])],
        )
        answer = self.broker.begin(request, 2)
        if isinstance(answer, Waiting):
            await trio.sleep(wait_ms / 1000)
            if not answer.is_answered:
                answer.expire()
            answer = await answer.wait()
        assert not answer.error_code, answer
        if not answer.responses:
            return []
        ((partition_data,),) = [topic.partitions for topic in answer.responses]
        assert partition_data.error_code == error, partition_data
        assert not partition_data.acknowledge_error_code, partition_data
        return [
            (acquired.first_offset, acquired.last_offset, acquired.delivery_count)
            for acquired in partition_data.acquired_records
        ]

    async def standing(self) -> list[tuple[int, int]]:
        """Start offset and lag of every partition that the group has a state of."""
        asked = DescribeShareGroupOffsetsRequestGroup(group_id="g", topics=None)
        answer = await self.ask(DescribeShareGroupOffsetsRequest(groups=[asked]), 1)
        (group,) = answer.groups
        return [(each.start_offset, each.lag) for topic in group.topics for each in topic.partitions]

    async def alter(self, offset: int) -> ErrorCode:
        """Move the group; the error is the group's or, if there is none, the partition's."""
        partition = AlterShareGroupOffsetsRequestPartition(start_offset=offset)
        topic = AlterShareGroupOffsetsRequestTopic(topic_name="t", partitions=[partition])
        answer = self.broker.begin(AlterShareGroupOffsetsRequest(group_id="g", topics=[topic]), 0)
        if isinstance(answer, Waiting):
            with trio.fail_after(60):  # the share coordinator may be asked again
                answer = await answer.wait()
        if answer.error_code:
            return ErrorCode(answer.error_code)
        ((partition_answer,),) = [topic.partitions for topic in answer.responses]
        return ErrorCode(partition_answer.error_code)

    async def delete_group(self) -> ErrorCode:
        (result,) = (await self.ask(DeleteGroupsRequest(groups_names=["g"]), 2)).results
        return ErrorCode(result.error_code)


@asynccontextmanager
async def desk(
    file_system: MemoryFileSystem | None = None, image: MetadataImage | None = None, **more: str
) -> AsyncGenerator[Desk]:
    """``more`` are settings of the broker, written as ``num_partitions``."""
    settings = {"share.coordinator.state.topic.num.partitions": str(PARTITION_COUNT)}
    settings |= {name.replace("_", "."): value for name, value in more.items()}
    async with group_broker(settings, file_system=file_system, image=image) as broker:
        one = broker.broker
        async with (
            open_share_coordinator(one.services) as one.share_coordinator,
            open_share_host(one.services) as one.share,
        ):
            found = Desk(broker)
            if image is None:
                broker.make_offsets_topic()
                name, value = "share.auto.offset.reset", "earliest"
                one.apply(
                    FeatureLevelRecord(name="share.version", feature_level=1),
                    ConfigRecord(resource_type=GROUP, resource_name="g", name=name, value=value),
                )
                found.topic_id = one.create_topic("t", 1)
                one.produce("t", some_batch(10))
            else:
                found.topic_id = image.topics["t"].id
            yield found
