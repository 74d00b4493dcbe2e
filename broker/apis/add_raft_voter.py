"""AddRaftVoter (80): let another controller vote about the metadata log (KIP-853)."""

from broker.apis.error_texts import fitting
from broker.groups.java_order import in_java_order
from broker.network.call import Call
from broker.network.waiting import Waiting
from broker.raft.voter_changes import Candidate
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from protocol.uuids import ZERO_UUID


def handle(request: AddRaftVoterRequest, call: Call) -> AddRaftVoterResponse | Waiting[AddRaftVoterResponse]:
    """The request's timeout is passed over, as in Kafka, which waits as long as for any voter."""
    changes = call.services.voter_changes
    try:
        changes.check_cluster(request.cluster_id)
        changes.check_leader()
        changed = changes.add(find_candidate(request, call), waits_for_commit=request.ack_when_committed)
    except KafkaError as error:
        return respond(error)
    answer: Waiting[AddRaftVoterResponse] = Waiting(droppable=True)
    changed.notify(lambda: answer.answer(respond(changed.result())))
    return answer


def find_candidate(request: AddRaftVoterRequest, call: Call) -> Candidate:
    if request.voter_id < 0 or request.voter_directory_id == ZERO_UUID:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Add voter request didn't include a valid voter")
    endpoints = {listener.name.upper(): (listener.host, listener.port) for listener in request.listeners}
    wanted = call.services.voter_changes.listener
    if wanted not in endpoints:
        texts = [
            f"ListenerName({name})={endpoints[name][0]}/<unresolved>:{endpoints[name][1]}"
            for name in in_java_order(endpoints)
        ]
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"Add voter request didn't include the endpoint (Endpoints(endpoints={{{', '.join(texts)}}})) "
            f"for the default listener ListenerName({wanted})",
        )
    return Candidate(request.voter_id, request.voter_directory_id, endpoints)


def respond(error: KafkaError | None) -> AddRaftVoterResponse:
    if error is None:
        return AddRaftVoterResponse(error_message=None)
    return AddRaftVoterResponse(error_code=error.code, error_message=fitting(error.message))
