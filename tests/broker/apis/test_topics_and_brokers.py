"""What the recorded conversation with a lone broker does not show: settings, other brokers, other doors."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing

from broker.apis import api_versions, create_partitions, create_topics, delete_topics, metadata
from broker.metadata.endpoints import Advertised
from protocol.error_codes import ErrorCode
from protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)
from protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    UserName,
)
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from protocol.schema import Message
from protocol.uuids import ZERO_UUID
from tests.broker.controller.node import CLUSTER_ID, ControllerNode
from tests.broker.metadata.records import broker, partition, topic, uuid


@asynccontextmanager
async def started(settings: Mapping[str, str] | None = None) -> AsyncIterator[ControllerNode]:
    """A node whose controller works."""
    node = ControllerNode(settings)
    node.start()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(node.controller.run)
        yield node
        nursery.cancel_scope.cancel()


def append(node: ControllerNode, *records: Message) -> None:
    """Put records into the log by hand: other brokers, which cannot come yet."""
    node.raft.append([(record, max(type(record).versions)) for record in records])
    node.raft.flush()
    node.raft.feed.image = node.raft.latest


def named(*names: str) -> list[MetadataRequestTopic]:
    return [MetadataRequestTopic(name=name) for name in names]


class TestMetadata:
    @pytest.mark.parametrize("name", ["nope", "__consumer_offsets"])
    async def test_no_topic_is_made_where_the_broker_forbids_it(self, name: str) -> None:
        async with started({"auto.create.topics.enable": "false"}) as node:
            request = MetadataRequest(topics=named(name))
            answer = await node.ask(request, MetadataResponse, 13)
            await trio.testing.wait_all_tasks_blocked()
            assert answer.topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            assert node.image.topics == {}

    async def test_the_answer_about_all_topics_follows_the_image(self) -> None:
        async with started() as node:
            request = MetadataRequest(topics=None)
            assert (await node.ask(request, MetadataResponse, 13)).topics == []
            append(node, *topic("a", uuid(1000), partition([1])))
            for _ in range(2):
                answer = await node.ask(request, MetadataResponse, 13)
                assert [found.name for found in answer.topics] == ["a"]
            old = await node.ask(request, MetadataResponse, 1)
            assert [found.name for found in old.topics] == ["a"]

    async def test_it_follows_the_address_by_which_the_broker_is_reached(self) -> None:
        async with started() as node:
            request = MetadataRequest(topics=None)
            node.services.advertised = Advertised(1, ["PLAINTEXT"])
            assert (await node.ask(request, MetadataResponse, 13)).brokers[0].host == "10.0.0.1"
            node.services.advertised = Advertised(1)
            assert (await node.ask(request, MetadataResponse, 13)).brokers[0].host == "broker.example"

    async def test_and_what_was_asked_beside_it(self) -> None:
        async with started() as node:
            append(node, *topic("a", uuid(1000), partition([1])))
            for operations in (False, True, False):
                request = MetadataRequest(topics=None, include_topic_authorized_operations=operations)
                answer = await node.ask(request, MetadataResponse, 13)
                assert answer.topics[0].topic_authorized_operations == (3576 if operations else -2147483648)

    async def test_not_too_many_answers_are_kept(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(metadata, "ANSWERS_KEPT_MAX", 2)
        async with started() as node:
            for version in range(1, 14):
                await node.ask(MetadataRequest(topics=None), MetadataResponse, version)
            assert len(metadata._answers.bodies) <= 2

    async def test_brokers_that_cannot_be_reached(self) -> None:
        async with started() as node:
            made = topic("a", uuid(1000), partition([1, 2]), partition([7, 1]))
            for record in made[1:]:
                record.directories = [uuid(1), uuid(1)]  # type: ignore[attr-defined]  # not assigned
            append(node, broker(2, fenced=True), *made)
            request = MetadataRequest(topics=named("a"))
            answer = await node.ask(request, MetadataResponse, 13)
            assert [found.node_id for found in answer.brokers] == [1]
            led, lost = answer.topics[0].partitions
            assert (led.error_code, led.leader_id) == (0, 1)
            assert (led.replica_nodes, led.isr_nodes, led.offline_replicas) == ([1, 2], [1, 2], [2])
            assert (lost.error_code, lost.leader_id) == (ErrorCode.LEADER_NOT_AVAILABLE, -1)

    async def test_clients_of_version_0_are_told_only_of_brokers_they_can_reach(self) -> None:
        async with started() as node:
            append(node, broker(2, fenced=True), *topic("a", uuid(1000), partition([1, 2])))
            answer = await node.ask(MetadataRequest(topics=named("a")), MetadataResponse, 0)
            shown = answer.topics[0].partitions[0]
            assert shown.error_code == ErrorCode.REPLICA_NOT_AVAILABLE
            assert (shown.leader_id, shown.replica_nodes, shown.isr_nodes) == (1, [1], [1])

    @pytest.mark.parametrize(
        ("version", "code"), [(5, ErrorCode.LEADER_NOT_AVAILABLE), (6, ErrorCode.LISTENER_NOT_FOUND)]
    )
    async def test_a_leader_without_the_client_s_listener(self, version: int, code: ErrorCode) -> None:
        async with started() as node:
            append(node, *topic("a", uuid(1000), partition([1])))
            request = MetadataRequest(topics=named("a"))
            answer = await node.ask(request, MetadataResponse, version, listener="OTHER")
            assert answer.topics[0].partitions[0].error_code == code
            assert answer.brokers == []
            assert answer.controller_id == -1

    @pytest.mark.parametrize("name", [None, "x"])
    @pytest.mark.parametrize("version", [12, 13])
    async def test_beside_an_id_what_has_none_is_not_looked_at(self, version: int, name: str | None) -> None:
        async with started() as node:
            nothing = MetadataRequestTopic(topic_id=ZERO_UUID, name=None)
            by_id = MetadataRequestTopic(topic_id=uuid(9), name=name)
            for topics in ([nothing, by_id], [by_id, nothing]):
                answer = await node.ask(MetadataRequest(topics=topics), MetadataResponse, version)
                found = [(one.topic_id, one.name, one.error_code) for one in answer.topics]
                assert found == [(uuid(9), None, ErrorCode.UNKNOWN_TOPIC_ID)]
            answer = await node.ask(MetadataRequest(topics=[nothing]), MetadataResponse, version)
            assert [one.error_code for one in answer.topics] == [ErrorCode.UNKNOWN_SERVER_ERROR]


class TestDescribeTopicPartitions:
    async def describe(self, *names: str, cursor: tuple[str, int] | None) -> list[tuple[str | None, int]]:
        async with started() as node:
            request = DescribeTopicPartitionsRequest(
                topics=[TopicRequest(name=name) for name in names],
                cursor=None if cursor is None else Cursor(topic_name=cursor[0], partition_index=cursor[1]),
            )
            answer = await node.ask(request, DescribeTopicPartitionsResponse, 0)
            return [(found.name, found.error_code) for found in answer.topics]

    @pytest.mark.parametrize(
        ("cursor", "code"),
        [
            (None, ErrorCode.UNKNOWN_SERVER_ERROR),
            (("nope", 0), ErrorCode.INVALID_REQUEST),
            (("zb", -1), ErrorCode.INVALID_REQUEST),
            (("", -1), ErrorCode.INVALID_REQUEST),
        ],
    )
    async def test_a_topic_without_a_name(self, cursor: tuple[str, int] | None, code: ErrorCode) -> None:
        shown = await self.describe("", "zb", cursor=cursor)
        assert sorted(shown) == [("", code), ("zb", code)]

    async def test_with_a_cursor_that_is_one_of_many_wrong_names(self) -> None:
        unknown = ("zb", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        assert await self.describe("", "zb", cursor=("zb", 0)) == [unknown]
        shown = await self.describe("", "zb", cursor=("", 0))
        assert shown == [("", ErrorCode.INVALID_TOPIC_EXCEPTION), unknown]


class TestCreatingAndDeleting:
    async def test_settings_are_shown_with_where_they_come_from(self) -> None:
        async with started({"log.retention.ms": "1234"}) as node:
            request = CreateTopicsRequest(
                topics=[
                    CreatableTopic(
                        name="a",
                        num_partitions=1,
                        replication_factor=1,
                        configs=[CreatableTopicConfig(name="segment.ms", value=" 5000 ")],
                    )
                ]
            )
            answer = await node.ask(request, CreateTopicsResponse, 7)
            shown = {c.name: (c.value, c.config_source) for c in answer.topics[0].configs}
            assert shown["segment.ms"] == ("5000", 1)
            assert shown["retention.ms"] == ("1234", 4)
            assert shown["cleanup.policy"] == ("delete", 5)
            assert node.image.topic_config("a") == {"segment.ms": " 5000 "}
            assert (await node.ask(request, CreateTopicsResponse, 4)).topics[0].configs == []

    @pytest.mark.parametrize(
        ("version", "code"),
        [
            (1, ErrorCode.INVALID_REQUEST),
            (2, ErrorCode.INVALID_REQUEST),
            (3, ErrorCode.TOPIC_DELETION_DISABLED),
            (5, ErrorCode.TOPIC_DELETION_DISABLED),
            (6, ErrorCode.TOPIC_DELETION_DISABLED),
        ],
    )
    async def test_deletion_that_is_disabled(self, version: int, code: ErrorCode) -> None:
        async with started({"delete.topic.enable": "false"}) as node:
            append(node, *topic("a", uuid(1000), partition([1])))
            request = DeleteTopicsRequest(topic_names=["a", "nope", "nope"], timeout_ms=1000)
            if version >= 6:
                states = [DeleteTopicState(name=name) for name in ("a", "nope", "nope")]
                request = DeleteTopicsRequest(topics=states, timeout_ms=1000)
            answer = await node.ask(request, DeleteTopicsResponse, version)
            assert [(r.name, r.error_code, r.error_message) for r in answer.responses] == [
                ("a", code, None),
                ("nope", code, None),
                ("nope", code, None),
            ]
            assert "a" in node.image.topics

    def test_what_is_said_when_something_fails(self) -> None:
        code = ErrorCode.UNKNOWN_SERVER_ERROR
        creation = CreateTopicsRequest(topics=[CreatableTopic(name="a"), CreatableTopic(name="a")])
        created = create_topics.error_response(creation, code)
        assert [(result.name, result.error_code) for result in created.topics] == [("a", code)] * 2
        growth = CreatePartitionsRequest(topics=[CreatePartitionsTopic(name="a")])
        grown = create_partitions.error_response(growth, code)
        assert [(result.name, result.error_code) for result in grown.results] == [("a", code)]
        deletion = DeleteTopicsRequest(topics=[DeleteTopicState(name=None, topic_id=uuid(7))])
        deleted = delete_topics.error_response(deletion, code)
        assert [(result.topic_id, result.error_code) for result in deleted.responses] == [(uuid(7), code)]


class TestDescribeCluster:
    async def test_fenced_brokers_on_demand(self) -> None:
        async with started() as node:
            append(node, broker(2, fenced=True, rack="r"))
            answer = await node.ask(DescribeClusterRequest(), DescribeClusterResponse, 2)
            assert [found.broker_id for found in answer.brokers] == [1]
            request = DescribeClusterRequest(include_fenced_brokers=True)
            answer = await node.ask(request, DescribeClusterResponse, 2)
            assert [(b.broker_id, b.rack, b.is_fenced) for b in answer.brokers] == [
                (1, None, False),
                (2, "r", True),
            ]

    async def test_controllers_behind_their_own_door(self) -> None:
        async with started() as node:
            request = DescribeClusterRequest(endpoint_type=2)
            answer = await node.ask(request, DescribeClusterResponse, 1, listener="CONTROLLER")
            assert (answer.error_code, answer.endpoint_type, answer.controller_id) == (0, 2, 1)
            assert answer.cluster_id == CLUSTER_ID
            assert [(b.broker_id, b.host, b.port) for b in answer.brokers] == [(1, "127.0.0.1", 9093)]
            refused = await node.ask(
                DescribeClusterRequest(), DescribeClusterResponse, 1, listener="CONTROLLER"
            )
            assert refused.error_code == ErrorCode.MISMATCHED_ENDPOINT_TYPE
            assert refused.error_message == (
                "The request was sent to an endpoint of type CONTROLLER, "
                "but we wanted an endpoint of type BROKER"
            )
            older = await node.ask(
                DescribeClusterRequest(), DescribeClusterResponse, 0, listener="CONTROLLER"
            )
            assert (older.error_code, older.error_message) == (
                ErrorCode.INVALID_REQUEST,
                refused.error_message,
            )

    async def test_a_leader_that_has_not_registered_is_not_told(self) -> None:
        async with started() as node:
            node.services.quorum.leader_id = 9
            request = DescribeClusterRequest(endpoint_type=2)
            answer = await node.ask(request, DescribeClusterResponse, 1, listener="CONTROLLER")
            assert (answer.controller_id, [found.broker_id for found in answer.brokers]) == (-1, [1])


class TestApiVersions:
    REQUEST = ApiVersionsRequest(client_software_name="ottla-test", client_software_version="1.2")

    async def test_only_what_the_door_serves(self) -> None:
        async with started() as node:
            broker_side = await node.ask(self.REQUEST, ApiVersionsResponse, 4)
            controller_side = await node.ask(self.REQUEST, ApiVersionsResponse, 4, listener="CONTROLLER")
            assert {18, 60} <= {key.api_key for key in controller_side.api_keys}
            assert 3 not in {key.api_key for key in controller_side.api_keys}
            ranges = {key.api_key: (key.min_version, key.max_version) for key in broker_side.api_keys}
            assert ranges[0] == (0, 13)  # librdkafka wants Produce from 0
            assert ranges[3] == (0, 13)
            assert ranges[22] == (0, 5)
            assert list(ranges) == sorted(ranges)

    async def test_unstable_versions_on_demand(self) -> None:
        async with started({"unstable.api.versions.enable": "true"}) as node:
            answer = await node.ask(self.REQUEST, ApiVersionsResponse, 4)
            assert next(key.max_version for key in answer.api_keys if key.api_key == 22) == 6

    async def test_the_client_s_software_is_noted(self) -> None:
        async with started() as node:
            call = node.call(18, 3)
            api_versions.handle(self.REQUEST, call)
            assert call.connection.client_software_name == "ottla-test"
            assert call.connection.client_software_version == "1.2"

    @pytest.mark.parametrize(
        ("cluster_id", "node_id", "code"),
        [
            (CLUSTER_ID, 1, ErrorCode.NONE),
            (CLUSTER_ID, 2, ErrorCode.REBOOTSTRAP_REQUIRED),
            ("other", 1, ErrorCode.REBOOTSTRAP_REQUIRED),
            (CLUSTER_ID, -1, ErrorCode.INVALID_REQUEST),
            (None, 1, ErrorCode.INVALID_REQUEST),
            (None, -1, ErrorCode.NONE),
        ],
    )
    async def test_whom_the_client_expects(
        self, cluster_id: str | None, node_id: int, code: ErrorCode
    ) -> None:
        async with started() as node:
            request = ApiVersionsRequest(
                client_software_name="a", client_software_version="1", cluster_id=cluster_id, node_id=node_id
            )
            answer = await node.ask(request, ApiVersionsResponse, 5)
            assert answer.error_code == code
            assert bool(answer.api_keys) == (code is ErrorCode.NONE)
            answer = await node.ask(request, ApiVersionsResponse, 5, listener="CONTROLLER")
            expects_another = code is ErrorCode.REBOOTSTRAP_REQUIRED  # which controllers do not mind
            assert answer.error_code == (ErrorCode.NONE if expects_another else code)

    async def test_features(self) -> None:
        async with started() as node:
            old = await node.ask(self.REQUEST, ApiVersionsResponse, 3)
            assert [feature.name for feature in old.supported_features] == ["metadata.version"]
            new = await node.ask(self.REQUEST, ApiVersionsResponse, 4)
            assert len(new.supported_features) == 7
            assert old.finalized_features == new.finalized_features
            levels = {f.name: f.max_version_level for f in new.finalized_features}
            assert levels == node.raft.feed.finalized_features
            assert new.finalized_features_epoch == node.image.offset


class TestWhatControllersOnlyAnnounce:
    async def test_tokens(self) -> None:
        async with started() as node:
            request = DescribeDelegationTokenRequest()
            answer = await node.ask(request, DescribeDelegationTokenResponse, 3, listener="CONTROLLER")
            assert answer == DescribeDelegationTokenResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
            answer = await node.ask(request, DescribeDelegationTokenResponse, 3)
            assert answer.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED

    async def test_passwords(self) -> None:
        async with started() as node:
            request = DescribeUserScramCredentialsRequest(users=[UserName(name="a")])
            answer = await node.ask(request, DescribeUserScramCredentialsResponse, 0, listener="CONTROLLER")
            code = ErrorCode.UNKNOWN_SERVER_ERROR
            assert (answer.error_code, answer.error_message) == (code, None)
            assert [(result.user, result.error_code) for result in answer.results] == [("", code)]
