"""Connections to other nodes, by sockets."""

import pytest
import trio

from broker.network.call import Address
from broker.network.transport import SocketTransport


@pytest.mark.parametrize("host", ["a..b", "n" * 64 + ".example"])
def test_what_can_be_no_name_is_nobody(host: str) -> None:
    with pytest.raises(OSError, match="can be no host"):
        trio.run(SocketTransport().connect, Address(host, 1))
