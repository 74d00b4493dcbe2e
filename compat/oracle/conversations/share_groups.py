"""Share groups (KIP-932): ShareGroupHeartbeat and ShareGroupDescribe, from the first member on."""

import time
from collections.abc import Sequence
from typing import Final

from compat.oracle.conversation import conversation
from compat.oracle.conversations.consumer_groups import configure, grow, join
from compat.oracle.preparing import Topic
from compat.oracle.talk import Talk
from protocol.api_keys import ApiKey
from protocol.messages.delete_groups import DeleteGroupsRequest
from protocol.messages.describe_groups import DescribeGroupsRequest
from protocol.messages.list_groups import ListGroupsRequest
from protocol.messages.share_group_describe import ShareGroupDescribeRequest
from protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest

BEAT: Final = ApiKey.SHARE_GROUP_HEARTBEAT
DESCRIBE: Final = ApiKey.SHARE_GROUP_DESCRIBE

FIRST, SECOND, THIRD = "first", "second", "third"


def beat(
    group: str,
    member: str,
    epoch: int,
    *,
    topics: Sequence[Topic | str] | None = None,
    rack: str | None = None,
) -> ShareGroupHeartbeatRequest:
    names = None
    if topics is not None:
        names = [topic.name if isinstance(topic, Topic) else topic for topic in topics]
    return ShareGroupHeartbeatRequest(
        group_id=group, member_id=member, member_epoch=epoch, rack_id=rack, subscribed_topic_names=names
    )


def describe(*groups: str, with_operations: bool = False) -> ShareGroupDescribeRequest:
    return ShareGroupDescribeRequest(group_ids=list(groups), include_authorized_operations=with_operations)


def at_once(talk: Talk, name: str = "g") -> str:
    """The name of a group in which every change brings about a new assignment at once."""
    group = talk.name(name)
    configure(talk, group, "share.assignment.interval.ms", "0")
    return group


def wait_for_partitions(
    talk: Talk, group: str, member: str, epoch: int, topics: Sequence[Topic], count: int
) -> None:
    """Send heartbeats until the member is assigned so many partitions: their state has to be made first."""
    for _ in range(100):
        answer = talk.quietly(beat(group, member, epoch, topics=topics))
        assert not answer.error_code, answer
        if sum(len(each.partitions) for each in answer.assignment.topic_partitions) == count:
            return
        epoch = answer.member_epoch
        time.sleep(0.1)
    raise AssertionError(f"{member} of {group} is not assigned {count} partitions")


@conversation(BEAT, DESCRIBE)
def one_member(talk: Talk) -> None:
    topic = talk.topic("t", 3)
    group = at_once(talk)
    talk.ask("join", beat(group, FIRST, 0, topics=[topic]))
    wait_for_partitions(talk, group, FIRST, 2, [topic], 3)
    talk.ask("heartbeat of the epoch before", beat(group, FIRST, 2))
    talk.ask("describe", describe(group))
    talk.ask("heartbeat again", beat(group, FIRST, 3))
    talk.ask("of the epoch before", beat(group, FIRST, 2))
    talk.ask("of an older epoch", beat(group, FIRST, 1))
    talk.ask("of a newer epoch", beat(group, FIRST, 4))
    talk.ask("a full heartbeat", beat(group, FIRST, 3, topics=[topic]))
    talk.ask("of a stranger", beat(group, SECOND, 3))
    talk.ask("from another rack", beat(group, FIRST, 3, rack="elsewhere"))
    talk.ask("without topics", beat(group, FIRST, 3, topics=[]))
    talk.ask("describe without topics", describe(group))
    talk.ask("join again", beat(group, FIRST, 0, topics=[topic]))
    talk.ask("a stranger leaves", beat(group, SECOND, -1))
    talk.ask("leave", beat(group, FIRST, -1))
    talk.ask("describe when empty", describe(group, with_operations=True))
    talk.ask("heartbeat after leaving", beat(group, FIRST, 3))
    talk.ask("leave again", beat(group, FIRST, -1))
    talk.ask("come back", beat(group, FIRST, 0, topics=[topic]))
    talk.ask("describe at last", describe(group))


@conversation(BEAT, DESCRIBE)
def several_members(talk: Talk) -> None:
    topic, other = talk.topic("t", 1), talk.topic("other", 2)
    group = at_once(talk)
    talk.ask("the first joins", beat(group, FIRST, 0, topics=[topic]))
    wait_for_partitions(talk, group, FIRST, 2, [topic], 1)
    talk.ask("the first is assigned", beat(group, FIRST, 3, topics=[topic]))
    talk.ask("the second joins", beat(group, SECOND, 0, topics=[topic]))
    talk.ask("the first goes on", beat(group, FIRST, 3))
    talk.ask("the third reads one topic", beat(group, THIRD, 0, topics=[other]))
    wait_for_partitions(talk, group, THIRD, 5, [other], 2)
    talk.ask("the third goes on", beat(group, THIRD, 6))
    talk.ask("the third reads both", beat(group, THIRD, 6, topics=[other, topic]))
    talk.ask("the third reads one again", beat(group, THIRD, 7, topics=[other]))
    talk.ask("the second leaves", beat(group, SECOND, -1))
    talk.ask("the third has the news", beat(group, THIRD, 8))
    talk.ask("the first has the news", beat(group, FIRST, 4))
    talk.ask("describe the group", describe(group, with_operations=True))


@conversation(BEAT, DESCRIBE)
def more_members_than_partitions(talk: Talk) -> None:
    topic = talk.topic("t", 1)
    group = at_once(talk)
    talk.ask("one", beat(group, FIRST, 0, topics=[topic]))
    wait_for_partitions(talk, group, FIRST, 2, [topic], 1)
    talk.ask("one again", beat(group, FIRST, 3))
    talk.ask("two", beat(group, SECOND, 0, topics=[topic]))
    talk.ask("three", beat(group, THIRD, 0, topics=[topic]))
    talk.ask("everybody", describe(group))


@conversation(BEAT, DESCRIBE)
def topics_that_change(talk: Talk) -> None:
    topic = talk.topic("t", 1)
    group = at_once(talk)
    talk.ask("nothing there yet", beat(group, FIRST, 0, topics=["nowhere-at-all"]))
    talk.ask("another topic", beat(group, FIRST, 2, topics=[topic]))
    wait_for_partitions(talk, group, FIRST, 3, [topic], 1)
    talk.ask("it is assigned", beat(group, FIRST, 4))
    grow(talk, topic, 3)
    talk.ask("it has grown", beat(group, FIRST, 4))
    wait_for_partitions(talk, group, FIRST, 5, [topic], 3)
    talk.ask("more is assigned", beat(group, FIRST, 6))
    talk.ask("describe more", describe(group))
    talk.delete_topic(topic)
    talk.ask("it is gone", beat(group, FIRST, 6))
    talk.ask("it stays gone", beat(group, FIRST, 7))
    talk.ask("describe nothing", describe(group))


@conversation(BEAT, DESCRIBE)
def faults(talk: Talk) -> None:
    topic = talk.topic("t", 1)
    group = talk.name("g")
    talk.ask("no member", beat(group, "", 0, topics=[topic]))
    talk.ask("a blank member", beat(group, " ", 0, topics=[topic]))
    talk.ask("a member of 37 letters", beat(group, "m" * 37, 0, topics=[topic]))
    talk.ask("no group", beat("", FIRST, 0, topics=[topic]))
    talk.ask("a blank rack", beat(group, FIRST, 0, topics=[topic], rack=" "))
    talk.ask("null topics", beat(group, FIRST, 0))
    talk.ask("no topics", beat(group, FIRST, 0, topics=[]))
    talk.ask("epoch -2", beat(group, FIRST, -2))
    talk.ask("no such group", beat(group, FIRST, 1))
    talk.ask("leave no such group", beat(group, FIRST, -1))
    talk.ask("describe no such group", describe(group, ""))
    talk.ask("describe none", describe())


@conversation(BEAT, DESCRIBE)
def kinds_of_groups(talk: Talk) -> None:
    topic = talk.topic("t", 1)
    consumers, sharers = talk.name("consumers"), at_once(talk, "sharers")
    talk.quietly(join(consumers, FIRST, topic))
    talk.ask("join a consumer group", beat(consumers, SECOND, 0, topics=[topic]))
    talk.ask("describe a consumer group", describe(consumers))
    talk.ask("join", beat(sharers, FIRST, 0, topics=[topic]))
    talk.ask("a consumer joins", join(sharers, SECOND, topic))
    talk.ask("list", ListGroupsRequest(types_filter=["share"]), version=5)
    talk.ask("describe as a classic group", DescribeGroupsRequest(groups=[sharers]))
    talk.ask("delete with a member", DeleteGroupsRequest(groups_names=[sharers]))


@conversation(BEAT)
def a_full_group(talk: Talk) -> None:
    topic = talk.topic("t", 1)
    group = at_once(talk)
    for number in range(200):
        talk.quietly(beat(group, f"member-{number}", 0, topics=[topic]))
    talk.ask("one too many", beat(group, FIRST, 0, topics=[topic]))
