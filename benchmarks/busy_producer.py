"""A client that produces large batches until its input closes: what others must not suffer from.

It prints a line when its first batch is acknowledged, and at the end how many bytes were, and in which time.
"""

import sys
import threading
import time

from benchmarks.librdkafka import producer

VALUE_BYTES = 1_000_000


def main() -> None:
    address, topic = sys.argv[1:]
    closed = threading.Event()

    def wait_for_end_of_input() -> None:
        sys.stdin.read()
        closed.set()

    threading.Thread(target=wait_for_end_of_input, daemon=True).start()
    client = producer(
        address, settings={"linger.ms": 0, "message.max.bytes": 1_048_588, "queue.buffering.max.messages": 8}
    )
    value = bytes(VALUE_BYTES)
    acknowledged_count = 0
    began = 0.0

    def note(error: object, _message: object) -> None:
        nonlocal acknowledged_count, began
        if error is not None:
            return
        if not acknowledged_count:
            began = time.monotonic()
            print("busy", flush=True)
        acknowledged_count += 1

    while not closed.is_set():
        try:
            client.produce(topic, value, partition=0, on_delivery=note)
        except BufferError:
            client.poll(0.1)
        client.poll(0)
    print(acknowledged_count * VALUE_BYTES, time.monotonic() - began, flush=True)
    client.purge()
    client.flush(5)


if __name__ == "__main__":
    main()
