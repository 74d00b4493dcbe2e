"""A group whose members come and go gets every record, and commits none twice."""

import threading
import uuid

import pytest
from confluent_kafka import Producer

from compat.python_clients import CLIENTS
from compat.scenarios.python.stage import Stage
from compat.waiting import wait_until
from tests.integration.group_members import Ledger, new_member

pytestmark = pytest.mark.slow

PARTITION_COUNT = 6
RECORD_COUNT = 3000
AHEAD_MAX = 300
"""Records that are produced before the group has committed those before: so that work lasts through the
rebalances."""


@pytest.mark.parametrize(
    ("client", "cooperative"),
    [
        ("kafka-python", False),
        ("kafka-python", True),
        ("confluent-kafka", False),
        ("confluent-kafka", True),
        ("aiokafka", False),
    ],
)
def test_members_that_come_and_go_lose_and_repeat_nothing(
    client: str, cooperative: bool, address: str
) -> None:
    with Stage(CLIENTS[client], address) as stage:
        topic = stage.topic(PARTITION_COUNT)
    group, ledger = f"group-{uuid.uuid4()}", Ledger()
    first, second, third, fourth = (
        new_member(client, address, topic, group, ledger, cooperative=cooperative) for _ in range(4)
    )
    producing = threading.Thread(target=produce_gradually, args=(address, topic, ledger), daemon=True)
    producing.start()

    first.start()
    reach(ledger, 400)
    second.start()
    third.start()
    wait_until(lambda: second.owned and third.owned, "three members share the partitions")
    reach(ledger, 1000)
    first.leave()
    wait_until(
        lambda: len(second.owned) + len(third.owned) == PARTITION_COUNT, "two members share the partitions"
    )
    reach(ledger, 1800)
    fourth.start()
    wait_until(lambda: fourth.owned, "a new member has partitions")
    reach(ledger, RECORD_COUNT)
    for member in (second, third, fourth):
        member.leave()

    producing.join()
    assert ledger.failures == []
    assert ledger.count == RECORD_COUNT
    assert ledger.repeated() == []


def reach(ledger: Ledger, count: int) -> None:
    wait_until(lambda: ledger.failures or ledger.count >= count, f"{count} records are committed")
    assert ledger.failures == []


def produce_gradually(address: str, topic: str, ledger: Ledger) -> None:
    producer = Producer({"bootstrap.servers": address, "linger.ms": 1, "log_level": 3})
    for number in range(RECORD_COUNT):
        if number - ledger.count >= AHEAD_MAX:
            producer.flush(60)
            reach(ledger, number - AHEAD_MAX + 1)
        producer.produce(topic, b"%d" % number, partition=number % PARTITION_COUNT)
        producer.poll(0)
    producer.flush(60)
