"""A new Ottla takes over from another one, while clients go on, and the old one retires."""

from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from compat.cluster.nodes import OttlaNode
from compat.cluster.operators import format_to_join, hand_over, reassign
from compat.cluster.quorum import leads
from compat.cluster.records import Worker, first_partition, numbers, transacting, writing
from compat.cluster.test_shrinking import INTERNAL, PLAIN, TRANSACTED, commit_as_group, committed
from compat.cluster.views import ClusterView

pytestmark = pytest.mark.slow


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
        bootstrap = f"{first.bootstrap},{second.bootstrap}"
        plain = Worker(writing(bootstrap, PLAIN))
        transacted = Worker(transacting(bootstrap, TRANSACTED))
        with plain, transacted:
            plain.wait_for(30)
            transacted.wait_for(5)
            offset = commit_as_group(bootstrap)
            reassign(ClusterView(bootstrap), [PLAIN, TRANSACTED, *INTERNAL], [2], through=first.bootstrap)
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
        assert first_partition(second.bootstrap, PLAIN, plain.done) == numbers(plain.done)
        assert committed(second.bootstrap) == offset
