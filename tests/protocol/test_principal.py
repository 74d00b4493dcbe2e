"""Principals as one node tells another."""

import pytest

from protocol.errors import DecodeError
from protocol.principal import ANONYMOUS, DefaultPrincipalData, decode_principal, encode_principal

FROM_KAFKA = bytes.fromhex("000005557365720a414e4f4e594d4f55530000")
"""What Apache Kafka 4.4.0 puts into an Envelope for an anonymous client."""


def test_kafka_s_bytes() -> None:
    assert encode_principal(ANONYMOUS) == FROM_KAFKA
    assert decode_principal(FROM_KAFKA) == DefaultPrincipalData(type="User", name="ANONYMOUS")


@pytest.mark.parametrize("length", range(len(FROM_KAFKA)))
def test_cut_off(length: int) -> None:
    with pytest.raises(DecodeError):
        decode_principal(FROM_KAFKA[:length])


def test_another_version() -> None:
    with pytest.raises(DecodeError, match="version 1"):
        decode_principal(b"\0\1" + FROM_KAFKA[2:])
