"""Vote, BeginQuorumEpoch and EndQuorumEpoch, as a node that leads alone answers them."""

from typing import Any

import pytest

from broker.raft.quorum import EPOCH_MAX
from protocol.error_codes import ErrorCode
from protocol.messages.begin_quorum_epoch import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochRequestPartitionData,
    BeginQuorumEpochRequestTopicData,
    BeginQuorumEpochResponse,
    LeaderEndpoint,
)
from protocol.messages.end_quorum_epoch import (
    EndQuorumEpochRequest,
    EndQuorumEpochRequestPartitionData,
    EndQuorumEpochRequestTopicData,
    EndQuorumEpochResponse,
)
from protocol.messages.vote import (
    VoteRequest,
    VoteRequestPartitionData,
    VoteRequestTopicData,
    VoteResponse,
)
from storage.node_files import read_quorum_state
from tests.broker.controller.node import CLUSTER_ID, CONTROLLER, METADATA, NODE_ID, ControllerNode

TOPIC = "__cluster_metadata"
OTHER = b"\x11" * 16


@pytest.fixture
def node() -> ControllerNode:
    node = ControllerNode()
    node.start()
    return node


async def vote(node: ControllerNode, **wanted: Any) -> Any:
    partition = VoteRequestPartitionData(
        replica_epoch=wanted.get("epoch", 1),
        replica_id=wanted.get("replica_id", 2),
        replica_directory_id=OTHER,
        voter_directory_id=wanted.get("directory_id", node.services.quorum.directory_id),
        last_offset_epoch=wanted.get("last_epoch", 0),
        last_offset=wanted.get("last_offset", 1000),
        pre_vote=wanted.get("pre_vote", False),
    )
    request = VoteRequest(
        cluster_id=wanted.get("cluster_id", CLUSTER_ID),
        voter_id=wanted.get("voter_id", NODE_ID),
        topics=[VoteRequestTopicData(topic_name=wanted.get("topic", TOPIC), partitions=[partition])],
    )
    return await node.ask(request, VoteResponse, 2, listener=CONTROLLER.name)


async def begin(node: ControllerNode, epoch: int, leader_id: int = 2, voter_id: int = NODE_ID) -> Any:
    partition = BeginQuorumEpochRequestPartitionData(leader_id=leader_id, leader_epoch=epoch)
    request = BeginQuorumEpochRequest(
        cluster_id=CLUSTER_ID,
        voter_id=voter_id,
        topics=[BeginQuorumEpochRequestTopicData(topic_name=TOPIC, partitions=[partition])],
        leader_endpoints=[LeaderEndpoint(name="CONTROLLER", host="elsewhere", port=7)],
    )
    return await node.ask(request, BeginQuorumEpochResponse, 1, listener=CONTROLLER.name)


async def end(node: ControllerNode, epoch: int, leader_id: int = 2) -> Any:
    partition = EndQuorumEpochRequestPartitionData(leader_id=leader_id, leader_epoch=epoch)
    request = EndQuorumEpochRequest(
        cluster_id=CLUSTER_ID,
        topics=[EndQuorumEpochRequestTopicData(topic_name=TOPIC, partitions=[partition])],
    )
    return await node.ask(request, EndQuorumEpochResponse, 1, listener=CONTROLLER.name)


def told(answer: Any) -> Any:
    return answer.topics[0].partitions[0]


class TestVote:
    async def test_a_leader_keeps_its_vote(self, node: ControllerNode) -> None:
        answer = await vote(node)
        assert (told(answer).error_code, told(answer).vote_granted) == (ErrorCode.NONE, False)
        assert (told(answer).leader_id, told(answer).leader_epoch) == (NODE_ID, 1)
        assert [(at.node_id, at.host, at.port) for at in answer.node_endpoints] == [
            (NODE_ID, CONTROLLER.host, CONTROLLER.port)
        ]

    @pytest.mark.parametrize("pre_vote", [False, True])
    async def test_who_votes_alone_is_not_impressed_by_a_later_epoch(
        self, node: ControllerNode, pre_vote: bool
    ) -> None:
        answer = await vote(node, epoch=9, last_epoch=8, pre_vote=pre_vote)
        assert not told(answer).vote_granted
        assert told(answer).leader_epoch == 1
        assert node.controller.is_active

    @pytest.mark.parametrize(
        ("wanted", "code"),
        [
            ({"cluster_id": "x"}, ErrorCode.INCONSISTENT_CLUSTER_ID),
            ({"topic": "t"}, ErrorCode.INVALID_REQUEST),
        ],
    )
    async def test_what_is_refused_as_a_whole(
        self, node: ControllerNode, wanted: dict[str, Any], code: ErrorCode
    ) -> None:
        answer = await vote(node, **wanted)
        assert (answer.error_code, answer.topics) == (code, [])

    @pytest.mark.parametrize(
        ("wanted", "code"),
        [
            ({"last_offset": -1}, ErrorCode.INVALID_REQUEST),
            ({"last_epoch": -1}, ErrorCode.INVALID_REQUEST),
            ({"last_epoch": 1}, ErrorCode.INVALID_REQUEST),
            ({"last_epoch": 2, "pre_vote": True}, ErrorCode.INVALID_REQUEST),
            ({"last_epoch": 1, "pre_vote": True}, ErrorCode.NONE),
            ({"replica_id": -1}, ErrorCode.INVALID_REQUEST),
            ({"epoch": EPOCH_MAX + 1}, ErrorCode.INVALID_REQUEST),
            ({"epoch": EPOCH_MAX + 1, "pre_vote": True}, ErrorCode.INVALID_REQUEST),
            ({"epoch": 0, "last_epoch": -1}, ErrorCode.INVALID_REQUEST),
            ({"epoch": 0, "last_epoch": 0, "pre_vote": True}, ErrorCode.FENCED_LEADER_EPOCH),
            ({"voter_id": 3}, ErrorCode.INVALID_VOTER_KEY),
            ({"directory_id": OTHER}, ErrorCode.INVALID_VOTER_KEY),
            ({"voter_id": -1, "directory_id": OTHER}, ErrorCode.NONE),
        ],
    )
    async def test_what_is_refused(
        self, node: ControllerNode, wanted: dict[str, Any], code: ErrorCode
    ) -> None:
        assert told(await vote(node, **wanted)).error_code == code

    async def test_who_does_not_lead_gives_one_and_remembers_it(self, node: ControllerNode) -> None:
        node.services.quorum.resign()
        assert told(await vote(node, last_epoch=1, pre_vote=True)).vote_granted
        assert not told(await vote(node)).vote_granted, "it has led in this epoch"
        answer = await vote(node, epoch=2, last_epoch=1)
        assert told(answer).vote_granted
        assert (told(answer).leader_id, told(answer).leader_epoch) == (-1, 2)
        state = read_quorum_state(node.file_system, METADATA)
        assert state is not None
        assert (state.leader_epoch, state.leader_id) == (2, -1)
        assert (state.voted_id, state.voted_directory_id) == (2, OTHER)
        assert told(await vote(node, epoch=2, last_epoch=1)).vote_granted, "the same one again"
        assert not told(await vote(node, epoch=2, last_epoch=1, replica_id=3)).vote_granted
        assert not told(await vote(node, epoch=3, last_epoch=1, last_offset=1)).vote_granted
        assert node.services.quorum.epoch == 3


class TestBeginAndEnd:
    @pytest.mark.parametrize("ask", [begin, end])
    async def test_an_epoch_that_is_over(self, node: ControllerNode, ask: Any) -> None:
        answer = await ask(node, 0)
        assert told(answer).error_code == ErrorCode.FENCED_LEADER_EPOCH
        assert (told(answer).leader_id, told(answer).leader_epoch) == (NODE_ID, 1)

    async def test_a_second_leader_of_one_epoch(self, node: ControllerNode) -> None:
        assert told(await begin(node, 1)).error_code == ErrorCode.INVALID_REQUEST
        assert node.controller.is_active

    async def test_a_later_leader_is_believed(self, node: ControllerNode) -> None:
        answer = await begin(node, 2)
        assert told(answer).error_code == ErrorCode.NONE
        assert (told(answer).leader_id, told(answer).leader_epoch) == (2, 2)
        assert not node.controller.is_active
        assert str(node.services.quorum.leader_address) == "elsewhere:7"
        assert answer.node_endpoints[0].host == "elsewhere"

    @pytest.mark.parametrize("ask", [begin, end])
    async def test_an_epoch_that_leaves_no_room_for_later_ones_is_not_believed(
        self, node: ControllerNode, ask: Any
    ) -> None:
        answer = await ask(node, EPOCH_MAX + 1)
        assert told(answer).error_code == ErrorCode.INVALID_REQUEST
        assert (told(answer).leader_id, told(answer).leader_epoch) == (NODE_ID, 1)
        assert node.controller.is_active

    async def test_one_that_means_somebody_else(self, node: ControllerNode) -> None:
        assert told(await begin(node, 1, NODE_ID, voter_id=3)).error_code == ErrorCode.INVALID_VOTER_KEY

    async def test_an_end_makes_a_voter_hurry(self, node: ControllerNode) -> None:
        await begin(node, 2)
        before = node.services.quorum.patience_ends
        assert told(await end(node, 2)).error_code == ErrorCode.NONE
        assert node.services.quorum.patience_ends < before
