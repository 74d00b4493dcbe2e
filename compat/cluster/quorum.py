"""Asking controllers, whichever kind they are, who leads and who votes, and letting voters come and go."""

from typing import Any

from compat.oracle.connection import Connection, Silence
from compat.probe import split_address
from protocol.error_codes import ErrorCode
from protocol.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse, Listener
from protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
    DescribeQuorumResponse,
    DescribeQuorumResponsePartitionData,
)
from protocol.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from protocol.schema import Message
from protocol.uuids import uuid_from_text

NOT_YET = (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_CONTROLLER)
"""Errors behind which a request may still succeed: the newcomer lags behind, or a change is not committed."""

METADATA = "__cluster_metadata"


def ask(address: str, request: Message, response: type[Message], version: int) -> Any:
    """The answer of who listens there; None if nobody does, or does not answer."""
    try:
        connection = Connection(address, "test")
    except OSError:
        return None
    try:
        frame = connection.receive(connection.send(request, version))
    finally:
        connection.close()
    start = 5 if version in response.flexible else 4
    return None if isinstance(frame, Silence) else response.decode(memoryview(frame)[start:], version)


def describe(address: str) -> DescribeQuorumResponsePartitionData | None:
    """What the controller there says of the quorum; None unless it leads."""
    topic = DescribeQuorumRequestTopicData(
        topic_name=METADATA, partitions=[DescribeQuorumRequestPartitionData()]
    )
    answer = ask(address, DescribeQuorumRequest(topics=[topic]), DescribeQuorumResponse, 2)
    if answer is None or answer.error_code or not answer.topics:
        return None
    partition: DescribeQuorumResponsePartitionData = answer.topics[0].partitions[0]
    return None if partition.error_code else partition


def leads(address: str) -> bool:
    """Whether the controller there leads, and has committed something in its epoch."""
    told = describe(address)
    return told is not None and told.high_watermark >= 0


def voters(address: str) -> list[int]:
    """Who votes, as the leader there says."""
    told = describe(address)
    return [] if told is None else [voter.replica_id for voter in told.current_voters]


def add_voter(leader: str, voter_id: int, directory_id: str, controller: str) -> bool:
    """Whether the node, whose controller listens at the last address, votes from now on."""
    host, port = split_address(controller)
    request = AddRaftVoterRequest(
        cluster_id=None,
        timeout_ms=5000,
        voter_id=voter_id,
        voter_directory_id=uuid_from_text(directory_id),
        listeners=[Listener(name="CONTROLLER", host=host, port=port)],
    )
    answer = ask(leader, request, AddRaftVoterResponse, 1)
    assert answer is None or answer.error_code in (ErrorCode.NONE, ErrorCode.DUPLICATE_VOTER, *NOT_YET), (
        answer.error_message
    )
    return answer is not None and answer.error_code in (ErrorCode.NONE, ErrorCode.DUPLICATE_VOTER)


def remove_voter(leader: str, voter_id: int, directory_id: str) -> bool:
    """Whether the node votes no longer."""
    request = RemoveRaftVoterRequest(
        cluster_id=None, voter_id=voter_id, voter_directory_id=uuid_from_text(directory_id)
    )
    answer = ask(leader, request, RemoveRaftVoterResponse, 0)
    assert answer is None or answer.error_code in (ErrorCode.NONE, *NOT_YET), answer.error_message
    return answer is not None and answer.error_code == ErrorCode.NONE
