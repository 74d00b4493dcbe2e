"""A process whose id another one has taken, because it was unregistered or slept through its session."""

from pathlib import Path

import pytest
from confluent_kafka.cimpl import NewTopic

from compat.cluster.nodes import OttlaBroker
from compat.cluster.quorum import ask
from compat.cluster.records import consumed, produced
from compat.cluster.views import ClusterView
from compat.waiting import wait_until
from ottla.cluster import Cluster
from protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse

PARTITIONS = 6
VALUES = [b"%d" % number for number in range(50)]


@pytest.mark.slow
def test_it_speaks_for_itself_only(tmp_path: Path) -> None:
    """The new one has two directories: the old one would note that replicas lie in its own."""
    with Cluster(tmp_path / "cluster", nodes=2) as cluster:
        first, second = cluster.node("1"), cluster.node("2")
        answer = ask(first.address, UnregisterBrokerRequest(broker_id=2), UnregisterBrokerResponse, 0)
        assert answer.error_code == 0
        wait_until(lambda: "unregistered while it runs" in second.log_file.read_text(), "it is left out")
        directories = [tmp_path / "taker" / name for name in ("data", "more")]
        settings = {"log.dirs": ",".join(map(str, directories))}
        taker = OttlaBroker(tmp_path / "taker", cluster.controller_address, settings, node_id=2)
        taker.start()
        try:
            view = ClusterView(first.address)
            view.wait_for_brokers({1, 2})
            topic = NewTopic("t", PARTITIONS, 2, config={"min.insync.replicas": "2"})
            view.admin.create_topics([topic])["t"].result(30)
            produced(first.address, "t", VALUES)
            assert consumed(taker.bootstrap, "t", len(VALUES)) == set(VALUES)
            assert view.in_sync("t") == [{1, 2}] * PARTITIONS
            wait_until(lambda: "STALE_BROKER_EPOCH" in second.log_file.read_text(), "the old one is refused")
        finally:
            taker.stop()
