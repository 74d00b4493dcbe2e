"""What other controllers ask of this node about who leads: votes, beginnings and ends of epochs.

Whatever they say of a newer epoch this node believes, and leads no longer if it did; but one that votes alone
is not impressed by candidates, none of whom can win without it.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from broker.raft.quorum import EPOCH_MAX
from broker.raft.replicas import ReplicaKey
from broker.raft.serving import Standing, is_metadata, is_this_cluster, standing
from broker.raft.votes import Candidate, Voter, may_grant
from protocol.error_codes import ErrorCode
from protocol.uuids import ZERO_UUID

if TYPE_CHECKING:
    from broker.network.call import Address, Call
    from broker.raft.quorum import Quorum
    from broker.services import Services

SOMEBODY: Final = 0
"""The lowest id that a node has."""


class Reply(NamedTuple):
    """What every one of these answers says of the partition."""

    error_code: int
    leader_id: int
    leader_epoch: int
    address: "Address | None"
    """The leader's, by the listener through which the request came."""
    vote_granted: bool = False


def find_partition(topics: Sequence[Any]) -> Any:
    """What a request says of the metadata log; None if it is about anything else as well, or instead."""
    if len(topics) != 1 or len(topics[0].partitions) != 1:
        return None
    (partition,) = topics[0].partitions
    return partition if is_metadata(topics[0].topic_name, partition.partition_index) else None


def find_top_fault(services: "Services", cluster_id: str | None, topics: Sequence[Any]) -> ErrorCode | None:
    """Why a request cannot be answered at all."""
    if not is_this_cluster(services, cluster_id):
        return ErrorCode.INCONSISTENT_CLUSTER_ID
    if find_partition(topics) is None:
        return ErrorCode.INVALID_REQUEST
    return None


def vote(call: "Call", asked: Any, *, voter_id: int) -> Reply:
    """Vote (52): ``asked`` is the request's partition.  Raises DiskFailure."""
    quorum = call.services.quorum
    epoch = asked.replica_epoch
    is_illegal = asked.last_offset_epoch > epoch if asked.pre_vote else asked.last_offset_epoch >= epoch
    if asked.last_offset < 0 or asked.last_offset_epoch < 0 or is_illegal:
        return _reply(call, ErrorCode.INVALID_REQUEST)
    fault = _find_fault(quorum, asked.replica_id, epoch)
    if fault is not None:
        return _reply(call, fault)
    if epoch > quorum.epoch:
        if quorum.raft is not None and quorum.raft.replicas.is_alone:
            return _reply(call, ErrorCode.NONE)
        quorum.become_unattached(epoch)
    if not _is_for_us(call.services, voter_id, asked.voter_directory_id):
        return _reply(call, ErrorCode.INVALID_VOTER_KEY)
    candidate = Candidate(
        ReplicaKey(asked.replica_id, asked.replica_directory_id),
        asked.last_offset_epoch,
        asked.last_offset,
        asked.pre_vote,
    )
    granted = may_grant(_voter(quorum), candidate)
    if granted and not asked.pre_vote:
        quorum.vote(epoch, candidate.key.id, candidate.key.directory_id)
    return _reply(call, ErrorCode.NONE, vote_granted=granted)


def begin_epoch(call: "Call", asked: Any, endpoints: Sequence[Any], *, voter_id: int) -> Reply:
    """BeginQuorumEpoch (53): somebody leads.  Raises DiskFailure."""
    fault = _heed_leader(call, asked, endpoints)
    if fault is None and not _is_for_us(call.services, voter_id, asked.voter_directory_id):
        fault = ErrorCode.INVALID_VOTER_KEY
    return _reply(call, fault or ErrorCode.NONE)


def end_epoch(call: "Call", asked: Any, endpoints: Sequence[Any], preferred: Sequence[ReplicaKey]) -> Reply:
    """EndQuorumEpoch (54): who leads does so no longer, and would like one of ``preferred`` to be next.

    Raises DiskFailure.
    """
    fault = _heed_leader(call, asked, endpoints)
    if fault is not None:
        return _reply(call, fault)
    quorum = call.services.quorum
    if not quorum.is_leader and quorum.leader_id == asked.leader_id:
        key = ReplicaKey(call.services.node_id, quorum.directory_id)
        backoff_max_ms = call.services.config.get("controller.quorum.election.backoff.max.ms")
        quorum.hurry(election_backoff_ms(key, preferred, backoff_max_ms) / 1000)
    return _reply(call, ErrorCode.NONE)


def election_backoff_ms(key: ReplicaKey, preferred: Sequence[ReplicaKey], backoff_max_ms: int) -> int:
    """How long a node leaves others the first word after a leader has resigned: the first one not at all."""
    places = [
        place
        for place, wanted in enumerate(preferred)
        if wanted.id == key.id and wanted.directory_id in (ZERO_UUID, key.directory_id)
    ]
    if not places:
        return backoff_max_ms
    if places[0] == 0:
        return 0
    base_ms = backoff_max_ms >> (len(preferred) - 1)
    return min(backoff_max_ms, base_ms << (places[0] - 1))


def _heed_leader(call: "Call", asked: Any, endpoints: Sequence[Any]) -> ErrorCode | None:
    """Follow who says that it leads; return why not, if this node does not."""
    from broker.network.call import Address

    quorum = call.services.quorum
    fault = _find_fault(quorum, asked.leader_id, asked.leader_epoch)
    if fault is not None:
        return fault
    wanted = call.services.config.controller_listener_names[0].upper()
    address = next(
        (Address(each.host, each.port) for each in endpoints if each.name.upper() == wanted),
        None,
    )
    if not quorum.become_follower(asked.leader_epoch, asked.leader_id, address):
        return ErrorCode.INVALID_REQUEST  # a second leader of one epoch: Kafka stops
    return None


def _find_fault(quorum: "Quorum", node_id: int, epoch: int) -> ErrorCode | None:
    if epoch < quorum.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if node_id < SOMEBODY or epoch > EPOCH_MAX:
        return ErrorCode.INVALID_REQUEST
    return None


def _is_for_us(services: "Services", voter_id: int, directory_id: bytes) -> bool:
    """Whether the node that is meant is this one; a request need not say which it means."""
    if voter_id < SOMEBODY:
        return True
    return voter_id == services.node_id and directory_id in (ZERO_UUID, services.quorum.directory_id)


def _voter(quorum: "Quorum") -> Voter:
    return Voter(
        leads=quorum.is_leader,
        leader_id=quorum.leader_id,
        hears_leader=quorum.hears_leader,
        voted=ReplicaKey(quorum.voted_id, quorum.voted_directory_id),
        last_epoch=quorum.log.last_epoch,
        end_offset=quorum.log.end_offset,
    )


def _reply(call: "Call", error_code: int, *, vote_granted: bool = False) -> Reply:
    now: Standing = standing(call.services)
    return Reply(error_code, now.leader_id, now.epoch, now.address(call.listener.name), vote_granted)
