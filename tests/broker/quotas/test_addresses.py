"""Hosts that have limits of their own."""

import io

import pytest

from broker.logs import Log
from broker.quotas.addresses import UnknownHost, address_limits, address_of
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


@pytest.mark.parametrize("host", ["no.such.host.invalid", "so nicht!", "a" * 300, "..", "\ud800"])
def test_what_is_no_host_has_none(host: str) -> None:
    with pytest.raises(UnknownHost):
        address_of(host)


def test_the_quota_of_a_host_that_has_gone_is_left_out_with_a_line() -> None:
    output = io.StringIO()
    image = image_with({"connection_creation_rate": 5.0}, (("ip", "no.such.host.invalid"),))
    assert not address_limits(image, Log(output))
    assert "the quota of no.such.host.invalid has no effect" in output.getvalue()
    assert address_limits(image_with({"connection_creation_rate": 5.0}, (("ip", None),)), Log(output))
