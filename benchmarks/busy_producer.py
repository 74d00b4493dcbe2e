"""A client that produces large batches until its input closes: what others must not suffer from."""

import sys
import threading

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
    while not closed.is_set():
        try:
            client.produce(topic, value, partition=0)
        except BufferError:
            client.poll(0.1)
        client.poll(0)
    client.purge()
    client.flush(5)


if __name__ == "__main__":
    main()
