"""Offsets of share groups: where they stand, moving them, and forgetting them and their groups."""

import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

from compat.oracle.conversation import conversation
from compat.oracle.conversations.consumer_groups import join
from compat.oracle.conversations.share_groups import FIRST, at_once, beat, describe, wait_for_partitions
from compat.oracle.preparing import Topic
from compat.oracle.talk import Talk
from protocol.api_keys import ApiKey
from protocol.messages import alter_share_group_offsets as altering
from protocol.messages import delete_share_group_offsets as deleting
from protocol.messages import describe_share_group_offsets as describing
from protocol.messages.delete_groups import DeleteGroupsRequest

DESCRIBE: Final = ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS
ALTER: Final = ApiKey.ALTER_SHARE_GROUP_OFFSETS
DELETE: Final = ApiKey.DELETE_SHARE_GROUP_OFFSETS


def offsets(group: str, *topics: tuple[Topic | str, Sequence[int]]) -> Any:
    wanted = [
        describing.DescribeShareGroupOffsetsRequestTopic(topic_name=_name(topic), partitions=list(partitions))
        for topic, partitions in topics
    ]
    asked = describing.DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=wanted)
    return describing.DescribeShareGroupOffsetsRequest(groups=[asked])


def all_offsets(*groups: str) -> Any:
    asked = [
        describing.DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=None) for group in groups
    ]
    return describing.DescribeShareGroupOffsetsRequest(groups=asked)


def alter(group: str, *topics: tuple[Topic | str, Mapping[int, int]]) -> Any:
    wanted = [
        altering.AlterShareGroupOffsetsRequestTopic(
            topic_name=_name(topic),
            partitions=[
                altering.AlterShareGroupOffsetsRequestPartition(
                    partition_index=partition, start_offset=offset
                )
                for partition, offset in of_topic.items()
            ],
        )
        for topic, of_topic in topics
    ]
    return altering.AlterShareGroupOffsetsRequest(group_id=group, topics=wanted)


def delete(group: str, *topics: Topic | str) -> Any:
    wanted = [deleting.DeleteShareGroupOffsetsRequestTopic(topic_name=_name(topic)) for topic in topics]
    return deleting.DeleteShareGroupOffsetsRequest(group_id=group, topics=wanted)


def _name(topic: Topic | str) -> str:
    return topic.name if isinstance(topic, Topic) else topic


@conversation(DESCRIBE, ALTER)
def moving_a_group(talk: Talk) -> None:
    topic = talk.topic("t", 2)
    talk.produce(topic, *"abcdefghij")
    group = at_once(talk)
    talk.ask("nothing yet", all_offsets(group))
    talk.ask("one partition, nothing yet", offsets(group, (topic, [0])))
    talk.ask("move it there", alter(group, (topic, {0: 4})))
    wait_for_offset(talk, group, topic, 0, 4)
    talk.ask("where it is", offsets(group, (topic, [0, 1])))
    talk.settle_groups()
    talk.ask("the group", describe(group))
    talk.ask("move both", alter(group, (topic, {0: 7, 1: 3})))
    wait_for_offset(talk, group, topic, 0, 7)
    talk.ask("where both are", offsets(group, (topic, [0, 1])))
    talk.ask("move it behind the end", alter(group, (topic, {0: 70})))
    wait_for_offset(talk, group, topic, 0, 70)
    talk.ask("behind the end", offsets(group, (topic, [0])))
    talk.settle_groups()
    talk.ask("the group after three moves", describe(group))
    talk.ask("a member joins", beat(group, FIRST, 0, topics=[topic]))


def wait_for_offset(talk: Talk, group: str, topic: Topic, partition: int, offset: int) -> None:
    """Wait until it is there: Kafka tells of a start that it has not told its own group yet."""
    for _ in range(100):
        answer = talk.quietly(offsets(group, (topic, [partition])))
        if answer.groups[0].topics[0].partitions[0].start_offset == offset:
            return
        time.sleep(0.1)
    raise AssertionError(f"{group} does not come to {offset}")


@conversation(DESCRIBE, ALTER, DELETE)
def forgetting(talk: Talk) -> None:
    topic, other = talk.topic("t"), talk.topic("other")
    talk.produce(topic, *"abcdefghij")
    group = at_once(talk)
    talk.ask("forget what is not there", delete(group, topic))
    talk.quietly(beat(group, FIRST, 0, topics=[topic]))
    wait_for_partitions(talk, group, FIRST, 2, [topic], 1)
    talk.ask("of a group that has begun", all_offsets(group))
    talk.ask("move a group with members", alter(group, (topic, {0: 4})))
    talk.ask("forget a topic that is read", delete(group, topic))
    talk.quietly(beat(group, FIRST, -1))
    talk.ask("forget it now", delete(group, topic, other, "nowhere-at-all"))
    talk.ask("forget it again", delete(group, topic))
    talk.ask("what is left", all_offsets(group))
    talk.ask("what is left of it", offsets(group, (topic, [0])))
    talk.ask("delete the group", DeleteGroupsRequest(groups_names=[group]))
    talk.ask("delete it again", DeleteGroupsRequest(groups_names=[group]))
    talk.ask("nothing is left", describe(group))


@conversation(DESCRIBE, ALTER, DELETE)
def a_group_that_comes_back(talk: Talk) -> None:
    topic = talk.topic("t")
    talk.produce(topic, *"abcdefghij")
    group = at_once(talk)
    talk.quietly(alter(group, (topic, {0: 4})))
    wait_for_offset(talk, group, topic, 0, 4)
    talk.settle_groups()
    talk.quietly(alter(group, (topic, {0: 5})))
    wait_for_offset(talk, group, topic, 0, 5)
    talk.settle_groups()
    talk.ask("delete it", DeleteGroupsRequest(groups_names=[group]))
    talk.ask("nothing is left", offsets(group, (topic, [0])))
    talk.ask("it comes back", beat(group, FIRST, 0, topics=[topic]))
    wait_for_partitions(talk, group, FIRST, 2, [topic], 1)
    talk.ask("it has begun", offsets(group, (topic, [0])))


@conversation(DESCRIBE)
def partitions_that_cannot_be(talk: Talk) -> None:
    topic, group = talk.topic("t"), talk.name("g")
    talk.ask("negative", offsets(group, (topic, [-1])))
    talk.ask("negative, and an unknown topic", offsets(group, (topic, [0, -1]), ("nowhere-at-all", [0])))
    talk.ask_in_vain("unknown", offsets(group, (topic, [7])))


@conversation(DESCRIBE, ALTER, DELETE)
def faults(talk: Talk) -> None:
    topic = talk.topic("t")
    group, consumers = at_once(talk), talk.name("consumers")
    talk.quietly(join(consumers, FIRST, topic))
    talk.ask("describe: nothing", offsets(group))
    talk.ask("describe: no group at all", describing.DescribeShareGroupOffsetsRequest())
    talk.ask("describe: an unknown topic", offsets(group, ("nowhere-at-all", [0, 1])))
    talk.ask("describe: no name", all_offsets(""))
    talk.ask("describe: a consumer group", all_offsets(consumers))
    talk.ask("alter: no name", alter("", (topic, {0: 1})))
    talk.ask("alter: nothing", alter(group))
    talk.ask("alter: an unknown topic", alter(group, ("nowhere-at-all", {0: 1})))
    talk.ask("alter: an unknown partition", alter(group, (topic, {7: 1})))
    talk.ask("alter: a consumer group", alter(consumers, (topic, {0: 1})))
    talk.ask("delete: no name", delete("", topic))
    talk.ask("delete: nothing", delete(group))
    talk.ask("delete: an unknown topic", delete(group, "nowhere-at-all"))
    talk.ask("delete: a consumer group", delete(consumers, topic))
    talk.ask("delete: no such group", delete(talk.name("nobody"), topic))
