import gc
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from compat.broker_process import clean_environment
from compat.cluster.quorum import METADATA, ask
from compat.raw_client import RawClient
from compat.waiting import wait_until
from ottla.cluster import Cluster, ClusterError, State, running_nodes
from protocol.error_codes import ErrorCode
from protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
    DescribeQuorumResponse,
)
from protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

ENVIRONMENT = clean_environment()


def serves(address: str) -> bool:
    with RawClient(address):
        return True


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with Cluster(tmp_path / "cluster", 1, environment=ENVIRONMENT) as started:
        yield started


@pytest.mark.slow
def test_a_node_is_stopped_killed_and_started_by_name(cluster: Cluster) -> None:
    node = cluster.node("node-1")

    def state() -> State:
        return node.state

    assert cluster.node("1") is node
    assert state() is State.RUNNING
    assert serves(cluster.bootstrap_servers)
    for end in (node.stop, node.kill):
        end()
        assert state() is State.STOPPED
        with pytest.raises(ConnectionRefusedError):
            serves(node.address)
        with pytest.raises(ClusterError, match="node-1 is stopped"):
            node.pause()
        cluster.start("node-1").wait_ready()
        assert serves(node.address)
    node.pause()
    assert state() is State.PAUSED
    node.resume()
    assert state() is State.RUNNING
    with pytest.raises(ClusterError, match="node-1 is running already"):
        cluster.start("node-1")


@pytest.mark.slow
@pytest.mark.parametrize("told", [None, 1])
def test_a_first_client_that_comes_before_all_nodes_waits_for_them(tmp_path: Path, told: int | None) -> None:
    """Else what is committed would have one replica for ever, unless that is what somebody wants."""
    file = tmp_path / "server.properties"
    file.write_text(f"{'#' if told is None else ' '}offsets.topic.replication.factor = {told}\n")
    cluster = Cluster(tmp_path / "cluster", 2, properties_file=str(file), environment=ENVIRONMENT)
    address = cluster.node("1").address

    def coordinator_error() -> ErrorCode:
        request = FindCoordinatorRequest(coordinator_keys=["g"])
        (found,) = ask(address, request, FindCoordinatorResponse, 4).coordinators
        return ErrorCode(found.error_code)

    def replicas() -> set[int]:
        request = MetadataRequest(topics=[MetadataRequestTopic(name="__consumer_offsets")])
        (topic,) = ask(address, request, MetadataResponse, 8).topics
        return {len(partition.replica_nodes) for partition in topic.partitions}

    try:
        cluster.start("1").wait_ready()
        if told is None:
            for _ in range(3):
                assert coordinator_error() is ErrorCode.COORDINATOR_NOT_AVAILABLE
            assert replicas() == set()
            cluster.start("2").wait_ready()
        wait_until(lambda: coordinator_error() is ErrorCode.NONE, "there is a coordinator")
        assert replicas() == {told or 2}
        cluster.stop_all()
    finally:
        cluster.kill_all()


@pytest.mark.slow
def test_what_a_node_does_without_being_asked(cluster: Cluster) -> None:
    node = cluster.node("node-1")
    assert node.pid is not None
    os.kill(node.pid, 9)
    wait_until(lambda: node.state is State.FAILED, "the node has ended")
    with pytest.raises(ClusterError, match="node-1 has ended instead of starting"):
        node.wait_ready()


def test_ctrl_c_waits_until_a_node_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the fork and the end of Popen it would leave a process that nobody knows."""
    begin = subprocess.Popen

    def interrupted(*arguments: Any, **others: Any) -> subprocess.Popen[bytes]:
        process = begin(*arguments, **others)
        signal.raise_signal(signal.SIGINT)
        return process

    monkeypatch.setattr("ottla.cluster.subprocess.Popen", interrupted)
    cluster = Cluster(tmp_path / "cluster", 2, environment=ENVIRONMENT)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # it is ignored where tests run at once
    try:
        with pytest.raises(KeyboardInterrupt), cluster:
            pass
    finally:
        signal.signal(signal.SIGINT, before)
    monkeypatch.undo()
    assert {node.state for node in cluster.nodes.values()} == {State.STOPPED}
    assert running_nodes(cluster.folder) == []


@pytest.mark.slow
def test_the_same_cluster_again(tmp_path: Path) -> None:
    first = Cluster(tmp_path / "cluster", 3)
    again = Cluster(tmp_path / "cluster", 3)
    assert first.bootstrap_servers == again.bootstrap_servers
    assert first.controller_address == again.controller_address
    assert list(Cluster(tmp_path / "cluster").nodes) == ["node-1", "node-2", "node-3"]
    assert len(first.bootstrap_servers.split(",")) == len(set(first.bootstrap_servers.split(","))) == 3
    with pytest.raises(ClusterError, match="holds a cluster of 3 nodes, not of 2"):
        Cluster(tmp_path / "cluster", 2)
    with pytest.raises(ClusterError, match="there is no node-4, only node-1, node-2, node-3"):
        first.node("node-4")


def test_ports_follow_the_first(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, 2, port=9092)
    assert cluster.bootstrap_servers == "127.0.0.1:9092,127.0.0.1:9093"
    moved = Cluster(tmp_path, port=9192)
    assert (
        moved.bootstrap_servers == Cluster(tmp_path, 2).bootstrap_servers == "127.0.0.1:9192,127.0.0.1:9193"
    )
    with pytest.raises(ClusterError, match="the ports of 2 nodes from 65535 on would end above 65535"):
        Cluster(tmp_path, 2, port=65535)


def test_a_cluster_gets_the_id_that_the_environment_names(tmp_path: Path) -> None:
    chosen = {**ENVIRONMENT, "CLUSTER_ID": "4L6g3nShT-eMCtK--X86sw"}
    Cluster(tmp_path, 1, environment=chosen)
    assert json.loads((tmp_path / "cluster.json").read_text())["cluster.id"] == "4L6g3nShT-eMCtK--X86sw"
    Cluster(tmp_path, 1, environment=chosen)
    Cluster(tmp_path, 1, environment=ENVIRONMENT)
    with pytest.raises(ClusterError, match="belongs to cluster 4L6g3nShT-eMCtK--X86sw, not to another"):
        Cluster(tmp_path, 1, environment={**ENVIRONMENT, "CLUSTER_ID": "another"})
    Cluster(tmp_path / "unnamed", 1, environment={**ENVIRONMENT, "CLUSTER_ID": ""})


def test_a_start_that_was_killed_leaves_a_folder_for_the_next(tmp_path: Path) -> None:
    (tmp_path / "cluster.lock").touch()
    (tmp_path / "cluster.json.part").touch()
    Cluster(tmp_path, 1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cluster.json", "cluster.lock"]


@pytest.mark.parametrize(
    "text", ["{}", "[]", '{"cluster.id": "a", "ports": [], "controller.port": 1}', '{"cluster.id": "a"}']
)
def test_a_description_of_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "cluster.json").write_text(text)
    with pytest.raises(ClusterError, match=r"cluster\.json does not say what the cluster is made of"):
        Cluster(tmp_path)
    (tmp_path / "cluster.json").write_text("")
    with pytest.raises(ClusterError, match=r"cluster\.json cannot be read"):
        Cluster(tmp_path)


def test_it_stays_this_process_while_anything_of_it_lives(tmp_path: Path) -> None:
    def another_process() -> str:
        ask = f"from ottla.cluster import Cluster, ClusterError\ntry: Cluster({str(tmp_path)!r})\n"
        ask += "except ClusterError as error: print(error)"
        return subprocess.run([sys.executable, "-c", ask], check=True, capture_output=True, text=True).stdout

    cluster = Cluster(tmp_path, 1, environment=ENVIRONMENT)
    with pytest.raises(ClusterError, match="holds a cluster of 1 nodes"):
        Cluster(tmp_path, 2, environment=ENVIRONMENT)
    again = Cluster(tmp_path, environment=ENVIRONMENT)
    del again
    gc.collect()
    assert another_process() == f"the cluster in {tmp_path} runs already\n"
    del cluster
    gc.collect()
    assert another_process() == ""


def test_a_folder_of_something_else(tmp_path: Path) -> None:
    (tmp_path / "something").touch()
    with pytest.raises(ClusterError, match="is not empty, and holds no cluster"):
        Cluster(tmp_path, 3)
    (tmp_path / "meta.properties").write_text("version=1\n")
    with pytest.raises(ClusterError, match="holds the data of a single broker, not of a cluster"):
        Cluster(tmp_path, 3)
    with pytest.raises(ClusterError, match="a cluster has one node or more"):
        Cluster(tmp_path / "empty", 0)


def test_a_port_that_another_process_has(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, 2, environment=ENVIRONMENT)
    taken = cluster.node("2").port
    complaint = (
        f"node-2 cannot start: another process has its port {taken}; end that, or let --port name other ports"
    )
    with socket.create_server(("127.0.0.1", taken)):
        for start in (cluster.start_all, lambda: cluster.start("2")):
            with pytest.raises(ClusterError) as caught:
                start()
            assert str(caught.value) == complaint
    assert [node.state for node in cluster.nodes.values()] == [State.STOPPED] * 2


@pytest.mark.slow
def test_the_controller_moves_where_another_process_has_its_port(tmp_path: Path) -> None:
    with Cluster(tmp_path, 2, environment=ENVIRONMENT) as first:
        before = first.controller_port
    with socket.create_server(("127.0.0.1", before)):
        behind_a_door = Cluster(tmp_path, environment=ENVIRONMENT, advertised={before: 1})
        with pytest.raises(ClusterError, match=f"node-1 cannot start: another process has its port {before}"):
            behind_a_door.start_all()
        with Cluster(tmp_path, environment=ENVIRONMENT) as again:
            assert again.controller_port != before
            topic = DescribeQuorumRequestTopicData(
                topic_name=METADATA, partitions=[DescribeQuorumRequestPartitionData()]
            )
            request = DescribeQuorumRequest(topics=[topic])
            (voter,) = ask(again.node("2").address, request, DescribeQuorumResponse, 2).nodes
            assert [at.port for at in voter.listeners] == [again.controller_port]
    assert Cluster(tmp_path).controller_port == again.controller_port


@pytest.mark.slow
def test_why_a_node_does_not_start(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, 1, settings={"num.partitions": "x"}, environment=ENVIRONMENT)
    with pytest.raises(ClusterError, match=r"instead of starting: .* ERROR .* num\.partitions"):
        cluster.start_all()
