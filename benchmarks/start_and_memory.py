"""How soon a broker is there, and how much memory it keeps."""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from compat.broker_process import BrokerProcess
from compat.free_ports import free_ports
from compat.processes import resident_bytes
from compat.raw_client import RawClient, first_acknowledged

IDLE_CONNECTIONS = 1000
MEBIBYTE = 1024 * 1024


def import_trio_seconds() -> float:
    """What the largest part of our start-up costs by itself."""
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import trio"], check=True)
    return time.perf_counter() - began


def start_round() -> dict[str, float]:
    """From the start of a process to its first acknowledged record, in a new and empty directory."""
    with tempfile.TemporaryDirectory() as folder:
        broker = BrokerProcess(Path(folder))
        (port,) = free_ports(1)
        broker.address = f"127.0.0.1:{port}"
        trio_seconds = import_trio_seconds()
        began = time.perf_counter()
        broker.launch()
        try:
            first_acknowledged(broker.address, "first")
            seconds = time.perf_counter() - began
            time.sleep(0.5)
            idle = resident_bytes(broker.pid)
            began_stop = time.perf_counter()
        finally:
            broker.stop()
        stopped = time.perf_counter() - began_stop
    return {
        "import trio": trio_seconds * 1000,
        "first acknowledged record": seconds * 1000,
        "first acknowledged record / import trio": seconds / trio_seconds,
        "graceful stop": stopped * 1000,
        "memory, idle after one record": idle / MEBIBYTE,
    }


def connections_round(address: str, pid: int) -> dict[str, float]:
    """What a thousand connections cost that greeted and then say nothing.

    Nothing, for a runtime that finds room for them in a heap which it gives back meanwhile.
    """
    before = resident_bytes(pid)
    clients: list[RawClient] = []
    try:
        for _ in range(IDLE_CONNECTIONS):
            client = RawClient(address)
            clients.append(client)
            client.greet()
        after = resident_bytes(pid)
    finally:
        for client in clients:
            client.close()
    return {"memory of 1,000 idle connections": max(0, after - before) / MEBIBYTE}
