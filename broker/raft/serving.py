"""What a node says of the metadata quorum when another asks: who leads, and from where a copy can go on."""

from typing import TYPE_CHECKING, Final, NamedTuple

from broker.metadata.topic_names import CLUSTER_METADATA
from broker.raft.voters import VoterEndpoint
from protocol.error_codes import ErrorCode

if TYPE_CHECKING:
    from broker.network.call import Address
    from broker.raft.log import MetadataLog
    from broker.raft.service import RaftService
    from broker.raft.snapshots import SnapshotId
    from broker.services import Services

METADATA_PARTITION: Final = 0

NOBODY: Final = -1


class Standing(NamedTuple):
    """How this node stands in the quorum at the moment of a request."""

    epoch: int
    leader_id: int
    """-1 if it is not known who leads."""
    endpoints: tuple[VoterEndpoint, ...]
    """The leader's, as far as they are known."""
    log: "MetadataLog"
    """This node's own."""
    raft: "RaftService | None"
    """None if another node leads."""

    def address(self, listener: str) -> "Address | None":
        """Where the leader is reached by the listener of that name."""
        from broker.network.call import Address

        for endpoint in self.endpoints:
            if endpoint.name.upper() == listener.upper():
                return Address(endpoint.host, endpoint.port)
        return None

    def find_fault(self, epoch: int) -> ErrorCode | None:
        """Why who believes in ``epoch`` cannot be answered as by a leader."""
        if epoch < self.epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        if epoch > self.epoch:
            return ErrorCode.UNKNOWN_LEADER_EPOCH
        if self.raft is None:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return None


def standing(services: "Services") -> Standing:
    """How this node stands now."""
    quorum = services.quorum
    if quorum.raft is not None:
        endpoints = quorum.endpoints
    else:
        voter = next((voter for voter in quorum.voters if voter.id == quorum.leader_id), None)
        endpoints = () if voter is None else voter.endpoints
        address = quorum.leader_address
        if not endpoints and address is not None:
            name = services.config.controller_listener_names[0]
            endpoints = (VoterEndpoint(name, address.host, address.port),)
    return Standing(quorum.epoch, quorum.leader_id, endpoints, quorum.log, quorum.raft)


def is_this_cluster(services: "Services", cluster_id: str | None) -> bool:
    """Whether a request is for this cluster; it need not say for which."""
    return cluster_id is None or cluster_id == services.cluster_id


def is_metadata(topic: str, partition: int) -> bool:
    return topic == CLUSTER_METADATA and partition == METADATA_PARTITION


class Place(NamedTuple):
    """Whether a copy of the log can go on where it ends; at most one of the two is there if not."""

    snapshot: "SnapshotId | None" = None
    """It must begin anew with this snapshot."""
    diverging: tuple[int, int] | None = None
    """It must be cut: what it holds behind the end of this epoch, at this offset, is not in this log."""


GOES_ON: Final = Place()


def judge_place(log: "MetadataLog", snapshots: "list[SnapshotId]", offset: int, last_epoch: int) -> Place:
    """Whether a copy that ends at ``offset``, with a record of ``last_epoch``, is a beginning of this log.

    ``snapshots`` are all but the bootstrap one, oldest first.
    """
    log_start = log.log.log_start
    if offset == 0 and snapshots:
        return Place(snapshot=snapshots[-1])  # sooner there than by the records before it
    if offset == 0 and log_start == 0:
        return GOES_ON
    if snapshots:
        oldest = snapshots[0]
        if (
            offset < log_start
            or (offset == log_start and last_epoch != oldest.epoch)
            or last_epoch < oldest.epoch
        ):
            return Place(snapshot=snapshots[-1])
    epoch, end_offset = log.log.end_offset_for_epoch(last_epoch)
    if epoch < 0:  # an epoch that this log never had
        epoch, end_offset = last_epoch_of(log, snapshots), log.end_offset
    elif snapshots and epoch == last_epoch and end_offset == snapshots[0].end_offset:
        # The epoch ends where the log begins: only the snapshot knows which one that was.
        epoch = snapshots[0].epoch
    if epoch != last_epoch or end_offset < offset:
        return Place(diverging=(epoch, end_offset))
    return GOES_ON


def last_epoch_of(log: "MetadataLog", snapshots: "list[SnapshotId]") -> int:
    """The epoch of the last record, wherever it is."""
    if log.log.leader_epochs.latest >= 0:
        return log.log.leader_epochs.latest
    return snapshots[-1].epoch if snapshots else 0
