"""Describing settings and altering them to what was described changes nothing."""

import pytest

from broker.clock import BrokerClock
from broker.config.definitions import Scope, Update, find
from protocol.messages.alter_configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResponse,
)
from protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
)
from tests.broker.config.acting.members import GROUPS
from tests.broker.config.acting.whole_broker import BROKER, GROUP, LOGGER, TOPIC, WholeBroker, whole_broker

CLIENT_METRICS = 16

RESOURCES = [(TOPIC, "t"), (GROUP, "g"), (CLIENT_METRICS, "m"), (LOGGER, "1"), (BROKER, "1"), (BROKER, "")]

SOME = {
    TOPIC: {"retention.ms": "5000", "cleanup.policy": "compact, delete", "min.cleanable.dirty.ratio": ".50"},
    GROUP: {"consumer.session.timeout.ms": "50000", "share.auto.offset.reset": "earliest"},
    CLIENT_METRICS: {"interval.ms": "5000", "match": "client_id=a.*", "metrics": "*"},
    LOGGER: {"kafka": "DEBUG"},
    BROKER: {"log.segment.bytes": "2000000", "log.cleaner.io.buffer.load.factor": "1"},
}
"""Some of them in other words than those in which they are shown."""


async def described(broker: WholeBroker, kind: int, name: str) -> dict[str, DescribeConfigsResourceResult]:
    request = DescribeConfigsRequest(
        include_synonyms=True, resources=[DescribeConfigsResource(resource_type=kind, resource_name=name)]
    )
    (result,) = (await broker.ask(request, DescribeConfigsResponse)).results
    assert result.error_code == 0, result.error_message
    return {config.name: config for config in result.configs}


def shown(settings: dict[str, DescribeConfigsResourceResult]) -> dict[str, tuple[str | None, int]]:
    """Value and source; the texts beneath may be other ones for the same value."""
    return {name: (setting.value, setting.config_source) for name, setting in settings.items()}


@pytest.mark.parametrize(("kind", "name"), RESOURCES)
async def test_setting_what_is_set_already(clock: BrokerClock, kind: int, name: str) -> None:
    """In both ways of altering."""
    async with whole_broker(clock, GROUPS) as broker:
        await broker.create()
        await broker.alter(kind, name, SOME[kind])
        before = shown(await described(broker, kind, name))
        values = {each: before[each][0] for each in SOME[kind]}
        if name == "":
            values["min.insync.replicas"] = "1"  # which the cluster was made with
        await broker.alter(kind, name, values)
        assert shown(await described(broker, kind, name)) == before
        offset = broker.services.image.offset
        await broker.alter(kind, name, values)
        # What is set again for a broker is a sign to read files again: so that is written down.
        assert broker.services.image.offset == offset or kind == BROKER
        if kind == LOGGER:
            return  # which cannot be replaced
        request = AlterConfigsRequest(
            resources=[
                AlterConfigsResource(
                    resource_type=kind,
                    resource_name=name,
                    configs=[AlterableConfig(name=each, value=value) for each, value in values.items()],
                )
            ]
        )
        assert (await broker.ask(request, AlterConfigsResponse)).responses[0].error_code == 0
        assert shown(await described(broker, kind, name)) == before
        assert broker.services.image.offset == offset or kind == BROKER


@pytest.mark.parametrize(("kind", "name"), RESOURCES[:-1])
async def test_setting_everything_to_what_it_is(clock: BrokerClock, kind: int, name: str) -> None:
    """Every value that is shown may be set, and is shown in the same way afterwards."""
    async with whole_broker(clock, GROUPS) as broker:
        await broker.create()
        before = await described(broker, kind, name)
        values = {
            each.name: each.value for each in before.values() if each.value is not None and not each.read_only
        }
        for setting in [*values] if kind == BROKER else []:
            known = find(Scope.BROKER, setting)
            assert known is not None
            if known.update is Update.PER_BROKER and setting.startswith(("ssl.", "sasl.")):
                del values[setting]  # only for a single listener
        # Once the first is said, the name of the controller's listener has to be in it. The other is for all.
        for setting in ("listener.security.protocol.map", "min.insync.replicas"):
            values.pop(setting if kind == BROKER else "", None)
        await broker.alter(kind, name, dict(values))
        after = await described(broker, kind, name)
        assert {each: value for each, (value, _) in shown(after).items()} == {
            each: value for each, (value, _) in shown(before).items()
        }
        assert len(values) > (0 if kind == CLIENT_METRICS else 10)
