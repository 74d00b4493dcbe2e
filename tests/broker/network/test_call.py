from typing import cast

from broker.network.call import Address, Call, ConnectionState, Listener
from broker.services import Services


def test_a_call_knows_its_connection() -> None:
    connection = ConnectionState(
        3, Listener("CONTROLLER", is_controller=True), Address("::1", 5000), Address("127.0.0.1", 9093)
    )
    call = Call(cast(Services, None), connection, 3, 12, 99, "me", 1_700_000_000_000)
    assert call.header.correlation_id == 99
    assert call.header == (3, 12, 99, "me")
    assert call.peer == ("::1", 5000)
    assert call.local_address == ("127.0.0.1", 9093)
    assert call.listener.is_controller
    assert str(connection) == "[::1]:5000 (CONTROLLER)"


def test_a_connection_begins_without_a_name() -> None:
    connection = ConnectionState(1, Listener("PLAINTEXT"), Address("10.0.0.7", 1), Address("10.0.0.1", 2))
    assert (connection.client_software_name, connection.client_software_version) == ("", "")
    assert not connection.listener.is_controller
