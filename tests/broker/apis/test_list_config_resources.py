"""ListConfigResources: which resources have settings."""

import pytest

from protocol.messages.list_config_resources import ListConfigResourcesRequest
from protocol.stored.metadata_records import ConfigRecord
from tests.broker.config.one_node import OneNode, registration
from tests.golden.configs.steps import BROKER, GROUP, LOGGER, METRICS, TOPIC, list_resources


@pytest.fixture
def node() -> OneNode:
    node = OneNode()
    for kind, name, setting, value in (
        (GROUP, "g2", "consumer.session.timeout.ms", "50000"),
        (GROUP, "g1", "consumer.session.timeout.ms", "50000"),
        (METRICS, "m", "interval.ms", "500"),
    ):
        node.apply(ConfigRecord(resource_type=kind, resource_name=name, name=setting, value=value))
    return node


def listed(node: OneNode, *kinds: int) -> list[tuple[int, str]]:
    answer = node.ask(list_resources(*kinds), 1)
    assert answer.error_code == 0
    return [(resource.resource_type, resource.resource_name) for resource in answer.config_resources]


def test_asking_for_nothing_is_asking_for_everything(node: OneNode) -> None:
    everything = [(GROUP, "g1"), (GROUP, "g2"), (METRICS, "m"), (LOGGER, "1"), (BROKER, "1"), (TOPIC, "t1")]
    assert listed(node) == everything
    assert listed(node, TOPIC, BROKER, LOGGER, METRICS, GROUP, TOPIC) == everything


@pytest.mark.parametrize("kind", [TOPIC, BROKER, LOGGER, METRICS, GROUP])
def test_one_kind_alone(node: OneNode, kind: int) -> None:
    assert {resource for resource, _ in listed(node, kind)} == {kind}


@pytest.mark.parametrize("kind", [-1, 0, 3, 64])
def test_a_kind_that_is_none_is_an_unsupported_version(node: OneNode, kind: int) -> None:
    answer = node.ask(list_resources(TOPIC, kind), 1)
    assert (answer.error_code, answer.config_resources) == (35, [])


def test_the_first_version_knows_client_metrics_alone(node: OneNode) -> None:
    answer = node.ask(ListConfigResourcesRequest(), 0)
    assert [resource.resource_name for resource in answer.config_resources] == ["m"]


@pytest.mark.parametrize("kind", [BROKER, LOGGER])
def test_fenced_brokers_have_settings_too(node: OneNode, kind: int) -> None:
    node.apply(registration(2, fenced=True))
    assert listed(node, kind) == [(kind, "1"), (kind, "2")]
