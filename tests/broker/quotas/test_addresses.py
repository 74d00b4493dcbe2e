"""Hosts that have limits of their own."""

import io

import pytest

from broker.logs import Log
from broker.quotas import addresses
from broker.quotas.addresses import UnknownHost, address_limits, address_of, hosts_to_look_up, look_up
from broker.quotas.connections import ConnectionLimits, ConnectionQuotas
from broker.quotas.rates import Windows
from tests.broker.quotas.test_desk import image_with


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("localhost", "127.0.0.1"),
        ("2001:db8:0::7", "2001:db8::7"),
        ("[2001:db8::7]", "2001:db8::7"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
    ],
)
def test_a_host_has_an_address(host: str, address: str) -> None:
    assert address_of(host) == address


@pytest.mark.parametrize(
    "host", ["no.such.host.invalid", "so nicht!", "a" * 300, "..", "\ud800", "[::1", "::1]", "::1\0"]
)
def test_what_is_no_host_has_none(host: str) -> None:
    with pytest.raises(UnknownHost):
        address_of(host)


def test_the_quota_of_a_host_that_has_gone_is_left_out_with_a_line() -> None:
    output = io.StringIO()
    image = image_with({"connection_creation_rate": 5.0}, (("ip", "no.such.host.invalid"),))
    hosts = hosts_to_look_up(image)
    assert hosts == ["no.such.host.invalid"]
    look_up(hosts, Log(output))
    assert not address_limits(image)
    assert "the quota of no.such.host.invalid has no effect" in output.getvalue()


def test_nobody_waits_for_a_resolver(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only ``look_up``, which runs in a thread: a resolver that is gone takes seconds for each name."""
    monkeypatch.setattr(addresses, "_known", {})
    image = image_with({"connection_creation_rate": 5.0}, (("ip", "localhost"),))
    assert not address_limits(image)
    assert hosts_to_look_up(image) == ["localhost"]
    look_up(["localhost"], Log(io.StringIO()))
    assert hosts_to_look_up(image) == []
    limits = address_limits(image)
    assert limits.limit(limits.holder("127.0.0.1", "")) == 5
    for host in (None, "192.0.2.1", "[2001:db8::7]"):
        image = image_with({"connection_creation_rate": 5.0}, (("ip", host),))
        assert address_limits(image)
        assert hosts_to_look_up(image) == []


@pytest.mark.acts("connection_creation_rate")
def test_an_address_with_a_rate_that_is_nearly_none_is_not_let_in() -> None:
    image = image_with({"connection_creation_rate": 1e-7}, (("ip", "192.0.2.1"),))
    door = ConnectionQuotas(ConnectionLimits(), Windows(11, 1000))
    door.apply_addresses(address_limits(image))
    assert [door.refuse("A", "192.0.2.1", 0) for _ in range(3)] == [1000] * 3
    assert door.refuse("A", "192.0.2.2", 0) == 0
