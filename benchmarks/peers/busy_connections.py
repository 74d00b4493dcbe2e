"""A hundred clients in one process, each of which asks again as soon as it is answered."""

import selectors
import socket
import time
from contextlib import ExitStack

from benchmarks.figures import percentile
from benchmarks.librdkafka import new_topic
from compat.probe import split_address
from compat.raw_client import RawClient, produce_error, produce_request

CONNECTIONS = 100
TOPICS = 10
ANSWER_BYTES_MAX = 4096


class BusyClient:
    """One connection with one request on its way."""

    def __init__(self, address: str, topic: str) -> None:
        self.socket = socket.create_connection(split_address(address), timeout=30)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._request = produce_request(topic, b"x" * 100)
        self._topic = topic
        self._asked = 0.0

    def ask(self) -> None:
        self._asked = time.perf_counter()
        self.socket.sendall(self._request)

    def take_answer(self) -> float:
        """Seconds since ``ask``."""
        answer = self.socket.recv(ANSWER_BYTES_MAX)
        while answer and len(answer) < 4 + int.from_bytes(answer[:4].ljust(4, b"\0"), "big"):
            rest = self.socket.recv(ANSWER_BYTES_MAX)
            answer = answer + rest if rest else b""
        taken = time.perf_counter() - self._asked
        if not answer:
            raise ConnectionError("the broker closed the connection")
        if code := produce_error(answer[4:], self._topic):
            raise RuntimeError(f"a record was refused with error {code}")
        return taken


def busy_round(address: str, seconds: float) -> dict[str, float]:
    topics = [new_topic(address) for _ in range(TOPICS)]
    for topic in topics:
        with RawClient(address) as first:
            first.produce_until_acknowledged(topic)
    taken: list[float] = []
    with ExitStack() as stack:
        waiting = stack.enter_context(selectors.DefaultSelector())
        clients = [BusyClient(address, topics[number % TOPICS]) for number in range(CONNECTIONS)]
        for client in clients:
            stack.enter_context(client.socket)
            waiting.register(client.socket, selectors.EVENT_READ, client)
        began = time.perf_counter()
        for client in clients:
            client.ask()
        while time.perf_counter() - began < seconds:
            answered = waiting.select(timeout=5)
            if not answered:
                raise RuntimeError("no connection was answered in 5 s")
            for key, _ in answered:
                taken.append(key.data.take_answer())
                key.data.ask()
        elapsed = time.perf_counter() - began
    return {
        "100 busy connections, one-record requests": len(taken) / elapsed,
        "100 busy connections, p50": percentile(taken, 0.5) * 1000,
        "100 busy connections, p99": percentile(taken, 0.99) * 1000,
    }
