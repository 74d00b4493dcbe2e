"""A new Ottla takes over from another one, while clients go on, and the old one retires."""

from contextlib import ExitStack
from pathlib import Path

import pytest

from compat.cluster.lengthy import LENGTHY
from compat.cluster.nodes import OttlaNode
from compat.cluster.operators import format_to_join
from compat.cluster.retiring import make_topics, retire

pytestmark = [pytest.mark.slow, LENGTHY]


def test_one_ottla_takes_over_from_another_and_the_old_one_retires(tmp_path: Path) -> None:
    with ExitStack() as stack:
        first, second = (OttlaNode(tmp_path / f"node-{number}", node_id=number) for number in (1, 2))
        controllers = f"{first.controller},{second.controller}"
        for node in (first, second):
            node.settings["controller.quorum.bootstrap.servers"] = controllers
        first.start()
        stack.callback(first.kill)
        make_topics(first.bootstrap)
        format_to_join(second, first.cluster_id)
        second.start()
        stack.callback(second.kill)
        retire(first, second, 2)
