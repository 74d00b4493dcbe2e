"""FindCoordinator, where the transcript does not reach: a cluster without the topic, other kinds of keys."""

import pytest
import trio.testing

from broker.apis.find_coordinator import TOPIC_WAIT_SECONDS, error_response
from broker.metadata.topic_names import GROUP_OFFSETS, TRANSACTION_STATE
from broker.network.waiting import Waiting
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from tests.broker.groups.group_broker import NODE_ID, as_read, group_broker


async def test_the_first_client_waits_for_the_topic() -> None:
    async with group_broker() as broker:
        broker.topic_maker.held = []
        waiting = broker.begin(FindCoordinatorRequest(key="g"), 3)
        assert isinstance(waiting, Waiting)
        assert not waiting.is_answered
        (make,) = broker.topic_maker.held
        make()
        found = as_read(waiting, FindCoordinatorResponse, 3)
        assert (found.error_code, found.node_id, found.host) == (0, NODE_ID, "broker1.example")


@pytest.mark.parametrize("version", [0, 1, 4])
async def test_when_the_topic_cannot_be_made_there_is_no_coordinator(version: int) -> None:
    async with group_broker() as broker:
        broker.topic_maker.refusal = KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR)
        request = (
            FindCoordinatorRequest(coordinator_keys=["g"])
            if version == 4
            else FindCoordinatorRequest(key="g")
        )
        found = broker.ask(request, FindCoordinatorResponse, version)
        answer = found.coordinators[0] if version == 4 else found
        assert answer.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert (answer.node_id, answer.host, answer.port) == (-1, "", -1)
        assert found.error_message == {0: "", 1: "The coordinator is not available.", 4: ""}[version]


async def test_it_does_not_wait_for_ever(mock_clock: trio.testing.MockClock) -> None:
    async with group_broker() as broker:
        broker.topic_maker.held = []
        waiting = broker.begin(FindCoordinatorRequest(key="g"), 3)
        assert waiting.deadline == trio.current_time() + TOPIC_WAIT_SECONDS
        waiting.expire()
        found = as_read(waiting, FindCoordinatorResponse, 3)
        assert found.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        broker.topic_maker.held[0]()  # too late for this answer


async def test_a_coordinator_that_is_led_by_nobody_is_not_available() -> None:
    async with group_broker() as broker:
        topic_id = broker.make_offsets_topic()
        for partition in range(3):
            broker.broker.change_leader(topic_id, -1, partition)
        found = broker.ask(FindCoordinatorRequest(key="g"), FindCoordinatorResponse, 3)
        assert found.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE


async def test_another_broker_may_be_the_coordinator() -> None:
    async with group_broker() as broker:
        broker.broker.register(2)
        topic_id = broker.make_offsets_topic()
        for partition in range(3):
            broker.broker.change_leader(topic_id, 2, partition)
        found = broker.ask(FindCoordinatorRequest(key="g"), FindCoordinatorResponse, 3)
        assert (found.node_id, found.host) == (2, "broker2.example")


@pytest.mark.parametrize("version", range(1, 7))
async def test_the_first_transaction_waits_for_its_topic(version: int) -> None:
    async with group_broker() as broker:
        request = FindCoordinatorRequest(key_type=1, coordinator_keys=["t"])
        if version < 4:
            request = FindCoordinatorRequest(key_type=1, key="t")
        assert TRANSACTION_STATE not in broker.image.topics
        found = broker.ask(request, FindCoordinatorResponse, version)
        answer = found.coordinators[0] if version >= 4 else found
        assert (answer.error_code, answer.node_id) == (0, NODE_ID)
        assert TRANSACTION_STATE in broker.image.topics
        assert GROUP_OFFSETS not in broker.image.topics


@pytest.mark.parametrize("version", range(1, 6))
async def test_share_partitions_are_not_known_to_old_versions(version: int) -> None:
    async with group_broker() as broker:
        request = FindCoordinatorRequest(key_type=2, coordinator_keys=["g:AAAAAAAAAAAAAAAAAAAAAQ:0"])
        if version < 4:
            request = FindCoordinatorRequest(key_type=2, key="g")
        found = broker.ask(request, FindCoordinatorResponse, version)
        answer = found.coordinators[0] if version >= 4 else found
        assert answer.error_code == ErrorCode.INVALID_REQUEST
        assert bool(answer.error_message) == (version < 4)


def test_an_error_of_the_whole_request() -> None:
    code = ErrorCode.UNKNOWN_SERVER_ERROR
    old = error_response(FindCoordinatorRequest(key="g"), code)
    assert (old.error_code, old.node_id) == (code, -1)
    new = error_response(FindCoordinatorRequest(coordinator_keys=["a", "b"]), code)
    assert [(entry.key, entry.error_code) for entry in new.coordinators] == [("a", code), ("b", code)]
