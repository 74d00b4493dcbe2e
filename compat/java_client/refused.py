"""What becomes of a client that is too old for Apache Kafka 4.4 (KIP-896), call by call.

Such a client is not refused as a whole: what it asks for in a version that is still served, it gets.
It must fare the same with us.  ``python -m compat.java_client.refused HOST:PORT`` prints how it fares with
a broker; how it does with Apache Kafka is in ``refused.json``.
"""

import json
import sys
import uuid
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path

from compat.java_client.program import NEWEST, command
from compat.scenarios.python.client import Committed, Consumer, Partition, Record, Refused
from compat.scenarios.python.stage import wait_for
from compat.scenarios.python.stored import is_served
from compat.scenarios.remote.client import RemoteClient
from compat.scenarios.remote.process import RemoteError, RemoteProcess

TOO_OLD = "0.10.2.2"
RECORDED = Path(__file__).with_name("refused.json")


def fate(address: str) -> dict[str, str]:
    """What each call of the old client gives, or how it fails.  Raises ClientMissing."""
    commands = [command(version) for version in (NEWEST, TOO_OLD)]
    with ExitStack() as opened:
        new, old = (RemoteClient(_started(opened, each)) for each in commands)
        topic = f"topic-{uuid.uuid4()}"
        with closing(new.admin(address)) as admin:
            admin.create_topic(topic)
        wait_for(lambda: is_served(address, topic, 1), f"{topic} is led")
        with closing(new.producer(address)) as producer:
            producer.send(topic, [Record(b"there")])
        return _told(old, address, topic)


def _started(opened: ExitStack, program: list[str]) -> RemoteProcess:
    process = RemoteProcess(program)
    opened.callback(process.stop)
    return process


def _told(client: RemoteClient, address: str, topic: str) -> dict[str, str]:
    partition, group = Partition(topic, 0), f"group-{uuid.uuid4()}"
    reader, member = client.consumer(address, group=group), client.consumer(address, group=group)
    reader.assign([partition])
    calls: dict[str, Callable[[], object]] = {
        "produce": lambda: client.producer(address).send(topic, [Record(b"refused")]),
        "produce with acks=0": lambda: client.producer(address, acks="none").send(topic, [Record(b"lost")]),
        "ask for partitions": lambda: reader.partitions_of(topic),
        "ask for bounds": lambda: list(reader.bounds([partition]).values()),
        "find a time": lambda: list(reader.find_times({partition: 0}).values()),
        "commit": lambda: reader.commit({partition: Committed(1)}),
        "ask for what is committed": lambda: list(reader.committed([partition]).values()),
        "consume": lambda: (reader.seek(partition, 0), reader.poll(1.5))[1],
        "join a group": lambda: _join(member, topic),
        "commit as a member": member.commit,
    }
    return {name: _outcome(call) for name, call in calls.items()}


def _join(member: Consumer, topic: str) -> list[int]:
    owned: set[Partition] = set()
    member.subscribe([topic], gained=owned.update)
    wait_for(lambda: member.poll(0.2) or owned, "the member has its partition")
    return [partition.number for partition in owned]


def _outcome(call: Callable[[], object]) -> str:
    try:
        return f"gives {call()}"
    except (Refused, RemoteError) as error:
        return f"fails: {error}"


if __name__ == "__main__":
    print(json.dumps(fate(sys.argv[1]), indent=1))
