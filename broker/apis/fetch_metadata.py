"""Fetch (1) on a controller's listener: nodes copy the metadata log from its leader (KIP-595).

Only this one partition is there, by its id.  Whoever copies reads up to the end of the log, and is told by
the high watermark how much of that is committed.
"""

from typing import Any, Final

import trio

from broker.network.call import Call
from broker.network.waiting import Waiting
from broker.raft.replicas import ReplicaKey
from broker.raft.serving import (
    GOES_ON,
    METADATA_PARTITION,
    Place,
    Standing,
    is_this_cluster,
    judge_place,
    standing,
)
from protocol.error_codes import ErrorCode
from protocol.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    SnapshotId,
)
from storage.log_directory import METADATA_TOPIC_ID

REPLICA_STATE_VERSION: Final = 15
"""The version since which the replica is told with a state (KIP-903)."""

NODE_ENDPOINTS_VERSION: Final = 17
"""The version since which the leader's address is told (KIP-853)."""


def handle(request: FetchRequest, call: Call) -> FetchResponse | Waiting[FetchResponse]:
    """Answer at once if there is anything to tell; else when there is, or after the request's patience."""
    if not is_this_cluster(call.services, request.cluster_id):
        return FetchResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
    asked = find_partition(request)
    if asked is None:
        return FetchResponse(error_code=ErrorCode.INVALID_REQUEST)
    if (
        request.max_wait_ms < 0
        or asked.fetch_offset < 0
        or not 0 <= asked.last_fetched_epoch <= asked.current_leader_epoch
    ):
        return refuse(standing(call.services), call, ErrorCode.INVALID_REQUEST)
    first = respond(request, asked, call)
    (told,) = first.responses[0].partitions
    if (
        told.error_code
        or told.records
        or request.max_wait_ms == 0
        or told.diverging_epoch.epoch >= 0
        or told.snapshot_id.end_offset >= 0
        or asked.high_watermark < told.high_watermark  # KIP-1166
    ):
        return first
    raft = call.services.quorum.raft
    assert raft is not None, "it has just answered without an error"

    def expire() -> None:
        raft.parked.pop(wake, None)
        waiting.answer(first)

    def wake() -> None:
        waiting.answer_with(lambda: respond(request, asked, call))

    deadline = trio.current_time() + request.max_wait_ms / 1000
    waiting: Waiting[FetchResponse] = Waiting(deadline, expire, droppable=True)
    raft.parked[wake] = None
    waiting.on_abandoned(lambda: raft.parked.pop(wake, None))
    return waiting


def find_partition(request: FetchRequest) -> FetchPartition | None:
    """What is asked for, if it is the metadata log and nothing else."""
    if len(request.topics) != 1 or request.topics[0].topic_id != METADATA_TOPIC_ID:
        return None
    partitions = request.topics[0].partitions
    if len(partitions) != 1 or partitions[0].partition != METADATA_PARTITION:
        return None
    return partitions[0]


def respond(request: FetchRequest, asked: FetchPartition, call: Call) -> FetchResponse:
    """The answer as things are now."""
    now = standing(call.services)
    fault = now.find_fault(asked.current_leader_epoch)
    if fault is not None:
        return refuse(now, call, fault)
    raft = now.raft
    assert raft is not None
    place = judge_place(raft.log, raft.snapshotting.snapshots, asked.fetch_offset, asked.last_fetched_epoch)
    records: Any = b""
    if place is GOES_ON:
        found = raft.log.log.read(asked.fetch_offset, request.max_bytes)
        if found is not None:
            records = found
        raft.note_fetch(
            ReplicaKey(replica_id_of(request, call.version), asked.replica_directory_id), asked.fetch_offset
        )
    return build(now, call, place=place, records=records)


def replica_id_of(request: FetchRequest, version: int) -> int:
    """Negative for who keeps no copy."""
    return request.replica_state.replica_id if version >= REPLICA_STATE_VERSION else request.replica_id


def refuse(now: Standing, call: Call, code: ErrorCode) -> FetchResponse:
    return build(now, call, error_code=code)


def build(
    now: Standing, call: Call, *, error_code: int = ErrorCode.NONE, place: Place = GOES_ON, records: Any = b""
) -> FetchResponse:
    """An answer about the partition; whoever is wrong about the leader learns from it who that is."""
    log = now.log.log
    data = PartitionData(
        partition_index=METADATA_PARTITION,
        error_code=error_code,
        high_watermark=-1 if error_code or now.raft is None else now.raft.high_watermark,
        log_start_offset=log.log_start,
        current_leader=LeaderIdAndEpoch(leader_id=now.leader_id, leader_epoch=now.epoch),
        records=records,
    )
    if place.diverging is not None:
        epoch, end_offset = place.diverging
        data.diverging_epoch = EpochEndOffset(epoch=epoch, end_offset=end_offset)
    if place.snapshot is not None:
        data.snapshot_id = SnapshotId(end_offset=place.snapshot.end_offset, epoch=place.snapshot.epoch)
    response = FetchResponse(
        responses=[FetchableTopicResponse(topic_id=METADATA_TOPIC_ID, partitions=[data])]
    )
    if call.version >= NODE_ENDPOINTS_VERSION:
        address = now.address(call.listener.name)
        if address is not None:
            response.node_endpoints = [
                NodeEndpoint(node_id=now.leader_id, host=address.host, port=address.port)
            ]
    return response


def error_response(request: FetchRequest, code: ErrorCode) -> FetchResponse:
    """The answer if the request fails as a whole."""
    return FetchResponse(error_code=code)
