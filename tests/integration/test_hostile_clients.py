"""Peers that send nonsense, too little or too much: the others are served, memory stays bounded."""

import random
import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from compat.broker_process import BrokerProcess, running_broker
from compat.probe import API_VERSIONS_V0, receive_exactly, split_address
from compat.processes import resident_bytes
from compat.raw_client import RawClient, frame, metadata_request, produce_request
from compat.waiting import wait_until
from tests.integration.conftest import StartBroker

pytestmark = pytest.mark.slow

MEBIBYTE = 1024 * 1024
MANY = 1000
PATIENCE_SECONDS = 30


# A thousand clients connect at once: with Kafka's backlog of 50 most would try again after a second.
SETTINGS = {"socket.listen.backlog.size": "2000"}


@pytest.fixture(scope="module")
def shared_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with running_broker(tmp_path_factory.mktemp("hostile"), SETTINGS, ephemeral=True) as started:
        yield started


@pytest.fixture
def broker(shared_broker: BrokerProcess) -> Iterator[BrokerProcess]:
    """A broker which must still serve others when the test is over, whatever those before it did."""
    yield shared_broker
    serves_others(shared_broker)


@pytest.fixture
def fresh_broker(start_broker: StartBroker) -> Iterator[BrokerProcess]:
    """One of the test's own: what its memory grows by is due to the test."""
    started = start_broker(SETTINGS, ephemeral=True)
    serves_others(started)
    yield started
    serves_others(started)


def serves_others(broker: BrokerProcess) -> None:
    with RawClient(broker.address) as client:
        client.greet()
        client.produce_until_acknowledged("others")


def connect(broker: BrokerProcess) -> socket.socket:
    return socket.create_connection(split_address(broker.address), timeout=PATIENCE_SECONDS)


def is_closed(connection: socket.socket) -> bool:
    """Whether the broker closes the connection without a word; fails if it does not within the patience."""
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def is_named_in_log(broker: BrokerProcess, connection: socket.socket) -> None:
    port = connection.getsockname()[1]
    wait_until(lambda: f":{port}" in broker.log(), f"a line of the log names port {port}")


NONSENSE = {
    "an HTTP request": b"GET / HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n\r\n",
    "a TLS greeting": bytes.fromhex("16030100c8010000c40303") + bytes(190),
    "a size of 2 GiB": (2**31 - 1).to_bytes(4, "big") + b"1234",
    "a negative size": (-1).to_bytes(4, "big", signed=True) + b"1234",
    "a size of zero": bytes(4),
    "one byte of a request": (1).to_bytes(4, "big") + b"\0",
    "an unknown API": frame(999, 0, b""),
    "an API for controllers": frame(52, 0, bytes(20)),
    "an unknown version": frame(3, 99, b""),
    "a body cut short": frame(3, 4, b"\0\0"),
    "a list of two billion": frame(3, 4, (2**31 - 1).to_bytes(4, "big")),
}


@pytest.mark.parametrize("nonsense", NONSENSE)
def test_nonsense_closes_the_connection_with_a_line_in_the_log(nonsense: str, broker: BrokerProcess) -> None:
    with connect(broker) as connection:
        connection.sendall(NONSENSE[nonsense])
        assert is_closed(connection)
        is_named_in_log(broker, connection)


def test_what_was_right_before_the_nonsense_is_answered(broker: BrokerProcess) -> None:
    with connect(broker) as connection:
        connection.sendall(API_VERSIONS_V0 + NONSENSE["an unknown API"])
        size = int.from_bytes(receive_exactly(connection, 4), "big")
        assert receive_exactly(connection, size)[:6] == bytes.fromhex("00000007 0000")
        assert is_closed(connection)


def test_garbage_harms_no_one(broker: BrokerProcess, chance: random.Random) -> None:
    for _ in range(200):
        with connect(broker) as connection:
            connection.sendall(chance.randbytes(chance.randrange(1, 300)))
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(65_536):
                pass


def test_damaged_requests_harm_no_one(broker: BrokerProcess, chance: random.Random) -> None:
    good = [metadata_request("others"), produce_request("others", b"value"), API_VERSIONS_V0]
    for _ in range(200):
        damaged = bytearray(chance.choice(good))
        for _ in range(chance.randrange(1, 4)):
            damaged[chance.randrange(4, len(damaged))] = chance.randrange(256)
        with connect(broker) as connection:
            connection.sendall(damaged)
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(65_536):
                pass


def test_half_a_request_waits_and_half_closing_ends_it(broker: BrokerProcess) -> None:
    with connect(broker) as connection:
        connection.sendall(API_VERSIONS_V0[:-3])
        serves_others(broker)
        connection.shutdown(socket.SHUT_WR)
        assert is_closed(connection)


def test_half_closing_behind_a_whole_request_still_gets_the_answer(broker: BrokerProcess) -> None:
    with connect(broker) as connection:
        connection.sendall(API_VERSIONS_V0)
        connection.shutdown(socket.SHUT_WR)
        size = int.from_bytes(receive_exactly(connection, 4), "big")
        assert len(receive_exactly(connection, size)) == size
        assert is_closed(connection)


def test_a_thousand_announcements_of_100_mib_take_no_memory(fresh_broker: BrokerProcess) -> None:
    before = resident_bytes(fresh_broker.pid)
    with ExitStack() as stack:
        for _ in range(MANY):
            connection = stack.enter_context(connect(fresh_broker))
            connection.sendall((100 * MEBIBYTE).to_bytes(4, "big") + b"\0\0\0\x01")
        serves_others(fresh_broker)
        grown = resident_bytes(fresh_broker.pid) - before
    assert grown < 50 * MEBIBYTE


def test_a_thousand_idle_connections_take_little_memory(fresh_broker: BrokerProcess) -> None:
    before = resident_bytes(fresh_broker.pid)
    with ExitStack() as stack:
        for _ in range(MANY):
            stack.enter_context(RawClient(fresh_broker.address)).greet()
        serves_others(fresh_broker)
        grown = resident_bytes(fresh_broker.pid) - before
    assert grown <= 30 * MEBIBYTE


def test_a_client_that_never_reads_is_not_read_from(fresh_broker: BrokerProcess) -> None:
    before = resident_bytes(fresh_broker.pid)
    with connect(fresh_broker) as connection:
        connection.setblocking(False)
        sent = push(connection, API_VERSIONS_V0, 64 * MEBIBYTE)
        serves_others(fresh_broker)
        grown = resident_bytes(fresh_broker.pid) - before
    assert sent < 64 * MEBIBYTE, "the broker went on reading"
    assert grown < 30 * MEBIBYTE


def test_a_consumer_that_never_reads_keeps_no_records_in_memory(fresh_broker: BrokerProcess) -> None:
    with RawClient(fresh_broker.address) as client:
        client.produce_until_acknowledged("large")
        for _ in range(40):
            client.ask(produce_request("large", bytes(900_000)))
    before = resident_bytes(fresh_broker.pid)
    # Fetch version 4 from offset 0: up to 64 MiB an answer.
    most = (64 * MEBIBYTE).to_bytes(4, "big")
    head = (-1).to_bytes(4, "big", signed=True) + bytes(4) + (1).to_bytes(4, "big") + most + b"\0"
    one = (1).to_bytes(4, "big")
    fetch = frame(1, 4, head + one + b"\0\x05large" + one + bytes(4) + bytes(8) + most)
    with connect(fresh_broker) as connection:
        connection.setblocking(False)
        push(connection, fetch, 4 * MEBIBYTE)
        serves_others(fresh_broker)
        grown = resident_bytes(fresh_broker.pid) - before
    assert grown < 30 * MEBIBYTE


def push(connection: socket.socket, request: bytes, size_max: int) -> int:
    """Send requests until the peer takes no more, or ``size_max`` bytes; how many bytes it took."""
    many = request * (65_536 // len(request) + 1)
    sent = 0
    refusals = 0
    while sent < size_max and refusals < 20:
        try:
            # A request that is cut is continued: the stream stays a sequence of whole ones.
            sent += connection.send(many[sent % len(request) :])
            refusals = 0
        except BlockingIOError:
            refusals += 1
            connection.settimeout(0.1)
            try:
                sent += connection.send(many[sent % len(request) :])
                refusals = 0
            except TimeoutError:
                pass
            connection.setblocking(False)
    return sent
