"""A new Ottla takes over from another one, while clients go on, and the old one retires."""

import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from compat.broker_process import ROOT
from compat.cluster.nodes import OttlaNode
from compat.cluster.quorum import leads
from compat.cluster.test_shrinking import (
    INTERNAL,
    PLAIN,
    TRANSACTED,
    Client,
    Cluster,
    commit_as_group,
    committed,
    read,
    transacting,
    writing,
)

pytestmark = pytest.mark.slow


def hand_over(bootstrap: str, to: int) -> None:
    """Let the node be the controller, as an operator would."""
    command = ["-m", "ottla", "handover", "--bootstrap-server", bootstrap, "--to", str(to)]
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr


def format_to_join(ottla: OttlaNode, cluster_id: str) -> None:
    """Let the node become one of a cluster that has controllers."""
    overrides = [f"--override={name}={value}" for name, value in ottla.settings.items()]
    command = ["-m", "ottla", "format", "-t", cluster_id, "-N", "--data", str(ottla.data), *overrides]
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr


def test_one_ottla_takes_over_from_another_and_the_old_one_retires(tmp_path: Path) -> None:
    with ExitStack() as stack:
        first, second = (OttlaNode(tmp_path / f"node-{number}", node_id=number) for number in (1, 2))
        controllers = f"{first.controller},{second.controller}"
        for node in (first, second):
            node.settings["controller.quorum.bootstrap.servers"] = controllers
        first.start()
        stack.callback(first.kill)
        admin = AdminClient({"bootstrap.servers": first.bootstrap})
        for future in admin.create_topics([NewTopic(PLAIN, 1, 1), NewTopic(TRANSACTED, 1, 1)]).values():
            future.result(30)
        format_to_join(second, first.cluster_id)
        second.start()
        stack.callback(second.kill)
        cluster = Cluster(first, second)
        plain = Client(writing(cluster.bootstrap))
        transacted = Client(transacting(cluster.bootstrap))
        with plain, transacted:
            plain.wait_for(30)
            transacted.wait_for(5)
            offset = commit_as_group(cluster.bootstrap)
            cluster.place([2], [PLAIN, TRANSACTED, *INTERNAL], through=first.bootstrap)
            plain.wait_for(30)
            hand_over(first.bootstrap, 2)
            assert leads(second.controller)
            plain.wait_for(30)
            first.stop()
            plain.wait_for(30)
            transacted.wait_for(5)
        assert plain.failure is None
        assert transacted.failure is None
        second.kill()
        second.start()
        assert read(second.bootstrap, PLAIN, plain.done) == [b"%d" % number for number in range(plain.done)]
        assert committed(second.bootstrap) == offset
