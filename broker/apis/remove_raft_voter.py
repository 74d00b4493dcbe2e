"""RemoveRaftVoter (81): let a controller vote no longer about the metadata log (KIP-853)."""

from broker.apis.error_texts import fitting
from broker.network.call import Call
from broker.network.waiting import Waiting
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from protocol.uuids import ZERO_UUID


def handle(
    request: RemoveRaftVoterRequest, call: Call
) -> RemoveRaftVoterResponse | Waiting[RemoveRaftVoterResponse]:
    changes = call.services.voter_changes
    try:
        changes.check_cluster(request.cluster_id)
        changes.check_leader()
        if request.voter_id < 0 or request.voter_directory_id == ZERO_UUID:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Remove voter request didn't include a valid voter")
        changed = changes.remove(request.voter_id, request.voter_directory_id)
    except KafkaError as error:
        return respond(error)
    answer: Waiting[RemoveRaftVoterResponse] = Waiting(droppable=True)
    changed.notify(lambda: answer.answer(respond(changed.result())))
    return answer


def respond(error: KafkaError | None) -> RemoveRaftVoterResponse:
    if error is None:
        return RemoveRaftVoterResponse(error_message=None)
    return RemoveRaftVoterResponse(error_code=error.code, error_message=fitting(error.message))
