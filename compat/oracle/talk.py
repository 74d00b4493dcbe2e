"""What one round of a conversation says to a broker, and what is kept of the answers."""

import time
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from compat.oracle.apis import Api, api_of
from compat.oracle.brief import Json, brief_answer
from compat.oracle.connection import PATIENCE_SECONDS, Connection, Silence, read_answer
from compat.oracle.conversation import Conversation
from compat.oracle.names import Names, Origin
from compat.oracle.outcomes import NOT_ASKED
from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.errors import DecodeError, EncodeError
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
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.records.builder import build_batch
from protocol.schema import Message

ORACLE: Final = "oracle"
"""The client id of whoever speaks unless another is named."""

POLL_SECONDS: Final = 0.002

WAITING_ROUND_TRIPS: Final = 5
"""A broker that answered so many requests has long looked at one that was sent before them."""

LONG_AGO_MS: Final = 1_600_000_000_000
"""The time of records that are given no other."""

CLIENT_METRICS: Final = 16
TRANSACTION: Final = 1
LATEST: Final = -1

Alter = Callable[[Message], object]
"""Changes an answer before it is looked at: for tests of the judge itself."""


class Topic(NamedTuple):
    """A topic by both of the ways to name it."""

    name: str
    id: bytes


NOWHERE: Final = Topic("nowhere", b"\x77" * 16)
"""No broker has it."""


class Step(NamedTuple):
    """One request and what came of it."""

    label: str
    api: str
    version: int
    outcome: Json
    """A dict is an answer; a text says why there is none."""


class Asked(NamedTuple):
    """A request that was sent, or was not because its version cannot carry it."""

    api: Api
    version: int
    """That of the answer."""
    by: str
    correlation_id: int
    refused: str = ""


class Talk:
    """One round of a conversation.

    Labels of steps differ within a conversation.  ``by`` names the client that asks: each has a connection of
    its own.  Where there is no answer an empty one is returned, so that a conversation can go on.
    """

    def __init__(
        self, held: Conversation, turn: int, origin: Origin, token: str, alter: Alter | None = None
    ) -> None:
        self.turn = turn
        self.origin = origin
        self.steps: list[Step] = []
        self._held = held
        self._prefix = f"o{token}-"
        self._names = Names(self._prefix, origin)
        self._alter = alter
        self._connections: dict[str, Connection] = {}
        self._asked: dict[str, Asked] = {}
        self._barriers = 0

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()

    def version_of(self, key: ApiKey) -> int:
        """The version in which this round asks that API."""
        return self._held.version_of(key, self.turn)

    def name(self, name: str) -> str:
        """``name`` as nothing of another conversation is called; recordings show it as it was given."""
        return self._prefix + name

    # What is recorded

    def ask(
        self,
        label: str,
        request: Message,
        *,
        by: str = ORACLE,
        version: int | None = None,
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> Any:
        """Send a request, keep what comes of it, and return the answer."""
        self.start(label, request, by=by, version=version)
        return self.finish(label, patience_seconds=patience_seconds)

    def start(self, label: str, request: Message, *, by: str = ORACLE, version: int | None = None) -> None:
        """Send a request whose answer may have to wait for something else; ``finish`` takes it."""
        key = ApiKey(request.api_key)
        asked = self.version_of(key) if version is None else version
        refused, correlation_id = "", 0
        try:
            correlation_id = self._connection(by).send(request, asked)
        except EncodeError as error:
            refused = f"{NOT_ASKED}: {error}"
        self._asked[label] = Asked(api_of(key), asked, by, correlation_id, refused)

    def finish(self, label: str, *, patience_seconds: float = PATIENCE_SECONDS) -> Any:
        """Wait for the answer to what was started under that label."""
        asked = self._asked.pop(label)
        answer = asked.api.response()
        if asked.refused:
            self._keep(label, asked, asked.refused)
            return answer
        frame = self._connections[asked.by].receive(asked.correlation_id, patience_seconds=patience_seconds)
        if isinstance(frame, Silence):
            if frame is not Silence.NO_ANSWER:
                self._connections.pop(asked.by).close()
            self._keep(label, asked, frame.value)
            return answer
        try:
            answer = read_answer(frame, asked.api.response, asked.version)
            if self._alter is not None:
                self._alter(answer)
            outcome = brief_answer(answer, self._names)
        except DecodeError as error:
            outcome = f"not readable: {error}"
        self._keep(label, asked, outcome)
        return answer

    def ask_in_vain(self, label: str, request: Message, *, by: str = ORACLE) -> None:
        """Send a request that may stay unanswered, and see whether the connection goes on."""
        self.start(label, request, by=by)
        connection = self._connection(by)
        connection.send_probe()
        self.finish(label)
        if isinstance(self.steps[-1].outcome, dict):
            connection.receive(0)  # the answer to the probe

    def ask_bytes(
        self,
        label: str,
        key: ApiKey,
        body: bytes,
        *,
        version: int | None = None,
        answer_version: int | None = None,
    ) -> Any:
        """Send a body that need not be one, in a version that need not exist."""
        api = api_of(key)
        asked = self.version_of(key) if version is None else version
        flexible = asked in api.request.flexible
        correlation_id = self._connection(ORACLE).send_body(key, asked, body, flexible=flexible)
        expected = asked if answer_version is None else answer_version
        self._asked[label] = Asked(api, expected, ORACLE, correlation_id)
        return self.finish(label)

    def say(self, label: str, data: bytes) -> None:
        """Send bytes that are no request on a connection of their own, and see whether it stays open."""
        connection = Connection(self.origin.address, ORACLE)
        try:
            connection.send_bytes(data)
            frame = connection.receive(0, patience_seconds=1)
        finally:
            connection.close()
        outcome = frame.value if isinstance(frame, Silence) else f"{len(frame)} bytes"
        self.steps.append(Step(label, "Bytes", 0, outcome))

    def _keep(self, label: str, asked: Asked, outcome: Json) -> None:
        assert all(step.label != label for step in self.steps), f"two steps are called {label}"
        self.steps.append(Step(label, asked.api.name, asked.version, outcome))

    # What is not recorded

    def quietly(self, request: Message, *, version: int | None = None) -> Any:
        """The answer to a request that only prepares the others; in the API's last version."""
        api = api_of(ApiKey(request.api_key))
        asked = api.versions[-1] if version is None else version
        connection = self._connection("")
        frame = connection.receive(connection.send(request, asked))
        if isinstance(frame, Silence):
            raise AssertionError(f"{api.name} {asked}: {frame.value}")
        return read_answer(frame, api.response, asked)

    def until(self, request: Message, is_so: Callable[[Any], bool]) -> Any:
        """Ask until the answer is as it should be."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not is_so(answer := self.quietly(request)):
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
        self.until(
            DescribeGroupsRequest(groups=[group]), lambda answer: answer.groups[0].group_state == state
        )

    def until_coordinated(self, transactional_id: str) -> None:
        """Wait until somebody coordinates the transactions of an id, or it is clear that nobody will."""
        self.until(
            FindCoordinatorRequest(key_type=TRANSACTION, coordinator_keys=[transactional_id]),
            lambda answer: answer.coordinators[0].error_code != ErrorCode.COORDINATOR_NOT_AVAILABLE,
        )

    def topic(self, name: str, partitions: int = 1, **settings: str) -> Topic:
        """Make a topic and wait until every partition is led.  Settings are given as ``retention_ms``."""
        full_name = self.name(name)
        configs = [
            CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in settings.items()
        ]
        topic = CreatableTopic(
            name=full_name, num_partitions=partitions, replication_factor=1, configs=configs
        )
        (made,) = self.quietly(CreateTopicsRequest(topics=[topic], timeout_ms=10_000)).topics
        assert made.error_code == ErrorCode.NONE, made
        self._names.know_topic(full_name, made.topic_id)
        wanted = [
            ListOffsetsPartition(partition_index=index, timestamp=LATEST) for index in range(partitions)
        ]
        self.until(
            ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=full_name, partitions=wanted)]),
            lambda answer: not any(partition.error_code for partition in answer.topics[0].partitions),
        )
        return Topic(full_name, made.topic_id)

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
            self._pass_barrier(f"barrier-{self._prefix}", str(10_000 + self._barriers))

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

    def _connection(self, by: str) -> Connection:
        if by not in self._connections:
            self._connections[by] = Connection(self.origin.address, by)
        return self._connections[by]
