"""What a client learns about brokers and topics, and the topics that appear because it asks."""

import socket

from compat.probe import split_address
from compat.scenarios.python.checks import expect, expect_subset, expect_that
from compat.scenarios.python.client import Record
from compat.scenarios.python.registry import plays
from compat.scenarios.python.stage import Stage, values, wait_for


@plays("cluster")
def describe_the_cluster(stage: Stage) -> None:
    cluster = stage.admin.describe_cluster()
    (address,) = cluster.brokers.values()
    expect(resolved(address), resolved(stage.address), "the broker's address")
    expect_subset([cluster.controller_id], cluster.brokers, "brokers")
    expect_that(cluster.cluster_id, "the cluster has no id")


def resolved(address: str) -> tuple[str, int]:
    host, port = split_address(address)
    return socket.gethostbyname(host), port


@plays("topics")
def describe_topics(stage: Stage) -> None:
    topic = stage.topic(3)
    expect_subset([topic], stage.admin.list_topics(), "topics")
    described = stage.admin.describe_topic(topic)
    expect([partition.number for partition in described], [0, 1, 2], "partitions")
    for partition in described:
        expect(partition.replicas, [partition.leader], f"replicas of partition {partition.number}")
        expect(partition.in_sync, [partition.leader], f"in-sync replicas of partition {partition.number}")


@plays("topic-made-by-producing")
def produce_to_a_topic_that_is_not_there(stage: Stage) -> None:
    topic = stage.new_name("made")
    (place,) = stage.send(topic, [Record(b"first")])
    expect(place.offset, 0, "the first record's offset")
    expect(values(stage.take(topic, 1)), [b"first"], "records")


@plays("topic-not-made-by-asking")
def ask_for_a_topic_that_is_not_there(stage: Stage) -> None:
    topic = stage.new_name("absent")
    consumer = stage.consumer(may_create_topics=False)
    expect(consumer.partitions_of(topic), set(), "partitions of a topic that is not there")
    present = stage.topic()
    wait_for(lambda: present in stage.admin.list_topics(), "a topic made later is listed")
    expect_that(topic not in stage.admin.list_topics(), "asking for a topic made it")
