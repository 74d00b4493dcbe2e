"""Share groups in a directory that Kafka and we open in turn: each goes on where the other stopped."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from compat.oracle.connection import PATIENCE_SECONDS
from compat.oracle.conversations.share_acknowledge import acknowledge
from compat.oracle.conversations.share_fetch import ACCEPT, CLOSE, REJECT, RELEASE, SOON_MS, Acks, fetch
from compat.oracle.conversations.share_groups import FIRST, SECOND, beat, describe
from compat.oracle.conversations.share_offsets import all_offsets, alter
from compat.oracle.kafka import KafkaNode
from compat.oracle.preparing import Topic
from compat.oracle.test_directories import dump
from compat.oracle.test_group_directories import Client, kafka_on, us_on
from protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

pytestmark = pytest.mark.slow

GROUP, MOVED = "sharers", "moved"
GROUP_RESOURCE = 32


class Sharer(Client):
    """Does what members of share groups do, over one connection."""

    _session_epoch = 0

    def picture(self) -> dict[str, Any]:
        """What a broker says of the groups."""
        self.settle_groups()
        told: dict[str, Any] = {}
        for group in self.quietly(describe(GROUP, MOVED)).groups:
            assert not group.error_code, group
            group.members.sort(key=lambda member: member.member_id)
            told[group.group_id] = repr(group)
        for group in self.quietly(all_offsets(GROUP, MOVED)).groups:
            told[f"offsets of {group.group_id}"] = {
                (topic.topic_id, place.partition_index): (place.start_offset, place.leader_epoch, place.lag)
                for topic in group.topics
                for place in topic.partitions
            }
        return told

    def acquire(self) -> list[tuple[int, int, int]]:
        """What a new session is given first: first and last offset, and which delivery it is.

        A broker may answer with nothing until it has read what the share coordinator keeps.
        """
        topic = self.known_topic("t.shared")
        deadline = time.monotonic() + PATIENCE_SECONDS
        self._session_epoch = 0
        while True:
            asked = fetch(GROUP, topic, member=FIRST, epoch=self._session_epoch, wait_ms=SOON_MS)
            answer = self.quietly(asked)
            self._session_epoch += 1
            assert not answer.error_code, answer
            found = [
                (acquired.first_offset, acquired.last_offset, acquired.delivery_count)
                for of in answer.responses
                for place in of.partitions
                for acquired in place.acquired_records
            ]
            if found:
                return found
            assert time.monotonic() < deadline, answer

    def acknowledge(self, topic: Topic, acks: Acks) -> None:
        answer = self.quietly(acknowledge(GROUP, topic, *acks, member=FIRST, epoch=self._session_epoch))
        assert not answer.error_code, answer
        assert not answer.responses[0].partitions[0].error_code, answer


@contextmanager
def sharer_of(address: str) -> Iterator[Sharer]:
    client = Sharer(address)
    try:
        client.ready()
        yield client
    finally:
        client.close()


def form_groups(client: Sharer) -> None:
    """One group that reads, with records in every state; and one that was moved."""
    topic = client.topic("t.shared")
    change = AlterableConfig(name="share.auto.offset.reset", value="earliest")
    resource = AlterConfigsResource(resource_type=GROUP_RESOURCE, resource_name=GROUP, configs=[change])
    client.quietly(IncrementalAlterConfigsRequest(resources=[resource]))
    client.settle()
    client.produce(topic, *"abcdefghij")
    client.quietly(alter(MOVED, (topic, {0: 4})))
    client.quietly(beat(GROUP, FIRST, 0, topics=[topic]))
    client.quietly(beat(GROUP, SECOND, 0, topics=[topic]))
    client.until(beat(GROUP, FIRST, 2, topics=[topic]), lambda answer: answer.assignment.topic_partitions)
    client.until(
        all_offsets(GROUP, MOVED),
        lambda answer: all(group.topics for group in answer.groups),
    )
    assert client.acquire() == [(0, 9, 1)]
    client.acknowledge(topic, ((0, 1, ACCEPT), (3, 3, REJECT), (4, 4, RELEASE), (6, 7, ACCEPT)))
    client.quietly(fetch(GROUP, member=FIRST, epoch=CLOSE))


def taking_turns(folder: Path, first: Callable[[KafkaNode], Any], second: Callable[[KafkaNode], Any]) -> None:
    node = KafkaNode(folder)
    with first(node) as address, sharer_of(address) as client:
        form_groups(client)
        formed = client.picture()
    with second(node) as address, sharer_of(address) as client:
        assert client.picture() == formed
        left = client.acquire()
        assert left == [(2, 2, 2), (4, 5, 2), (8, 9, 2)]
        topic = client.known_topic("t.shared")
        client.acknowledge(topic, ((2, 2, ACCEPT),))
        client.quietly(fetch(GROUP, member=FIRST, epoch=CLOSE))
        went_on = client.picture()
    with first(node) as address, sharer_of(address) as client:
        assert client.picture() == went_on
        left = client.acquire()
        assert sum(last - first + 1 for first, last, _ in left) == 4
        assert {each[2] for each in left} == {3}, "delivered by both before"


def test_kafka_goes_on_with_our_share_groups_and_we_with_its(kafka_jars: Path, tmp_path: Path) -> None:
    taking_turns(tmp_path / "node", us_on, kafka_on)


def test_we_go_on_with_kafka_s_share_groups_and_it_with_ours(kafka_jars: Path, tmp_path: Path) -> None:
    taking_turns(tmp_path / "node", kafka_on, us_on)


def test_kafka_s_dump_reads_our_share_groups(kafka_jars: Path, tmp_path: Path) -> None:
    node = KafkaNode(tmp_path / "node")
    with us_on(node) as address, sharer_of(address) as client:
        form_groups(client)
        client.quietly(beat(GROUP, SECOND, -1))
    assert kinds_in(node, "__consumer_offsets", "--offsets-decoder") >= {"10", "11", "12", "13", "14", "15"}
    assert kinds_in(node, "__share_group_state", "--share-group-state-decoder") == {"0", "1"}


def kinds_in(node: KafkaNode, topic: str, decoder: str) -> set[str]:
    """The types of all records in the topic, as Kafka's dump reads them."""
    kinds = set()
    for log in node.data.glob(f"{topic}-*/00000000000000000000.log"):
        for line in dump(log, decoder, "--deep-iteration").splitlines():
            if "payload:" in line:
                key = line.partition("key: ")[2].partition(" payload: ")[0]
                kinds.add(json.loads(key)["type"])
    return kinds
