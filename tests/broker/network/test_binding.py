import socket

import pytest

from broker.network.binding import Binding, ListenError, address_of, bind_listeners
from broker.network.call import Address, Listener
from broker.network.settings import NetworkSettings

SETTINGS = NetworkSettings()


def binding(host: str, port: int = 0, name: str = "PLAINTEXT") -> Binding:
    return Binding(Listener(name), host, port)


def test_port_0_becomes_a_free_port() -> None:
    first, second = bind_listeners([binding("127.0.0.1"), binding("127.0.0.1", name="OTHER")], SETTINGS)
    with first.socket, second.socket:
        assert first.address.host == second.address.host == "127.0.0.1"
        assert 0 < first.address.port != second.address.port > 0
        assert second.listener.name == "OTHER"
        socket.create_connection(first.address).close()  # clients can connect before anybody accepts


def test_a_name_is_looked_up() -> None:
    (bound,) = bind_listeners([binding("localhost")], SETTINGS)
    with bound.socket:
        assert bound.address.host == "127.0.0.1"


@pytest.mark.parametrize("host", ["", "::", "0.0.0.0"])
def test_every_address_includes_the_ipv4_ones(host: str) -> None:
    (bound,) = bind_listeners([binding(host)], SETTINGS)
    with bound.socket, socket.create_connection(("127.0.0.1", bound.address.port)) as client:
        bound.socket.setblocking(True)
        accepted, name = bound.socket.accept()
        accepted.close()
        assert address_of(name) == Address(*client.getsockname())


@pytest.mark.parametrize("taken_at", ["127.0.0.1", "0.0.0.0"])
@pytest.mark.parametrize("wanted_at", ["127.0.0.1", ""])
def test_a_port_in_use_is_one_clear_line(taken_at: str, wanted_at: str) -> None:
    with socket.socket() as taken:
        taken.bind((taken_at, 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ListenError) as caught:
            bind_listeners([binding(wanted_at, port, "MINE")], SETTINGS)
    assert str(caught.value) == f"listener MINE: port {port} is in use by another process"


@pytest.mark.parametrize(
    ("host", "reason"),
    [
        ("192.0.2.1", "listener PLAINTEXT: 192.0.2.1 is not an address of this machine"),
        ("no-such-host.invalid", "listener PLAINTEXT: the host no-such-host.invalid is unknown"),
    ],
)
def test_a_host_that_is_not_here_is_one_clear_line(host: str, reason: str) -> None:
    with pytest.raises(ListenError, match=reason):
        bind_listeners([binding(host)], SETTINGS)


def test_all_ports_are_taken_or_none() -> None:
    (first,) = bind_listeners([binding("127.0.0.1")], SETTINGS)
    port = first.address.port
    first.socket.close()
    with pytest.raises(ListenError):
        bind_listeners([binding("127.0.0.1", port), binding("192.0.2.1")], SETTINGS)
    (again,) = bind_listeners([binding("127.0.0.1", port)], SETTINGS)
    again.socket.close()


def test_a_port_can_be_taken_again_while_old_connections_linger() -> None:
    (bound,) = bind_listeners([binding("127.0.0.1")], SETTINGS)
    port = bound.address.port
    with socket.create_connection(bound.address) as client:
        bound.socket.setblocking(True)
        accepted, _ = bound.socket.accept()
        accepted.close()  # this end closes first and keeps the port for a while
        assert client.recv(1) == b""
    bound.socket.close()
    (again,) = bind_listeners([binding("127.0.0.1", port)], SETTINGS)
    again.socket.close()


def test_buffer_sizes_are_set_if_they_are_given() -> None:
    def sizes(settings: NetworkSettings) -> tuple[int, int]:
        (bound,) = bind_listeners([binding("127.0.0.1")], settings)
        with bound.socket as opened:
            return (
                opened.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF),
                opened.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF),
            )

    with socket.socket() as untouched:
        usual = untouched.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)
    assert sizes(SETTINGS)[0] == usual
    small = sizes(SETTINGS._replace(send_buffer_bytes=20_000, receive_buffer_bytes=30_000))
    assert (20_000 <= small[0] <= 40_000, 30_000 <= small[1] <= 60_000) == (True, True)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (("10.0.0.7", 1), "10.0.0.7:1"),
        (("::ffff:10.0.0.7", 2, 0, 0), "10.0.0.7:2"),
        (("fe80::7", 3, 0, 2), "[fe80::7]:3"),
    ],
)
def test_addresses_are_written_as_people_write_them(
    name: tuple[str, int] | tuple[str, int, int, int], text: str
) -> None:
    assert str(address_of(name)) == text
