"""A broker that stops and comes back has kept records, offsets, topics and its identity."""

import random

import pytest
from confluent_kafka import Consumer, Producer, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient

from compat.broker_process import BrokerProcess
from compat.python_clients import CLIENTS
from compat.scenarios.python.records import differences, sample_records
from compat.scenarios.python.round_trip import round_trip
from compat.scenarios.python.stage import Stage
from compat.waiting import wait_until
from tests.integration.conftest import StartBroker
from tests.integration.group_members import Ledger, new_member

pytestmark = pytest.mark.slow

ENDINGS = {"stopped": BrokerProcess.stop, "killed": BrokerProcess.kill}


@pytest.fixture(params=ENDINGS)
def ending(request: pytest.FixtureRequest) -> str:
    name = request.param
    assert isinstance(name, str)
    return name


def test_records_commits_topics_and_identity_stay(
    ending: str, start_broker: StartBroker, chance: random.Random
) -> None:
    broker = start_broker()
    client = CLIENTS["confluent-kafka"]
    sent = sample_records(500, chance)
    with Stage(client, broker.address) as stage:
        topic = stage.topic(3)
        stage.topic(4)
        places = stage.send(topic, sent, codec="lz4", idempotent=True)
    partitions = [TopicPartition(topic, partition) for partition in range(3)]
    offsets = [TopicPartition(topic, partition, 10 + partition) for partition in range(3)]
    reader = {"bootstrap.servers": broker.address, "group.id": "readers"}
    committing = Consumer(reader)
    committing.commit(offsets=offsets, asynchronous=False)
    committing.close()
    before = describe(broker.address)
    assert before[1][topic][1] == 3
    assert len(before[1]) == 2

    ENDINGS[ending](broker)
    broker.start()
    assert describe(broker.address) == before
    with Stage(client, broker.address) as stage:
        taken = stage.take(topic, len(sent), partition_count=3)
    assert differences(sent, places, taken) == []
    reading = Consumer(reader)
    found = reading.committed(partitions, 30)
    reading.close()
    assert [(entry.partition, entry.offset) for entry in found] == [(0, 10), (1, 11), (2, 12)]


def test_a_group_goes_on_where_it_was(ending: str, start_broker: StartBroker) -> None:
    broker = start_broker()
    with Stage(CLIENTS["confluent-kafka"], broker.address) as stage:
        stage.topic(3, name="work")
    producer = Producer({"bootstrap.servers": broker.address, "log_level": 2})
    ledger = Ledger()
    member = new_member("confluent-kafka", broker.address, "work", "workers", ledger)
    member.start()
    for number in range(600):
        if number == 300:
            producer.flush(60)
            wait_until(lambda: ledger.count >= 300, "the first half is committed")
            ENDINGS[ending](broker)
            broker.start()
        producer.produce("work", b"%d" % number, partition=number % 3)
        producer.poll(0)
    producer.flush(60)
    wait_until(lambda: ledger.failures or ledger.count >= 600, "the second half is committed")
    member.leave()
    assert ledger.failures == []
    assert ledger.repeated() == []


def describe(address: str) -> tuple[str, dict[str, tuple[str, int]]]:
    """Cluster id, and the id and the number of partitions of each topic."""
    admin = AdminClient({"bootstrap.servers": address})
    cluster = admin.list_topics(timeout=30)
    names = sorted(name for name in cluster.topics if not name.startswith("__"))
    described = admin.describe_topics(TopicCollection(names)) if names else {}
    topics = {name: future.result(30) for name, future in described.items()}
    return str(cluster.cluster_id), {
        name: (str(topic.topic_id), len(topic.partitions)) for name, topic in topics.items()
    }


def test_many_starts_and_stops_leave_a_directory_that_works(
    start_broker: StartBroker, chance: random.Random
) -> None:
    broker = start_broker()
    for _ in range(5):
        assert round_trip(CLIENTS["confluent-kafka"], broker.address, sample_records(50, chance)) == []
        ENDINGS[chance.choice(list(ENDINGS))](broker)
        broker.start()
    assert len(describe(broker.address)[1]) == 5
