import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from compat.broker_process import clean_environment
from compat.raw_client import RawClient
from compat.waiting import wait_until
from ottla.cluster import Cluster, ClusterError, State

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
def test_what_a_node_does_without_being_asked(cluster: Cluster) -> None:
    node = cluster.node("node-1")
    assert node.pid is not None
    os.kill(node.pid, 9)
    wait_until(lambda: node.state is State.FAILED, "the node has ended")
    with pytest.raises(ClusterError, match="node-1 has ended instead of starting"):
        node.wait_ready()


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


def test_a_folder_of_something_else(tmp_path: Path) -> None:
    (tmp_path / "something").touch()
    with pytest.raises(ClusterError, match="is not empty, and holds no cluster"):
        Cluster(tmp_path, 3)
    (tmp_path / "meta.properties").write_text("version=1\n")
    with pytest.raises(ClusterError, match="holds the data of a single broker, not of a cluster"):
        Cluster(tmp_path, 3)
    with pytest.raises(ClusterError, match="a cluster has one node or more"):
        Cluster(tmp_path / "empty", 0)


@pytest.mark.slow
def test_why_a_node_does_not_start(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, 1, settings={"num.partitions": "x"}, environment=ENVIRONMENT)
    with pytest.raises(ClusterError, match=r"instead of starting: .* ERROR .* num\.partitions"):
        cluster.start_all()
