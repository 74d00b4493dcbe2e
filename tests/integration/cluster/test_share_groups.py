"""Share groups of a cluster whose nodes die: every record comes to somebody, and its state is kept."""

import random
import threading
from collections import Counter
from pathlib import Path

import pytest
from confluent_kafka import KafkaException, Producer, ShareConsumer
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.cimpl import NewTopic

from compat.librdkafka import IDEMPOTENT
from compat.waiting import wait_until
from ottla.cluster import Cluster
from tests.integration.cluster.exactly_once import SETTINGS, let_pass, wait_in_sync
from tests.integration.exactly_once import QUICK

pytestmark = pytest.mark.slow

KILLS = 3
RECORDS = 600
PARTITIONS = 6
MEMBERS = 3
PATIENCE_SECONDS = 90.0

SHARE_SETTINGS = {
    **SETTINGS,
    "share.coordinator.state.topic.num.partitions": "3",
    "share.coordinator.state.topic.replication.factor": "3",
}


class Member(threading.Thread):
    """Takes records, and accepts them all."""

    def __init__(self, servers: str) -> None:
        super().__init__(daemon=True)
        self._consumer = ShareConsumer({**QUICK, "bootstrap.servers": servers, "group.id": "s"})
        self.ended = threading.Event()
        self.taken: list[int] = []

    def run(self) -> None:
        self._consumer.subscribe(["t"])
        while not self.ended.is_set():
            try:
                messages = self._consumer.poll(0.2)
                self.taken += [int(each.value() or b"-1") for each in messages if each.error() is None]
                self._consumer.commit_sync(5)
            except KafkaException:
                pass  # somebody is away: what was not accepted comes again
        self._consumer.close()


def test_every_record_comes_to_somebody(tmp_path: Path, chance: random.Random) -> None:
    with Cluster(tmp_path, 3, settings=SHARE_SETTINGS) as cluster:
        servers = cluster.bootstrap_servers
        admin = AdminClient({**QUICK, "bootstrap.servers": servers})
        for done in admin.create_topics([NewTopic("t", PARTITIONS, 3)]).values():
            done.result()
        earliest = ConfigEntry(
            "share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET
        )
        group = ConfigResource(ResourceType.GROUP, "s", incremental_configs=[earliest])
        for altered in admin.incremental_alter_configs([group]).values():
            altered.result()
        producer = Producer({**QUICK, **IDEMPOTENT, "bootstrap.servers": servers})
        members = [Member(servers) for _ in range(MEMBERS)]
        for member in members:
            member.start()

        def taken() -> Counter[int]:
            return Counter(number for member in members for number in list(member.taken))

        for round_number in range(1, KILLS + 1):
            goal = RECORDS * round_number
            for number in range(goal - RECORDS, goal):
                producer.produce("t", b"%d" % number, partition=number % PARTITIONS)
            assert producer.flush(PATIENCE_SECONDS) == 0
            wait_until(
                lambda: len(taken()) > goal - RECORDS,  # noqa: B023
                "somebody takes records",
                patience_seconds=PATIENCE_SECONDS,
            )
            node = chance.choice(list(cluster.nodes.values()))
            node.kill()
            let_pass(chance.choice((0.0, 4.0)))
            cluster.start(node.name)
            wait_until(
                lambda: len(taken()) == goal,  # noqa: B023
                "all are taken",
                patience_seconds=PATIENCE_SECONDS,
            )
            node.wait_ready()
            wait_in_sync(admin)
        for member in members:
            member.ended.set()
        for member in members:
            member.join(PATIENCE_SECONDS)
        again = sum(times > 1 for times in taken().values())
        assert again < RECORDS, "what was accepted does not come again"
