"""AlterConfigs.  What is refused, and in which words, stands in the recorded transcript."""

import pytest

from protocol.messages.alter_configs import AlterConfigsRequest
from protocol.stored.metadata_records import ConfigRecord
from tests.broker.config.one_node import OneNode
from tests.golden.configs.steps import TOPIC, replace


@pytest.mark.parametrize("version", AlterConfigsRequest.versions)
def test_every_version_replaces_all_settings(version: int) -> None:
    node = OneNode()
    node.apply(ConfigRecord(resource_type=2, resource_name="t1", name="retention.ms", value="5"))
    answer = node.ask(replace((TOPIC, "t1", [("segment.ms", "6")])), version)
    assert [(r.error_code, r.error_message, r.resource_name) for r in answer.responses] == [(0, None, "t1")]
    assert node.image.topic_config("t1") == {"segment.ms": "6"}


def test_a_resource_that_comes_twice_is_answered() -> None:
    """Kafka never answers this one."""
    node = OneNode()
    twice = replace((TOPIC, "t1", [("segment.ms", "6")]), (TOPIC, "t1", [("segment.ms", "7")]))
    answer = node.ask(twice, 2)
    assert [(r.error_code, r.error_message) for r in answer.responses] == [
        (42, "Each resource must appear at most once.")
    ] * 2
    assert node.image.topic_config("t1") == {}
