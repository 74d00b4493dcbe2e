"""What is answered to who asks the wrong broker, against what Apache Kafka was recorded to say."""

import trio
from trio.testing import MockClock

from broker.network.node_client import response_class
from broker.network.waiting import Waiting
from protocol.stored.metadata_records import FeatureLevelRecord
from tests.broker.coordination.several_brokers import Cluster, several_brokers
from tests.broker.coordination.wrong_broker import TOPICS, questions, recorded, written
from tests.broker.groups.group_broker import as_read


async def asked_here(cluster: Cluster) -> dict[str, str]:
    topic_id = cluster.image.topics["t"].id
    found = {}
    for name, request, version in questions(topic_id):
        answer = cluster.brokers[1].begin(request, version)
        if isinstance(answer, Waiting):
            await trio.sleep(0.2)
            if not answer.is_answered:
                answer.expire()
            answer = await answer.wait()
        found[name] = written(as_read(answer, response_class(type(request)), version), topic_id)
    return found


async def test_the_wrong_broker_says_what_kafka_says(autojump_clock: MockClock) -> None:
    async with several_brokers(2) as cluster:
        for name, partitions in TOPICS.items():
            cluster.create_topic(name, partitions)
        levels = {"group.version": 1, "transaction.version": 2, "share.version": 1, "streams.version": 1}
        cluster.apply(*[FeatureLevelRecord(name=name, feature_level=level) for name, level in levels.items()])
        found = await asked_here(cluster)
    assert found == recorded()
