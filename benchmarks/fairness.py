"""One small client beside two that produce megabytes flat out."""

import subprocess
import sys
import time
from contextlib import ExitStack

from benchmarks.figures import percentile
from benchmarks.librdkafka import new_topic
from compat.raw_client import RawClient, produce_error, produce_request

BUSY_CLIENTS = 2


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
        for _ in range(BUSY_CLIENTS):
            command = [sys.executable, "-m", "benchmarks.busy_producer", address, new_topic(address)]
            busy = subprocess.Popen(command, stdin=subprocess.PIPE)
            stack.callback(busy.wait, 30)
            assert busy.stdin is not None
            stack.callback(busy.stdin.close)
        time.sleep(1.5)  # they load their library and fill their queues
        beside = one_record_times(address, topic, count, 10)
    return {
        "one record by socket, p50": idle,
        "one record beside two busy producers, p50": percentile(beside, 0.5),
        "the same as a multiple": percentile(beside, 0.5) / idle,
    }
