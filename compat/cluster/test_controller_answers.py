"""What other nodes ask a controller is answered as Apache Kafka's controller answers it."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from compat.cluster.nodes import OttlaNode, stamp
from compat.cluster.quorum import METADATA, ask, leads
from compat.oracle.kafka import kafka_node
from compat.waiting import wait_until
from protocol.error_codes import ErrorCode
from protocol.messages.begin_quorum_epoch import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochRequestPartitionData,
    BeginQuorumEpochRequestTopicData,
    BeginQuorumEpochResponse,
)
from protocol.messages.end_quorum_epoch import (
    EndQuorumEpochRequest,
    EndQuorumEpochRequestPartitionData,
    EndQuorumEpochRequestTopicData,
    EndQuorumEpochResponse,
)
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, ReplicaState
from protocol.messages.fetch_snapshot import (
    FetchSnapshotRequest,
    FetchSnapshotRequestPartitionSnapshot,
    FetchSnapshotRequestTopicSnapshot,
    FetchSnapshotResponse,
    SnapshotId,
)
from protocol.messages.update_raft_voter import (
    KRaftVersionFeature,
    Listener,
    UpdateRaftVoterRequest,
    UpdateRaftVoterResponse,
)
from protocol.messages.vote import (
    VoteRequest,
    VoteRequestPartitionData,
    VoteRequestTopicData,
    VoteResponse,
)
from protocol.uuids import ONE_UUID, uuid_from_text

pytestmark = pytest.mark.slow

OTHER = b"\x11" * 16

FAR = 1 << 40
"""An offset that no log here has."""


class Controller(NamedTuple):
    """One that is asked."""

    address: str
    cluster_id: str
    directory_id: bytes


@pytest.fixture(scope="module")
def controllers(
    kafka_jars: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Controller, Controller]]:
    """Kafka's and ours, both in their first epoch and alone."""
    folder = tmp_path_factory.mktemp("controllers")
    ottla = OttlaNode(folder / "ottla")
    ottla.start()
    try:
        with kafka_node(folder / "kafka") as kafka:
            wait_until(lambda: leads(kafka.controller), "Kafka leads")
            kafka_cluster, kafka_directory = (
                stamp(kafka.data, "cluster.id"),
                uuid_from_text(stamp(kafka.data, "directory.id")),
            )
            yield (
                Controller(kafka.controller, kafka_cluster, kafka_directory),
                Controller(ottla.controller, ottla.cluster_id, uuid_from_text(ottla.directory_id)),
            )
    finally:
        ottla.stop()


def fetch(at: Controller, *, version: int = 18, **wanted: Any) -> Any:
    asked = FetchPartition(
        partition=wanted.get("partition", 0),
        current_leader_epoch=wanted.get("epoch", 1),
        fetch_offset=wanted.get("offset", 0),
        last_fetched_epoch=wanted.get("last_epoch", 0 if version >= 12 else -1),
        replica_directory_id=OTHER,
        high_watermark=wanted.get("high_watermark", -1),
    )
    topics = [FetchTopic(topic_id=wanted.get("topic_id", ONE_UUID), partitions=[asked])]
    request = FetchRequest(
        cluster_id=wanted.get("cluster_id", at.cluster_id),
        replica_id=wanted.get("replica_id", -1) if version < 15 else -1,
        replica_state=ReplicaState(replica_id=wanted.get("replica_id", -1) if version >= 15 else -1),
        max_wait_ms=wanted.get("max_wait_ms", 0),
        max_bytes=wanted.get("max_bytes", 1 << 20),
        topics=topics * wanted.get("times", 1),
    )
    answer = ask(at.address, request, FetchResponse, version)
    if answer is None or answer.error_code or not answer.responses:
        return answer and answer.error_code
    (told,) = answer.responses[0].partitions
    diverging = told.diverging_epoch.epoch, told.diverging_epoch.end_offset not in (-1, 0)
    return (
        told.error_code,
        told.high_watermark > 0,
        told.last_stable_offset,
        told.log_start_offset,
        (told.current_leader.leader_id, told.current_leader.leader_epoch),
        diverging,
        (told.snapshot_id.epoch, told.snapshot_id.end_offset),
        told.aborted_transactions,
        told.preferred_read_replica,
        len(told.records or b"") > 0,
        [
            (node.node_id, node.host, node.rack, str(node.port) in at.address)
            for node in answer.node_endpoints
        ],
    )


def fetch_snapshot(at: Controller, *, version: int = 1, **wanted: Any) -> Any:
    asked = FetchSnapshotRequestPartitionSnapshot(
        partition=wanted.get("partition", 0),
        current_leader_epoch=wanted.get("epoch", 1),
        snapshot_id=SnapshotId(end_offset=wanted.get("end_offset", 0), epoch=wanted.get("of_epoch", 0)),
        position=wanted.get("position", 0),
    )
    topic = FetchSnapshotRequestTopicSnapshot(name=wanted.get("topic", METADATA), partitions=[asked])
    request = FetchSnapshotRequest(
        cluster_id=wanted.get("cluster_id", at.cluster_id),
        replica_id=7,
        topics=[topic] * wanted.get("times", 1),
    )
    answer = ask(at.address, request, FetchSnapshotResponse, version)
    if answer is None or answer.error_code or not answer.topics:
        return answer and (answer.error_code, len(answer.topics))
    (told,) = answer.topics[0].partitions
    return (
        answer.topics[0].name,
        told.index,
        told.error_code,
        (told.snapshot_id.end_offset, told.snapshot_id.epoch),
        (told.current_leader.leader_id, told.current_leader.leader_epoch),
        (told.size, told.position, len(told.unaligned_records or b"")),
        [(node.node_id, node.host) for node in answer.node_endpoints],
    )


def vote(at: Controller, *, version: int = 2, **wanted: Any) -> Any:
    partition = VoteRequestPartitionData(
        partition_index=wanted.get("partition", 0),
        replica_epoch=wanted.get("epoch", 1),
        replica_id=wanted.get("replica_id", 2),
        replica_directory_id=OTHER,
        voter_directory_id=wanted.get("directory_id", at.directory_id),
        last_offset_epoch=wanted.get("last_epoch", 0),
        last_offset=wanted.get("last_offset", FAR),
        pre_vote=wanted.get("pre_vote", False),
    )
    request = VoteRequest(
        cluster_id=wanted.get("cluster_id", at.cluster_id),
        voter_id=wanted.get("voter_id", 1),
        topics=[VoteRequestTopicData(topic_name=wanted.get("topic", METADATA), partitions=[partition])],
    )
    answer = ask(at.address, request, VoteResponse, version)
    return answer and (*_of_epoch(answer), *[part.vote_granted for part in _partitions(answer)])


def begin(at: Controller, *, version: int = 1, **wanted: Any) -> Any:
    partition = BeginQuorumEpochRequestPartitionData(
        voter_directory_id=wanted.get("directory_id", at.directory_id),
        leader_id=wanted.get("leader_id", 1),
        leader_epoch=wanted.get("epoch", 1),
    )
    topic = BeginQuorumEpochRequestTopicData(topic_name=wanted.get("topic", METADATA), partitions=[partition])
    request = BeginQuorumEpochRequest(
        cluster_id=wanted.get("cluster_id", at.cluster_id), voter_id=wanted.get("voter_id", 1), topics=[topic]
    )
    answer = ask(at.address, request, BeginQuorumEpochResponse, version)
    return answer and _of_epoch(answer)


def end(at: Controller, *, version: int = 1, **wanted: Any) -> Any:
    partition = EndQuorumEpochRequestPartitionData(
        leader_id=wanted.get("leader_id", 1), leader_epoch=wanted.get("epoch", 1)
    )
    topic = EndQuorumEpochRequestTopicData(topic_name=wanted.get("topic", METADATA), partitions=[partition])
    request = EndQuorumEpochRequest(cluster_id=wanted.get("cluster_id", at.cluster_id), topics=[topic])
    answer = ask(at.address, request, EndQuorumEpochResponse, version)
    return answer and _of_epoch(answer)


def _partitions(answer: Any) -> list[Any]:
    return [partition for topic in answer.topics for partition in topic.partitions]


def _of_epoch(answer: Any) -> tuple[Any, ...]:
    return (
        answer.error_code,
        [topic.topic_name for topic in answer.topics],
        [
            (part.partition_index, part.error_code, part.leader_id, part.leader_epoch)
            for part in _partitions(answer)
        ],
        [(node.node_id, node.host) for node in answer.node_endpoints],
    )


def update(at: Controller, **wanted: Any) -> Any:
    low, high = wanted.get("versions", (0, 1))
    request = UpdateRaftVoterRequest(
        cluster_id=wanted.get("cluster_id", at.cluster_id),
        current_leader_epoch=wanted.get("epoch", 1),
        voter_id=wanted.get("voter_id", 2),
        voter_directory_id=wanted.get("directory_id", OTHER),
        listeners=[
            Listener(name=name, host="127.0.0.1", port=1) for name in wanted.get("names", ["CONTROLLER"])
        ],
        kraft_version_feature=KRaftVersionFeature(min_supported_version=low, max_supported_version=high),
    )
    answer = ask(at.address, request, UpdateRaftVoterResponse, 0)
    leader = answer.current_leader
    return (
        answer.error_code,
        leader.leader_id,
        leader.leader_epoch,
        leader.host,
        str(leader.port) in at.address,
    )


@pytest.mark.parametrize(
    ("about", "wanted"),
    [
        (fetch, {}),
        *[(fetch, {"version": version, "replica_id": 7}) for version in range(4, 18)],
        (fetch, {"max_bytes": 1}),
        (fetch, {"cluster_id": "another"}),
        (fetch, {"cluster_id": None}),
        (fetch, {"topic_id": OTHER}),
        (fetch, {"partition": 1}),
        (fetch, {"times": 2}),
        (fetch, {"times": 0}),
        (fetch, {"epoch": 0}),
        (fetch, {"epoch": 7}),
        (fetch, {"epoch": 7, "last_epoch": 7}),
        (fetch, {"epoch": -1}),
        (fetch, {"offset": -1}),
        (fetch, {"last_epoch": -1}),
        (fetch, {"last_epoch": 2}),
        (fetch, {"max_wait_ms": -1}),
        (fetch, {"offset": 3, "last_epoch": 1}),
        (fetch, {"offset": 3, "last_epoch": 0}),
        (fetch, {"offset": FAR, "last_epoch": 1, "replica_id": 7}),
        (fetch, {"offset": 3, "last_epoch": 1, "replica_id": 8}),
        (fetch_snapshot, {"times": 0}),
        (fetch_snapshot, {"times": 2}),
        (fetch_snapshot, {"cluster_id": "another"}),
        *[(vote, {"version": version}) for version in range(3)],
        (vote, {"pre_vote": True}),
        (vote, {"pre_vote": True, "last_epoch": 1}),
        (vote, {"pre_vote": True, "last_epoch": 2}),
        (vote, {"last_epoch": 1}),
        (vote, {"last_epoch": -1}),
        (vote, {"last_offset": -1}),
        (vote, {"replica_id": -1}),
        (vote, {"epoch": 0, "pre_vote": True}),
        (vote, {"epoch": 0}),
        (vote, {"epoch": -1}),
        (vote, {"voter_id": 7}),
        (vote, {"voter_id": -1}),
        (vote, {"directory_id": OTHER}),
        (vote, {"directory_id": bytes(16)}),
        (vote, {"topic": "t"}),
        (vote, {"partition": 1}),
        (vote, {"cluster_id": "another"}),
        (vote, {"cluster_id": None}),
        *[(begin, {"version": version}) for version in range(2)],
        (begin, {"epoch": 0}),
        (begin, {"leader_id": -1}),
        (begin, {"voter_id": 7}),
        (begin, {"voter_id": -1}),
        (begin, {"directory_id": OTHER}),
        (begin, {"topic": "t"}),
        (begin, {"cluster_id": "another"}),
        *[(end, {"version": version}) for version in range(2)],
        (end, {"epoch": 0}),
        (end, {"leader_id": -1}),
        (end, {"topic": "t"}),
        (end, {"cluster_id": "another"}),
        (update, {}),
        (update, {"epoch": 0}),
        (update, {"epoch": 7}),
        (update, {"voter_id": -1}),
        (update, {"directory_id": bytes(16)}),
        (update, {"names": []}),
        (update, {"names": ["OTHER"]}),
        (update, {"names": ["controller"]}),
        (update, {"versions": (0, 0)}),
        (update, {"versions": (1, 0)}),
        (update, {"versions": (-1, 1)}),
        (update, {"voter_id": 1}),
        (update, {"cluster_id": "another"}),
        (update, {"cluster_id": None}),
    ],
    ids=lambda value: value.__name__ if callable(value) else ",".join(f"{k}={v}" for k, v in value.items()),
)
def test_an_answer(
    controllers: tuple[Controller, Controller], about: Callable[..., Any], wanted: dict[str, Any]
) -> None:
    kafka, ottla = controllers
    assert about(ottla, **wanted) == about(kafka, **wanted)


@pytest.mark.parametrize(
    ("wanted", "code"),
    [
        ({}, ErrorCode.SNAPSHOT_NOT_FOUND),
        ({"version": 0}, ErrorCode.SNAPSHOT_NOT_FOUND),
        ({"end_offset": 5, "of_epoch": 1}, ErrorCode.SNAPSHOT_NOT_FOUND),
        ({"end_offset": -1, "of_epoch": -1}, ErrorCode.SNAPSHOT_NOT_FOUND),
        ({"epoch": 0}, ErrorCode.FENCED_LEADER_EPOCH),
        ({"epoch": 7}, ErrorCode.UNKNOWN_LEADER_EPOCH),
        ({"topic": "t"}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({"partition": 3}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_where_kafka_s_controller_trips_ours_says_why(
    controllers: tuple[Controller, Controller], wanted: dict[str, Any], code: ErrorCode
) -> None:
    """Apache Kafka 4.4.0 means to give these errors, but cannot write an answer that has no records."""
    kafka, ottla = controllers
    assert fetch_snapshot(kafka, **wanted) == (ErrorCode.UNKNOWN_SERVER_ERROR, 0)
    assert fetch_snapshot(ottla, **wanted)[2] == code
