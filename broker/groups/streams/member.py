"""One member of a streams group (KIP-1071): an immutable value that records describe."""

from collections.abc import Iterable, Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Final, NamedTuple

from broker.groups.java_order import text_as_java_compares
from broker.groups.streams.tasks import NOTHING_OWNED, ActiveTasks, OwnedTasks, Tasks, in_order, told_tasks
from protocol.stored.group_records import (
    Endpoint,
    KeyValue,
    StreamsGroupMemberMetadataValue,
)
from protocol.stored.group_records import (
    StreamsGroupCurrentMemberAssignmentTaskIds as StoredTaskIds,
)
from protocol.stored.group_records import (
    StreamsGroupCurrentMemberAssignmentValue as StoredAssignment,
)

JOINING_EPOCH: Final = 0
LEAVING_EPOCH: Final = -1
STATIC_LEAVING_EPOCH: Final = -2
"""A static member goes away for a while: its place is kept until its session ends."""


class StreamsMemberState(IntEnum):
    """How far a member has come on the way to its target; the numbers are those of the records."""

    STABLE = 1
    """It has all that it should."""
    UNREVOKED_TASKS = 2
    """It has to give tasks up, and to say so, before it may go on."""
    UNRELEASED_TASKS = 3
    """Others have not yet given up what it should get."""
    UNKNOWN = 127
    """A newer Kafka wrote something else."""


class UserEndpoint(NamedTuple):
    """Where a member answers questions about the state that it keeps (interactive queries)."""

    host: str
    port: int


class StreamsMember(NamedTuple):
    """Who it is, what it runs, and which tasks it has.

    ``member_epoch`` is the last one that the member was told, ``previous_member_epoch`` the one before: an
    answer may have been lost.  ``revoking`` are tasks that it must give up and still has.  Members with the
    same ``process_id`` share a disk, so that none of them may have a task that another has.
    """

    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    topology_epoch: int = -1
    process_id: str = ""
    endpoint: UserEndpoint | None = None
    client_tags: Mapping[str, str] = MappingProxyType({})
    member_epoch: int = 0
    previous_member_epoch: int = 0
    state: StreamsMemberState = StreamsMemberState.STABLE
    assigned: OwnedTasks = NOTHING_OWNED
    revoking: OwnedTasks = NOTHING_OWNED

    def is_reconciled_to(self, target_epoch: int) -> bool:
        return self.state is StreamsMemberState.STABLE and self.member_epoch == target_epoch

    # Records

    def with_metadata(self, value: StreamsGroupMemberMetadataValue) -> "StreamsMember":
        """As a record describes it."""
        endpoint = value.user_endpoint
        return self._replace(
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            topology_epoch=value.topology_epoch,
            process_id=value.process_id,
            endpoint=None if endpoint is None else UserEndpoint(endpoint.host, endpoint.port),
            client_tags={tag.key: tag.value for tag in value.client_tags},
        )

    def metadata(self) -> StreamsGroupMemberMetadataValue:
        """The record that describes who it is and what it runs."""
        return StreamsGroupMemberMetadataValue(
            instance_id=self.instance_id,
            rack_id=self.rack_id,
            client_id=self.client_id,
            client_host=self.client_host,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            topology_epoch=self.topology_epoch,
            process_id=self.process_id,
            user_endpoint=(
                None if self.endpoint is None else Endpoint(host=self.endpoint.host, port=self.endpoint.port)
            ),
            client_tags=[
                KeyValue(key=key, value=self.client_tags[key])
                for key in sorted(self.client_tags, key=text_as_java_compares)
            ],
        )

    def with_assignment(self, value: StoredAssignment) -> "StreamsMember":
        """With what a record says that it has."""
        known = value.state in StreamsMemberState._value2member_map_
        return self._replace(
            member_epoch=value.member_epoch,
            previous_member_epoch=value.previous_member_epoch,
            state=StreamsMemberState(value.state) if known else StreamsMemberState.UNKNOWN,
            assigned=OwnedTasks(
                _read_active(value.active_tasks, value.member_epoch),
                told_tasks(value.standby_tasks),
                told_tasks(value.warmup_tasks),
            ),
            revoking=OwnedTasks(
                _read_active(value.active_tasks_pending_revocation, value.member_epoch),
                told_tasks(value.standby_tasks_pending_revocation),
                told_tasks(value.warmup_tasks_pending_revocation),
            ),
        )

    def assignment(self) -> StoredAssignment:
        """The record that describes what it has."""
        return StoredAssignment(
            member_epoch=self.member_epoch,
            previous_member_epoch=self.previous_member_epoch,
            state=self.state,
            active_tasks=_stored_active(self.assigned.active),
            standby_tasks=_stored(self.assigned.standby),
            warmup_tasks=_stored(self.assigned.warmup),
            active_tasks_pending_revocation=_stored_active(self.revoking.active),
            standby_tasks_pending_revocation=_stored(self.revoking.standby),
            warmup_tasks_pending_revocation=_stored(self.revoking.warmup),
        )


def _read_active(stored: Iterable[StoredTaskIds], member_epoch: int) -> ActiveTasks:
    active: dict[str, dict[int, int]] = {}
    for tasks in stored:
        # Brokers before 4.2 did not write epochs: the member's own is the latest that it can be.
        epochs = tasks.assignment_epochs
        if epochs is None or len(epochs) != len(tasks.partitions):
            epochs = [member_epoch] * len(tasks.partitions)
        active[tasks.subtopology_id] = dict(zip(tasks.partitions, epochs, strict=True))
    return active


def _stored_active(active: ActiveTasks) -> list[StoredTaskIds]:
    return [
        StoredTaskIds(
            subtopology_id=subtopology,
            partitions=partitions,
            assignment_epochs=[active[subtopology][partition] for partition in partitions],
        )
        for subtopology, partitions in in_order(active)
    ]


def _stored(tasks: Tasks) -> list[StoredTaskIds]:
    return [
        StoredTaskIds(subtopology_id=subtopology, partitions=partitions)
        for subtopology, partitions in in_order(tasks)
    ]
