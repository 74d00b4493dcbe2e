"""DescribeConfigs.  What is described, and how, stands in tests/broker/config."""

import pytest

from protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from tests.broker.config.one_node import OneNode
from tests.golden.configs.steps import BROKER, GROUP, LOGGER, METRICS, TOPIC, describe


@pytest.mark.parametrize("version", DescribeConfigsRequest.versions)
def test_every_version_answers_for_every_kind_of_resource(version: int) -> None:
    names = {TOPIC: "t1", BROKER: "1", LOGGER: "1", METRICS: "m", GROUP: "g"}
    answer = OneNode().ask(describe(*((kind, name, None) for kind, name in names.items())), version)
    assert [(r.error_code, r.resource_type, r.resource_name) for r in answer.results] == [
        (0, kind, name) for kind, name in names.items()
    ]
    assert all(result.configs for result in answer.results)
    (threads,) = (config for config in answer.results[1].configs if config.name == "num.io.threads")
    assert threads.value == "8"
    assert bool(threads.config_type) is (version >= 3)


def test_layers_are_told_to_those_who_ask() -> None:
    node = OneNode()
    for wanted in (False, True):
        (result,) = node.ask(describe((BROKER, "1", ["node.id"]), synonyms=wanted), 4).results
        assert bool(result.configs[0].synonyms) is wanted


def test_documentation_is_told_to_those_who_ask() -> None:
    node = OneNode()
    for wanted in (False, True):
        request = DescribeConfigsRequest(
            resources=[DescribeConfigsResource(resource_type=TOPIC, resource_name="t1")],
            include_documentation=wanted,
        )
        (result,) = node.ask(request, 4).results
        assert all((config.documentation is not None) is wanted for config in result.configs)
        if wanted:
            assert all(config.documentation.endswith(".") for config in result.configs)


def test_a_name_as_long_as_a_name_can_be_is_answered() -> None:
    (result,) = OneNode().ask(describe((TOPIC, "x" * 32_767, None)), 4).results
    assert result.error_code == 17
    assert len(result.error_message) <= 32_767
