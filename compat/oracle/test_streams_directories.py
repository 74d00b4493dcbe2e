"""Streams groups in a directory that Kafka and we open in turn: each goes on where the other stopped."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from compat.oracle.connection import PATIENCE_SECONDS
from compat.oracle.conversations.offsets import commit
from compat.oracle.conversations.streams_groups import (
    FIRST,
    SECOND,
    THIRD,
    at_once,
    beat,
    describe,
    internal,
    join,
    leave,
    owned,
    part,
    reading,
    topology,
)
from compat.oracle.kafka import KafkaNode
from compat.oracle.preparing import Topic
from compat.oracle.test_directories import dump
from compat.oracle.test_group_directories import Client, kafka_on, us_on
from protocol.messages.streams_group_describe import TaskIds
from protocol.messages.streams_group_heartbeat import Topology

pytestmark = pytest.mark.slow

GROUP, NOT_READY, ALONE = "two-workers", "without-its-topic", "one-worker"
GROUPS = (GROUP, NOT_READY, ALONE)
RECORD_TYPES = {"17", "19", "20", "21", "22", "23"}


class Worker(Client):
    """Does what members of streams groups do, over one connection."""

    def picture(self) -> dict[str, Any]:
        """What a broker says of the groups and knows without having heard from their members."""
        self.settle_groups()
        told: dict[str, Any] = {}
        for group in self.quietly(describe(*GROUPS)).groups:
            assert not group.error_code, group
            group.members.sort(key=lambda member: member.member_id)
            for member in group.members:
                member.client_tags.sort(key=lambda tag: str(tag.key))
            for part_of in group.topology.subtopologies:
                for topic in (*part_of.repartition_source_topics, *part_of.state_changelog_topics):
                    topic.partitions = 0  # known when a member has asked
            told[group.group_id] = repr(group)
        return told | self.offsets_of(GROUPS)


@contextmanager
def worker_of(address: str) -> Iterator[Worker]:
    client = Worker(address)
    try:
        client.ready()
        yield client
    finally:
        client.close()


def counting(source: Topic) -> Topology:
    return topology(
        part("0", source, writes=["by-word"]),
        part("1", reads=[internal("by-word")], stores=[internal("counts-log", retention_ms="1000")]),
    )


def form_groups(client: Worker) -> None:
    """Groups in every state that a member can be in."""
    talk: Any = client
    source = client.topic("t", 4)
    for group in GROUPS:
        at_once(talk, group, streams_num_standby_replicas="1")
    app = counting(source)
    client.well(
        join(GROUP, FIRST, app, instance="static", rack="here", endpoint=("host", 7), tags={"zone": "a"})
    )
    client.until(beat(GROUP, FIRST, 2, instance="static"), lambda answer: not answer.status)
    client.quietly(commit(GROUP, (source, 0, 5), (source, 1, 7), member=FIRST, generation=3))
    client.well(join(GROUP, SECOND, app))
    told = client.well(beat(GROUP, FIRST, 3, instance="static"))
    assert told.active_tasks is not None, "it must give tasks up"
    client.well(join(NOT_READY, FIRST, reading("no-such-topic")))
    client.well(join(ALONE, FIRST, reading(source)))
    client.well(leave(ALONE, FIRST))
    client.well(join(ALONE, SECOND, reading(source)))


def catch_up(client: Worker) -> int:
    """Let the members give up what they must and take what is theirs; the epoch they are all at then."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        client.settle_groups()
        told = client.quietly(describe(GROUP)).groups[0]
        if told.group_state == "Stable":
            return int(told.group_epoch)
        assert time.monotonic() < deadline, str(told)
        for member in told.members:
            has, meant = member.assignment, member.target_assignment
            owns = owned(
                both(has.active_tasks, meant.active_tasks), both(has.standby_tasks, meant.standby_tasks)
            )
            client.well(
                beat(GROUP, member.member_id, member.member_epoch, owns=owns, instance=member.instance_id)
            )


def both(some: list[TaskIds], others: list[TaskIds]) -> dict[str, list[int]]:
    wanted = {tasks.subtopology_id: tasks.partitions for tasks in others}
    found = {
        tasks.subtopology_id: [each for each in tasks.partitions if each in wanted[tasks.subtopology_id]]
        for tasks in some
        if tasks.subtopology_id in wanted
    }
    return {name: partitions for name, partitions in found.items() if partitions}


def go_on(client: Worker) -> None:
    """The members do as they would have done with the other broker."""
    source = client.known_topic("t")
    client.quietly(commit(GROUP, (source, 0, 6), member=FIRST, generation=catch_up(client)))
    client.well(join(GROUP, THIRD, counting(source)))
    client.well(leave(GROUP, THIRD))
    catch_up(client)
    client.well(leave(GROUP, FIRST, epoch=-2, instance="static"))
    client.well(
        join(GROUP, FIRST, counting(source), instance="static", endpoint=("host", 7), tags={"zone": "a"})
    )
    catch_up(client)


def taking_turns(folder: Path, first: Callable[[KafkaNode], Any], second: Callable[[KafkaNode], Any]) -> None:
    node = KafkaNode(folder)
    with first(node) as address, worker_of(address) as client:
        form_groups(client)
        formed = client.picture()
    with second(node) as address, worker_of(address) as client:
        assert client.picture() == formed
        go_on(client)
        went_on = client.picture()
    with first(node) as address, worker_of(address) as client:
        assert client.picture() == went_on
        go_on(client)


def test_kafka_goes_on_with_our_streams_groups_and_we_with_its(kafka_jars: Path, tmp_path: Path) -> None:
    taking_turns(tmp_path / "node", us_on, kafka_on)


def test_we_go_on_with_kafka_s_streams_groups_and_it_with_ours(kafka_jars: Path, tmp_path: Path) -> None:
    taking_turns(tmp_path / "node", kafka_on, us_on)


def test_kafka_s_dump_reads_our_streams_groups(kafka_jars: Path, tmp_path: Path) -> None:
    node = KafkaNode(tmp_path / "node")
    with us_on(node) as address, worker_of(address) as client:
        form_groups(client)
        client.well(leave(ALONE, SECOND))
    kinds = set()
    for log in node.data.glob("__consumer_offsets-*/00000000000000000000.log"):
        for line in dump(log, "--offsets-decoder", "--deep-iteration").splitlines():
            if "payload:" in line:
                key = line.partition("key: ")[2].partition(" payload: ")[0]
                kinds.add(json.loads(key)["type"])
    assert kinds >= RECORD_TYPES
