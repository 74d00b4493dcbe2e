"""One small client beside two that produce megabytes flat out."""

import subprocess
import sys
import time
from contextlib import ExitStack

from benchmarks.figures import percentile
from benchmarks.librdkafka import MEGABYTE, new_topic
from compat.raw_client import RawClient, produce_error, produce_request

BUSY_CLIENTS = 2
BUSY_TIMEOUT_SECONDS = 20


class BusyClient:
    """A process of ``busy_producer``."""

    def __init__(self, address: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.busy_producer", address, new_topic(address)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def wait_until_busy(self) -> None:
        assert self._process.stdout is not None
        if self._process.stdout.readline().strip() != "busy":
            raise RuntimeError("a busy producer ended before it was busy")

    def finish(self) -> float:
        """Tell it to end; the megabytes per second that it had acknowledged."""
        said, _ = self._process.communicate(timeout=BUSY_TIMEOUT_SECONDS)
        size_bytes, seconds = said.split()
        return int(size_bytes) / float(seconds) / MEGABYTE

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


def one_record_times(address: str, topic: str, count: int, seconds_max: float) -> list[float]:
    """Milliseconds of records produced one after the other over one connection."""
    request = produce_request(topic, b"x" * 100)
    taken: list[float] = []
    deadline = time.monotonic() + seconds_max
    with RawClient(address) as client:
        client.produce_until_acknowledged(topic)
        while len(taken) < count and time.monotonic() < deadline:
            began = time.perf_counter()
            answer = client.ask(request)
            taken.append((time.perf_counter() - began) * 1000)
            if code := produce_error(answer, topic):
                raise RuntimeError(f"a record was refused with error {code}")
    return taken


def fairness_round(address: str, count: int) -> dict[str, float]:
    topic = new_topic(address)
    idle = percentile(one_record_times(address, topic, count, 10), 0.5)
    with ExitStack() as stack:
        busy = [BusyClient(address) for _ in range(BUSY_CLIENTS)]
        for client in busy:
            stack.callback(client.kill)
        for client in busy:
            client.wait_until_busy()
        beside = percentile(one_record_times(address, topic, count, 10), 0.5)
        megabytes = sum(client.finish() for client in busy)
    return {
        "one record by socket, p50": idle,
        "one record beside two busy producers, p50": beside,
        "the same as a multiple": beside / idle,
        "the two busy producers": megabytes,
    }
