"""What is done so that something can be asked: topics, records, and waiting until a broker has got so far."""

import time
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from compat.oracle.apis import api_of
from compat.oracle.connection import Connection, Silence, read_answer
from compat.oracle.names import Names, Origin
from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from protocol.messages.describe_cluster import DescribeClusterRequest
from protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from protocol.messages.describe_groups import DescribeGroupsRequest
from protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.records.builder import build_batch
from protocol.schema import Message

POLL_SECONDS: Final = 0.002

PATIENCE_SECONDS: Final = 90.0
"""What is asked here is answered in the end, however busy the machine is."""

WAITING_ROUND_TRIPS: Final = 5
"""A broker that answered so many requests has long looked at one that was sent before them."""

LONG_AGO_MS: Final = 1_600_000_000_000
"""The time of records that are given no other."""

BARRIER: Final = "barrier-"
"""How everything is called that exists only so that something can be waited for."""

BARRIER_TOPIC: Final = f"{BARRIER}topic"
BARRIER_GROUP: Final = f"{BARRIER}group"

CLIENT_METRICS: Final = 16
LATEST: Final = -1
BY_NAME: Final = 9
"""The last version of OffsetCommit in which topics have names."""


class Topic(NamedTuple):
    """A topic by both of the ways to name it."""

    name: str
    id: bytes


NOWHERE: Final = Topic("nowhere", b"\x77" * 16)
"""No broker has it."""


class Preparing:
    """Everything that is asked without being recorded.  ``names`` learn of what is made.

    Its connection is one of ``spare``, if there is any, and becomes one of them when all went well.
    """

    def __init__(
        self, origin: Origin, prefix: str, names: Names, spare: list[Connection] | None = None
    ) -> None:
        self.origin = origin
        self._prefix = prefix
        self._names = names
        self._own: Connection | None = None
        self._spare = [] if spare is None else spare
        self._barriers = 0

    def close(self) -> None:
        if self._own is not None:
            self._own.close()

    def leave_connection(self) -> None:
        """Let others ask on the connection, on which nothing is unanswered."""
        if self._own is not None:
            self._spare.append(self._own)
            self._own = None

    def name(self, name: str) -> str:
        """``name`` as nothing of another conversation is called; recordings show it as it was given."""
        return self._prefix + name

    def quietly(self, request: Message, *, version: int | None = None) -> Any:
        """The answer to a request that only prepares the others; in the API's last version."""
        api = api_of(ApiKey(request.api_key))
        asked = api.versions[-1] if version is None else version
        if self._own is None:
            self._own = self._spare.pop() if self._spare else Connection(self.origin.address, "")
        correlation_id = self._own.send(request, asked)
        frame = self._own.receive(correlation_id, patience_seconds=PATIENCE_SECONDS)
        if isinstance(frame, Silence):
            raise AssertionError(f"{api.name} {asked}: {frame.value}")
        return read_answer(frame, api.response, asked)

    def until(self, request: Message, is_so: Callable[[Any], bool], *, version: int | None = None) -> Any:
        """Ask until the answer is as it should be; in the API's last version."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not is_so(answer := self.quietly(request, version=version)):
            if time.monotonic() > deadline:
                raise AssertionError(f"it never came about: {answer!r}")
            time.sleep(POLL_SECONDS)
        return answer

    def let_wait(self) -> None:
        """Give a request that was started the time to find that it has to wait."""
        for _ in range(WAITING_ROUND_TRIPS):
            self.quietly(DescribeClusterRequest())

    def until_group_is(self, group: str, state: str) -> None:
        """Wait until a group is in that state."""
        self.settle_groups()
        self.until(
            DescribeGroupsRequest(groups=[group]), lambda answer: answer.groups[0].group_state == state
        )

    def settle_groups(self) -> None:
        """Let everybody see the groups that are there.

        Kafka shows what was committed last: a group that only has members so far is seen once something else
        has been.
        """
        place = OffsetCommitRequestPartition(committed_offset=1)
        topic = OffsetCommitRequestTopic(name=BARRIER_TOPIC, partitions=[place])
        request = OffsetCommitRequest(group_id=BARRIER_GROUP, topics=[topic])
        # A broker that has just begun may still read what its groups were.
        self.until(
            request,
            lambda answer: answer.topics[0].partitions[0].error_code == ErrorCode.NONE,
            version=BY_NAME,
        )

    def topic(self, name: str, partitions: int = 1, *, before: str = "", **settings: str) -> Topic:
        """Make a topic and wait until every partition is led.  Settings are given as ``retention_ms``.

        Its full name begins with ``before``, for rules about such beginnings.
        """
        full_name = before + self.name(name)
        configs = [
            CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in settings.items()
        ]
        topic = CreatableTopic(
            name=full_name, num_partitions=partitions, replication_factor=1, configs=configs
        )
        (made,) = self.quietly(CreateTopicsRequest(topics=[topic], timeout_ms=10_000)).topics
        assert made.error_code == ErrorCode.NONE, made
        self._names.know_topic(full_name, made.topic_id)
        self._until_led(full_name, partitions)
        return Topic(full_name, made.topic_id)

    def barrier_topic(self) -> None:
        """Make the topic that ``settle_groups`` needs, if it is not there from another time."""
        topic = CreatableTopic(name=BARRIER_TOPIC, num_partitions=1, replication_factor=1)
        self.quietly(CreateTopicsRequest(topics=[topic], timeout_ms=10_000))
        self._until_led(BARRIER_TOPIC, 1)

    def _until_led(self, topic: str, count: int) -> None:
        partitions = [ListOffsetsPartition(partition_index=index, timestamp=LATEST) for index in range(count)]
        self.until(
            ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=partitions)]),
            lambda answer: not any(partition.error_code for partition in answer.topics[0].partitions),
        )

    def known_topic(self, name: str) -> Topic:
        """A topic that the broker has anyway."""
        answer = self.quietly(MetadataRequest(topics=[MetadataRequestTopic(name=name)]))
        return Topic(name, answer.topics[0].topic_id)

    def produce(self, topic: Topic, *values: str, partition: int = 0, **options: Any) -> int:
        """Append one batch; returns its first offset.  ``options`` are those of ``build_batch``."""
        batch = build_batch(
            [(LONG_AGO_MS + n, None, value.encode(), ()) for n, value in enumerate(values)], **options
        )
        data = PartitionProduceData(index=partition, records=batch)
        topics = [TopicProduceData(topic_id=topic.id, partition_data=[data])]
        answer = self.quietly(ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=topics))
        (reply,) = answer.responses[0].partition_responses
        assert reply.error_code == ErrorCode.NONE, reply
        return int(reply.base_offset)

    def delete_records(self, topic: Topic, offset: int) -> None:
        """Delete the records of partition 0 below ``offset``."""
        wanted = DeleteRecordsTopic(name=topic.name, partitions=[DeleteRecordsPartition(offset=offset)])
        answer = self.quietly(DeleteRecordsRequest(topics=[wanted], timeout_ms=10_000))
        assert answer.topics[0].partitions[0].error_code == ErrorCode.NONE, answer

    def delete_topic(self, topic: Topic) -> None:
        """Delete a topic and wait until it is gone."""
        request = DeleteTopicsRequest(topics=[DeleteTopicState(name=topic.name)], timeout_ms=10_000)
        (deleted,) = self.quietly(request).responses
        assert deleted.error_code == ErrorCode.NONE, deleted
        self.settle()

    def settle(self) -> None:
        """Wait until the broker has seen all that its controller has acknowledged.

        It sees changes in their order.  The first barrier is seen no earlier than the changes before it, the
        second no earlier than they have taken effect.
        """
        for _ in range(2):
            self._barriers += 1
            self._pass_barrier(BARRIER + self._prefix, str(10_000 + self._barriers))

    def _pass_barrier(self, name: str, value: str) -> None:
        change = AlterableConfig(name="interval.ms", value=value)
        resource = AlterConfigsResource(resource_type=CLIENT_METRICS, resource_name=name, configs=[change])
        (changed,) = self.quietly(IncrementalAlterConfigsRequest(resources=[resource])).responses
        assert changed.error_code == ErrorCode.NONE, changed
        described = DescribeConfigsResource(
            resource_type=CLIENT_METRICS, resource_name=name, configuration_keys=["interval.ms"]
        )
        self.until(
            DescribeConfigsRequest(resources=[described]),
            lambda answer: answer.results[0].configs[0].value == value,
        )
