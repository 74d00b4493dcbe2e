"""A broker that stops and comes back has kept records, offsets, topics and its identity."""

import random
import uuid

import pytest
from confluent_kafka import Consumer, Producer, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient

from compat.broker_process import BrokerProcess
from compat.clients import LIBRARIES, make_samples
from compat.clients.round_trip import differences
from tests.integration.conftest import StartBroker
from tests.integration.group_members import ConfluentMember, Ledger
from compat.waiting import wait_until

pytestmark = pytest.mark.slow

ENDINGS = {"stopped": BrokerProcess.stop, "killed": BrokerProcess.kill}


@pytest.fixture(params=ENDINGS)
def ending(request: pytest.FixtureRequest) -> str:
    name = request.param
    assert isinstance(name, str)
    return name


def test_records_and_their_offsets_stay(
    ending: str, start_broker: StartBroker, chance: random.Random
) -> None:
    broker = start_broker()
    library = LIBRARIES["confluent-kafka"]
    samples = make_samples(500, chance)
    library.create_topic(broker.address, "kept", 3)
    places = library.produce(broker.address, "kept", samples, codec="lz4", idempotent=True)
    ENDINGS[ending](broker)
    broker.start()
    taken = {record.place: record for record in library.consume(broker.address, "kept", len(samples))}
    assert [taken[place][1:] for place in places] == [sample[1:] for sample in samples]


def test_committed_offsets_stay(ending: str, start_broker: StartBroker) -> None:
    broker = start_broker()
    group = "readers"
    offsets = [TopicPartition("kept", partition, 10 + partition) for partition in range(3)]
    LIBRARIES["confluent-kafka"].create_topic(broker.address, "kept", 3)
    committing = Consumer({"bootstrap.servers": broker.address, "group.id": group})
    committing.commit(offsets=offsets, asynchronous=False)
    committing.close()
    ENDINGS[ending](broker)
    broker.start()
    reading = Consumer({"bootstrap.servers": broker.address, "group.id": group})
    found = reading.committed([TopicPartition("kept", partition) for partition in range(3)], 30)
    reading.close()
    assert [(entry.partition, entry.offset) for entry in found] == [(0, 10), (1, 11), (2, 12)]


def test_a_group_goes_on_where_it_was(ending: str, start_broker: StartBroker) -> None:
    broker = start_broker()
    LIBRARIES["confluent-kafka"].create_topic(broker.address, "work", 3)
    producer = Producer({"bootstrap.servers": broker.address, "log_level": 2})
    ledger = Ledger()
    member = ConfluentMember(broker.address, "work", "workers", ledger)
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
    member.stop()
    assert ledger.failures == []
    assert ledger.repeated() == []


def test_topics_settings_and_identity_stay(ending: str, start_broker: StartBroker) -> None:
    broker = start_broker()
    topic = f"kept-{uuid.uuid4()}"
    LIBRARIES["kafka-python"].create_topic(broker.address, topic, 4)
    before = describe(broker.address)
    assert topic in before[1]
    ENDINGS[ending](broker)
    broker.start()
    assert describe(broker.address) == before


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
    library = LIBRARIES["confluent-kafka"]
    for number in range(5):
        topic = f"round-{number}"
        library.create_topic(broker.address, topic, 2)
        samples = make_samples(50, chance)
        assert differences(library, broker.address, topic, samples, codec="none", idempotent=True) == []
        ENDINGS[chance.choice(list(ENDINGS))](broker)
        broker.start()
    assert len(describe(broker.address)[1]) == 5
