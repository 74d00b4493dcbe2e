"""UpdateRaftVoter (82): a voter of the metadata quorum says where it listens now (KIP-853)."""

from broker.network.call import Call
from broker.raft.serving import is_this_cluster, standing
from broker.raft.voters import Voter, VoterEndpoint
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.messages.update_raft_voter import (
    CurrentLeader,
    UpdateRaftVoterRequest,
    UpdateRaftVoterResponse,
)
from protocol.uuids import ZERO_UUID


def handle(request: UpdateRaftVoterRequest, call: Call) -> UpdateRaftVoterResponse:
    """Answer without waiting for the commit, as Kafka does: whoever asks fetches, and sees it."""
    try:
        check(request, call)
        ranges = request.kraft_version_feature
        endpoints = [VoterEndpoint(each.name.upper(), each.host, each.port) for each in request.listeners]
        call.services.voter_changes.update(
            Voter(
                request.voter_id,
                request.voter_directory_id,
                tuple(endpoints),
                (ranges.min_supported_version, ranges.max_supported_version),
            )
        )
    except KafkaError as error:
        return respond(call, error.code)
    return respond(call, ErrorCode.NONE)


def check(request: UpdateRaftVoterRequest, call: Call) -> None:
    """Raise the KafkaError with which a request is refused that makes no sense here."""
    if not is_this_cluster(call.services, request.cluster_id):
        raise KafkaError(ErrorCode.INCONSISTENT_CLUSTER_ID)
    fault = standing(call.services).find_fault(request.current_leader_epoch)
    if fault is not None:
        raise KafkaError(fault)
    names = {each.name.upper() for each in request.listeners}
    ranges = request.kraft_version_feature
    if (
        request.voter_id < 0
        or request.voter_directory_id == ZERO_UUID
        or call.services.voter_changes.listener not in names
        or not 0 <= ranges.min_supported_version <= ranges.max_supported_version
    ):
        raise KafkaError(ErrorCode.INVALID_REQUEST)


def respond(call: Call, code: ErrorCode) -> UpdateRaftVoterResponse:
    now = standing(call.services)
    leader = CurrentLeader(leader_id=now.leader_id, leader_epoch=now.epoch)
    address = now.address(call.listener.name)
    if address is not None:
        leader.host, leader.port = address
    return UpdateRaftVoterResponse(error_code=code, current_leader=leader)
