"""A group whose members come and go gets every record, and commits none twice."""

import threading
import uuid

import pytest
from confluent_kafka import Producer

from compat.clients import LIBRARIES
from tests.integration.group_members import MEMBERS, Ledger
from compat.waiting import wait_until

pytestmark = pytest.mark.slow

PARTITION_COUNT = 6
RECORD_COUNT = 3000
AHEAD_MAX = 300
"""Records that are produced before the group has committed those before: so that work lasts through the
rebalances."""


@pytest.mark.parametrize("kind", MEMBERS)
def test_members_that_come_and_go_lose_and_repeat_nothing(kind: str, address: str) -> None:
    topic, group = f"group-{uuid.uuid4()}", f"group-{uuid.uuid4()}"
    LIBRARIES["confluent-kafka"].create_topic(address, topic, PARTITION_COUNT)
    ledger = Ledger()
    first, second, third, fourth = (MEMBERS[kind](address, topic, group, ledger) for _ in range(4))
    producing = threading.Thread(target=produce_gradually, args=(address, topic, ledger), daemon=True)
    producing.start()

    first.start()
    reach(ledger, 400)
    second.start()
    third.start()
    wait_until(lambda: second.assigned and third.assigned, "three members share the partitions")
    reach(ledger, 1000)
    first.stop()
    wait_until(
        lambda: second.assigned + third.assigned == PARTITION_COUNT, "two members share the partitions"
    )
    reach(ledger, 1800)
    fourth.start()
    wait_until(lambda: fourth.assigned, "a new member has partitions")
    reach(ledger, RECORD_COUNT)
    for member in (second, third, fourth):
        member.stop()

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
