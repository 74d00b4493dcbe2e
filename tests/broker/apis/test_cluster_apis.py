"""What other brokers and their clients ask the controller, through the wire form of requests and answers."""

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import pytest
import trio

from broker.apis import broker_heartbeat
from broker.controller.automatic_topics import topic_defaults
from broker.controller.decision import RECORDS_MAX, LongDecision
from broker.controller.topics import NewTopic, create_topics
from broker.metadata.features import PARTITION_RECORD_VERSION
from broker.metadata.records import VersionedRecord
from broker.network.waiting import Waiting
from broker.quotas.desk import ClientQuotas
from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.headers import RequestHeader, ResponseHeader
from protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from protocol.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from protocol.messages.alter_configs import AlterConfigsResource as LegacyResource
from protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from protocol.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsRequestDirectoryData,
    AssignReplicasToDirsRequestPartitionData,
    AssignReplicasToDirsRequestTopicData,
    AssignReplicasToDirsResponse,
)
from protocol.messages.broker_heartbeat import BrokerHeartbeatRequest
from protocol.messages.broker_registration import Feature, Listener
from protocol.messages.controller_registration import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)
from protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from protocol.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse, TopicPartitions
from protocol.messages.envelope import EnvelopeRequest, EnvelopeResponse
from protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from protocol.messages.metadata import MetadataRequest
from protocol.messages.unregister_broker import UnregisterBrokerRequest
from protocol.messages.unregister_controller import UnregisterControllerRequest
from protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from protocol.principal import ANONYMOUS, encode_principal
from protocol.schema import Message, Struct
from protocol.stored.metadata_records import PartitionRecord, TopicRecord
from tests.broker.controller.node import CONTROLLER, ControllerNode
from tests.broker.controller.other_brokers import FAR_AHEAD, OtherBroker
from tests.broker.metadata.records import directory, uuid


@asynccontextmanager
async def started(settings: Mapping[str, str] | None = None) -> AsyncIterator[ControllerNode]:
    node = ControllerNode(settings)
    node.services.quotas = ClientQuotas(node.services.config, node.clock)
    node.start()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(node.controller.run)
        yield node
        nursery.cancel_scope.cancel()


async def make(node: ControllerNode, name: str, *replicas: int) -> bytes:
    """A topic with one partition; its id."""
    wanted = NewTopic(name, assignments=[(0, replicas)])
    await node.controller.perform(lambda image: create_topics(image, [wanted], topic_defaults(node.services)))
    return node.image.topics[name].id


async def ask(node: ControllerNode, request: Message, answer: type[Message], version: int = 0) -> Any:
    return await node.ask(request, answer, version, listener=CONTROLLER.name)


def metadata_versions(last: int) -> Feature:
    return Feature(name="metadata.version", min_supported_version=7, max_supported_version=last)


class TestRegistration:
    @pytest.mark.parametrize("version", range(5))
    async def test_every_version(self, version: int) -> None:
        async with started() as node:
            second = OtherBroker(node, 2, rack="r")
            changes: dict[str, Any] = {} if version >= 2 else {"log_dirs": []}
            answer = await second.register(version, **changes)
            if version < 2:  # it does not say where it stores, and has to
                assert answer.error_code == ErrorCode.INVALID_REGISTRATION
                return
            assert answer.error_code == ErrorCode.NONE
            known = node.image.brokers[2]
            assert (known.epoch, known.rack, known.fenced) == (answer.broker_epoch, "r", True)
            assert known.endpoint("PLAINTEXT") == ("PLAINTEXT", "broker2", 9092, 0)

    @pytest.mark.parametrize(
        ("changes", "code"),
        [
            ({"cluster_id": "another"}, ErrorCode.INCONSISTENT_CLUSTER_ID),
            ({"log_dirs": []}, ErrorCode.INVALID_REGISTRATION),
            ({"log_dirs": [directory(2), directory(2)]}, ErrorCode.INVALID_REGISTRATION),
            ({"is_migrating_zk_broker": True}, ErrorCode.BROKER_ID_NOT_REGISTERED),
            (
                {"listeners": [Listener(name="A", host="a", security_protocol=9)]},
                ErrorCode.INVALID_REGISTRATION,
            ),
            ({"features": []}, ErrorCode.INVALID_REGISTRATION),
            (
                {
                    "features": [
                        Feature(name="metadata.version", min_supported_version=7, max_supported_version=32)
                    ]
                },
                ErrorCode.UNSUPPORTED_VERSION,
            ),
            (
                {
                    "features": [
                        Feature(name="metadata.version", min_supported_version=7, max_supported_version=33)
                    ]
                },
                ErrorCode.UNSUPPORTED_VERSION,
            ),
        ],
    )
    async def test_refusals(self, changes: dict[str, Any], code: ErrorCode) -> None:
        async with started() as node:
            answer = await OtherBroker(node, 2).register(**changes)
            assert (answer.error_code, answer.broker_epoch) == (code, -1)
            assert list(node.image.brokers) == [1]

    async def test_this_node_s_own_broker_is_back_at_once(self) -> None:
        """Its node may have become the controller before its broker could register."""
        async with started() as node:
            own = OtherBroker(node, 1)
            own.incarnation = 5
            node.services.life = SimpleNamespace(incarnation_id=uuid(1006))  # type: ignore[assignment]
            assert (await own.register()).error_code == ErrorCode.NONE
            assert (await own.register()).error_code == ErrorCode.DUPLICATE_BROKER_REGISTRATION

    async def test_amending_keeps_the_epoch_and_waits_for_the_new_record(self) -> None:
        async with started() as node:
            second = OtherBroker(node, 2)
            await second.come()
            second.incarnation -= 1
            epoch = second.epoch
            answer = await second.register(rack="other")
            assert answer.broker_epoch == epoch
            assert (node.image.brokers[2].rack, node.image.brokers[2].fenced) == ("other", False)
            assert not (await second.beat(offset=epoch)).is_caught_up
            assert (await second.beat(offset=node.image.offset)).is_caught_up


class TestHeartbeat:
    @pytest.mark.parametrize("version", range(3))
    async def test_the_way_in(self, version: int) -> None:
        async with started() as node:
            second = OtherBroker(node, 2)
            await second.register()
            early = await second.beat(version, offset=0, want_fence=True)
            assert (early.is_caught_up, early.is_fenced) == (False, True)
            waiting = await second.beat(version, want_fence=True)
            assert (waiting.is_caught_up, waiting.is_fenced) == (True, True)
            serving = await second.beat(version)
            assert (serving.is_caught_up, serving.is_fenced) == (True, False)
            assert not node.image.brokers[2].fenced

    @pytest.mark.acts("broker.heartbeat.interval.ms")
    async def test_one_that_must_wait_is_given_up_before_the_next_one(self) -> None:
        node = ControllerNode({"broker.heartbeat.interval.ms": "500"})
        node.start()
        call = node.call(ApiKey.BROKER_HEARTBEAT, 2, listener=CONTROLLER.name)
        waiting = broker_heartbeat.handle(BrokerHeartbeatRequest(broker_id=2), call)
        assert isinstance(waiting, Waiting)
        assert waiting.deadline == pytest.approx(trio.current_time() + 0.25, abs=0.1)
        waiting.expire()
        assert (await waiting.wait()).error_code == ErrorCode.REQUEST_TIMED_OUT

    async def test_strangers(self) -> None:
        async with started() as node:
            answer = await OtherBroker(node, 2).beat()
            assert (answer.error_code, answer.is_fenced) == (ErrorCode.STALE_BROKER_EPOCH, True)

    async def test_directories_that_failed_and_those_that_are_cordoned(self) -> None:
        async with started() as node:
            second = OtherBroker(node, 2)
            await second.register(log_dirs=[directory(2), directory(3)])
            await second.beat(offline_log_dirs=[directory(3)], cordoned_log_dirs=[directory(2)])
            known = node.image.brokers[2]
            assert (known.directories, known.cordoned_directories) == ((directory(2),), (directory(2),))


class TestAlterPartition:
    @pytest.mark.parametrize("version", [2, 3])
    async def test_both_versions(self, version: int) -> None:
        async with started() as node:
            second = OtherBroker(node, 2)
            await second.come()
            await make(node, "a", 2, 1)
            answer = await second.propose("a", [2], version=version)
            (found,) = answer.topics[0].partitions
            assert (found.error_code, found.isr, found.leader_id) == (ErrorCode.NONE, [2], 2)
            assert (found.leader_epoch, found.partition_epoch) == (0, 1)
            assert node.image.topics["a"].partitions[0].isr == (2,)
            stale = await second.propose("a", [2, 1], version=version, partition_epoch=0)
            assert stale.topics[0].partitions[0].error_code == ErrorCode.INVALID_UPDATE_VERSION

    async def test_a_stranger(self) -> None:
        async with started() as node:
            await make(node, "a", 1)
            answer = await OtherBroker(node, 2).propose("a", [1])
            assert (answer.error_code, answer.topics) == (ErrorCode.STALE_BROKER_EPOCH, [])


async def test_producer_ids() -> None:
    async with started() as node:
        second = OtherBroker(node, 2)
        await second.register()
        request = AllocateProducerIdsRequest(broker_id=2, broker_epoch=second.epoch)
        blocks = [await ask(node, request, AllocateProducerIdsResponse) for _ in range(2)]
        assert [(block.producer_id_start, block.producer_id_len) for block in blocks] == [
            (0, 1000),
            (1000, 1000),
        ]
        request.broker_epoch += 1
        refused = await ask(node, request, AllocateProducerIdsResponse)
        assert refused.error_code == ErrorCode.STALE_BROKER_EPOCH


async def test_directories_of_replicas() -> None:
    async with started() as node:
        second = OtherBroker(node, 2)
        await second.register(log_dirs=[directory(2), directory(3)])
        await second.beat()
        topic_id = await make(node, "a", 2)

        def topic(topic_id: bytes, *partitions: int) -> AssignReplicasToDirsRequestTopicData:
            return AssignReplicasToDirsRequestTopicData(
                topic_id=topic_id,
                partitions=[
                    AssignReplicasToDirsRequestPartitionData(partition_index=index) for index in partitions
                ],
            )

        request = AssignReplicasToDirsRequest(
            broker_id=2,
            broker_epoch=second.epoch,
            directories=[
                AssignReplicasToDirsRequestDirectoryData(id=directory(2), topics=[topic(uuid(5000), 0)]),
                AssignReplicasToDirsRequestDirectoryData(id=directory(3), topics=[topic(topic_id, 0, 7)]),
            ],
        )
        answer = await ask(node, request, AssignReplicasToDirsResponse)
        assert [
            (found.id, part.partition_index, part.error_code)
            for found in answer.directories
            for each in found.topics
            for part in each.partitions
        ] == [
            (directory(2), 0, ErrorCode.UNKNOWN_TOPIC_ID),
            (directory(3), 0, ErrorCode.NONE),
            (directory(3), 7, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ]
        assert node.image.topics["a"].partitions[0].directories == (directory(3),)
        request.broker_epoch = 0
        refused = await ask(node, request, AssignReplicasToDirsResponse)
        assert refused.error_code == ErrorCode.STALE_BROKER_EPOCH


async def test_a_controller_that_stands_by() -> None:
    async with started() as node:
        request = ControllerRegistrationRequest(controller_id=7, incarnation_id=uuid(7))
        answer = await ask(node, request, ControllerRegistrationResponse)
        assert answer.error_code == ErrorCode.NONE
        assert set(node.image.controllers) == {1, 7}


class TestEnvelope:
    @staticmethod
    def wrapped(request: Message, version: int, **changes: Any) -> EnvelopeRequest:
        header = RequestHeader(
            request_api_key=request.api_key,
            request_api_version=version,
            correlation_id=77,
            client_id="somebody",
        )
        flexible = version in type(request).flexible
        fields = {
            "request_data": header.encode(2 if flexible else 1) + request.encode(version),
            "request_principal": encode_principal(ANONYMOUS),
            "client_host_address": bytes([10, 0, 0, 9]),
            **changes,
        }
        return EnvelopeRequest(**fields)

    CREATION = CreateTopicsRequest(topics=[CreatableTopic(name="a", num_partitions=2, replication_factor=1)])

    @pytest.mark.parametrize("version", [4, 5, 7])
    async def test_the_answer_comes_whole_with_its_header(self, version: int) -> None:
        async with started() as node:
            answer = await ask(node, self.wrapped(self.CREATION, version), EnvelopeResponse)
            assert answer.error_code == ErrorCode.NONE
            flexible = version >= 5
            header, position = ResponseHeader.decode_from(answer.response_data, 0, int(flexible))
            assert header.correlation_id == 77
            inner, end = CreateTopicsResponse.decode_from(answer.response_data, position, version)
            assert end == len(answer.response_data)
            assert [(topic.name, topic.error_code) for topic in inner.topics] == [("a", 0)]
            assert len(node.image.topics["a"].partitions) == 2

    async def test_clients_with_new_addresses(self) -> None:
        async with started() as node:
            request = self.wrapped(self.CREATION, 7, client_host_address=bytes(15) + b"\1")
            assert (await ask(node, request, EnvelopeResponse)).error_code == ErrorCode.NONE

    @pytest.mark.parametrize(
        ("changes", "code"),
        [
            ({"request_principal": None}, ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
            ({"request_principal": b"\0\1"}, ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
            ({"client_host_address": b"\1\2\3"}, ErrorCode.INVALID_REQUEST),
            ({"request_data": b"\0"}, ErrorCode.UNSUPPORTED_VERSION),
            ({"request_data": b"\x7f\xff" + bytes(8)}, ErrorCode.UNSUPPORTED_VERSION),
            ({"request_data": b"\0\x13\0\x63" + bytes(8)}, ErrorCode.UNSUPPORTED_VERSION),
            ({"request_data": b"\0\x13\0\x07" + bytes(8)}, ErrorCode.UNSUPPORTED_VERSION),
        ],
    )
    async def test_what_cannot_be_unwrapped(self, changes: dict[str, Any], code: ErrorCode) -> None:
        async with started() as node:
            request = self.wrapped(self.CREATION, 7, **changes)
            answer = await ask(node, request, EnvelopeResponse)
            assert (answer.error_code, answer.response_data) == (code, None)

    async def test_what_brokers_answer_themselves_is_not_passed_on(self) -> None:
        async with started() as node:
            answer = await ask(node, self.wrapped(MetadataRequest(), 12), EnvelopeResponse)
            assert answer.error_code == ErrorCode.INVALID_REQUEST

    async def test_a_refusal_inside_is_an_answer(self) -> None:
        async with started() as node:
            await make(node, "a", 1)
            answer = await ask(node, self.wrapped(self.CREATION, 4), EnvelopeResponse)
            assert answer.error_code == ErrorCode.NONE
            inner, _ = CreateTopicsResponse.decode_from(answer.response_data, 4, 4)
            assert inner.topics[0].error_code == ErrorCode.TOPIC_ALREADY_EXISTS

    async def test_settings_of_brokers_are_believed_of_brokers_only(self) -> None:
        change = AlterableConfig(name="cordoned.log.dirs", value="/a")
        request = IncrementalAlterConfigsRequest(
            resources=[AlterConfigsResource(resource_type=4, resource_name="1", configs=[change])]
        )
        async with started() as node:
            (directly,) = (await ask(node, request, IncrementalAlterConfigsResponse, 1)).responses
            assert directly.error_code == ErrorCode.INVALID_CONFIG
            answer = await ask(node, self.wrapped(request, 1), EnvelopeResponse)
            _, position = ResponseHeader.decode_from(answer.response_data, 0, 1)
            inner, _ = IncrementalAlterConfigsResponse.decode_from(answer.response_data, position, 1)
            assert [response.error_code for response in inner.responses] == [ErrorCode.NONE]


class TestElections:
    async def test_too_many_at_once(self) -> None:
        """Kafka's controller refuses what is more than it writes for one request, and we do."""

        def leaderless(index: int) -> VersionedRecord:
            record = PartitionRecord(
                partition_id=index, topic_id=uuid(7), replicas=[1], isr=[], leader=-1, directories=[uuid(0)]
            )
            return record, PARTITION_RECORD_VERSION

        records: list[VersionedRecord] = [(TopicRecord(name="a", topic_id=uuid(7)), 0)]
        records += map(leaderless, range(RECORDS_MAX + 1))
        async with started() as node:
            await node.controller.perform(lambda _: LongDecision(records, None))
            request = ElectLeadersRequest(election_type=1, topic_partitions=None, timeout_ms=10_000)
            answer = await ask(node, request, ElectLeadersResponse, 2)
            assert (answer.error_code, answer.replica_election_results) == (ErrorCode.POLICY_VIOLATION, [])
            assert node.image.topics["a"].partitions[0].leader == -1
            request.topic_partitions = [TopicPartitions(topic="a", partitions=list(range(RECORDS_MAX)))]
            answer = await ask(node, request, ElectLeadersResponse, 2)
            assert answer.error_code == ErrorCode.NONE
            leaders = [partition.leader for partition in node.image.topics["a"].partitions]
            assert leaders == [1] * RECORDS_MAX + [-1]


class TestSettings:
    @pytest.mark.parametrize(
        ("kind", "name", "code", "text"),
        [
            (4, "1", ErrorCode.NONE, None),
            (4, "9", ErrorCode.BROKER_ID_NOT_REGISTERED, "No node with id 9 found."),
            (99, "1", ErrorCode.UNSUPPORTED_VERSION, "Unknown resource type 99."),
        ],
    )
    async def test_what_the_controller_itself_answers(
        self, kind: int, name: str, code: ErrorCode, text: str | None
    ) -> None:
        change = AlterableConfig(name="num.io.threads", value="9")
        request = IncrementalAlterConfigsRequest(
            resources=[AlterConfigsResource(resource_type=kind, resource_name=name, configs=[change])]
        )
        async with started() as node:
            (answer,) = (await ask(node, request, IncrementalAlterConfigsResponse, 1)).responses
            assert (answer.error_code, answer.error_message) == (code, text)

    async def test_what_only_brokers_mind(self) -> None:
        """A name that comes twice, and a value that is none; and what both mind in words of their own."""

        def resource(kind: int, *values: str | None) -> AlterConfigsResource:
            changes = [AlterableConfig(name="retention.ms", value=value) for value in values]
            return AlterConfigsResource(resource_type=kind, resource_name="a", configs=changes)

        async with started() as node:
            await make(node, "a", 1)
            for values, left in (
                (("5", "6"), {"retention.ms": "6"}),
                (("7", "6"), {"retention.ms": "6"}),
                ((None,), {}),
            ):
                request = IncrementalAlterConfigsRequest(resources=[resource(2, *values)])
                (answer,) = (await ask(node, request, IncrementalAlterConfigsResponse, 1)).responses
                assert answer.error_code == ErrorCode.NONE
                assert node.image.topic_config("a") == left
            twice = IncrementalAlterConfigsRequest(resources=[resource(2, "7"), resource(2, "8")])
            answers = (await ask(node, twice, IncrementalAlterConfigsResponse, 1)).responses
            assert {(each.error_code, each.error_message) for each in answers} == {
                (ErrorCode.INVALID_REQUEST, "Duplicate resource.")
            }
            logger = AlterConfigsRequest(resources=[LegacyResource(resource_type=8, resource_name="1")])
            (answer,) = (await ask(node, logger, AlterConfigsResponse, 2)).responses
            assert answer.error_message == "Unexpected resource type BROKER_LOGGER."


class TestWhereAnotherNodeIsTheController:
    async def test_everything_is_refused(self) -> None:
        async with started() as node:
            second = OtherBroker(node, 2)
            await second.come()
            await make(node, "a", 2)
            node.controller.deactivate()
            assert (await second.register()).error_code == ErrorCode.NOT_CONTROLLER
            assert (await second.beat(offset=FAR_AHEAD)).error_code == ErrorCode.NOT_CONTROLLER
            assert (await second.propose("a", [2])).error_code == ErrorCode.NOT_CONTROLLER
            for request, answer in (
                (AllocateProducerIdsRequest(), AllocateProducerIdsResponse),
                (AssignReplicasToDirsRequest(), AssignReplicasToDirsResponse),
                (ControllerRegistrationRequest(), ControllerRegistrationResponse),
                (TestEnvelope.wrapped(TestEnvelope.CREATION, 7), EnvelopeResponse),
            ):
                refused = await ask(node, request, answer)
                assert refused.error_code == ErrorCode.NOT_CONTROLLER

    @pytest.mark.parametrize(
        ("request_", "version"),
        [
            (TestEnvelope.CREATION, 7),
            (DeleteTopicsRequest(topics=[DeleteTopicState(name="a")], timeout_ms=1000), 6),
            (CreatePartitionsRequest(topics=[CreatePartitionsTopic(name="a", count=3)], timeout_ms=1000), 3),
            (
                ElectLeadersRequest(
                    topic_partitions=[TopicPartitions(topic="a", partitions=[0])], timeout_ms=1000
                ),
                2,
            ),
            (
                AlterPartitionReassignmentsRequest(
                    topics=[
                        ReassignableTopic(
                            name="a", partitions=[ReassignablePartition(partition_index=0, replicas=[1])]
                        )
                    ],
                    timeout_ms=1000,
                ),
                1,
            ),
            (
                IncrementalAlterConfigsRequest(
                    resources=[
                        AlterConfigsResource(
                            resource_type=2,
                            resource_name="a",
                            configs=[AlterableConfig(name="retention.ms", value="1")],
                        )
                    ]
                ),
                1,
            ),
            (
                UpdateFeaturesRequest(
                    feature_updates=[FeatureUpdateKey(feature="share.version", max_version_level=1)],
                    timeout_ms=1000,
                ),
                2,
            ),
            (UnregisterBrokerRequest(broker_id=2), 0),
            (UnregisterControllerRequest(controller_id=2), 0),
        ],
        ids=lambda value: type(value).__name__ if isinstance(value, Message) else str(value),
    )
    async def test_what_clients_want_is_refused(self, request_: Message, version: int) -> None:
        async with started() as node:
            await make(node, "a", 1)
            node.controller.deactivate()
            module = import_module(type(request_).__module__)
            answer_type = getattr(module, type(request_).__name__.replace("Request", "Response"))
            answer = await ask(node, request_, answer_type, version)
            assert ErrorCode.NOT_CONTROLLER in set(codes_in(answer))


def codes_in(answer: Struct) -> Iterator[int]:
    """Every error code, on all levels."""
    for field in answer.declared_fields:
        value = getattr(answer, field.name)
        if field.name == "error_code":
            yield value
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, Struct):
                yield from codes_in(each)
