"""Whether a node that wants to lead the metadata quorum gets this node's vote.  Pure."""

from typing import Final, NamedTuple

from broker.raft.replicas import ReplicaKey
from protocol.uuids import ZERO_UUID

NOBODY: Final = -1


class Candidate(NamedTuple):
    """A node that asks for a vote."""

    key: ReplicaKey
    last_epoch: int
    """Of the last record of its log."""
    end_offset: int
    is_only_asking: bool
    """It has begun no epoch, and wants to know first whether it would win one (KIP-996)."""


class Voter(NamedTuple):
    """The node that is asked, in the epoch of the question."""

    leads: bool
    leader_id: int
    """-1 if nobody is known to lead."""
    hears_leader: bool
    """Whether the leader has answered in this epoch, and not too long ago."""
    voted: ReplicaKey
    """Who has its vote in this epoch; an id of -1 if nobody has."""
    last_epoch: int
    end_offset: int


def may_grant(voter: Voter, candidate: Candidate) -> bool:
    """Whether the vote is granted; of a real one a note must be on the device before it is told."""
    is_up_to_date = (candidate.last_epoch, candidate.end_offset) >= (voter.last_epoch, voter.end_offset)
    if voter.leads:
        return False
    if candidate.is_only_asking:
        return is_up_to_date and not (voter.leader_id != NOBODY and voter.hears_leader)
    if voter.leader_id != NOBODY:
        return False
    if voter.voted.id != NOBODY:
        return voter.voted.id == candidate.key.id and voter.voted.directory_id in (
            ZERO_UUID,
            candidate.key.directory_id,
        )
    return is_up_to_date
